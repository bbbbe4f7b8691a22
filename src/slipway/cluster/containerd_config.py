"""containerd's configuration, and a `hosts.toml` for each registry that nodes pull from.

containerd reads a `hosts.toml` at every pull. A login is in its own configuration, which it reads when it starts: there
it also counts for what containerd pulls by itself, and for registries that give out tokens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import tomli_w

from slipway.cluster.parameters import HTTPS, RegistryParameters
from slipway.cluster.values import server

CONTAINERD = "/etc/containerd/config.toml"
CERTIFICATES = "/etc/containerd/certs.d"
DEFAULT_REPOSITORY = "registry.k8s.io"
# By the configuration's version. Version 4 is that of containerd 2.3, which kubespray 2.32 brings.
IMAGES_PLUGINS = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.images", 4: "io.containerd.cri.v1.images"}

Table = dict[str, Any]


class ForeignConfiguration(Exception):
    """A configuration that somebody else wrote, and that can't hold our registries. Says why."""


class RegistryHost(msgspec.Struct, frozen=True, kw_only=True):
    """A registry as containerd is told of it: the name in images, and where that name is served."""

    server: str
    url: str
    certificate: str | None = None  # the CA's file on the node


@dataclass(frozen=True)
class RegistryLogin:
    """At a registry, in clear: made for one step, never stored by us, never printed."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"RegistryLogin({self.username!r})"


def registry_host(registry: RegistryParameters, directory: str = CERTIFICATES) -> RegistryHost:
    """`directory`: where containerd, or a check, looks for what concerns registries."""
    certificate = f"{registry_directory(registry.server, directory)}/ca.crt" if registry.certificate_path else None
    return RegistryHost(server=registry.server, url=registry_url(registry), certificate=certificate)


def registry_url(registry: RegistryParameters) -> str:
    return f"{'https' if registry.connection_type == HTTPS else 'http'}://{registry.server}"


def registry_directory(name: str, directory: str = CERTIFICATES) -> str:
    """Where containerd looks for what concerns a registry. `name` is narrowed again: it becomes part of a path."""
    return f"{directory}/{server(name)}"


def hosts_toml(host: RegistryHost, authorization: str | None = None) -> str:
    """All about the server itself. As a mirror of itself it would be asked again when it has not what was asked for,
    without its CA, and a missing image would be told as an error of TLS.

    `authorization`: a header, for a check of our own; pods' logins are not here.
    """
    entry: Table = {"server": host.url, "capabilities": ["pull", "resolve"]}
    if host.certificate is not None:
        entry["ca"] = host.certificate
    if authorization is not None:
        entry["header"] = {"Authorization": authorization}
    return tomli_w.dumps(entry | {"host": {}})  # containerd 1.6 takes no file without a table of mirrors


def containerd_toml(pause: str, image_repository: str | None = None, *, config_version: int = 2) -> str:
    """The whole file; what it leaves out keeps its default. Version 2 is that of containerd 1.x, version 3 of 2.x."""
    sandbox = f"{image_repository or DEFAULT_REPOSITORY}/pause:{pause}"
    runc: Table = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    runtimes: Table = {"default_runtime_name": "runc", "runtimes": {"runc": runc}}
    cni: Table = {"bin_dir": "/opt/cni/bin", "conf_dir": "/etc/cni/net.d"}
    registry: Table = {"config_path": CERTIFICATES}
    if config_version == 2:
        cri: Table = {"sandbox_image": sandbox, "containerd": runtimes, "cni": cni, "registry": registry}
        plugins: Table = {IMAGES_PLUGINS[2]: cri}
    else:
        plugins = {
            IMAGES_PLUGINS[3]: {"pinned_images": {"sandbox": sandbox}, "registry": registry},
            "io.containerd.cri.v1.runtime": {"containerd": runtimes, "cni": cni},
        }
    return tomli_w.dumps({"version": config_version, "plugins": plugins})


def with_logins(text: str, logins: Mapping[str, RegistryLogin], ours: Collection[str]) -> str:
    """A node's configuration with these logins, and without those of `ours` that are not among them.

    It may be one that a script of the package wrote: all else in it stays. The same text when nothing has to change.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ForeignConfiguration(f"it is not TOML: {error}") from None
    plugin = IMAGES_PLUGINS.get(document.get("version", 0))
    if plugin is None and text.strip():
        raise ForeignConfiguration("it has none of the versions 2, 3 and 4")
    if plugin is None:
        document["version"], plugin = 2, IMAGES_PLUGINS[2]
    registry = _table(_table(_table(document, "plugins"), plugin), "registry")
    before = tomli_w.dumps(document)
    if registry.get("mirrors"):
        raise ForeignConfiguration("it has registry.mirrors, beside which containerd takes no config_path")
    path = registry.get("config_path") or CERTIFICATES
    if CERTIFICATES not in str(path).split(":"):
        raise ForeignConfiguration(f"its registry.config_path is {str(path)[:80]!r}, and not {CERTIFICATES}")
    registry["config_path"] = path
    configs = _table(registry, "configs")
    for name in {*ours, *logins}:
        configs.pop(name, None)
    for name, one in logins.items():
        configs[name] = {"auth": {"username": one.username, "password": one.password}}
    if not configs:
        del registry["configs"]
    after = tomli_w.dumps(document)
    return text if after == before and text.strip() else after


def _table(parent: Table, name: str) -> Table:
    found = parent.setdefault(name, {})
    if not isinstance(found, dict):
        raise ForeignConfiguration(f"its {name} is no table")
    return found
