"""One step as one line, and a plan's steps as lines that fit on the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway.cli.output import brief, clean, table, text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

MARKS = {
    "WAITING": ("·", "dim"),
    "RUNNING": ("›", "cyan"),
    "DONE": ("✓", "green"),
    "FAILED": ("✗", "bold red"),
    "UNDOING": ("‹", "cyan"),
    "UNDONE": ("↺", "yellow"),
    "UNDO_FAILED": ("✗", "bold red"),
}
# What a person wants to see when not all of it fits: first what broke, then what runs.
URGENCY = ("FAILED", "UNDO_FAILED", "RUNNING", "UNDOING", "DONE", "UNDONE", "WAITING")
BUSY = frozenset({"RUNNING", "UNDOING"})
HEADROOM = 4
NODES_SHOWN = 3


def on_nodes(step: dict[str, Any], said: str) -> str:
    """The nodes that a step touches, unless its name says it already."""
    nodes = [clean(node) for node in step.get("nodes") or ()]
    if not nodes or (len(nodes) == 1 and nodes[0] in said):
        return ""
    more = f" and {len(nodes) - NODES_SHOWN} more" if len(nodes) > NODES_SHOWN else ""
    return f"on {', '.join(nodes[:NODES_SHOWN])}{more}"


def line(step: dict[str, Any], seconds: float | None = None) -> str:
    """✓ make machine workerNode-2  0.4 s"""
    mark, _ = MARKS.get(step["state"], ("?", ""))
    parts = [f"{mark} {clean(step['id'])}"]
    if where := on_nodes(step, parts[0]):
        parts.append(where)
    seconds = step.get("durationSeconds") if seconds is None else seconds
    if seconds is not None:
        parts.append(f"{seconds:.1f} s")
    if step.get("progress"):
        parts.append(clean(step["progress"]))
    if (step.get("attempt") or 0) > 1:
        parts.append(f"attempt {step['attempt']}")
    if step["state"].startswith("UND"):
        parts.append(step["state"].replace("_", " ").lower())
    if step.get("error") and step["state"] != "DONE":
        parts.append(clean(step["error"]))
    return "  ".join(parts)


def steps_table(steps: list[dict[str, Any]]) -> RenderableType:
    columns = {"STEP": "", "STATE": "", "NODES": "", "ATTEMPT": "", "SECONDS": "", "ERROR": "red"}
    return table(columns, (_row(step) for step in steps))


def _row(step: dict[str, Any]) -> tuple[object, ...]:
    mark, _ = MARKS.get(step["state"], ("?", ""))
    seconds = step.get("durationSeconds")
    return (
        f"{mark} {step['id']}",
        step["state"],
        brief(", ".join(step.get("nodes", ()))),
        step.get("attempt"),
        None if seconds is None else f"{seconds:.1f}",
        brief(step.get("error")),
    )


def visible(steps: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """As many steps as there is room for, the urgent ones rather than others, in the plan's order."""
    if len(steps) <= room:
        return steps
    rank = {state: number for number, state in enumerate(URGENCY)}
    urgent = sorted(range(len(steps)), key=lambda at: (rank.get(steps[at]["state"], 0), at))
    return [steps[at] for at in sorted(urgent[: max(room, 1)])]


class LiveView:
    """Lines that change in place."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._begun: dict[tuple[str, int], float] = {}
        self._live: Live | None = None

    def __enter__(self) -> LiveView:
        from rich.live import Live

        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="ellipsis")
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.__exit__(None, None, None)

    def show(self, journal: dict[str, Any]) -> None:
        if self._live:
            self._live.update(self._render(journal), refresh=True)

    def _render(self, journal: dict[str, Any]) -> RenderableType:
        from rich.console import Group

        steps = journal["steps"]
        shown = visible(steps, self._console.height - HEADROOM)
        done = sum(step["state"] in ("DONE", "UNDONE") for step in steps)
        head = f"{journal['operationState']}  {done} of {len(steps)} steps"
        hidden = len(steps) - len(shown)
        head += f", {hidden} not shown" if hidden else ""
        return Group(text(head, "bold"), *(self._line(step) for step in shown))

    def _line(self, step: dict[str, Any]) -> RenderableType:
        _, style = MARKS.get(step["state"], ("?", ""))
        drawn = text(line(step, self._elapsed(step)), style)
        drawn.no_wrap = step["state"] not in ("FAILED", "UNDO_FAILED")
        drawn.overflow = "ellipsis"
        return drawn

    def _elapsed(self, step: dict[str, Any]) -> float | None:
        """A running step's time by our own clock; the server's may differ."""
        if step["state"] not in BUSY:
            return None
        now = self._clock()
        return now - self._begun.setdefault((step["id"], step.get("attempt") or 0), now)
