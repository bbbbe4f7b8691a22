"""`slipway token`: access tokens, their roles and projects."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from slipway.cli.output import short_time, table
from slipway.cli.paths import TOKENS, item_path
from slipway.cli.session import Session, command

app = typer.Typer(no_args_is_help=True)


class RoleName(StrEnum):
    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"


@command(app, "add", example="slipway token add ci --role operator --project blue")
def add(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is: what to call it when it is taken back.")],
    role: Annotated[
        RoleName,
        typer.Option(
            metavar="ROLE",
            help="`reader` looks, `operator` changes things, `admin` gives tokens and fetches kubeconfigs.",
        ),
    ],
    project: Annotated[
        str | None, typer.Option(help="The one project whose things it sees and makes; all projects if unsaid.")
    ] = None,
) -> None:
    """Make a token for a person or a program. It is printed once, and never again."""
    body = {"name": name, "role": role.value} | ({"project": project} if project else {})
    made = session.client.post(TOKENS, body).body
    session.output.show(made, lambda: str(made["token"]))
    if session.output.for_people:
        session.output.note(
            f"The token {name} ({role.value}, {_where(made)}) is shown this once. Use it as SLIPWAY_TOKEN, "
            "or in a file that --token-file names; other clients send it as 'X-Auth-Token' or as "
            "'Authorization: Bearer'."
        )


@command(app, "list", example="slipway token list")
def list_tokens(session: Session) -> None:
    """All tokens that were given. The one made at the first start is not among them."""
    found = session.client.get(TOKENS).body
    columns = {"ID": "", "NAME": "bold", "ROLE": "", "PROJECT": "", "CREATED": ""}
    session.output.show(found, lambda: table(columns, (_row(token) for token in found)))


@command(app, "remove", example="slipway token remove ci")
def remove(
    session: Session, name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name or id.")]
) -> None:
    """Take a token back. Who sends it is refused from now on; by other API processes after some seconds."""
    session.client.delete(item_path(TOKENS, name))
    session.output.show({"name": name, "deleted": True}, lambda: f"Removed token {name}.")


def _where(token: dict[str, Any]) -> str:
    return f"project {token['project']}" if token.get("project") else "all projects"


def _row(token: dict[str, Any]) -> tuple[object, ...]:
    project = token.get("project") or "(all)"
    return token["id"], token["name"], token["role"], project, short_time(token.get("createdAt"))
