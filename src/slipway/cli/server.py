"""`slipway serve|api|worker` and `slipway secrets`: thin calls into the server, imported only then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slipway.cli.session import Session, command

if TYPE_CHECKING:
    from slipway.app import ProcessRole

secrets_app = typer.Typer(no_args_is_help=True)

Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="The port to listen on; 0 chooses a free one.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="Where everything is kept.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML.")]
NoAuth = Annotated[bool, typer.Option("--no-auth", help="Ask for no token; on a loopback address only.")]
Sandbox = Annotated[
    bool | None,
    typer.Option(
        "--sandbox/--no-sandbox",
        help="Whether VIMs may be this machine itself; unless told, only while none but its own users reach the API, "
        "by Slipway's own tokens or none.",
    ),
]


def add_servers(app: typer.Typer) -> None:
    """At the top of the command line, beside the nouns."""

    @command(app, "serve", example="slipway serve --port 9890 --data-dir ./data", local=True, formats=False)
    def serve(
        session: Session,
        host: Host = None,
        port: Port = None,
        data_dir: DataDir = None,
        config: Config = None,
        no_auth: NoAuth = False,
        sandbox: Sandbox = None,
    ) -> None:
        """Run API and worker in one process until it is told to stop."""
        _serve("all", config, host=host, port=port, data_dir=data_dir, auth=_auth(no_auth), sandbox=sandbox)

    @command(app, "api", example="slipway api --config slipway.toml --port 9890", local=True, formats=False)
    def api(
        session: Session,
        host: Host = None,
        port: Port = None,
        data_dir: DataDir = None,
        config: Config = None,
        no_auth: NoAuth = False,
        sandbox: Sandbox = None,
    ) -> None:
        """Run an API process; workers run beside it on the same PostgreSQL."""
        _serve("api", config, host=host, port=port, data_dir=data_dir, auth=_auth(no_auth), sandbox=sandbox)

    @command(app, "worker", example="slipway worker --config slipway.toml", local=True, formats=False)
    def worker(session: Session, data_dir: DataDir = None, config: Config = None, sandbox: Sandbox = None) -> None:
        """Run a worker process; any number may run on the same PostgreSQL."""
        _serve("worker", config, data_dir=data_dir, sandbox=sandbox)


@secrets_app.callback()
def secrets() -> None:
    """Stored secrets."""


@command(secrets_app, "rotate", example="slipway secrets rotate --data-dir ./data", local=True)
def rotate(session: Session, data_dir: DataDir = None, config: Config = None) -> None:
    """Close all stored secrets with a new key and forget the old ones. The server may run meanwhile."""
    from slipway.settings import load_settings
    from slipway.store.database import Database
    from slipway.store.secrets import Vault

    settings = load_settings(config, {"data_dir": data_dir})
    database = Database(settings.database)
    try:
        moved = Vault(settings.key_path).rotate(database)
    finally:
        database.close()
    session.output.show({"rotated": moved}, lambda: f"Closed {moved} secrets with a new key.")


def _auth(no_auth: bool) -> bool | None:
    """What the option says; nothing when it is not there, so that the settings file has its say."""
    return False if no_auth else None


def _serve(role: ProcessRole, config: Path | None, **overrides: object) -> None:
    from slipway.serving import serve
    from slipway.settings import load_settings

    serve(load_settings(config, overrides), role=role)
