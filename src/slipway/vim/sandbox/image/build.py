"""Makes an image's file: a Debian from its packages by mmdebstrap. Nothing comes from an image registry.

The file outlives engines, so that the slow part happens once on a machine.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.image.process import Say, run
from slipway.vim.sandbox.image.recipes import SUITE, Recipe, machine

LIMIT = 1800.0  # seconds; a machine under load has needed 300
_STAGE = re.compile(r"^I: ((?:running apt-get|downloading|extracting|installing|cleaning|creating).+)$")


def cached_image(cache: Path, recipe: Recipe | None = None) -> Path:
    """Where the image's file is, made or not."""
    return cache / "images" / (recipe or machine()).file_name


def build_image(recipe: Recipe, target: Path, say: Say, payload: Path | None = None) -> None:
    """Make the file. It gets its name when it is whole; a crash leaves a part that the next build overwrites."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part.tar")
    mmdebstrap(_words(recipe, payload), part, say)
    part.rename(target)
    for old in target.parent.glob(f"{recipe.kind}-*.tar"):
        if old != target:
            old.unlink(missing_ok=True)  # made in another way, so it would never be found again


def mmdebstrap(words: list[str], target: Path, say: Say) -> None:
    """Run it, telling its stages."""
    program = shutil.which("mmdebstrap")
    if program is None:
        raise VimError(
            "mmdebstrap, which makes the machine image, is not there.",
            VimFault.PERMANENT,
            cure="apt-get install mmdebstrap",
        )

    def heard(line: str) -> None:
        if stage := _STAGE.match(line):
            say(stage[1])

    ended = run([program, "--mode=root", *words, SUITE, str(target)], heard, LIMIT, environment={"LC_ALL": "C.UTF-8"})
    if ended.code:
        target.unlink(missing_ok=True)
        said = " / ".join(ended.tail[-5:])
        full = "no space left" in said.lower()
        raise VimError(
            f"mmdebstrap ended with {ended.code}: {said}",
            VimFault.QUOTA if full else VimFault.PERMANENT,
            cure="see that Debian's package mirror can be reached, and that there is room on the disk.",
        )


def _words(recipe: Recipe, payload: Path | None) -> list[str]:
    no_daemons = r'printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"'
    without = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")
    more = f' "{payload}"' if payload else ""
    return [
        "--variant=minbase",
        f"--include={','.join(recipe.packages)}",
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={path}" for path in without),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        '--aptopt=Acquire::Languages "none"',
        f"--essential-hook={no_daemons}",
        *(f'--customize-hook=sh "{hook}" "$1"{more}' for hook in recipe.hooks),
    ]
