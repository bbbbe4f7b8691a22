"""What a machine needs to be a sandbox, looked at without changing anything; what is missing comes with its cure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slipway.model.errors import VimError
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.engine_images import cached_recipe, image_name, is_current, kubernetes_in
from slipway.vim.sandbox.image.kubernetes.compile import CURE as GO_CURE
from slipway.vim.sandbox.image.kubernetes.compile import OLDEST, go_version
from slipway.vim.sandbox.image.kubernetes.oci import ZSTD_CURE
from slipway.vim.sandbox.image.recipes import KUBERNETES
from slipway.vim.sandbox.machines import DEFAULT_IMAGE
from slipway.vim.sandbox.service import INSTALL

INOTIFY_ENOUGH = 1024  # a machine takes about 7 instances, a Kubernetes node more
INOTIFY_FOR_CLUSTERS = 8192
INOTIFY_CURE = "sysctl -w fs.inotify.max_user_instances=8192"
DISK_ENOUGH = 5 << 30
DISK_FOR_KUBERNETES = 8 << 30  # 5 for Go's modules and the compiler's cache, 1 for programs and image, 1 in an engine
CONNTRACK_ENOUGH = 131072
PROGRAMS = {
    "losetup": "apt-get install mount",
    "ip": "apt-get install iproute2",
    "nsenter": "apt-get install util-linux",
    "mmdebstrap": "apt-get install mmdebstrap",
    "ssh": "apt-get install openssh-client",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `cure` is a command, or a sentence where no command will do."""

    what: str
    fine: bool
    detail: str
    cure: str = ""
    optional: bool = False  # plain machines do without


@dataclass(frozen=True)
class Host:
    """Where the looking is done: another root for tests."""

    root: Path = Path("/")
    is_root: bool = os.geteuid() == 0

    def read(self, path: str) -> str:
        try:
            return (self.root / path).read_text()
        except OSError:
            return ""


def findings(engines: Engines, host: Host) -> list[Finding]:
    return [
        root(host),
        engine(engines),
        cgroups(host),
        inotify(host),
        *kernel(host),
        programs(),
        disk(engines.paths.directory),
        image(engines),
        *kubernetes(engines, host),
    ]


def root(host: Host) -> Finding:
    cure = "run Slipway as root on this machine, or in a virtual machine of its own"
    detail = "root" if host.is_root else "not root: no loop devices, no routes, no engine of our own"
    return Finding("rights", host.is_root, detail, "" if host.is_root else cure)


def engine(engines: Engines) -> Finding:
    """One that answers, or Podman to start one from."""
    url = engines.url(LOCAL)
    if url != engines.service.url or engines.service.process():
        try:
            name, version = engines.operations(LOCAL).engine.version()
        except VimError as error:
            return Finding("engine", False, error.detail, "systemctl start podman.socket")
        return Finding("engine", True, f"{name} {version} at {url}")
    if shutil.which("podman") and shutil.which("runc"):
        return Finding("engine", True, "Podman is installed; Slipway starts its service when it is needed")
    return Finding("engine", False, "neither Podman (with runc) nor Docker is there", INSTALL)


def cgroups(host: Host) -> Finding:
    """systemd in a machine wants a cgroup2 tree."""
    tree = host.root / "sys/fs/cgroup"
    if (tree / "cgroup.controllers").exists():
        return Finding("cgroups", True, "cgroup2 throughout")
    if (tree / "unified" / "cgroup.procs").exists():
        return Finding("cgroups", True, "hybrid: the engine gets a cgroup2 subtree of its own")
    return Finding("cgroups", False, "there is no cgroup2 tree", "mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified")


def inotify(host: Host) -> Finding:
    instances = int(host.read("proc/sys/fs/inotify/max_user_instances") or 0)
    fine = instances >= INOTIFY_ENOUGH
    detail = f"{instances} instances for a user, enough for about {instances // 7} machines"
    return Finding("inotify", fine, detail, "" if fine else INOTIFY_CURE)


def kernel(host: Host) -> Iterator[Finding]:
    overlay = "overlay" in host.read("proc/filesystems").split()
    yield Finding("overlay", overlay, "file system for images", "" if overlay else "modprobe overlay")
    loop = (host.root / "dev/loop-control").exists()
    yield Finding("loop", loop, "devices for block volumes", "" if loop else "modprobe loop")
    for module in ("bridge", "veth"):
        there = (host.root / "sys/module" / module).is_dir() or _built_in(host, module) or _loadable(host, module)
        yield Finding(module, there, "devices for networks", "" if there else f"modprobe {module}")


def _built_in(host: Host, module: str) -> bool:
    release = host.read("proc/sys/kernel/osrelease").strip()
    listed = host.read(f"lib/modules/{release}/modules.builtin")
    # A kernel without a list of its modules has them all inside, and says nothing about them.
    return f"/{module}.ko" in listed or not (host.root / "lib/modules" / release).is_dir()


