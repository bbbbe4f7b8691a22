"""Rules for faults: latency, failures and lies that a simulated VIM shows on request, and so do its machines.

A rule picks calls, and among those that match it the n-th and so many after it. Rules are data, so that an operator
or a test changes them while everything runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from slipway.model.errors import BadRequest, VimFault

CALLS = (
    "check",
    "find",
    "get_machine",
    "make_machine",
    "rebuild_machine",
    "stop_machine",
    "remove_machine",
    "unplug",
    "make_network",
    "remove_network",
    "remove_leftovers",
    "host",  # anything that is asked of a machine itself
    "api",  # anything that is asked of the Kubernetes API on a machine
)
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
HttpError = Annotated[int, msgspec.Meta(ge=400, le=599)]


class RuleKind(StrEnum):
    LATENCY = "latency"  # the call takes `seconds`, and up to `jitter` more
    ERROR = "error"  # the call does nothing and answers with `fault` and `message`
    TIMEOUT_AFTER_WORK = "timeout_after_work"  # the call does its work, and answers as if it had not
    ERROR_THEN_ACTIVE = "error_then_active"  # the made machine is in ERROR for the first `looks`, then ACTIVE
    PARTIAL_LIST = "partial_list"  # find leaves out the machines that match `machine`, or every other one


# Lies that only one call can tell.
ONLY_IN = {RuleKind.ERROR_THEN_ACTIVE: "make_machine", RuleKind.PARTIAL_LIST: "find"}


@dataclass(frozen=True)
class FaultTarget:
    """The machine a call is about."""

    name: str
    vdu: str


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`machine` is a slot name or a glob over slot and VDU names. `times` None: always.

    `asked` is a glob over what is asked of a host ("join", "put /etc/*") or of an API ("GET /api/v1/nodes*").
    `status` is what an API answers to an error; None: it does not answer.
    """

    kind: RuleKind
    call: str = "*"
    machine: str | None = None
    asked: str | None = None
    status: HttpError | None = None
    nth: Positive = 1
    times: Positive | None = None
    seconds: Seconds = 0.0
    jitter: Seconds = 0.0
    fault: VimFault = VimFault.TEMPORARY
    message: str | None = None
    looks: Positive = 1

    def matches(self, call: str, target: FaultTarget | None, asked: str = "") -> bool:
        if ONLY_IN.get(self.kind, call) != call or self.call not in ("*", call):
            return False
        if self.asked is not None and not fnmatchcase(asked, self.asked):
            return False
        if self.machine is None or self.kind is RuleKind.PARTIAL_LIST:
            return True
        return target is not None and self.picks(target.name, target.vdu)

    def picks(self, name: str, vdu: str) -> bool:
        return self.machine is not None and (fnmatchcase(name, self.machine) or fnmatchcase(vdu, self.machine))

    def hits(self, seen: int) -> bool:
        """Whether the `seen`-th matching call, from 1, is one of those meant."""
        return self.nth <= seen and (self.times is None or seen < self.nth + self.times)


def read_rules(raw: object, field: str = "rules") -> tuple[Rule, ...]:
    """Rules from plain data or from Rules, or BadRequest naming the field."""
    try:
        rules = msgspec.convert(msgspec.to_builtins(raw), tuple[Rule, ...])
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        raise BadRequest(f"{field}{place.rstrip('`')}: {what}.") from None
    for number, rule in enumerate(rules):
        _check(rule, f"{field}[{number}]")
    return rules


def _check(rule: Rule, place: str) -> None:
    if rule.call != "*" and rule.call not in CALLS:
        raise BadRequest(f"{place}.call: there is no call {rule.call!r}; there are: *, {', '.join(CALLS)}.")
    only = ONLY_IN.get(rule.kind)
    if only and rule.call not in ("*", only):
        raise BadRequest(f"{place}.call: {rule.kind} works for {only} only, not for {rule.call}.")
    if rule.asked is not None and rule.call not in ("host", "api"):
        raise BadRequest(f"{place}.asked: works for host and api only, not for {rule.call}.")
    if rule.status is not None and rule.call != "api":
        raise BadRequest(f"{place}.status: works for api only, not for {rule.call}.")
    if rule.kind is RuleKind.LATENCY and rule.seconds + rule.jitter == 0:
        raise BadRequest(f"{place}.seconds: latency needs seconds or jitter above 0.")
