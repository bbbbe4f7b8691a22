"""What a run of Ansible has reported so far: where it is, what it counted, and why it failed, as Ansible said it.

The callback (callback/slipway_events.py) writes the events; this reads them. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.model.secrets import masked
from slipway.remote.output import readable

MOST_FAILURES = 5
LONGEST_MESSAGE = 600
LONGEST_NAME = 80
LONGEST_KEPT = 4000  # of a message: what the callback cuts, a server that is not ours may not
MOST_HOSTS = 5000  # whose failures are kept


@dataclass(frozen=True)
class Failure:
    """`host` is the name in the inventory."""

    host: str
    task: str
    message: str
    unreachable: bool = False


@dataclass
class RunReport:
    """Events added up. A failure that a rescue took back is none; what Ansible's own count says is what holds.

    `failures`: the last of each host. `failed`: hosts that have done nothing since: Ansible gave them up.
    """

    play: str = ""
    task: str = ""
    tasks: int = 0
    host: str = ""
    ok: int = 0
    changed: int = 0
    failures: dict[str, Failure] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    stats: dict[str, dict[str, int]] | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        kind = event.get("event")
        if kind == "play":
            self.play = str(event.get("name", ""))
        elif kind == "task":
            self.task, self.tasks, self.host = str(event.get("name", "")), self.tasks + 1, ""
        elif kind == "ok":
            self.host = _host(event)
            self.failed.discard(self.host)
            self.ok += 1
            self.changed += bool(event.get("changed"))
        elif kind in ("failed", "unreachable") and not event.get("ignored"):
            self.host = _host(event)
            if len(self.failures) < MOST_HOSTS or self.host in self.failures:
                message = str(event.get("message", ""))[:LONGEST_KEPT]
                failure = Failure(self.host, str(event.get("task", "")), message, kind == "unreachable")
                self.failures.pop(self.host, None)  # in the order of the last ones
                self.failures[self.host] = failure
                self.failed.add(self.host)
        elif kind == "stats" and isinstance(event.get("hosts"), dict):
            self.stats = {host: counts for host, counts in event["hosts"].items() if isinstance(counts, dict)}

    def progress(self, slots: Mapping[str, str], secrets: Iterable[str] = ()) -> str:
        """One line for whoever watches, without secrets. `slots`: names in the VNF by names in the inventory."""
        where = f" on {slots.get(self.host, self.host)}" if self.host else ""
        counts = f"ok={self.ok} changed={self.changed} failed={len(self.failed)}"
        task = _line(masked(self.task, secrets), LONGEST_NAME)
        return f"task {self.tasks}: {task or 'begins'}{where} ({counts})"

    def final_failures(self) -> list[Failure]:
        """The last failure of each host that ended in one: what came before it was rescued.

        A run that was killed has no counts. Then hosts are meant that did nothing since; or all, if there are none.
        """
        if self.stats is None:
            broken = self.failed or set(self.failures)
        else:
            broken = {name for name, one in self.stats.items() if one.get("failures") or one.get("unreachable")}
        return [failure for host, failure in self.failures.items() if host in broken]

    def explanation(self, slots: Mapping[str, str], secrets: Iterable[str] = ()) -> str | None:
        """Host, task and message of each failure, as Ansible reported them, without secrets. None: it reported none."""
        found = self.final_failures()
        if not found:
            return None
        told = [_told(one, slots, secrets) for one in found[:MOST_FAILURES]]
        more = len(found) - MOST_FAILURES
        return " ".join([*told, *([f"And on {more} more hosts."] if more > 0 else [])])


def read_events(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    """What is no line of JSON is left out: the last one may be half written."""
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def _host(event: Mapping[str, Any]) -> str:
    """A name as long as any, on one line."""
    return _line(str(event.get("host", ""))[:LONGEST_KEPT], LONGEST_NAME)


def _told(failure: Failure, slots: Mapping[str, str], secrets: Iterable[str]) -> str:
    slot = slots.get(failure.host)
    host = f"{slot} ({failure.host})" if slot else failure.host
    what = "could not be reached by Ansible" if failure.unreachable else "failed"
    message = _line(masked(failure.message, secrets), LONGEST_MESSAGE).rstrip(".")  # what is cut can't be found
    return f"{host} {what} in task {_line(masked(failure.task, secrets), LONGEST_NAME)!r}: {message}."


def _line(text: str, most: int) -> str:
    plain = " | ".join(part.strip() for part in readable(text.encode(errors="replace")).splitlines() if part.strip())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
