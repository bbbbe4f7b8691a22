"""From what a VNFD calls a file to the file's path in the package."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from slipway.model.package import Checksum, is_url
from slipway.package.archive import Archive
from slipway.package.digests import Digests
from slipway.package.tosca.files import SIGN_IT, UNSIGNED
from slipway.package.tosca.section import Section


@dataclass(frozen=True)
class DeclaredArtifact:
    """`path` is None when the artifact lives outside the package."""

    name: str
    type: str
    path: str | None
    reference: str


class ArtifactFiles:
    """`unsigned` are files that no signature covers, though the package is signed."""

    def __init__(self, archive: Archive, digests: Digests, unsigned: frozenset[str] = frozenset()) -> None:
        self._archive, self._digests, self._unsigned = archive, digests, unsigned

    def find(self, reference: str, declared_in: Section, key: str) -> str | None:
        """Relative to the declaring file, as TOSCA has it, or to the package's root, as many packages do."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(declared_in.file), reference))
        path = next((path for path in (beside, posixpath.normpath(reference)) if path in self._archive), None)
        if path in self._unsigned:
            raise declared_in.error(f"The file {path} {UNSIGNED}", SIGN_IT, key)
        return path

    def read_text(self, path: str) -> str:
        return self._archive.read(path, self._archive.limits.text_bytes).decode("utf-8", "replace")

    def verify(self, path: str, checksum: Checksum, section: Section, key: str) -> None:
        """Compare a file with the digest that the VNFD gives for it."""
        line = section.content.line_of(key)
        self._digests.verify(path, checksum.algorithm, checksum.hash, file=section.file, line=line)

    def of(self, node: Section, *, may_be_outside: bool = False) -> Iterator[DeclaredArtifact]:
        """The artifacts of a node template. One that should be in the package and is not there is an error."""
        below = node.section("artifacts")
        for name in below.content:
            if isinstance(below.value(name), str):
                yield self._declared(name, below.empty(name), below, name, may_be_outside)
            elif "file" in (artifact := below.section(name)):
                yield self._declared(name, artifact, artifact, "file", may_be_outside)

    def _declared(self, name: str, artifact: Section, holder: Section, key: str, outside: bool) -> DeclaredArtifact:
        reference, type_name = holder.text(key) or "", artifact.text("type") or ""
        if not reference or is_url(reference) or "repository" in artifact:
            return DeclaredArtifact(name, type_name, None, reference)
        path = self.find(reference, holder, key)
        if path is None and not outside:
            raise holder.error(
                f"The artifact {name!r} is declared, but its file {reference[:200]!r} is not in the package.",
                "add the file, or correct the path.",
                key,
            )
        digest = artifact.text("checksum")
        if path is not None and digest is not None:
            algorithm = artifact.text("checksum_algorithm") or "SHA-256"
            self.verify(path, Checksum(algorithm, digest), artifact, "checksum")
        return DeclaredArtifact(name, type_name, path, reference)
