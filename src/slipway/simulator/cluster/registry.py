"""A registry on a simulated host, and how other hosts of the VIM meet it: by curl, and by containerd.

What is on a host's disk decides: a certificate is checked as TLS does it, a login against the users' file. Passwords
there are in clear, in a database that is encrypted as a whole. Images outlive the host on a volume that is mounted.
"""

from __future__ import annotations

import hashlib
import io
import ipaddress
import json
import re
import sqlite3
import tarfile
import tomllib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from slipway.registry.configuration import CERTIFICATE, CONFIGURATION, DATA, UNIT, USERS
from slipway.remote.output import Result
from slipway.simulator.cluster.host import SimulatedHost, find_host, is_running

FILES = "/var/lib/slipway/files"
PROGRAM = "/usr/bin/docker-registry"
HOSTS, SLIPWAY_HOSTS = "/etc/hosts", "/etc/slipway/hosts"
DONE = Result(0, b"", b"")
HTTPS_WANTED = 400  # no exit code: the server answers, by HTTP
_OPTION = re.compile(r'^([a-z-]+) = "((?:[^"\\]|\\.)*)"$', re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """Where somebody looks for a registry, and what for."""

    url: str
    authority: bytes | None
    authorization: str | None
    names: Mapping[str, str]  # addresses by name, as /etc/hosts has them


class Refused(Exception):
    """As curl says it: an exit code and words."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code, self.said = code, said


# On the registry's own host.


def received(host: SimulatedHost, file: str) -> Result:
    found = host.files.get(f"{FILES}/{file}.part")
    return _printed(str(len(found.content) if found else 0))


def install_package(host: SimulatedHost, file: str) -> Result:
    host.files.pop(f"{FILES}/{file}.part", None)
    host.write(PROGRAM, b"")
    return _printed(PROGRAM)


def install_image(host: SimulatedHost, how: str, what: str, name: str) -> Result:
    if how == "sent":
        sent = host.files.pop(f"{FILES}/{what}.part", None)
        if sent is None or not _listed(sent.content):
            return Result(1, b"", f"{name} holds no image that /usr/bin/podman takes\n".encode())
    return _printed(f"/usr/bin/podman {hashlib.sha256(what.encode()).hexdigest()}")


def write_users(host: SimulatedHost, users: bytes) -> Result:
    host.write(USERS, users)
    return DONE


def serve(host: SimulatedHost, scheme: str, port: str, directory: str) -> Result:
    if CONFIGURATION not in host.files or UNIT not in host.files:
        return Result(1, b"", b"Unit slipway-registry.service not found.\n")
    host.serves = int(port)
    return DONE


def listing(host: SimulatedHost, archive: str) -> Result:
    sent = host.files.get(f"{FILES}/{archive}.part")
    members = _listed(sent.content) if sent else None
    if members is None:
        return Result(2, b"", b"tar: This does not look like a tar archive\n")
    return Result(0, "".join(f"{len(content)} {name}\n" for name, content in members.items()).encode(), b"")


def member(host: SimulatedHost, archive: str, name: str, limit: str) -> Result:
    members = _listed(host.files[f"{FILES}/{archive}.part"].content) or {}
    host.write(f"{FILES}/{archive}.member", members[name][: int(limit)])
    return _printed(f"{FILES}/{archive}.member")


def forget(host: SimulatedHost, archive: str) -> Result:
    for ending in ("part", "member", "document", "login"):
        host.files.pop(f"{FILES}/{archive}.{ending}", None)
    return DONE


def push_blob(host: SimulatedHost, archive: str, name: str, repository: str, digest: str, url: str) -> Result:
    found = host.files.get(f"{FILES}/{archive}.document") if name == "-" else None
    content = found.content if found else (_listed(host.files[f"{FILES}/{archive}.part"].content) or {})[name]
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        return Result(1, b"", f"the registry refused {digest} with HTTP 400: DIGEST_INVALID\n".encode())
    return DONE


def push_manifest(
    db: sqlite3.Connection,
    host: SimulatedHost,
    archive: str,
    repository: str,
    reference: str,
    media_type: str,
    digest: str,
    url: str,
) -> Result:
    images = _images(db, host) | {f"{repository}:{reference}": digest}
    body = msgspec.json.encode(images)
    if volume := _volume(host):
        db.execute("INSERT OR REPLACE INTO volume_content VALUES (?, sealed(?))", (volume, body))
    else:
        host.write(f"{DATA}/images", body)
    return DONE


def _images(db: sqlite3.Connection, host: SimulatedHost) -> dict[str, str]:
    if volume := _volume(host):
        row = db.execute("SELECT unsealed(body) FROM volume_content WHERE resource_id = ?", (volume,)).fetchone()
        return msgspec.json.decode(row[0], type=dict[str, str]) if row else {}
    kept = host.files.get(f"{DATA}/images")
    return msgspec.json.decode(kept.content, type=dict[str, str]) if kept else {}


def _volume(host: SimulatedHost) -> str | None:
    return host.mounts.get(DATA)


def _listed(content: bytes) -> dict[str, bytes] | None:
    """Plain files by name; None when it is no archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            opened = {entry.name: archive.extractfile(entry) for entry in archive if entry.isfile()}
            return {name: file.read() for name, file in opened.items() if file}
    except (tarfile.TarError, EOFError, OSError):
        return None


# On a node.


def apply_registries(host: SimulatedHost, servers: Sequence[str]) -> Result:
    for path in list(host.files):
        if any(path.startswith(f"/etc/containerd/certs.d/{server}/") for server in servers):
            del host.files[path]
    names = host.files.get(SLIPWAY_HOSTS)
    host.write(HOSTS, names.content if names else b"")
    return DONE


def pull(db: sqlite3.Connection, host: SimulatedHost, image: str, directory: str) -> Result:
    server, _, wanted = image.partition("/")
    told = host.files.get(f"{directory}/{server}/hosts.toml")
    if told is None:
        return Result(1, b"", b"ctr: no hosts.toml\n")
    entry = tomllib.loads(told.content.decode())
    authority = host.files.get(entry.get("ca", ""))
    authorization = entry.get("header", {}).get("Authorization")
    place = Place(entry["server"], authority.content if authority else None, authorization, _names(host))
    try:
        registry = _registry_at(db, place)
        _check_login(registry, place)
    except Refused as refused:
        return Result(1, b"", f"ctr: failed to resolve reference: {refused.said}\n".encode())
    if wanted not in _images(db, registry):
        return Result(1, b"", f"ctr: failed to resolve reference {image!r}: {image}: not found\n".encode())
    return DONE


def curl(db: sqlite3.Connection, host: SimulatedHost, config: str) -> Result:
    """A question to a registry, as `curl --config -` is told."""
    options = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _OPTION.findall(config)}
    resolved = [value.split(":", 2) for name, value in _OPTION.findall(config) if name == "resolve"]
    names = _names(host) | {name: address for name, _, address in resolved}
    authority = host.files.get(options.get("cacert", ""))
    login = options.get("user")
    place = Place(options["url"], authority.content if authority else None, login, names)
    try:
        registry = _registry_at(db, place)
    except Refused as refused:
        if refused.code == HTTPS_WANTED:
            return Result(0, f"HTTP/1.0 400 Bad Request\r\n\r\n{refused.said}\n".encode(), b"")
        return Result(refused.code, b"", f"curl: ({refused.code}) {refused.said}\n".encode())
    users = _users(registry)
    if users and login not in users:
        return Result(0, b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="registry"\r\n\r\n', b"")
    return Result(0, b"HTTP/1.1 200 OK\r\n\r\n{}", b"")


def _registry_at(db: sqlite3.Connection, place: Place) -> SimulatedHost:
    found = re.match(r"(https?)://([^/:]+)(?::(\d+))?", place.url)
    if found is None:
        raise Refused(3, "URL rejected: Malformed input to a URL function")
    scheme, name, port = found[1], found[2], int(found[3] or (443 if found[1] == "https" else 80))
    address = place.names.get(name, name)
    if not _is_address(address):
        raise Refused(6, f"Could not resolve host: {name}")
    for (machine,) in db.execute(
        "SELECT machine_id FROM port WHERE address = ? AND machine_id IS NOT NULL", (address,)
    ):
        if is_running(db, machine) and (registry := find_host(db, machine)).serves == port:
            _check_tls(registry, scheme, name, place.authority)
            return registry
    raise Refused(7, f"Failed to connect to {name} port {port}: connection refused")


def _check_tls(registry: SimulatedHost, scheme: str, name: str, authority: bytes | None) -> None:
    has = "tls" in json.loads(registry.files[CONFIGURATION].content)["http"]
    if scheme == "https" and not has:
        raise Refused(35, "error:0A00010B:SSL routines::wrong version number")
    if scheme == "http" and has:
        raise Refused(HTTPS_WANTED, "Client sent an HTTP request to an HTTPS server.")
    if not has:
        return
    certificate = x509.load_pem_x509_certificate(registry.files[CERTIFICATE].content)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    called = x509.IPAddress(ipaddress.ip_address(name)) if _is_address(name) else x509.DNSName(name)
    try:
        if authority is None:
            raise ValueError
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
    except (ValueError, TypeError, InvalidSignature):
        said = "SSL certificate problem: x509: certificate signed by unknown authority"
        raise Refused(60, said) from None
    if called not in names:
        raise Refused(60, f"SSL: no alternative certificate subject name matches target host name {name!r}")


def _check_login(registry: SimulatedHost, place: Place) -> None:
    users = _users(registry)
    given = b64decode((place.authorization or "Basic ").removeprefix("Basic ")).decode()
    if users and given not in users:
        raise Refused(22, "unexpected status: 401 Unauthorized")


def _users(registry: SimulatedHost) -> list[str]:
    file = registry.files.get(USERS)
    return file.content.decode().splitlines() if file else []


def _names(host: SimulatedHost) -> dict[str, str]:
    file = host.files.get(HOSTS)
    lines = [line.split() for line in file.content.decode().splitlines()] if file else []
    return {name: address for address, *names in lines for name in names}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _printed(line: str) -> Result:
    return Result(0, f"{line}\n".encode(), b"")
