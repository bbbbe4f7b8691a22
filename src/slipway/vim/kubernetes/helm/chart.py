"""A chart: an archive or a directory of files, read and checked before Helm sees any of it.

Helm gets a directory with exactly the files that were checked here, so that two readers of one archive can't differ.
What a chart can't do in its templates (read files, look up names) it must not do by its schema either: Helm's would
fetch whatever file or URL a `$ref` names.
"""

from __future__ import annotations

import gzip
import io
import json
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slipway.model.errors import BadRequest, PackageError
from slipway.model.target import PackageFile
from slipway.package.yaml_reader import read_yaml
from slipway.vim.kubernetes.helm.parameters import REPLICAS
from slipway.vim.kubernetes.helm.values import value_path

ARCHIVES = (".tgz", ".tar.gz")
LARGEST = 64 << 20  # bytes of all files, unpacked
MOST_FILES = 5000
LARGEST_ARCHIVE = LARGEST + MOST_FILES * 4096  # bytes, with what an archive has for each file
DEEPEST = 5  # charts in charts
MOST_VALUES = 200_000  # of a schema
SCHEMA, CHART_FILE = "values.schema.json", "Chart.yaml"
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
DRAFTS = ("http://json-schema.org/", "https://json-schema.org/")
KINDS = re.compile(r"(charts/[^/]+/)*crds/.+\.(?i:yaml|yml|json)")  # files that Helm makes before it renders any
_OF_CHARTS = re.compile(r"(charts/[^/]+/)*charts")  # where Helm looks for charts that a chart needs
Files = dict[str, bytes]  # by their paths below the chart's directory


@dataclass(frozen=True)
class Chart:
    name: str
    version: str
    files: Files
    replicas: Mapping[str, tuple[str, ...]]  # by VDU: which value is its number

    @property
    def defines_kinds(self) -> bool:
        """Whether it brings CustomResourceDefinitions in the way of Helm."""
        return any(map(KINDS.fullmatch, self.files))

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def chart_globs(path: str) -> tuple[str, ...]:
    """The files of the package that a chart is: one archive, or all below a directory."""
    return (path,) if path.endswith(ARCHIVES) else (f"{path}/*",)


def files_of_chart(path: str, files: Mapping[str, PackageFile]) -> dict[str, PackageFile]:
    """Of the package's files those that are the chart's, by their paths in the package."""
    if path in files:
        return {path: files[path]}
    return {name: file for name, file in files.items() if name.startswith(f"{path}/")}


def read_chart(path: str, contents: Mapping[str, bytes]) -> Chart:
    """`contents`: the files that `files_of_chart` names. PackageError says what is wrong with them."""
    if path in contents:
        return checked(unpacked(contents[path], path), path)
    return checked(_expanded({name.removeprefix(f"{path}/"): text for name, text in contents.items()}, path, 0), path)


def unpacked(archive: bytes, place: str, depth: int = 0) -> Files:
    """The files of an archive below its one directory, charts inside it unpacked as well."""
    found: Files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompressed(archive, place)), mode="r:") as tar:
            for path, content in _members(tar, place):
                if path in found:
                    raise _wrong(f"it has the file {path!r} twice", "make the archive anew", place)
                found[path] = content
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError) as error:
        raise _wrong(f"it is no archive that can be read ({error})", "make it with `helm package`", place) from None
    tops = {path.partition("/")[0] for path in found}
    if len(tops) != 1 or any("/" not in path for path in found):
        raise _wrong("its files are not all in one directory", "make it with `helm package`", place)
    top = next(iter(tops))
    return _expanded({path.removeprefix(f"{top}/"): content for path, content in found.items()}, place, depth)


def checked(files: Files, place: str) -> Chart:
    size = sum(map(len, files.values()))
    if len(files) > MOST_FILES or size > LARGEST:
        raise _wrong(
            f"it has {len(files)} files and {size} bytes; at most {MOST_FILES} and {LARGEST} are read",
            "leave out what is not needed",
            place,
        )
    directories = {path[:at] for path in files for at, character in enumerate(path) if character == "/"}
    if both := sorted(directories & files.keys()):
        raise _wrong(f"{both[0]!r} is a file and a directory", "give one of them another name", place)
    if CHART_FILE not in files:
        raise _wrong(f"it has no {CHART_FILE}", "give the path of a chart's directory or archive", place)
    about = read_yaml(files[CHART_FILE], f"{place}/{CHART_FILE}").root
    name, version = about.get("name"), about.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        raise _wrong(f"its {CHART_FILE} has no name or no version", "give both as strings", place)
    if about.get("type") == "library":
        raise _wrong("it is a library for other charts, and nothing to install", "name a chart that uses it", place)
    for path, content in files.items():
        if posixpath.basename(path) == SCHEMA:
            _check_schema(content, f"{place}/{path}")
    return Chart(name[:100], version[:100], files, _replicas(about.get("annotations"), place))


