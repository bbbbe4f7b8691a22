"""All that a check or a planner may look at. Both are pure: the same situation gives the same plan, shown or run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.grant import Granting
from slipway.model.instance import Instance
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest
from slipway.model.target import Change


@dataclass(frozen=True)
class Situation:
    """What is known of an operation before its VIM is asked: enough to check it, and to record how it ended."""

    operation: OperationType
    request: AnyRequest
    instance: Instance
    descriptor: Descriptor
    flavour: Flavour
    files: frozenset[str] = frozenset()  # of the package, beside its VNFD: what parameters may name
    flavour_before: Flavour | None = None  # of the package that it had, where another takes its place
    granting: Granting | None = None  # what an NFVO was asked and what it answered, where there is one
    files_before: frozenset[str] = frozenset()  # of the package that it had, where another takes its place

    @property
    def additional_params(self) -> dict[str, Any]:
        """Of the request."""
        return self.request.additional_params

    def planning(self, found: Found, change: Change) -> PlanningSituation:
        return PlanningSituation(
            self.operation,
            self.request,
            self.instance,
            self.descriptor,
            self.flavour,
            self.files,
            self.flavour_before,
            self.granting,
            self.files_before,
            found=found,
            change=change,
        )


@dataclass(frozen=True, kw_only=True)
class PlanningSituation(Situation):
    """Once the VIM was asked: what is there, and what the operation makes of it. Hooks are planned with it."""

    found: Found
    change: Change
