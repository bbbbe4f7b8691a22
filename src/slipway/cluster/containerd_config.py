"""containerd's configuration, and a `hosts.toml` for each registry that nodes pull from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import tomli_w

from slipway.cluster.parameters import HTTPS, RegistryParameters
from slipway.cluster.values import server

CERTIFICATES = "/etc/containerd/certs.d"
DEFAULT_REPOSITORY = "registry.k8s.io"

Table = dict[str, Any]


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


def registry_host(registry: RegistryParameters) -> RegistryHost:
    scheme = "https" if registry.connection_type == HTTPS else "http"
    certificate = f"{registry_directory(registry.server)}/ca.crt" if registry.certificate_path else None
    return RegistryHost(server=registry.server, url=f"{scheme}://{registry.server}", certificate=certificate)


def registry_directory(name: str) -> str:
    """Where containerd looks for what concerns a registry. `name` is narrowed again: it becomes part of a path."""
    return f"{CERTIFICATES}/{server(name)}"


def hosts_toml(host: RegistryHost) -> str:
    entry: Table = {"capabilities": ["pull", "resolve"]}
    if host.certificate is not None:
        entry["ca"] = host.certificate
    return tomli_w.dumps({"server": host.url, "host": {host.url: entry}})


def containerd_toml(
    pause: str,
    image_repository: str | None = None,
    *,
    config_version: int = 2,
    logins: Mapping[str, RegistryLogin] | None = None,
) -> str:
    """The whole file; what it leaves out keeps its default. Version 2 is that of containerd 1.x, version 3 of 2.x."""
    sandbox = f"{image_repository or DEFAULT_REPOSITORY}/pause:{pause}"
    runc: Table = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    runtimes: Table = {"default_runtime_name": "runc", "runtimes": {"runc": runc}}
    cni: Table = {"bin_dir": "/opt/cni/bin", "conf_dir": "/etc/cni/net.d"}
    registry: Table = {"config_path": CERTIFICATES}
    if logins:
        auth = {name: {"username": one.username, "password": one.password} for name, one in logins.items()}
        registry["configs"] = {name: {"auth": given} for name, given in auth.items()}
    if config_version == 2:
        cri: Table = {"sandbox_image": sandbox, "containerd": runtimes, "cni": cni, "registry": registry}
        plugins: Table = {"io.containerd.grpc.v1.cri": cri}
    else:
        plugins = {
            "io.containerd.cri.v1.images": {"pinned_images": {"sandbox": sandbox}, "registry": registry},
            "io.containerd.cri.v1.runtime": {"containerd": runtimes, "cni": cni},
        }
    return tomli_w.dumps({"version": config_version, "plugins": plugins})
