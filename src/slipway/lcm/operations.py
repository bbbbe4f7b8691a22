"""All operations by name."""

from __future__ import annotations

from slipway.lcm import change_ext_conn, change_package, heal, instantiate, modify, scale, terminate
from slipway.lcm.operation_rules import OperationRules
from slipway.model.operation import OperationType
from slipway.model.situation import Situation
from slipway.model.target import Change

OPERATIONS: dict[OperationType, OperationRules] = {
    module.RULES.operation: module.RULES
    for module in (instantiate, scale, heal, change_ext_conn, change_package, terminate, modify)
}


def change_in(situation: Situation) -> Change:
    """What the operation makes of the instance. ValueError for one that touches no VIM."""
    change = OPERATIONS[situation.operation].change
    if change is None:
        raise ValueError(f"{situation.operation} touches no VIM")
    return change(situation, situation.request)
