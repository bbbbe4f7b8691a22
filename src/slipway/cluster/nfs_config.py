"""Configuration of an NFS server: the kernel's own, or nfs-ganesha where the kernel has none.

Whoever writes is nobody on the server, whichever user a pod runs as: a node that is broken into becomes no root there.
Only privileged ports of the networks named are answered, and nothing while its volume is not mounted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slipway.cluster.spec import StepArguments

NOBODY = 65534  # the user and the group, on Debian and Ubuntu
KERNEL, GANESHA = "kernel", "ganesha"
EXPORTS = "/etc/exports.d/slipway.exports"
GANESHA_CONF = "/etc/ganesha/ganesha.conf"
UNITS = {KERNEL: "nfs-server.service", GANESHA: "nfs-ganesha.service"}


class Export(StepArguments, frozen=True, kw_only=True):
    """`mount`: where its volume is mounted. `clients`: networks."""

    directory: str
    mount: str
    clients: tuple[str, ...]


def server_files(kind: str, exports: Sequence[Export]) -> dict[str, str]:
    """By path. `kind`: KERNEL or GANESHA."""
    mounts = " ".join(dict.fromkeys(export.mount for export in exports))
    drop_in = f"/etc/systemd/system/{UNITS[kind]}.d/slipway.conf"
    own = {EXPORTS: kernel_exports(exports)} if kind == KERNEL else {GANESHA_CONF: ganesha_conf(exports)}
    return {**own, drop_in: f"[Unit]\nRequiresMountsFor={mounts}\n"}


def kernel_exports(exports: Iterable[Export]) -> str:
    """As exports(5) has it."""
    return "".join(f"{export.directory} {' '.join(_kernel_client(export, one) for one in export.clients)}\n"
                   for export in exports)  # fmt: skip


def _kernel_client(export: Export, network: str) -> str:
    options = f"rw,sync,no_subtree_check,all_squash,anonuid={NOBODY},anongid={NOBODY},mountpoint={export.mount}"
    return f"{network}({options})"


def ganesha_conf(exports: Iterable[Export]) -> str:
    """Version 4 alone, which needs one port of the server."""
    blocks = "".join(_ganesha_export(number, export) for number, export in enumerate(exports, 1))
    core = "NFS_CORE_PARAM { Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }\n"
    return f"{core}NFS_KRB5 {{ Active_krb5 = false; }}\n{blocks}"


def _ganesha_export(number: int, export: Export) -> str:
    clients = "".join(
        f"    CLIENT {{ Clients = {network}; Access_Type = RW; Squash = All_Squash; "
        f"Anonymous_Uid = {NOBODY}; Anonymous_Gid = {NOBODY}; }}\n"
        for network in export.clients
    )
    return (
        f'EXPORT {{\n    Export_Id = {number}; Path = "{export.directory}"; Pseudo = "{export.directory}";\n'
        "    Access_Type = NONE; Protocols = 4; Transports = TCP; SecType = sys; PrivilegedPort = true;\n"
        f"    FSAL {{ Name = VFS; }}\n{clients}}}\n"
    )
