"""Checksums of members: computed once each, by streaming, and compared with what the package declares."""

from __future__ import annotations

import hashlib
import hmac

from slipway.model.errors import PackageError
from slipway.model.package import Checksum
from slipway.package.archive import Archive

SHA256 = "SHA-256"
USE_STRONG = "use SHA-256, SHA-384 or SHA-512."
_KNOWN = {"sha256": SHA256, "sha384": "SHA-384", "sha512": "SHA-512"}


def algorithm_named(text: str) -> str | None:
    """The name as written here, for the many ways people write it; None when it is unknown or too weak."""
    return _KNOWN.get(text.strip().lower().replace("-", "").replace("_", ""))


class Digests:
    """The checksums of an archive's members, each computed when first asked for."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._known: dict[tuple[str, str], str] = {}

    def of(self, name: str, algorithm: str = SHA256) -> str:
        if (name, algorithm) not in self._known:
            digest = hashlib.new(algorithm.replace("-", "").lower())
            for chunk in self.archive.chunks(name):
                digest.update(chunk)
            self._known[name, algorithm] = digest.hexdigest()
        return self._known[name, algorithm]

    def checksum(self, name: str) -> Checksum:
        """The checksum already computed for a declared digest, else SHA-256."""
        for algorithm in _KNOWN.values():
            if (name, algorithm) in self._known:
                return Checksum(algorithm, self._known[name, algorithm])
        return Checksum(SHA256, self.of(name))

    def verify(self, name: str, algorithm: str, expected: str, *, file: str, line: int | None) -> None:
        """Compare with what `file` says at `line`."""
        known = algorithm_named(algorithm)
        if known is None:
            raise PackageError(
                f"The digest algorithm {algorithm!r} is unknown or too weak.",
                file=file,
                line=line,
                cure=USE_STRONG,
            )
        found = self.of(name, known)
        if not hmac.compare_digest(found.encode(), expected.strip().lower().encode()):
            raise PackageError(
                f"The digest of {name} does not match: the file has {known} {found}.",
                file=file,
                line=line,
                cure="write the file's own digest here, or put the right file in the package.",
            )