def _replicas(annotations: Any, place: str) -> dict[str, tuple[str, ...]]:
    given = annotations if isinstance(annotations, dict) else {}
    try:
        return {
            key.removeprefix(REPLICAS): value_path(path, key) for key, path in given.items() if key.startswith(REPLICAS)
        }
    except BadRequest as error:
        raise _wrong(f"of its annotations {error.detail}", "correct it", f"{place}/{CHART_FILE}") from None


def _decompressed(archive: bytes, place: str) -> bytes:
    """Not more than that: a reader of archives takes headers, of whatever size, into memory at once."""
    with gzip.GzipFile(fileobj=io.BytesIO(archive)) as stream:
        content = stream.read(LARGEST_ARCHIVE + 1)
    if len(content) > LARGEST_ARCHIVE:
        raise _wrong("it is too large when unpacked", "leave out what is not needed", place)
    return content


def _members(tar: tarfile.TarFile, place: str) -> Iterator[tuple[str, bytes]]:
    size = number = 0
    for member in tar:
        number += 1
        size += member.size
        if number > MOST_FILES or size > LARGEST:
            raise _wrong("it is too large when unpacked", "leave out what is not needed", place)
        if member.isdir():
            continue
        path = posixpath.normpath(member.name)
        if not member.isfile():
            raise _wrong(f"{path[:200]!r} is a link or a device", "put the file itself there", place)
        stream = tar.extractfile(member)
        yield _safe(path, place), stream.read() if stream else b""


def _expanded(files: Files, place: str, depth: int) -> Files:
    """With the files of charts that are archives in `charts/`, also of a chart that is a directory there, unpacked."""
    found: Files = {}
    size = 0
    for path, content in files.items():
        directory, name = posixpath.split(_safe(path, place))
        if not (_OF_CHARTS.fullmatch(directory) and name.endswith(ARCHIVES)):
            found[path] = content
            continue
        if depth >= DEEPEST:
            raise _wrong(f"it has charts in charts, more than {DEEPEST} deep", "flatten them", place)
        within = f"{directory}/{name.removesuffix('.tgz').removesuffix('.tar.gz')}"
        inner = unpacked(content, f"{place}/{path}", depth + 1)
        size += sum(map(len, inner.values()))
        found |= {f"{within}/{below}": text for below, text in inner.items()}
        if size > LARGEST or len(found) > MOST_FILES:
            raise _wrong("it is too large when unpacked", "leave out what is not needed", place)
    return found


def _safe(path: str, place: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or not path.isprintable() or "\\" in path or len(path) > 1000:
        raise _wrong(f"a file in it is called {path[:200]!r}", "give it a relative path of plain characters", place)
    if any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts):
        raise _wrong(f"a file in it is called {path[:200]!r}", "give it a path below the chart", place)
    return path


def _check_schema(content: bytes, place: str) -> None:
    try:
        schema = json.loads(content)
    except (ValueError, RecursionError):
        raise _wrong("it is no JSON", "correct it", place) from None
    waiting, seen = [schema], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise _wrong(f"it has more than {MOST_VALUES} values", "make it smaller", place)
        if isinstance(value, dict):
            _check_references(value, place)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _check_references(schema: dict[str, Any], place: str) -> None:
    for key in REFERENCES:
        there = schema.get(key)
        if isinstance(there, str) and not there.startswith("#"):
            raise _wrong(
                f"{key} is {there[:200]!r}, which would be read from elsewhere",
                "put what it names into the schema (#/$defs/...)",
                place,
            )
    draft = schema.get("$schema")
    if isinstance(draft, str) and not draft.startswith(DRAFTS):
        raise _wrong(f"$schema is {draft[:200]!r}, which is no draft of JSON Schema", "name a draft", place)


def _wrong(what: str, cure: str, place: str) -> PackageError:
    return PackageError(f"The chart can't be used: {what}.", file=place, cure=f"{cure}.")
