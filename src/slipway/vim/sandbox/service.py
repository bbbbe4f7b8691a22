"""An engine of our own: Podman's API service, started where there is none and we are root.

systemd in a machine needs a writable cgroup2 tree. On a machine that is cgroup2 throughout, that is what there is. On a
hybrid one the service runs in a mount and a cgroup namespace of its own, whose /sys/fs/cgroup is one cgroup2 subtree:
no v1 controller moves, and no other processes do either (the service moves all processes of the cgroup it finds
itself in, when that is a root). Files hold the namespaces, because the machines' mounts live in them.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.locks import Locks
from slipway.vim.sandbox.paths import SandboxPaths
from slipway.waiting import Backoff

UNIFIED = Path("/sys/fs/cgroup/unified")
START_SECONDS = 20.0
COMMAND_SECONDS = 60.0
INSTALL = "apt-get install --no-install-recommends podman runc netavark aardvark-dns iptables nftables catatonit"


class Service:
    def __init__(self, paths: SandboxPaths) -> None:
        self._paths = paths
        self._run = paths.runtime
        self._namespaces = self._run / "ns"
        self._cgroup = UNIFIED / f"slipway-{paths.tag}"
        self._locks = Locks(self._run / "locks")

    @property
    def url(self) -> str:
        return f"unix://{self._paths.socket}"

    def process(self) -> int | None:
        """The running service's process id."""
        try:
            pid = int((self._run / "engine.pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if str(self._paths.socket).encode() in command else None

    def start(self) -> None:
        """Once, whoever asks."""
        if self.process() and self._paths.socket.exists():
            return
        if os.geteuid() != 0:
            raise VimError("There is no container engine, and only root can start one.", VimFault.PERMANENT,
                           cure="run as root, or start Podman or Docker and set DOCKER_HOST.")  # fmt: skip
        if shutil.which("podman") is None:
            raise VimError("There is no container engine on this machine.", VimFault.PERMANENT, cure=INSTALL)
        with self._locks.hold("engine"):
            if self.process() and self._paths.socket.exists():
                return
            self._write_configuration()
            self._make_namespaces()
            self._paths.socket.unlink(missing_ok=True)
            self._spawn()

    def stop(self) -> None:
        """The engine and its namespaces. Machines should be gone before."""
        with self._locks.hold("engine"):
            if pid := self.process():
                os.kill(pid, signal.SIGTERM)
                _wait_until(lambda: self.process() is None, START_SECONDS)
            self._paths.socket.unlink(missing_ok=True)
            (self._run / "engine.pid").unlink(missing_ok=True)
            self._remove_namespaces()

    def _spawn(self) -> None:
        environment = {  # and nothing else of ours: it outlives us, and may hold a token
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(Path.home()),
            "CONTAINERS_CONF": str(self._run / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self._run / "storage.conf"),
            "TMPDIR": str(self._paths.scratch),
        }
        self._paths.scratch.mkdir(parents=True, exist_ok=True)
        script = (
            'echo $$ >"$1/engine.pid"; exec podman --log-level=error system service --time=0 "unix://$1/engine.sock"'
        )
        log = self._run / "engine.log"
        with log.open("wb") as output:
            started = subprocess.Popen(
                [*self._inside(), "sh", "-c", script, "sh", str(self._run)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
                cwd="/",
            )
        _wait_until(lambda: self._listens() or started.poll() is not None, START_SECONDS)
        started.returncode = started.poll() or 0  # it outlives us; so no ResourceWarning
        if not self._listens():
            said = log.read_text(errors="replace").strip()[-500:]
            raise VimError(f"Podman's service did not start: {said}", VimFault.PERMANENT, cure="slipway sandbox check")

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as trial:
            trial.settimeout(1.0)
            return trial.connect_ex(str(self._paths.socket)) == 0

    def _inside(self) -> list[str]:
        """Words in front of a command that put it where the engine lives."""
        if not UNIFIED.is_dir():
            return []
        enter = (
            'echo 0 >"$1/init/cgroup.procs" || exit 1; ns=$2; shift 2; '
            'exec nsenter --mount="$ns/mnt" --cgroup="$ns/cgroup" "$@"'
        )
        return ["sh", "-c", enter, "sh", str(self._cgroup), str(self._namespaces)]

    def _make_namespaces(self) -> None:
        if not UNIFIED.is_dir() or _is_mounted(self._namespaces / "mnt"):
            return
        self._namespaces.mkdir(parents=True, exist_ok=True)
        (self._cgroup / "init").mkdir(parents=True, exist_ok=True)
        if not _is_mounted(self._namespaces):
            _must("mount", "--bind", str(self._namespaces), str(self._namespaces))
        _must("mount", "--make-private", str(self._namespaces))
        for name in ("mnt", "cgroup"):
            (self._namespaces / name).touch()
        make = (
            'echo 0 >"$1/cgroup.procs" && exec unshare --mount="$2/mnt" --cgroup="$2/cgroup" --propagation private '
            'sh -c "umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup"'
        )
        _must("sh", "-c", make, "sh", str(self._cgroup), str(self._namespaces))

    def _remove_namespaces(self) -> None:
        for path in (self._namespaces / "mnt", self._namespaces / "cgroup", self._namespaces):
            while _is_mounted(path):
                _must("umount", str(path))
        if self._cgroup.is_dir():
            # Podman leaves a watcher of every command it ran in a machine. Only they are in here.
            (self._cgroup / "cgroup.kill").write_text("1")
            _wait_until(lambda: "populated 0" in (self._cgroup / "cgroup.events").read_text(), START_SECONDS)
            for directory, _, _ in os.walk(self._cgroup, topdown=False):
                _remove_if_empty(Path(directory))

    def _write_configuration(self) -> None:
        """Podman's own defaults ask for rights that a machine in a machine lacks; this asks for what we have."""
        self._run.mkdir(parents=True, exist_ok=True)
        self._run.chmod(0o700)
        storage = self._paths.directory / "storage"
        networks = self._paths.directory / "networks"
        for directory in (storage, networks):
            directory.mkdir(parents=True, exist_ok=True)
        (self._run / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{storage}"\nrunroot = "{self._run / "run"}"\n'
        )
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = int(Path("/proc/sys/kernel/pid_max").read_text())
        processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        processes = most if processes == resource.RLIM_INFINITY else min(processes, most)
        (self._run / "containers.conf").write_text(
            f"""# runc: crun wants CAP_SYS_RESOURCE, and no hybrid cgroups. pids_limit: there may be no such controller.
[containers]
pids_limit = 0
log_driver = "k8s-file"
log_size_max = 1048576
default_ulimits = ["nofile={files[0]}:{files[1]}", "nproc={processes}:{processes}"]
[engine]
cgroup_manager = "cgroupfs"
exit_command_delay = 10
events_logger = "file"
runtime = "runc"
tmp_dir = "{self._run / "libpod"}"
[network]
network_backend = "netavark"
network_config_dir = "{networks}"
"""
        )


def _must(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    if done.returncode:
        what = " ".join(command[:1])
        raise VimError(
            f"{what} failed while the engine was started: {done.stderr.strip()}",
            VimFault.PERMANENT,
            cure="slipway sandbox check",
        )


def _wait_until(condition: Callable[[], object], seconds: float) -> bool:
    backoff = Backoff(0.01, 0.2, timeout=seconds)
    while not (found := condition()) and backoff.sleep():
        pass
    return bool(found)


def _is_mounted(path: Path) -> bool:
    """Also for a directory bound to itself, which looks like any other."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return str(path) in (line.split()[4] for line in mounts)


def _remove_if_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:
        return
