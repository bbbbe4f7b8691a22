"""The program `helm`, run once for each call: in a directory of its own, with a clean environment, within bounds.

It gets credentials by a kubeconfig that only this user can read, values by a file, and nothing by its arguments but
names that Slipway made. It finds no plugins, no configuration and no repositories of whoever runs Slipway. It ends with
Slipway, however that ends, so that nobody goes on with a release that another attempt has taken over.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from slipway.kube.credentials import Credentials
from slipway.model.errors import StepError, Unprocessable, VimError, VimFault
from slipway.outgoing.responses import server_message
from slipway.vim.kubernetes.helm.kubeconfig import kubeconfig_of

PREFIX = "slipway-helm-"
MOST_OUTPUT = 64 << 20  # bytes
MOST_MEMORY = 2 << 30  # bytes
MOST_SAID = 1500  # characters of an error
CURE = "install Helm 3.13 or newer on each machine that runs Slipway, or say where it is by the setting helm_program"
TEMPORARY = (
    "connection refused", "connection reset", "i/o timeout", "TLS handshake timeout", "unexpected EOF", ": EOF",
    "no route to host", "http2: client connection", "the server is currently unable", "etcdserver:",
    "too many requests", "Too many requests", "context deadline exceeded", "cluster unreachable",
    "failed calling webhook",
)  # fmt: skip


@dataclass(frozen=True)
class HelmProgram:
    """`configured`: the setting; None: whatever is called helm in PATH."""

    configured: Path | None = None

    def find(self) -> str | None:
        return shutil.which(self.configured or "helm")

    def refuse_if_missing(self) -> None:
        """At the request: nothing would come of it."""
        if self.find() is None:
            where = f"{self.configured} (helm_program) is no program" if self.configured else "there is none in PATH"
            raise Unprocessable(f"The VNF is made of Helm charts, and Helm is missing: {where}; {CURE}.")

    @contextlib.contextmanager
    def workspace(
        self, credentials: Credentials, namespace: str, secrets: Sequence[str] = (), proxy: str | None = None
    ) -> Iterator[Workspace]:
        """A directory for some calls, gone afterwards. `secrets`: what no error may have. `proxy`: to the server."""
        program, wrapper = self.find(), shutil.which("setpriv")
        if program is None or wrapper is None:
            missing = "Helm" if program is None else "setpriv (package util-linux)"
            raise VimError(f"{missing} is missing on this machine.", VimFault.PERMANENT, cure=f"{CURE}, then retry.")
        remove_stale_workspaces()
        place = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{_namespace_id()}-{os.getpid()}-"))
        try:
            (place / "helm").symlink_to(program)  # whatever it is called: objects are then set by the manager "helm"
            for name in ("home", "config", "cache", "data", "plugins", "tmp"):
                (place / name).mkdir(mode=0o700)
            workspace = Workspace(place, wrapper, namespace, _spellings((*credentials.secrets, *secrets)))
            workspace.write("kubeconfig", kubeconfig_of(credentials, namespace, proxy))
            yield workspace
        finally:
            shutil.rmtree(place, ignore_errors=True)


@dataclass(frozen=True)
class Workspace:
    place: Path
    wrapper: str
    namespace: str
    secrets: tuple[str, ...]

    def write(self, name: str, content: bytes) -> Path:
        """For this user alone. `name`: a path below the directory, checked by whoever gives it."""
        path = self.place / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        return path

    def write_tree(self, name: str, files: Mapping[str, bytes]) -> Path:
        for path, content in files.items():
            self.write(f"{name}/{path}", content)
        return self.place / name

    async def helm(self, verb: Sequence[str], options: Sequence[str], names: Sequence[str], seconds: float) -> bytes:
        """What it prints. `names` come after the options are over, so that none can be one. VimError has its words."""
        flags = [f"--namespace={self.namespace}", *options]
        command = [self.wrapper, "--pdeathsig", "KILL", "--", str(self.place / "helm"), *verb, *flags, "--", *names]
        with contextlib.ExitStack() as closing:
            out, err = (closing.enter_context(tempfile.TemporaryFile(dir=self.place)) for _ in range(2))
            # From the thread of the event loop, which lives as long as Slipway: its death ends Helm.
            process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._environment(),
                cwd=self.place,
                umask=0o077,
                start_new_session=True,
            )
            try:
                _limit(process.pid, seconds)
                async with asyncio.timeout(seconds):
                    await _ended(process)
            except TimeoutError:
                raise VimError(
                    f"helm {' '.join(verb)} {names[0] if names else ''} took more than {seconds:g} s and was ended.",
                    VimFault.TEMPORARY,
                ) from None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            printed = out.read(MOST_OUTPUT)
            err.seek(max(0, err.seek(0, os.SEEK_END) - 65536))
            said = err.read().decode(errors="replace")
        if process.returncode:
            raise self._failed(verb, names, process.returncode, said, printed)
        return printed

    def _environment(self) -> dict[str, str]:
        homes = {f"HELM_{name.upper()}_HOME": str(self.place / name) for name in ("config", "cache", "data")}
        return {
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "HOME": str(self.place / "home"),
            "TMPDIR": str(self.place / "tmp"),
            "KUBECONFIG": str(self.place / "kubeconfig"),
            "HELM_PLUGINS": str(self.place / "plugins"),
            "HELM_NO_PLUGINS": "1",
            "HELM_DRIVER": "secret",
            "GOTRACEBACK": "none",
            **homes,
        }

    def _failed(self, verb: Sequence[str], names: Sequence[str], code: int, said: str, printed: bytes) -> StepError:
        lines = [line for line in said.splitlines() if line.strip() and not line.startswith(("WARNING:", "W0", "I0"))]
        text = " ".join(lines[-20:]).removeprefix("Error: ").replace(str(self.place), "…")
        what = f"helm {' '.join(verb)} {names[0] if names else ''}".strip()
        if "out of memory" in said or "cannot allocate memory" in said:
            text = f"it needed more than {MOST_MEMORY >> 30} GiB of memory"
        elif code < 0 and len(printed) >= MOST_OUTPUT:
            text = f"it printed more than {MOST_OUTPUT >> 20} MiB"
        elif code < 0:
            text = f"it was ended by {signal.Signals(-code).name}; {text}"
        return VimError(f"{what}: {server_message(text, self.secrets, most=MOST_SAID)}.", fault_of_helm(text))


def fault_of_helm(said: str) -> VimFault:
    if "exceeded quota" in said:
        return VimFault.QUOTA
    if any(word in said for word in TEMPORARY):
        return VimFault.TEMPORARY
    refused = "Unauthorized" in said or "the server has asked for the client to provide credentials" in said
    if refused or (" is forbidden: " in said and "cannot" in said and "admission" not in said):
        return VimFault.AUTH
    return VimFault.PERMANENT


def _spellings(secrets: Sequence[str]) -> tuple[str, ...]:
    """As Helm may say them: whole, line by line (quoted, or joined to one line), and as a Secret has them."""
    lines = [line for secret in secrets for one in secret.splitlines() if len(line := one.strip()) > 2]
    return (*secrets, *lines, *(b64encode(secret.encode()).decode() for secret in secrets if secret))


def values_file(values: Mapping[str, object]) -> bytes:
    """JSON is YAML, and has no second way to read a text."""
    return msgspec.json.encode(values)


def remove_stale_workspaces() -> None:
    """Of a Slipway that was killed: they have credentials."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}{_namespace_id()}-*"):
        pid = place.name.removeprefix(f"{PREFIX}{_namespace_id()}-").partition("-")[0]
        with contextlib.suppress(OSError):
            alive = not pid.isdigit() or Path("/proc", pid).exists()
            if not alive and not place.is_symlink() and place.lstat().st_uid == os.geteuid():
                shutil.rmtree(place, ignore_errors=True)


def _namespace_id() -> int:
    """PIDs mean something in one PID namespace only."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _limit(pid: int, seconds: float) -> None:
    """Templates of a package may ask for any amount of everything."""
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
        resource.prlimit(pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.prlimit(pid, resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


async def _ended(process: subprocess.Popen[bytes]) -> None:
    descriptor = os.pidfd_open(process.pid)
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
