"""A plan as people read it before they approve: the steps in the order they can run, and what they do to the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.cli.output import Output, clean, text
from slipway.cli.step_view import on_nodes

if TYPE_CHECKING:
    from rich.console import RenderableType

SIGNS = {"make": ("+", "green"), "change": ("~", "yellow"), "remove": ("-", "red")}


def show_plan(output: Output, plan: dict[str, Any]) -> None:
    output.show(plan, lambda: _view(plan))


def summary(plan: dict[str, Any]) -> str:
    """2 to make, 0 to change, 1 to remove"""
    return ", ".join(f"{len(plan.get(verb) or ())} to {verb}" for verb in SIGNS)


def waves(steps: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Steps that can run at once stand together, after all those they wait for."""
    left = {step["id"]: step for step in steps}
    result = []
    while left:
        ready = [step for step in left.values() if not set(step.get("after") or ()) & left.keys()]
        ready = ready or list(left.values())  # a circle can't be run, but it can be shown
        result.append(ready)
        for step in ready:
            del left[step["id"]]
    return result


def _view(plan: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.tree import Tree

    steps = plan.get("steps") or []
    tree = Tree(text(f"{len(steps)} steps" if len(steps) != 1 else "1 step", "bold"), guide_style="dim")
    for number, wave in enumerate(waves(steps), 1):
        together = " (at once)" if len(wave) > 1 else ""
        branch = tree.add(text(f"{number}.{together}", "bold"))
        for step in wave:
            _add_step(branch, step)
    note = [text(clean(plan["note"]))] if plan.get("note") else []
    return Group(tree, *note, text(f"Plan: {summary(plan)}. Nothing was changed.", "bold"))


def _add_step(branch: Any, step: dict[str, Any]) -> None:
    line = text(step["id"])
    if where := on_nodes(step, line.plain):
        line.append(f"  {where}", "dim")
    leaf = branch.add(line)
    for effect in step.get("effects") or ():
        sign, style = SIGNS.get(effect.get("verb"), ("*", ""))
        leaf.add(text(f"{sign} {effect.get('verb')} {effect.get('kind')} {effect.get('name')}", style))
