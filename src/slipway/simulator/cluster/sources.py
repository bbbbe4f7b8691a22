"""Packages and files on a simulated host. A program is a text there: kubeadm's is its version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from slipway.cluster.versions import SYNTAX
from slipway.remote.output import Result
from slipway.simulator.cluster.host import SimulatedHost

LIST = "/etc/apt/sources.list.d/slipway-kubernetes.list"
FILES = "/var/lib/slipway/files"
DONE = Result(0, b"", b"")


def packages(host: SimulatedHost, version: str, how: str, *names: str) -> Result:
    if LIST not in host.files:
        return Result(100, b"", b"E: Unable to locate package kubelet\n")
    if how == "install":
        host.version = version
    if how == "place":
        for name in names:
            host.write(f"/usr/bin/{name}", version, 0o755)
    return DONE


def absent(host: SimulatedHost, digests: Sequence[str]) -> Result:
    there = [digest for digest in digests if not {_place(digest), _place(digest, ".done")} & host.files.keys()]
    return Result(0, "".join(f"{digest}\n" for digest in there).encode(), b"")


def receive(host: SimulatedHost, digest: str, offset: str, piece: bytes) -> Result:
    before = host.files.get(_place(digest, ".part"))
    host.write(_place(digest, ".part"), (before.content if before else b"")[: int(offset)] + piece)
    return DONE


def install_programs(host: SimulatedHost, arguments: Sequence[str]) -> Result:
    """As the script: all are checked before any is in place. What a URL brings is always the right file."""
    version, *arguments = arguments
    for name, digest, url in _files(arguments):
        sent = host.files.pop(_place(digest, ".part"), None)
        if url != "-" or _place(digest, ".done") in host.files:
            continue
        if _place(digest) not in host.files:
            content = sent.content if sent else b""
            if (found := hashlib.sha256(content).hexdigest()) != digest:
                said = f"its SHA-256 digest is {found}, and {digest} was expected\n"
                return Result(65, b"", f"{name} is not the file that was meant: {said}".encode())
            host.write(_place(digest), content)
        held = host.files[_place(digest)].content
        if version and name == "kubeadm" and held.decode() != version:
            return Result(65, b"", f"kubeadm is v{held.decode()}, and v{version} is wanted\n".encode())
    for name, digest, _ in _files(arguments):
        program = host.files.get(_place(digest))
        if name != "images":
            host.write(_place(digest, ".done"), b"")
            host.files.pop(_place(digest), None)
        if program and name == "kubeadm" and version:
            host.write(f"/opt/kubernetes/{version}/bin/kubeadm", program.content, 0o755)
        elif program and name == "kubeadm" and SYNTAX.fullmatch(program.content.decode()):
            host.version = program.content.decode()
        if program and name == "helm":
            host.write("/usr/local/bin/helm", program.content, 0o755)
    return DONE


def import_file(host: SimulatedHost, digest: str) -> Result:
    host.files.pop(_place(digest), None)
    host.write(_place(digest, ".done"), b"")
    return DONE


def _place(digest: str, ending: str = "") -> str:
    return f"{FILES}/{digest}{ending}"


def _files(arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    return zip(arguments[::3], arguments[1::3], arguments[2::3], strict=True)
