"""What the Kubernetes image has beside Debian's packages: programs of each release, and archives of container images.

All of it is kept in a cache, under names made from what it was made of. So only the first build is slow, and one that
broke off goes on where it was.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.compile import compile_program
from slipway.vim.sandbox.image.kubernetes.images import Images
from slipway.vim.sandbox.image.kubernetes.oci import write_archive
from slipway.vim.sandbox.image.kubernetes.programs import Program
from slipway.vim.sandbox.image.kubernetes.tools import tools_layer
from slipway.vim.sandbox.image.kubernetes.versions import Release
from slipway.vim.sandbox.image.process import Say

ARCHIVES = Path("usr/share/slipway/images")


class Workshop:
    """Makes programs, each once."""

    def __init__(self, cache: Path, say: Say) -> None:
        self._directory, self._say = cache / "programs", say

    def built(self, program: Program) -> Path:
        """The program's file, made if it isn't there."""
        target = self._directory / f"{program.name}-{program.version}-{program.digest}"
        if not target.exists():
            compile_program(program, target, self._say)
        return target


@contextmanager
def payload(cache: Path, releases: Sequence[Release], say: Say) -> Iterator[Path]:
    """A directory that lies as it shall lie in the machine's root. It is gone in the end; what it cost is cached."""
    cache.mkdir(parents=True, exist_ok=True)
    workshop = Workshop(cache, say)
    with (
        tempfile.TemporaryDirectory(prefix="payload-", dir=cache) as name,
        tempfile.TemporaryDirectory(prefix="layers-", dir=cache) as layers,
    ):
        root = Path(name)
        root.chmod(0o755)
        for release in releases:
            _lay_programs(root / "opt/kubernetes" / release.version / "bin", release, workshop)
        (root / ARCHIVES).mkdir(parents=True)
        images = Images(releases, workshop.built, tools_layer(cache, say), Path(layers))
        for file, wanted in (("node.tar", images.of_nodes()), ("master.tar", images.of_masters())):
            write_archive(root / ARCHIVES / file, wanted)
            say(f"wrote {file}: {len(wanted)} container images, {(root / ARCHIVES / file).stat().st_size >> 20} MB")
        yield root


def _lay_programs(directory: Path, release: Release, workshop: Workshop) -> None:
    directory.mkdir(parents=True)
    made = {
        "kubelet": programs.servers(release),
        "kubeadm": programs.command(release, "kubeadm"),
        "kubectl": programs.command(release, "kubectl"),
    }
    for name, program in made.items():
        os.link(workshop.built(program), directory / name)
