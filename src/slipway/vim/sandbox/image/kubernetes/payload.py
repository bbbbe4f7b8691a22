"""What the Kubernetes image has beside Debian's packages: each release's programs, and archives of container images.

Their lowest layer is `tools`: a small root with what kube-proxy, flannel and a person at a pod's shell call.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from slipway.vim.sandbox.image.build import mmdebstrap
from slipway.vim.sandbox.image.kubernetes.images import Images
from slipway.vim.sandbox.image.kubernetes.oci import without, write_archive, zstd
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.programs import COMMANDS
from slipway.vim.sandbox.image.kubernetes.versions import Release
from slipway.vim.sandbox.image.process import Say
from slipway.vim.sandbox.image.recipes import SUITE

ARCHIVES = Path("usr/share/slipway/images")
ON_MACHINES = ("kubelet", *COMMANDS)
TOOLS_CUSTOMIZE = Path(__file__).parent / "tools" / "customize"
TOOLS_PACKAGES = ("iptables", "nftables", "conntrack", "busybox", "iproute2")
LIBRARIES = "./usr/lib/x86_64-linux-gnu"
UNWANTED = (
    "./var/",
    "./usr/share/",
    "./etc/apt/",
    "./dev/",
    f"{LIBRARIES}/gconv/",
    f"{LIBRARIES}/perl",
)


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
        images = Images(releases, program_cache, _tools_layer(cache, say), Path(layers))
        for file, wanted in (("node.tar", images.of_nodes()), ("master.tar", images.of_masters())):
            write_archive(root / ARCHIVES / file, wanted)
            say(f"wrote {file}: {len(wanted)} container images, {(root / ARCHIVES / file).stat().st_size >> 20} MB")
        yield root


def _tools_layer(directory: Path, say: Say) -> Path:
    """The layer's file, made if it isn't there."""
    text = "\0".join((SUITE, *TOOLS_PACKAGES, *UNWANTED, TOOLS_CUSTOMIZE.read_text()))
    target = directory / f"tools-{sha256(text.encode()).hexdigest()[:12]}.tar"
    if target.exists():
        return target
    say("making the layer with network tools from Debian's packages")
    directory.mkdir(parents=True, exist_ok=True)
    full, part = target.with_suffix(".full.tar"), target.with_suffix(".part.tar")
    words = [
        "--variant=extract",
        f"--include={','.join(TOOLS_PACKAGES)}",
        f'--extract-hook=sh "{TOOLS_CUSTOMIZE}" "$1"',
    ]
    mmdebstrap(words, full, lambda line: None)
    without(full, part, UNWANTED)
    full.unlink()
    part.rename(target)
    return target
