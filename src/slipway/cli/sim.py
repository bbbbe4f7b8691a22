"""`slipway sim`: make a simulated VIM slow, broken or lying, to see how things go then."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli.assignments import FILE_HINT, assignments, read_document
from slipway.cli.output import table
from slipway.cli.paths import VIMS, item_path
from slipway.cli.session import Session, command

app = typer.Typer(no_args_is_help=True)

STRING_FIELDS = frozenset({"asked", "call", "machine", "kind", "fault", "message"})


@app.callback()
def sim() -> None:
    """Faults of simulated VIMs."""


@command(
    app,
    "rules",
    example="slipway sim rules lab --add 'call=make_machine,machine=workerNode-*,kind=error,fault=temporary,times=1'",
)
def rules(
    session: Session,
    vim: Annotated[str, typer.Argument(metavar="VIM", help="The simulated VIM's name or id.")],
    replace: Annotated[
        Path | None, typer.Option("--set", metavar="FILE", help=f"Rules instead of those there are; {FILE_HINT}.")
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE", help="One more rule: call=CALL,kind=KIND,...; repeatable. All begin to count anew."
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="No rules any more.")] = False,
) -> None:
    """Show the rules for faults of a simulated VIM, or change them."""
    if sum(map(bool, (replace, add, clear))) > 1:
        raise typer.BadParameter("one of these at a time.", param_hint="--set / --add / --clear")
    path = item_path(VIMS, vim, "rules")
    if clear:
        session.client.delete(path)
    elif replace:
        session.client.put(path, _read(replace))
    elif add:
        more = [parse_rule(one, "--add") for one in add]
        session.client.put(path, [*session.client.get(path).body, *more])
    found = session.client.get(path).body
    columns = {"CALL": "", "KIND": "bold", "MACHINE": "", "NTH": "", "TIMES": "", "MORE": ""}
    session.output.show(found, lambda: table(columns, (_row(rule) for rule in found)))


def parse_rule(given: str, option: str) -> dict[str, Any]:
    """call=make_machine,kind=error,nth=2; a message may hold commas if it comes last."""
    head, message, rest = given.partition("message=")
    pairs = [part for part in head.split(",") if part]
    rule = assignments(pairs, option)
    rule = {key: str(value) if key in STRING_FIELDS else value for key, value in rule.items()}
    if message:
        rule["message"] = rest
    if "kind" not in rule:
        raise typer.BadParameter(f"the rule {given!r} has no kind.", param_hint=option)
    return rule


def _read(path: Path) -> list[Any]:
    document = read_document(path, "--set")
    if not isinstance(document, list):
        raise typer.BadParameter(f"{path} holds no list of rules.", param_hint="--set")
    return document


def _row(rule: dict[str, Any]) -> tuple[object, ...]:
    shown = ("call", "kind", "machine", "nth", "times")
    more = " ".join(f"{key}={value}" for key, value in rule.items() if key not in shown)
    return rule.get("call", "*"), rule["kind"], rule.get("machine"), rule.get("nth", 1), rule.get("times"), more
