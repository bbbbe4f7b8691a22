"""Where programs come from: a cache, under names made from what they were made of; else downloaded; else built.

So only the first build is slow, and one that broke off goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.compile import compile_program
from slipway.vim.sandbox.image.kubernetes.download import NAMES, Site
from slipway.vim.sandbox.image.kubernetes.programs import COMMANDS, SERVERS, Program
from slipway.vim.sandbox.image.kubernetes.versions import Release
from slipway.vim.sandbox.image.process import Say


@dataclass(frozen=True)
class Kubernetes:
    """A release's programs, by name. Servers that we built are one program under several names."""

    files: Mapping[str, Path]

    @property
    def one_server(self) -> Path | None:
        found = {self.files[name] for name in SERVERS}
        return found.pop() if len(found) == 1 else None


class ProgramCache:
    def __init__(self, cache: Path, say: Say, site: Site | None = None) -> None:
        self._cache, self._say, self._site = cache, say, site

    def kubernetes(self, release: Release) -> Kubernetes:
        fetched = self._cache / "releases" / release.version
        made = {name: self._place(program) for name, program in _own(release).items()}
        have = all((fetched / name).exists() for name in NAMES)
        if not have and not all(path.exists() for path in made.values()) and self._site:
            have = self._site.fetch(release, fetched)
        if have:
            return Kubernetes({name: fetched / name for name in NAMES})
        return Kubernetes({name: self.built(program) for name, program in _own(release).items()})

    def built(self, program: Program) -> Path:
        """The program's file, made if it isn't there."""
        target = self._place(program)
        if not target.exists():
            compile_program(program, target, self._say)
        return target

    def directory(self, name: str, wanted: Iterable[Program]) -> Path:
        """A directory with these programs under their own names, in the manner of PATH."""
        directory = self._cache / name
        directory.mkdir(parents=True, exist_ok=True)
        for program in wanted:
            _link(directory / program.name, self.built(program))
        return directory

    def _place(self, program: Program) -> Path:
        return self._cache / "programs" / f"{program.name}-{program.version}-{program.digest}"


def _link(path: Path, target: Path) -> None:
    """Replaced whole, for others may run it."""
    if not path.is_symlink() or path.readlink() != target:
        new = path.with_name(f".{path.name}.{target.name}")
        new.unlink(missing_ok=True)
        new.symlink_to(target)
        new.replace(path)


def _own(release: Release) -> dict[str, Program]:
    servers = dict.fromkeys(SERVERS, programs.servers(release))
    return {**servers, **{name: programs.command(release, name) for name in COMMANDS}}
