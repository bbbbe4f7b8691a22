"""Fetches a release's own programs, each with its checksum, from the site where Kubernetes publishes them."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

import httpx

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.image.kubernetes.programs import COMMANDS, SERVERS
from slipway.vim.sandbox.image.kubernetes.versions import Release
from slipway.vim.sandbox.image.process import Say

SITE = "https://dl.k8s.io/release"
NAMES = (*SERVERS, *COMMANDS)
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
FILE_SECONDS = 900.0
CHUNK = 1 << 20


class Unreachable(Exception):
    """The site, or this release on it."""


class Site:
    """Where release files are asked for. One that did not answer is not asked again."""

    def __init__(self, url: str, say: Say) -> None:
        self._url, self._say = url.rstrip("/"), say
        self._silent = False

    def fetch(self, release: Release, directory: Path) -> bool:
        """All programs of a release into the directory; False if they can't be had. Those that are there stay."""
        if self._silent:
            return False
        with httpx.Client(timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS), follow_redirects=True) as web:
            try:
                for name in NAMES:
                    if not (directory / name).exists():
                        self._fetch_one(web, f"{self._url}/v{release.version}/bin/linux/amd64/{name}", directory / name)
            except (Unreachable, httpx.HTTPError) as reason:
                self._silent = True
                said = str(reason) or type(reason).__name__
                self._say(f"no release files of Kubernetes from {self._url} ({said}): building from Go modules instead")
                return False
        return True

    def _fetch_one(self, web: httpx.Client, url: str, target: Path) -> None:
        """It gets its name, and may be run, when it is whole and is what the checksum says."""
        wanted = _checksum(web, f"{url}.sha256")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        self._say(f"downloading {url}")
        try:
            found = _save(web, url, part)
            if found != wanted:
                raise VimError(
                    f"{url} is not what its checksum says: {found} instead of {wanted}.",
                    VimFault.PERMANENT,
                    cure="try again; if it stays so, `--releases none` builds from Go modules.",
                )
            part.chmod(0o755)
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)


def _checksum(web: httpx.Client, url: str) -> str:
    answer = web.get(url)
    word = answer.text.strip().split(maxsplit=1)[0] if answer.text.strip() else ""
    if answer.status_code != httpx.codes.OK or not re.fullmatch(r"[0-9a-f]{64}", word):
        raise Unreachable(f"{answer.status_code} and no checksum at {url}")
    return word


def _save(web: httpx.Client, url: str, target: Path) -> str:
    """The file, and the checksum of what came."""
    digest, deadline = hashlib.sha256(), time.monotonic() + FILE_SECONDS
    with web.stream("GET", url) as answer, target.open("wb") as file:
        if answer.status_code != httpx.codes.OK:
            raise Unreachable(f"{answer.status_code} from {url}")
        for chunk in answer.iter_bytes(CHUNK):
            digest.update(chunk)
            file.write(chunk)
            if time.monotonic() > deadline:
                raise Unreachable(f"{url} did not come within {FILE_SECONDS:.0f} s")
    return digest.hexdigest()
