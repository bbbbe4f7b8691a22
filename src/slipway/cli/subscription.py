"""`slipway subscription`: subscribers, and the state of their notifications."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli.assignments import FILE_HINT, read_mapping, secrets
from slipway.cli.errors import CliError
from slipway.cli.output import facts, table
from slipway.cli.paths import DELIVERIES, item_path
from slipway.cli.session import Session, command

app = typer.Typer(no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="The subscription's id.")]
INTERFACES = ("vnflcm/v1", "vnflcm/v2", "vnfpkgm/v1")


@command(app, "add", example="slipway subscription add https://noc.example/told --filter-file failures.yaml")
def add(
    session: Session,
    callback: Annotated[str, typer.Argument(metavar="URL", help="Where to call; it must answer a GET with 204.")],
    interface: Annotated[str, typer.Option(help=f"What it is about: {', '.join(INTERFACES)}.")] = "vnflcm/v2",
    filter_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"What to notify of, in YAML or JSON; {FILE_HINT}.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="A name to log in with there.")] = None,
    password_file: Annotated[Path | None, typer.Option(metavar="FILE", help="A file with its password.")] = None,
) -> None:
    """Subscribe to changes. Without a filter: to all of them."""
    if interface not in INTERFACES:
        raise typer.BadParameter(f"{interface!r} must be one of: {', '.join(INTERFACES)}.", param_hint="--interface")
    if (user is None) != (password_file is None):
        raise typer.BadParameter("a name needs a password, and a password a name.", param_hint="--user")
    body: dict[str, Any] = {"callbackUri": callback}
    if filter_file:
        body["filter"] = read_mapping(filter_file, "--filter-file")
    if user and password_file:
        password = secrets([f"password=@{password_file}"], "--password-file")[0]["password"]
        body["authentication"] = {"authType": ["BASIC"], "paramsBasic": {"userName": user, "password": password}}
    made = session.client.post(f"/{interface}/subscriptions", body).body
    session.output.show(made, lambda: f"Subscription {made['id']}: {callback} is notified.")


@command(app, "remove", example="slipway subscription remove 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def remove(session: Session, subscription: Id) -> None:
    """Remove a subscription. Pending notifications are dropped."""
    for interface in INTERFACES:
        known = {one["id"] for one in session.client.pages(f"/{interface}/subscriptions")}
        if subscription in known:
            session.client.delete(item_path(f"/{interface}/subscriptions", subscription))
            session.output.show({"id": subscription, "deleted": True}, lambda: f"Removed subscription {subscription}.")
            return
    raise CliError(f"There is no subscription {subscription}. `slipway subscription list` shows them.")


@command(app, "list", example="slipway subscription list")
def list_subscriptions(session: Session) -> None:
    """All subscriptions: to lifecycle changes in both versions, and to changes of packages."""
    found = [
        {"interface": interface, **one}
        for interface in INTERFACES
        for one in session.client.pages(f"/{interface}/subscriptions")
    ]
    columns = {"ID": "", "INTERFACE": "", "CALLBACK": "bold", "FILTER": ""}
    session.output.show(found, lambda: table(columns, (_row(one) for one in found)))


@command(app, "show", example="slipway subscription show 5b2f1d3e-6c0b-4a57-9a53-1f6c0e5b7a10")
def show(session: Session, subscription: Id) -> None:
    """The deliveries to a subscriber: what is pending, what failed and why."""
    found = session.client.get(item_path(DELIVERIES, subscription, "delivery")).body
    session.output.show(found, lambda: _facts(subscription, found))


def _row(subscription: dict[str, Any]) -> tuple[object, ...]:
    wanted = subscription.get("filter")
    return subscription["id"], subscription["interface"], subscription["callbackUri"], wanted or "everything"


def _facts(subscription: str, found: dict[str, Any]) -> Any:
    return facts(
        [
            ("Subscription", subscription),
            ("Waiting", found["pending"]),
            ("Delivered", found["delivered"]),
            ("Given up", found["givenUp"]),
            ("Failures in a row", found.get("failuresInARow", 0)),
            ("Last error", found.get("lastError")),
        ]
    )
