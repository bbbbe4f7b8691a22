"""A server with Ansible and kubespray, as far as our scripts look at it: its files, and who has which directory."""

from __future__ import annotations

import io
import tarfile
from pathlib import PurePosixPath

from slipway.remote.output import Result
from slipway.simulator.cluster.host import SimulatedHost

ROOT = "/opt/kubespray"  # where it has kubespray, and nowhere else
MARK = ".slipway"
PARTS = ("keys", "callback", "group_vars", "host_vars", "known_hosts", "hosts.yaml")
TAKEN = 65
DONE = Result(0, b"", b"")


def facts(host: SimulatedHost, root: str, inventory: str) -> Result:
    if root != ROOT:
        return _printed(["root absent"])
    lines = ["ansible 2.18.6", "sshpass there", "kubespray 2.32.0", "minimal 2.18.0", "maximal 2.19.0"]
    if _there(host, inventory):
        lines.append(f"inventory {owner(host, inventory) or 'foreign'}")
    return _printed(lines)


def claim(host: SimulatedHost, inventory: str, instance: str) -> Result:
    if _there(host, inventory) and owner(host, inventory) != instance:
        return Result(TAKEN, b"", f"{inventory} exists\n".encode())
    for parent in PurePosixPath(inventory).parents:
        if owner(host, str(parent)):
            return Result(1, b"", f"it is within {parent}, which is another VNF's inventory\n".encode())
    host.write(f"{inventory}/{MARK}", f"{instance}\n")
    return DONE


def write(host: SimulatedHost, inventory: str, instance: str, archive: bytes) -> Result:
    if owner(host, inventory) != instance:
        return Result(TAKEN, b"", f"{inventory} is not of this VNF\n".encode())
    for path in [path for path in host.files if path.startswith(tuple(f"{inventory}/{part}" for part in PARTS))]:
        del host.files[path]
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for entry in tar:
            if file := tar.extractfile(entry):
                host.write(f"{inventory}/{entry.name}", file.read(), entry.mode)
    return DONE


def remove(host: SimulatedHost, inventory: str, instance: str) -> Result:
    if owner(host, inventory) == instance:
        for path in [path for path in host.files if path.startswith(f"{inventory}/")]:
            del host.files[path]
    return DONE


def follow(host: SimulatedHost, path: str, known: str, most: str) -> Result:
    file = host.files.get(path)
    return Result(0, file.content[int(known) :][: int(most)] if file else b"", b"")


def last(host: SimulatedHost, path: str, most: str) -> Result:
    file = host.files.get(path)
    return Result(0, file.content[-int(most) :] if file else b"", b"")


def runs(host: SimulatedHost, prefix: str, which: str = "all") -> list[str]:
    """Here a run has ended as soon as it is there."""
    return [name for name in host.jobs if name.startswith(prefix)] if which == "all" else []


def owner(host: SimulatedHost, inventory: str) -> str | None:
    mark = host.files.get(f"{inventory}/{MARK}")
    return mark.content.decode().strip() if mark else None


def _there(host: SimulatedHost, inventory: str) -> bool:
    return any(path.startswith(f"{inventory}/") for path in host.files)


def _printed(lines: list[str]) -> Result:
    return Result(0, "".join(f"{line}\n" for line in lines).encode(), b"")
