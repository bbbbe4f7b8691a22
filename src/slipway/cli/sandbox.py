"""`slipway sandbox`: the machines on this machine. It works on the engine itself, with or without a server."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli.errors import CliError, ItemNotFound
from slipway.cli.output import table
from slipway.cli.paths import INSTANCES
from slipway.cli.session import Session, command

if TYPE_CHECKING:
    from slipway.model.machine import FoundMachine
    from slipway.vim.sandbox.engine_operations import EngineOperations
    from slipway.vim.sandbox.engines import Engines
    from slipway.vim.sandbox.inventory import Holdings

app = typer.Typer(no_args_is_help=True)
image_app = typer.Typer(no_args_is_help=True)
app.add_typer(image_app, name="image", help="The images that machines are made from.")

DataDir = Annotated[
    Path | None, typer.Option("--data-dir", envvar="SLIPWAY_DATA_DIR", metavar="DIR", help="Where Slipway keeps data.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A machine: its name or its id.")]


class ImageName(StrEnum):
    MACHINE = "machine"
    KUBERNETES = "kubernetes"


@app.callback()
def sandbox() -> None:
    """Machines on this machine: containers with systemd and SSH."""


@image_app.callback()
def image() -> None:
    """The images that machines are made from."""


@command(app, "check", example="slipway sandbox check", local=True)
def check(session: Session, data_dir: DataDir = None) -> int:
    """Say what this machine lacks to hold machines (✗) or clusters of them (–), and what cures it. Changes nothing."""
    from dataclasses import asdict

    from slipway.vim.sandbox.checks import Host, findings

    engines = _engines(data_dir)
    try:
        found = findings(engines, Host())
    finally:
        engines.close()
    columns = {"": "bold", "WHAT": "", "FOUND": "", "CURE": ""}
    rows = [("✓" if one.fine else "–" if one.optional else "✗", one.what, one.detail, one.cure) for one in found]
    session.output.show([asdict(one) for one in found], lambda: table(columns, rows))
    return 0 if all(one.fine or one.optional for one in found) else 1


@command(image_app, "build", example="slipway sandbox image build kubernetes", local=True, formats=False)
def build(
    session: Session,
    names: Annotated[
        list[ImageName] | None, typer.Argument(metavar="[NAME]...", help="`machine`, the default, or `kubernetes`.")
    ] = None,
    kubernetes: Annotated[
        list[str] | None,
        typer.Option("--kubernetes", metavar="VERSION", help="A version in the image `kubernetes`; repeatable."),
    ] = None,
    site: Annotated[
        str,
        typer.Option(
            "--releases",
            envvar="SLIPWAY_KUBERNETES_RELEASES",
            metavar="URL",
            help="Where Kubernetes' release files are asked for; `none` builds them from Go modules.",
        ),
    ] = "https://dl.k8s.io/release",
    anew: Annotated[bool, typer.Option("--anew", help="From the packages of today, even if there is one.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Make an image: `machine` from Debian's packages, in a minute or two; `kubernetes` with clusters' programs too."""
    import time

    from slipway.vim.sandbox.connection import LOCAL
    from slipway.vim.sandbox.image.engine_images import ensure_image, ensure_kubernetes

    begun = time.monotonic()

    def say(stage: str) -> None:
        session.output.say(f"{time.monotonic() - begun:5.0f} s  {stage}")

    wanted = names or ([ImageName.KUBERNETES] if kubernetes else [ImageName.MACHINE])
    if kubernetes and ImageName.KUBERNETES not in wanted:
        raise CliError("--kubernetes is about the image `kubernetes`, which is not named.")
    engines = _engines(data_dir)
    try:
        operations = engines.operations(LOCAL)
        for name in wanted:
            if name is ImageName.MACHINE:
                done = ensure_image(operations.engine, engines.paths, operations.locks, say, anew=anew)
            else:
                source = None if site == "none" else site
                done = ensure_kubernetes(
                    operations.engine, engines.paths, operations.locks, say, kubernetes or (), anew=anew, site=source
                )
            say(f"the {name} image is " + ("ready" if done else "there already; --anew makes it again"))
    finally:
        engines.close()


@command(app, "ls", example="slipway sandbox ls", local=True)
def ls(session: Session, data_dir: DataDir = None) -> None:
    """List the machines, whichever instance they belong to."""
    with _Open(data_dir) as operations:
        found = _everything(operations)
    machines = [(instance, one) for instance, holdings in found.items() for one in holdings.machines]
    documents = [
        {
            "name": one.name,
            "id": one.id,
            "instance": instance,
            "ready": one.ready,
            "addresses": [port.address for port in one.ports],
            "hostKey": one.host_key,
        }
        for instance, one in machines
    ]
    columns = {"NAME": "bold", "STATE": "", "ADDRESSES": "", "VOLUMES": "", "INSTANCE": "", "ID": ""}
    rows = [
        (
            one.name,
            "runs" if one.ready else "stopped",
            " ".join(port.address or "?" for port in one.ports),
            len(one.volumes),
            instance,
            one.id,
        )
        for instance, one in machines
    ]
    session.output.show(documents, lambda: table(columns, rows))


