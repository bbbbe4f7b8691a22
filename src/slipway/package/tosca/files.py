"""The files of a VNFD: the entry file and what it imports, from inside the package only."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from slipway.model.errors import PackageError
from slipway.package.archive import Archive
from slipway.package.tosca.section import Section
from slipway.package.yaml_reader import YamlMap, YamlSeq, read_yaml

_NATIVE = re.compile(r"(?:etsi_nfv_sol001_|tosca_simple_)[\w.-]*\.ya?ml")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class VnfdFiles:
    """`parsed` is in the order of import, the entry file first; `native` are type files that were not read."""

    entry: str
    parsed: dict[str, YamlMap]
    native: tuple[str, ...]

    def paths(self) -> tuple[str, ...]:
        return (*self.parsed, *self.native)


@dataclass(frozen=True)
class _Import:
    target: str
    file: str
    line: int

    def error(self, what: str, cure: str) -> PackageError:
        return PackageError(what, file=self.file, line=self.line, cure=cure)


UNSIGNED = "is used here, but the signed manifest has no digest of it: it could be replaced unnoticed."
SIGN_IT = "list it in the manifest with Source, Algorithm and Hash, then sign again."


def read_files(archive: Archive, entry: str, unsigned: frozenset[str] = frozenset()) -> VnfdFiles:
    """`unsigned` are files that no signature covers, though the package is signed."""
    limits = archive.limits
    parsed: dict[str, YamlMap] = {}
    native: list[str] = []
    nodes, size = limits.yaml_nodes, limits.vnfd_bytes
    waiting = [entry]
    for path in waiting:
        text = archive.read(path, min(limits.text_bytes, size))
        document = read_yaml(text, path, limits, nodes)
        nodes, size = nodes - document.nodes, size - len(text)
        parsed[path] = document.root
        for one in _imports(Section(document.root, path)):
            target = _path(one)
            if target is None:
                continue
            if target in unsigned:
                raise one.error(f"The file {target} {UNSIGNED}", SIGN_IT)
            if _NATIVE.fullmatch(posixpath.basename(target)):
                native += [target] if target in archive and target not in native else []
            elif target not in waiting:
                _check_target(one, target, archive)
                if len(waiting) >= limits.vnfd_files:
                    raise one.error(f"The VNFD has more than {limits.vnfd_files} files.", "put them together.")
                waiting.append(target)
    return VnfdFiles(entry, parsed, tuple(native))


def _imports(root: Section) -> Iterator[_Import]:
    """The shapes of TOSCA 1.2 and 1.3: a path, {file: path}, {name: path}, {name: {file: path}}."""
    value = root.value("imports")
    if value is None:
        return
    if not isinstance(value, YamlSeq):
        raise root.error("imports is not a list.", "write `- file.yaml` lines below it.", "imports")
    for index, item in enumerate(value):
        line = value.line_of(index)
        if isinstance(item, YamlMap) and "file" not in item and len(item) == 1:
            item = next(iter(item.values()))
        if isinstance(item, YamlMap):
            if "repository" in item:
                raise _Import("", root.file, line).error("The import is from a repository.", "put it in the package.")
            item = item.get("file")
        if not isinstance(item, str):
            raise _Import("", root.file, line).error("The import names no file.", "write `- file.yaml`.")
        yield _Import(item, root.file, line)


def _path(one: _Import) -> str | None:
    """The package path of an import; None for the standard's own type files, wherever they are said to be."""
    if _URL.match(one.target):
        if _NATIVE.fullmatch(posixpath.basename(one.target)):
            return None
        raise one.error(f"The import {one.target[:100]!r} is not in the package.", "put the file in the package.")
    if one.target.startswith("/"):
        raise one.error("The import is an absolute path.", "name it relative to this file.")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(one.file), one.target))
    if path.startswith("../"):
        raise one.error("The import leads out of the package.", "name it relative to this file.")
    return path


def _check_target(one: _Import, target: str, archive: Archive) -> None:
    if target not in archive:
        raise one.error(f"The imported file {target[:200]!r} is not in the package.", "add it, or remove the import.")
