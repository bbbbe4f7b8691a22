"""All operations by name."""

from __future__ import annotations

from slipway.lcm import change_ext_conn, change_package, heal, instantiate, modify, scale, terminate
from slipway.lcm.rules import Rules
from slipway.model.operation import OperationType

OPERATIONS: dict[OperationType, Rules] = {
    module.RULES.operation: module.RULES
    for module in (instantiate, scale, heal, change_ext_conn, change_package, terminate, modify)
}
