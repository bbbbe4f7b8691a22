"""`slipway op`: lifecycle operations, their steps, and the decisions a person takes when one has failed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from slipway.cli.lookup import find_vnf
from slipway.cli.output import brief, facts, short_time, table
from slipway.cli.paths import OPERATIONS, STEPS, WITH_ERRORS, equals, item_path
from slipway.cli.progress import watch
from slipway.cli.session import Session, command
from slipway.cli.start_operation import Wait, follow_operation
from slipway.cli.step_view import steps_table

app = typer.Typer(no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="The operation's id.")]


@command(app, "list", example="slipway op list --vnf mycluster --state FAILED_TEMP")
def list_operations(
    session: Session,
    vnf: Annotated[str | None, typer.Option(metavar="NAME", help="Of this VNF only.")] = None,
    state: Annotated[str | None, typer.Option(help="In this state only: PROCESSING, FAILED_TEMP, ...")] = None,
) -> None:
    """Operations, newest first."""
    wanted = {"vnfInstanceId": find_vnf(session.client, vnf).body["id"]} if vnf else {}
    if state:
        wanted["operationState"] = state.upper()
    found = list(session.client.pages(OPERATIONS, WITH_ERRORS | (equals(**wanted) if wanted else {})))
    found.sort(key=lambda operation: str(operation.get("startTime")), reverse=True)
    columns = {"ID": "", "OPERATION": "bold", "STATE": "", "VNF": "", "STARTED": "", "ERROR": "red"}
    session.output.show(found, lambda: table(columns, (_row(operation) for operation in found)))


@command(app, "show", example="slipway op show 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def show(session: Session, operation: Id) -> None:
    """One operation: what was asked, how it stands, what it changed."""
    found = session.client.get(item_path(OPERATIONS, operation)).body
    session.output.show(found, lambda: _facts(found))


@command(app, "steps", example="slipway op steps 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def steps(session: Session, operation: Id) -> None:
    """The steps of an operation and how each went."""
    journal = session.client.get(item_path(STEPS, operation, "steps")).body
    session.output.show(journal, lambda: steps_table(journal["steps"]))


@command(app, "wait", example="slipway op wait 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def wait_for(session: Session, operation: Id) -> int:
    """Watch an operation until it ends. Exit code 0 if it completed."""
    return watch(session, operation)


@command(app, "retry", example="slipway op retry 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def retry(session: Session, operation: Id, wait: Wait = True) -> int:
    """Go on from what failed."""
    session.client.post(item_path(OPERATIONS, operation, "retry"))
    return follow_operation(session, operation, wait=wait)


@command(app, "rollback", example="slipway op rollback 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def rollback(session: Session, operation: Id, wait: Wait = True) -> int:
    """Undo what was done, newest first. Exit code 0 once it is rolled back."""
    session.client.post(item_path(OPERATIONS, operation, "rollback"))
    return follow_operation(session, operation, wait=wait, wanted=frozenset({"ROLLED_BACK"}))


@command(app, "fail", example="slipway op fail 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def fail(session: Session, operation: Id) -> None:
    """Give up on an operation and leave things as they are."""
    session.client.post(item_path(OPERATIONS, operation, "fail"))
    found = session.client.get(item_path(OPERATIONS, operation)).body
    session.output.show(found, lambda: f"{found['operation']} {found['operationState']}.")


@command(app, "cancel", example="slipway op cancel 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10 --forceful")
def cancel(
    session: Session,
    operation: Id,
    forceful: Annotated[
        bool, typer.Option("--forceful", help="Break off running steps, rather than let them end.")
    ] = False,
    wait: Wait = True,
) -> int:
    """Stop an operation. It then is in FAILED_TEMP, or is rolled back if it had not begun. Exit code 0 if so."""
    mode = "FORCEFUL" if forceful else "GRACEFUL"
    session.client.post(item_path(OPERATIONS, operation, "cancel"), {"cancelMode": mode})
    return follow_operation(session, operation, wait=wait, wanted=frozenset({"FAILED_TEMP", "ROLLED_BACK"}))


def _row(operation: dict[str, Any]) -> tuple[object, ...]:
    return (
        operation["id"],
        operation["operation"],
        operation["operationState"],
        operation.get("vnfInstanceId"),
        short_time(operation.get("startTime")),
        brief((operation.get("error") or {}).get("detail")),
    )


def _facts(operation: dict[str, Any]) -> Any:
    changes = operation.get("resourceChanges") or {}
    affected = [f"{one.get('changeType')} {one.get('vduId')}" for one in changes.get("affectedVnfcs") or ()]
    return facts(
        [
            ("Error", (operation.get("error") or {}).get("detail")),
            ("Operation", operation["id"]),
            ("Kind", operation["operation"]),
            ("State", operation["operationState"]),
            ("Cancel pending", "yes" if operation.get("isCancelPending") else None),
            ("VNF", operation.get("vnfInstanceId")),
            ("Started", short_time(operation.get("startTime"))),
            ("State since", short_time(operation.get("stateEnteredTime"))),
            ("Asked", operation.get("operationParams")),
            ("VNFCs", ", ".join(affected)),
            ("Changed", operation.get("changedInfo")),
        ]
    )
