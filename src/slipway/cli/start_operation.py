"""What all lifecycle commands share: options, and what follows their request: show the plan, or start and watch."""

from __future__ import annotations

from shlex import quote
from typing import Annotated, Any

import typer

from slipway.cli.errors import CliError
from slipway.cli.paths import INSTANCES, OPERATIONS, PLANS, item_path
from slipway.cli.plan_view import show_plan
from slipway.cli.progress import watch
from slipway.cli.session import Session

Name = Annotated[str, typer.Argument(metavar="NAME", help="The VNF's name or id.")]
Plan = Annotated[bool, typer.Option("--plan", help="Show what would be done, and change nothing.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Watch the operation until it ends.")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="KEY=VALUE", help="An additional parameter; JSON or text; repeatable."),
]


def start_operation(
    session: Session, vnf: dict[str, Any], operation: str, body: dict[str, Any], *, plan: bool, wait: bool
) -> int:
    """`operation` as the API's address has it: instantiate, scale, ..."""
    if plan:
        wanted = {"vnfInstanceId": vnf["id"], "operation": operation.upper(), "request": body}
        show_plan(session.output, session.client.post(PLANS, wanted).body)
        return 0
    return follow_operation(
        session, session.client.post(item_path(INSTANCES, vnf["id"], operation), body).made, wait=wait
    )


def follow_operation(
    session: Session, operation_id: str, *, wait: bool, wanted: frozenset[str] = frozenset({"COMPLETED"})
) -> int:
    """Watch an operation that has started, or say how to."""
    if wait:
        return watch(session, operation_id, wanted)
    operation = session.client.get(item_path(OPERATIONS, operation_id)).body
    session.output.show(
        operation,
        lambda: (
            f"{operation['operation']} {operation['operationState']}. Watch it: slipway op wait {quote(operation_id)}"
        ),
    )
    return 0


def vnfc_ids(vnf: dict[str, Any], names: list[str]) -> list[str]:
    """VNFCs by id, or by the name of their machine: workerNode-1."""
    info = vnf.get("instantiatedVnfInfo") or {}
    machines = {(vnfc.get("metadata") or {}).get("name"): vnfc["id"] for vnfc in info.get("vnfcResourceInfo") or ()}
    by_machine = {vnfc.get("vnfcResourceInfoId"): vnfc["id"] for vnfc in info.get("vnfcInfo") or ()}
    known = {one["id"] for key in ("vnfcInfo", "vnfcResourceInfo") for one in info.get(key) or ()}
    chosen = []
    for name in names:
        machine = machines.get(name)
        if name not in known and machine is None:
            there = ", ".join(sorted(str(one) for one in machines if one)) or "none"
            raise CliError(f"The VNF has no VNFC {name!r}; it has: {there}.")
        chosen.append(name if name in known else by_machine.get(machine, str(machine)))
    return chosen
