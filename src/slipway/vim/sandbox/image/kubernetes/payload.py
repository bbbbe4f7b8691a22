"""What the Kubernetes image has beside Debian's packages: each release's programs, and archives of container images."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from slipway.vim.sandbox.image.kubernetes.images import Images
from slipway.vim.sandbox.image.kubernetes.oci import write_archive, zstd
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.programs import COMMANDS
from slipway.vim.sandbox.image.kubernetes.tools import tools_layer
from slipway.vim.sandbox.image.kubernetes.versions import Release
from slipway.vim.sandbox.image.process import Say

ARCHIVES = Path("usr/share/slipway/images")
ON_MACHINES = ("kubelet", *COMMANDS)


@contextmanager
def payload(cache: Path, releases: Sequence[Release], program_cache: ProgramCache, say: Say) -> Iterator[Path]:
    """A directory that lies as it shall lie in the machine's root. It is gone in the end; what it cost is cached."""
    cache.mkdir(parents=True, exist_ok=True)
    zstd()  # before anything takes long
    with (
        tempfile.TemporaryDirectory(prefix="payload-", dir=cache) as name,
        tempfile.TemporaryDirectory(prefix="layers-", dir=cache) as layers,
    ):
        root = Path(name)
        root.chmod(0o755)
        for release in releases:
            directory = root / "opt/kubernetes" / release.version / "bin"
            directory.mkdir(parents=True)
            for program in ON_MACHINES:
                os.link(program_cache.kubernetes(release).files[program], directory / program)
        (root / ARCHIVES).mkdir(parents=True)
        images = Images(releases, program_cache, tools_layer(cache, say), Path(layers))
        for file, wanted in (("node.tar", images.of_nodes()), ("master.tar", images.of_masters())):
            write_archive(root / ARCHIVES / file, wanted)
            say(f"wrote {file}: {len(wanted)} container images, {(root / ARCHIVES / file).stat().st_size >> 20} MB")
        yield root