def _loadable(host: Host, module: str) -> bool:
    release = host.read("proc/sys/kernel/osrelease").strip()
    return f"/{module}.ko" in host.read(f"lib/modules/{release}/modules.dep")


def programs() -> Finding:
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if not absent:
        return Finding("programs", True, ", ".join(PROGRAMS))
    return Finding("programs", False, f"no {', '.join(absent)}", PROGRAMS[absent[0]])


def disk(directory: Path) -> Finding:
    free = _free(directory)
    detail = f"{free / (1 << 30):.1f} GB free for {directory}"
    cure = "" if free >= DISK_ENOUGH else "free some room, or set sandbox_dir to a larger disk"
    return Finding("disk", free >= DISK_ENOUGH, detail, cure)


def _free(directory: Path) -> int:
    there = next(parent for parent in (directory, *directory.absolute().parents) if parent.exists())
    return shutil.disk_usage(there).free


def image(engines: Engines) -> Finding:
    cached = engines.image_file.exists()
    if cached or (engines.url(LOCAL) == engines.service.url and not engines.service.process()):
        detail = "made; imported into the engine when it is wanted" if cached else "no machine image yet"
        return Finding("image", cached, detail, "" if cached else engines.paths.build_command(DEFAULT_IMAGE))
    try:
        there = is_current(engines.operations(LOCAL).engine)
    except VimError:
        return Finding("image", False, "the engine does not say", "slipway sandbox check")
    cure = "" if there else engines.paths.build_command(DEFAULT_IMAGE)
    return Finding("image", there, image_name(DEFAULT_IMAGE), cure)


def kubernetes(engines: Engines, host: Host) -> Iterator[Finding]:
    """What clusters of machines need more, and what making their image needs."""
    yield clusters_inotify(host)
    yield conntrack(host)
    bridged = (host.root / "proc/sys/net/bridge").is_dir()
    yield _more("br_netfilter", bridged, "filters for pods' traffic on bridges", "modprobe br_netfilter")
    there = _kubernetes_there(engines)
    if there:
        yield Finding("Kubernetes image", True, there, optional=True)
        return
    command = engines.paths.build_command(KUBERNETES)
    yield Finding("Kubernetes image", True, f"not made yet: {command}", optional=True)
    yield go()
    zstd = shutil.which("zstd") is not None
    yield _more("zstd", zstd, "compresses the Kubernetes image's container images", ZSTD_CURE)
    yield cache_disk(engines.paths.cache)


def clusters_inotify(host: Host) -> Finding:
    instances = int(host.read("proc/sys/fs/inotify/max_user_instances") or 0)
    detail = f"{instances} instances; clusters want {INOTIFY_FOR_CLUSTERS}"
    return _more("inotify for clusters", instances >= INOTIFY_FOR_CLUSTERS, detail, INOTIFY_CURE)


def conntrack(host: Host) -> Finding:
    """All machines count against the host's one limit, and kube-proxy can't raise it from inside."""
    most = int(host.read("proc/sys/net/netfilter/nf_conntrack_max") or 0)
    if not most:
        return _more("conntrack", False, "the kernel follows no connections", "modprobe nf_conntrack")
    cure = f"sysctl -w net.netfilter.nf_conntrack_max={2 * CONNTRACK_ENOUGH}"
    return _more("conntrack", most >= CONNTRACK_ENOUGH, f"{most} connections, for all machines together", cure)


def go() -> Finding:
    version = go_version()
    said = f"Go {'.'.join(map(str, version))}" if version else "no Go"
    return _more("go", version is not None and version >= OLDEST, f"{said}, which builds Kubernetes", GO_CURE)


def cache_disk(directory: Path) -> Finding:
    free = _free(directory)
    detail = f"{free / (1 << 30):.1f} GB free for {directory}; the first Kubernetes build takes about 6"
    return _more("disk for Kubernetes", free >= DISK_FOR_KUBERNETES, detail, "free some room, or set XDG_CACHE_HOME")


def _kubernetes_there(engines: Engines) -> str:
    """In the cache or in an engine that runs, with its versions; nothing if it isn't."""
    if cached := cached_recipe(engines.paths.cache, KUBERNETES):
        return f"made, with {', '.join(one.version for one in cached.releases)}; imported when it is wanted"
    if engines.url(LOCAL) == engines.service.url and not engines.service.process():
        return ""
    try:
        found = kubernetes_in(engines.operations(LOCAL).engine)
    except VimError:
        return ""
    return f"{image_name(KUBERNETES)} with {', '.join(one.version for one in found)}" if found else ""


def _more(what: str, fine: bool, detail: str, cure: str) -> Finding:
    return Finding(what, fine, detail, "" if fine else cure, optional=True)
