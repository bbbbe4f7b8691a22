"""A context of a kubeconfig, as what a VIM wants to know. The files it names are read here, where they are; no program
it names is run: the server could not, and what it printed would not be renewed.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any

from slipway.cli.errors import CliError

Document = dict[str, Any]


def read_kubeconfig(config: Document, context: str | None, path: Path) -> tuple[Document, Document]:
    """interfaceInfo and accessInfo. `path` is where the file is: what it names is beside it."""
    name = context or config.get("current-context")
    if not name:
        raise CliError(f"{path} has no current context; choose one by --context: {_known(config)}.")
    chosen = _named(config, "contexts", "context", name)
    if chosen is None:
        raise CliError(f"{path} has no context {name!r}; it has: {_known(config)}.")
    reader = _Reader(path, str(name))
    cluster = _named(config, "clusters", "cluster", chosen.get("cluster"))
    user = _named(config, "users", "user", chosen.get("user"))
    if cluster is None or user is None:
        what = "cluster" if cluster is None else "user"
        raise reader.error(f"its {what} {chosen.get(what)!r} is not there")
    access = reader.access(user)
    if namespace := reader.text(chosen, "namespace"):
        access["namespace"] = namespace
    return reader.interface(cluster), access


class _Reader:
    def __init__(self, path: Path, context: str) -> None:
        self._path, self._context = path, context

    def interface(self, cluster: Document) -> Document:
        if cluster.get("proxy-url"):
            raise self.error("it asks for a proxy (proxy-url), which Slipway does not use")
        server = self.text(cluster, "server")
        if not server:
            raise self.error("its cluster has no server")
        found: Document = {"endpoint": server}
        if cluster.get("insecure-skip-tls-verify"):
            found["skipCertificateVerification"] = True
        elif ca := self.material(cluster, "certificate-authority"):
            found["ssl_ca_cert"] = ca
        if name := self.text(cluster, "tls-server-name"):
            found["tls_server_name"] = name
        return found

    def access(self, user: Document) -> Document:
        if user.get("exec"):
            raise self.error(
                "it runs a program for its credentials (exec), which a server can't; make a token that lasts, for "
                "example by `kubectl create token`, or a client certificate"
            )
        if user.get("auth-provider"):
            raise self.error("it asks a plugin (auth-provider); give a token, or OIDC's parameters by --access")
        found: Document = {}
        token = self.text(user, "token")
        if not token and (file := self.text(user, "tokenFile")):
            token = self.file(file, "tokenFile").strip()
        if token:
            found["bearer_token"] = token
        certificate, key = self.material(user, "client-certificate"), self.material(user, "client-key")
        if certificate and key:
            found |= {"client_certificate": certificate, "client_key": key}
        username, password = self.text(user, "username"), self.text(user, "password")
        if username and password and not token:
            found |= {"username": username, "password": password}
        if not found:
            raise self.error("its user has no token, no client certificate with its key, and no password")
        return found

    def material(self, part: Document, name: str) -> str | None:
        """A certificate or key: in the file as base64, or in a file of its own. The former goes first."""
        if data := self.text(part, f"{name}-data"):
            try:
                return base64.b64decode(data, validate=True).decode("ascii")
            except (binascii.Error, ValueError):
                raise self.error(f"there is no base64 of PEM in {name}-data") from None
        file = self.text(part, name)
        return self.file(file, name) if file else None

    def file(self, name: str, of: str) -> str:
        path = self._path.parent / Path(name).expanduser()
        try:
            return path.read_text(encoding="ascii")
        except OSError as error:
            raise self.error(f"{of} {path} can't be read: {os.strerror(error.errno or 0)}") from None
        except UnicodeDecodeError:
            raise self.error(f"{of} {path} holds no text") from None

    def text(self, part: Document, name: str) -> str | None:
        value = part.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{name} must be a string; put it in quotes")
        return value or None

    def error(self, what: str) -> CliError:
        return CliError(f"Context {self._context!r} of {self._path} can't be used: {what}.")


def _named(config: Document, plural: str, singular: str, name: object) -> Document | None:
    entries = config.get(plural)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(found := entry.get(singular), dict):
            return found
    return None


def _known(config: Document) -> str:
    entries = config.get("contexts")
    names = [str(one.get("name")) for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    return ", ".join(names) or "none"
