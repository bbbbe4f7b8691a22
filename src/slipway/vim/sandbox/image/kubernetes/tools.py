"""The layer `tools`: a small root with what kube-proxy, flannel and a person at a pod's shell call."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from slipway.vim.sandbox.image.build import mmdebstrap
from slipway.vim.sandbox.image.kubernetes.oci import without
from slipway.vim.sandbox.image.process import Say
from slipway.vim.sandbox.image.recipes import SUITE

CUSTOMIZE = Path(__file__).parent / "tools" / "customize"
PACKAGES = ("iptables", "nftables", "conntrack", "busybox", "iproute2")
LIBRARIES = "./usr/lib/x86_64-linux-gnu"
UNWANTED = (
    "./var/",
    "./usr/share/",
    "./etc/apt/",
    "./dev/",
    f"{LIBRARIES}/gconv/",
    f"{LIBRARIES}/perl",
)


def tools_layer(directory: Path, say: Say) -> Path:
    """The layer's file, made if it isn't there."""
    text = "\0".join((SUITE, *PACKAGES, *UNWANTED, CUSTOMIZE.read_text()))
    target = directory / f"tools-{sha256(text.encode()).hexdigest()[:12]}.tar"
    if target.exists():
        return target
    say("making the layer with network tools from Debian's packages")
    directory.mkdir(parents=True, exist_ok=True)
    full, part = target.with_suffix(".full.tar"), target.with_suffix(".part.tar")
    words = ["--variant=extract", f"--include={','.join(PACKAGES)}", f'--extract-hook=sh "{CUSTOMIZE}" "$1"']
    mmdebstrap(words, full, lambda line: None)
    without(full, part, UNWANTED)
    full.unlink()
    part.rename(target)
    return target
