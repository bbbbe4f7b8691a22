"""All that a planner may look at. Planners are pure: the same situation gives the same plan, shown or run."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.grant import Granting
from slipway.model.instance import Instance
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest
from slipway.model.target import Change


@dataclass(frozen=True)
class Situation:
    operation: OperationType
    request: AnyRequest
    instance: Instance
    descriptor: Descriptor
    flavour: Flavour
    found: Found
    files: frozenset[str] = frozenset()  # of the package, beside its VNFD: what parameters may name
    change: Change | None = None  # what the operation makes of it; hooks plan with it
    flavour_before: Flavour | None = None  # of the package that it had, where another takes its place
    granting: Granting | None = None  # what an NFVO was asked and what it answered, where there is one
