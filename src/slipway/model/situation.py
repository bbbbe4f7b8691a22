"""All that a planner may look at. Planners are pure: the same situation gives the same plan, shown or run."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.grant import Granting
from slipway.model.instance import Instance
from slipway.model.machine import Found, Wanted
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest


@dataclass(frozen=True)
class Situation:
    operation: OperationType
    request: AnyRequest
    instance: Instance
    descriptor: Descriptor
    flavour: Flavour
    found: Found
    files: frozenset[str] = frozenset()  # of the package, beside its VNFD: what parameters may name
    wanted: Wanted | None = None  # what the operation will have made of it; hooks plan with it
    granting: Granting | None = None  # what an NFVO was asked and what it answered, where there is one

    def new_id(self, *names: str) -> str:
        """An id for something to be made: the same each time it is asked for, until the instance's record changes."""
        place = "/".join((*names, str(self.instance.version)))
        return str(uuid.uuid5(uuid.UUID(self.instance.vnf.id), place))
