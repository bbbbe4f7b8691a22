"""The command line as a whole. It starts fast: HTTP, drawing and the server are imported where they are used."""

from __future__ import annotations

import io
import sys

import typer

from slipway import __version__
from slipway.cli import (
    cluster,  # noqa: F401 - adds its commands to those of vnf
    op,
    package,
    sandbox,
    server,
    sim,
    subscription,
    token,
    vim,
    vnf,
    vnf_operations,  # noqa: F401 - adds its commands to those of vnf
)
from slipway.cli.session import Session, command

EXIT_CODES = """Exit codes: 0 it is done; 1 what was asked for failed; 2 the command line is wrong;
3 no server answers, or it does not know the token; 130 interrupted."""

app = typer.Typer(
    name="slipway",
    help="An ETSI NFV VNF Manager whose first-class network function is a Kubernetes cluster.",
    epilog=f"\b\n{EXIT_CODES}",
    no_args_is_help=True,
    rich_markup_mode=None,  # help is text, and at once there
    pretty_exceptions_enable=False,  # they would print local values, secrets among them
)
server.add_servers(app)
app.add_typer(package.app, name="package", help="VNF packages: build, check, upload, look after.")
app.add_typer(vim.app, name="vim", help="VIMs: the places VNFs run on.")
app.add_typer(vnf.app, name="vnf", help="VNF instances, and what is done with them.")
app.add_typer(op.app, name="op", help="Lifecycle operations: watch, retry, roll back, fail, cancel.")
app.add_typer(sim.app, name="sim", help="Faults of simulated VIMs.")
app.add_typer(sandbox.app, name="sandbox", help="Machines on this machine: containers with systemd and SSH.")
app.add_typer(token.app, name="token", help="Access tokens, their roles and projects.")
app.add_typer(subscription.app, name="subscription", help="Subscriptions to changes, and their deliveries.")
app.add_typer(server.secrets_app, name="secrets", help="Stored secrets.")


@command(app, "version", example="slipway version", local=True)
def version(session: Session) -> None:
    """Print the version."""
    session.output.show({"version": __version__}, lambda: f"slipway {__version__}")


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ✓ shows ?, and goes on
    app()