@command(app, "ssh", example="slipway sandbox ssh workerNode-1 -- uptime", local=True, formats=False)
def ssh(
    session: Session,
    name: Name,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="What to run there instead of a shell.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Log in to a machine as the user slipway, its host key checked."""
    engines = _engines(data_dir)
    with _Open(data_dir) as operations:
        machine = _machine(_everything(operations), name)
        address = _reachable(operations, machine)
    known = engines.paths.runtime / "known_hosts" / machine.resource_id[:12]
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text(f"{address} {machine.host_key}\n")
    options = {"UserKnownHostsFile": str(known), "StrictHostKeyChecking": "yes", "LogLevel": "ERROR"}
    arguments = ["ssh", "-i", str(engines.paths.key)]
    for option, value in options.items():
        arguments += ["-o", f"{option}={value}"]
    try:
        os.execvp("ssh", [*arguments, f"slipway@{address}", *(words or ())])  # noqa: S606 - a list, no shell
    except FileNotFoundError:
        raise CliError("There is no ssh on this machine: apt-get install openssh-client") from None


@command(app, "logs", example="slipway sandbox logs workerNode-1 --lines 50", local=True, formats=False)
def logs(
    session: Session,
    name: Name,
    lines: Annotated[int, typer.Option(min=1, max=100_000, help="How many, from the end.")] = 100,
    data_dir: DataDir = None,
) -> None:
    """Print a machine's journal; what the engine has kept of it when it doesn't run."""
    with _Open(data_dir) as operations:
        machine = _machine(_everything(operations), name)
        if machine.ready:
            _, said = operations.engine.execute(
                machine.resource_id, ["journalctl", "--no-pager", "--lines", str(lines)]
            )
        else:
            said = operations.engine.logs(machine.resource_id, lines)
    for line in said.splitlines():
        session.output.say(line)


@command(app, "kill", example="slipway sandbox kill workerNode-1", local=True)
def kill(session: Session, name: Name, data_dir: DataDir = None) -> None:
    """Cut a machine's power, to see what happens. A heal makes it anew."""
    with _Open(data_dir) as operations:
        machine = _machine(_everything(operations), name)
        operations.engine.kill(machine.resource_id)
    session.output.show({"name": machine.name, "id": machine.id}, lambda: f"{machine.name} has no power any more.")


@command(app, "prune", example="slipway sandbox prune --yes")
def prune(
    session: Session,
    everything: Annotated[bool, typer.Option("--all", help="Whosever it is; no server is asked.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> None:
    """Remove machines, networks, ports and volumes of instances that the server does not know."""
    from slipway.vim.sandbox.inventory import remove, remove_outside

    with _Open(session.server.data_dir) as operations:
        found = _everything(operations)
        known = set() if everything else {str(one["id"]) for one in session.client.pages(INSTANCES)}
        orphans = {instance: holdings for instance, holdings in found.items() if instance not in known}
        for instance, holdings in orphans.items():
            session.output.say(f"{instance}: {', '.join(holdings.names())}")
        if orphans and not yes:
            typer.confirm(f"Remove what {len(orphans)} instances left?", abort=True, err=True)
        for instance, holdings in orphans.items():
            remove(operations, instance, holdings)
        if everything:
            remove_outside(operations)
    gone: dict[str, Any] = {instance: holdings.names() for instance, holdings in orphans.items()}
    said = f"Removed what {len(gone)} instances left." if gone else "There is nothing without an owner."
    session.output.show(gone, lambda: said)


@command(app, "stop", example="slipway sandbox stop", local=True, formats=False)
def stop(session: Session, data_dir: DataDir = None) -> None:
    """End the engine that Slipway started. It must hold no machines."""
    engines = _engines(data_dir)
    if engines.service.process() is None:
        session.output.say("Slipway has no engine running.")
        return
    with _Open(data_dir) as operations:
        if held := sum(len(holdings.machines) for holdings in _everything(operations).values()):
            raise CliError(
                f"The engine holds {held} machines. Terminate their instances, or: slipway sandbox prune --all"
            )
    engines.service.stop()
    session.output.say("The engine has ended.")


def _engines(data_dir: Path | None) -> Engines:
    from slipway.settings import load_settings
    from slipway.vim.sandbox.engines import Engines
    from slipway.vim.sandbox.paths import SandboxPaths, default_cache

    settings = load_settings(overrides={"data_dir": data_dir})
    return Engines(SandboxPaths(settings.sandbox_path, default_cache()))


class _Open:
    """The operations on this sandbox's engine, closed in the end."""

    def __init__(self, data_dir: Path | None) -> None:
        self._engines = _engines(data_dir)

    def __enter__(self) -> EngineOperations:
        from slipway.vim.sandbox.connection import LOCAL

        return self._engines.operations(LOCAL)

    def __exit__(self, *_: object) -> None:
        self._engines.close()


def _everything(operations: EngineOperations) -> dict[str, Holdings]:
    from slipway.vim.sandbox.inventory import everything

    return everything(operations)


def _machine(found: dict[str, Holdings], name: str) -> FoundMachine:
    machines = [one for holdings in found.values() for one in holdings.machines if name in (one.name, one.id)]
    if not machines:
        raise ItemNotFound(f"There is no machine {name!r}. `slipway sandbox ls` shows what there is.")
    if len(machines) > 1:
        ids = ", ".join(one.id for one in machines)
        raise ItemNotFound(f"{len(machines)} machines have the name {name!r}: {ids}. Name one by its id.")
    return machines[0]


def _reachable(operations: EngineOperations, machine: FoundMachine) -> str:
    from slipway.vim.sandbox.readiness import reachable

    address = reachable(operations, machine)
    if address is None:
        raise CliError(f"No address of {machine.name} can be reached from here: its networks have ranges of others.")
    return address
