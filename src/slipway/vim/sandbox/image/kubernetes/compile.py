"""Builds a program from its Go modules, whose checksums are pinned: static, stripped, the same each time.

The compiler's own cache makes all but the first build of a version short, whatever else is built anew.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.image.kubernetes.programs import Program
from slipway.vim.sandbox.image.process import Ended, Say, run

LIMIT = 7200.0  # seconds, of one program; Kubernetes has needed 1440 on two busy cores
QUESTION_SECONDS = 60.0
DOWNLOAD_SECONDS = 600.0
WORD_EVERY = 30.0  # seconds
OLDEST = (1, 24)
CURE = "install Go 1.24 or newer from https://go.dev/dl/, with its `go` in PATH"
ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off"}
_UNREACHABLE = re.compile(
    r"dial tcp|no such host|connection refused|i/o timeout|TLS handshake|proxyconnect|"
    r"connection reset|unexpected EOF|50[234] |429 "
)


def go_version() -> tuple[int, ...] | None:
    """Of the toolchain in PATH; None if there is none."""
    program = shutil.which("go")
    if program is None:
        return None
    done = subprocess.run(
        [program, "env", "GOVERSION"], capture_output=True, text=True, timeout=QUESTION_SECONDS, check=False
    )
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def toolchain() -> str:
    """The program `go`, fit for the work."""
    version = go_version()
    if version is None:
        raise VimError("There is no Go toolchain to build Kubernetes with.", VimFault.PERMANENT, cure=CURE)
    if version < OLDEST:
        said = ".".join(map(str, version))
        raise VimError(f"Go {said} is too old to build Kubernetes with.", VimFault.PERMANENT, cure=CURE)
    return shutil.which("go") or "go"


def compile_program(program: Program, target: Path, say: Say) -> None:
    """Make the program. It gets its name when it is whole."""
    go = toolchain()
    target.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    say(f"building {program.title} from Go modules{': ' if program.note else ''}{program.note}")
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as name:
        work = Path(name)
        _lay_out(program, work, go)
        made = work / "made"
        ended = run(build_command(go, program, made), _Progress(say), LIMIT, environment=ENVIRONMENT, directory=work)
        if ended.code:
            raise build_error(f"build {program.title}", ended)
        made.rename(target)
    say(f"built {program.title}: {target.stat().st_size >> 20} MB in {time.monotonic() - begun:.0f} s")


def module_directory(program: Program, module: str) -> Path:
    """Where Go keeps the source of a module that a program is pinned to, fetched if need be."""
    go = toolchain()
    with tempfile.TemporaryDirectory(prefix="module-") as name:
        _lay_out_pins(program, Path(name))
        return _module_directory(module, Path(name), go)


def build_command(go: str, program: Program, made: Path) -> list[str]:
    flags = " ".join(("-s -w", *program.flags))
    options = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-v", "-ldflags", flags]
    return [go, "build", *options, "-o", str(made), program.package]


def build_error(what: str, ended: Ended) -> VimError:
    """What Go says last, in the contract's words."""
    said = " / ".join(ended.tail[-5:])
    if "no space left on device" in said:
        return VimError(f"Could not {what}: the disk is full.", VimFault.QUOTA,
                        cure="free some room; `go env GOCACHE` tells of much that can be made again.")  # fmt: skip
    if "checksum mismatch" in said or "SECURITY ERROR" in said:
        return VimError(f"Could not {what}: a module is not the one that is pinned: {said}", VimFault.PERMANENT,
                        cure="`go clean -modcache`, or another module proxy in GOPROXY.")  # fmt: skip
    if _UNREACHABLE.search(said):
        return VimError(f"Could not {what}: Go's module proxy can't be reached: {said}", VimFault.TEMPORARY,
                        cure="see that what `go env GOPROXY` says can be reached, or set GOPROXY.")  # fmt: skip
    return VimError(f"Could not {what}: go ended with {ended.code}: {said}", VimFault.PERMANENT)


class _Progress:
    """A word now and then: Go names each module it fetches and each package it compiles."""

    def __init__(self, say: Say) -> None:
        self._say, self._last = say, time.monotonic()
        self._modules = self._packages = 0

    def __call__(self, line: str) -> None:
        if line.startswith("go: downloading "):
            self._modules += 1
        else:
            self._packages += 1
        if time.monotonic() - self._last >= WORD_EVERY:
            self._last = time.monotonic()
            self._say(f"  {self._modules} modules fetched, {self._packages} packages compiled")


def _lay_out(program: Program, work: Path, go: str) -> None:
    """A module of our own that requires what is pinned."""
    _lay_out_pins(program, work)
    if program.main is not None:
        shutil.copyfile(program.main, work / "main.go")
    if program.main_from:
        lines = (_module_directory(program.main_from, work, go) / "main.go").read_text().splitlines(keepends=True)
        (work / "main.go").write_text("".join(line for line in lines if program.main_without not in line))


def _lay_out_pins(program: Program, work: Path) -> None:
    for source, name in zip(program.pins, ("go.mod", "go.sum"), strict=True):
        shutil.copyfile(source, work / name)


def _module_directory(module: str, work: Path, go: str) -> Path:
    words = [go, "mod", "download", "-json", module]
    lines: list[str] = []
    ended = run(words, lines.append, DOWNLOAD_SECONDS, environment=ENVIRONMENT, directory=work)
    if ended.code:
        raise build_error(f"fetch {module}", ended)
    answer = "\n".join(lines)
    return Path(msgspec.json.decode(answer[answer.index("{") :])["Dir"])
