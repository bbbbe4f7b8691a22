"""`slipway vnf kubeconfig|ssh`: the ways into a VNF that is a Kubernetes cluster."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli.describe import addresses
from slipway.cli.errors import CliError
from slipway.cli.lookup import find_vnf
from slipway.cli.output import Format
from slipway.cli.paths import CLUSTERS, item_path
from slipway.cli.session import Session, command
from slipway.cli.start_operation import Name
from slipway.cli.vnf import app
from slipway.model.access import DEFAULT_KUBE_TOKEN, LONGEST_KUBE_TOKEN

MOST_HOURS = LONGEST_KUBE_TOKEN // timedelta(hours=1)
DEFAULT_HOURS = DEFAULT_KUBE_TOKEN // timedelta(hours=1)
_KNOWN_HOST = re.compile(r"[0-9A-Fa-f.:]+ [a-z0-9-]+ [A-Za-z0-9+/]+=*", re.ASCII)


@command(app, "kubeconfig", example="slipway vnf kubeconfig mycluster --to cluster.conf")
def kubeconfig(
    session: Session,
    name: Name,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it; NAME.kubeconfig if unsaid, - for stdout.")
    ] = None,
    hours: Annotated[int, typer.Option(min=1, max=MOST_HOURS, help="How long it can be used.")] = DEFAULT_HOURS,
) -> None:
    """Write a kubeconfig of the cluster, readable by you alone. It opens everything in the cluster, for some hours."""
    vnf = find_vnf(session.client, name).body
    lifetime = {"lifetime_seconds": str(hours * 3600)}
    found = session.client.get(item_path(CLUSTERS, vnf["id"], "kubeconfig"), lifetime).body
    text, expires = found["kubeconfig"], found["expires"]
    if to == Path("-"):
        session.output.show({"kubeconfig": text, "expires": expires}, lambda: text.rstrip("\n"))
        return
    target = to or Path(f"{_file_name(vnf)}.kubeconfig")
    _write_private(target, text)
    line = f"wrote {target}, valid until {expires}; try: kubectl --kubeconfig {target} get nodes"
    session.output.show({"file": str(target), "expires": expires}, lambda: line)


@command(app, "ssh", example="slipway vnf ssh mycluster workerNode-1 -i ~/.ssh/id_ed25519 -- uptime")
def ssh(
    session: Session,
    name: Name,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The machine, as `slipway vnf describe` names it.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="What to run there instead of a shell.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-l", help="Who to log in as; ssh's own default if unsaid.")
    ] = None,
    identity: Annotated[Path | None, typer.Option("--identity", "-i", metavar="FILE", help="Your key.")] = None,
) -> None:
    """Log in to a machine of the VNF with your own key or password; its host key is checked against the record.

    With `-o json` or `-o yaml` it does not log in, but prints the machine's address and host key.
    """
    vnf = find_vnf(session.client, name).body
    machine = _machine(vnf, node)
    address = next(iter(addresses(machine)), None)
    if address is None:
        raise CliError(f"{node} has no address.")
    key = (machine.get("metadata") or {}).get("hostKey")
    if session.output.form is not Format.TABLE:
        session.output.show({"name": node, "address": address, "hostKey": key}, lambda: "")
        return
    arguments = ["ssh", *_pinned(key, address)]
    if identity:
        arguments += ["-i", str(identity)]
    if user:
        arguments += ["-l", user]
    try:
        os.execvp("ssh", [*arguments, address, *(words or ())])  # noqa: S606 - a list, no shell
    except FileNotFoundError:
        raise CliError("There is no ssh on this machine: install OpenSSH's client.") from None


def _machine(vnf: dict[str, Any], node: str) -> dict[str, Any]:
    machines = (vnf.get("instantiatedVnfInfo") or {}).get("vnfcResourceInfo") or ()
    named: dict[str, dict[str, Any]] = {(one.get("metadata") or {}).get("name") or one["id"]: one for one in machines}
    if node not in named:
        raise CliError(f"The VNF has no machine {node!r}; it has: {', '.join(named) or 'none'}.")
    return named[node]


def _pinned(key: str | None, address: str) -> list[str]:
    """Accepts only the host key in the record, where the VIM reported one. No file is left behind."""
    if key is None:
        return []
    line = f"{address} {key}"
    if not _KNOWN_HOST.fullmatch(line):
        raise CliError("The host key from the server is not valid.")
    options = ("StrictHostKeyChecking=yes", "UserKnownHostsFile=/dev/null", f"KnownHostsCommand=/bin/echo {line}")
    return [word for option in options for word in ("-o", option)]


def _file_name(vnf: dict[str, Any]) -> str:
    named = str(vnf.get("vnfInstanceName") or vnf["id"])
    return "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in named).lstrip(".") or vnf["id"]


def _write_private(target: Path, text: str) -> None:
    """Never readable by others, not even for a moment; an older file's wider mode does not stay."""
    part = target.with_name(f".{target.name}.part")
    try:
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:  # noqa: PTH123
            file.write(text)
        part.replace(target)
    except OSError as error:
        raise CliError(f"{target} can't be written: {error.strerror}.") from None
