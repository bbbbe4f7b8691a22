"""The manifests of a package: untrusted YAML, read into objects of any kind, each checked and named.

A document of `kind: ReadinessRules` (`apiVersion: slipway.io/v1`) is no object of the cluster: it says when the others
are ready (kube/readiness_rules.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from slipway.kube.interface import Object
from slipway.kube.readiness import Rule
from slipway.kube.readiness_rules import read_rules
from slipway.model.errors import PackageError
from slipway.model.target import PackageFile
from slipway.package.limits import DEFAULT_LIMITS
from slipway.package.yaml_reader import YamlMap, YamlSeq, plain, read_yaml_documents

MOST_VALUES = 600_000  # of one file, aliases spelled out
MOST_VALUES_OF_ALL = 2_000_000  # of one VNF: they are in memory together
MOST_OBJECTS = 2_000  # of one VNF
LONGEST_NAME = 253
OURS = "slipway.io/"  # labels and annotations that say whose an object is
# In what was read from a cluster. An owner is known by its uid: one that is not there takes the object along, and who
# names that of another VNF would be counted among its VNFCs.
OF_THE_SERVER = ("uid", "resourceVersion", "managedFields", "ownerReferences")
SECRET = ("v1", "Secret")
JOB, TIME_TO_LIVE = ("batch", "Job"), "ttlSecondsAfterFinished"
RULES = ("slipway.io/v1", "ReadinessRules")
GIVE_A_NAME = "give metadata.name; what needs none, as an access review, is only asked and never kept: leave it out"


@dataclass(frozen=True)
class Manifest:
    """`at`: its number in the file. `content` is shared: to be changed only in copies.

    `placed`: a parameter says where all objects are, whatever namespaces they have in their manifests.
    """

    file: str
    at: int
    line: int
    content: Object
    placed: bool = False

    @property
    def api_version(self) -> str:
        return str(self.content["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.content["kind"])

    @property
    def name(self) -> str:
        return str(self.content["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        namespace = self.content["metadata"].get("namespace")
        return str(namespace) if namespace and not self.placed else None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def key(self) -> tuple[str, str | None, str]:
        """What pods refer to a ConfigMap or Secret by, their namespace included."""
        return self.kind, self.namespace, self.name

    @property
    def expires(self) -> bool:
        """A Job with a time to live: it goes by itself once it has ended."""
        spec = self.content.get("spec")
        return (self.group, self.kind) == JOB and isinstance(spec, dict) and spec.get(TIME_TO_LIVE) is not None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def error(self, what: str, cure: str) -> PackageError:
        return PackageError(f"{self}: {what}", file=self.file, line=self.line, cure=cure)


def manifests_of(files: Mapping[str, PackageFile], paths: Iterable[str]) -> list[Manifest]:
    """All objects, in the order of files and documents. PackageError says which one is wrong, and how."""
    found = read_together((path, files[path].content) for path in paths if path in files)
    if len(found) > MOST_OBJECTS:
        raise PackageError(
            f"The manifests have {len(found)} objects; at most {MOST_OBJECTS} can be one VNF.",
            cure="make two VNFs of it.",
        )
    return found


def read_together(texts: Iterable[tuple[str, bytes]], most: int = MOST_VALUES_OF_ALL) -> list[Manifest]:
    """The objects of several texts, each with its name: they are in memory together."""
    found, values = list[Manifest](), 0
    for name, text in texts:
        objects, _, size = _read(name, text)
        values += size
        if values > most:
            raise PackageError(
                f"The manifests have more than {most} values, aliases spelled out.",
                file=name,
                cure="use fewer aliases, or make two VNFs of it.",
            )
        found += objects
    return found


def rules_of(files: Mapping[str, PackageFile], paths: Iterable[str]) -> tuple[Rule, ...]:
    return tuple(rule for path in paths if path in files for rule in parsed(path, files[path].content)[1])


def parsed(path: str, content: bytes) -> tuple[tuple[Manifest, ...], tuple[Rule, ...]]:
    """The objects and the readiness rules of a file."""
    objects, rules, _ = _read(path, content)
    return objects, rules


@lru_cache(maxsize=16)
def _read(path: str, content: bytes) -> tuple[tuple[Manifest, ...], tuple[Rule, ...], int]:
    """And how many values it has. Kept, since each step of a plan reads it again."""
    documents, size = read_yaml_documents(content, path, DEFAULT_LIMITS, MOST_VALUES)
    objects, rules = list[Manifest](), list[Rule]()
    for document in documents:
        if (document.get("apiVersion"), document.get("kind")) == RULES:
            rules += read_rules(plain(document).get("rules"), path)
        else:
            objects += (_manifest(one, path, at) for at, one in enumerate(_items(document, path), len(objects)))
    return tuple(objects), tuple(rules), size


@lru_cache(maxsize=16)
def rules_in(path: str, content: bytes) -> tuple[tuple[Rule, ...], bool]:
    """The readiness rules of a file, and whether it has nothing else. What else there is need not be manifests."""
    documents, _ = read_yaml_documents(content, path, DEFAULT_LIMITS, MOST_VALUES)
    found = [one for one in documents if (one.get("apiVersion"), one.get("kind")) == RULES]
    rules = [rule for one in found for rule in read_rules(plain(one).get("rules"), path)]
    return tuple(rules), len(found) == len(documents)


def _items(document: YamlMap, path: str) -> Iterator[YamlMap]:
    """Itself, or what a List holds."""
    if (document.get("apiVersion"), document.get("kind")) != ("v1", "List"):
        yield document
        return
    items = document.get("items")
    if not isinstance(items, YamlSeq) or not all(isinstance(one, YamlMap) for one in items):
        raise PackageError(
            "items of a List must be a list of objects.", file=path, line=document.line_of("items"), cure="correct it."
        )
    for one in items:
        if one.get("kind") == "List":
            raise PackageError("A List holds another List.", file=path, line=one.line, cure="flatten it.")
        yield one


def _manifest(document: YamlMap, path: str, at: int) -> Manifest:
    for key in ("apiVersion", "kind"):
        if not _is_name(document.get(key)):
            raise _error(document, path, f"A document has no {key}", f"give its {key} as a string", key)
    if not all(map(_is_name, document["apiVersion"].split("/"))):
        raise _error(document, path, f"{_called(document)} has an apiVersion that is none", "correct it", "apiVersion")
    metadata = document.get("metadata")
    if not isinstance(metadata, YamlMap):
        raise _error(document, path, f"{_called(document)} has no metadata", GIVE_A_NAME, "kind")
    if "generateName" in metadata and not metadata.get("name"):
        raise _error(
            metadata,
            path,
            f"{_called(document)} has a generateName, and would be another object at each retry",
            "give metadata.name",
            "generateName",
        )
    if not _is_name(metadata.get("name")):
        raise _error(
            metadata, path, f"{_called(document)} has no metadata.name, or one that is none", GIVE_A_NAME, "name"
        )
    if metadata.get("namespace") is not None and not _is_name(metadata.get("namespace")):
        raise _error(metadata, path, f"{_called(document)}: metadata.namespace is none", "correct it", "namespace")
    if given := [key for key in OF_THE_SERVER if key in metadata]:
        raise _error(
            metadata,
            path,
            f"{_called(document)}: metadata.{given[0]} is for the cluster to set, and of another object",
            "leave it out",
            given[0],
        )
    for part in ("labels", "annotations"):
        _check_strings(document, metadata, part, path, "metadata.")
    if (document.get("apiVersion"), document.get("kind")) == SECRET:
        for part in ("data", "stringData"):
            _check_strings(document, document, part, path)
    _check_marks(document, document, path)
    return Manifest(path, at, document.line, plain(document))


def _check_strings(document: YamlMap, holder: YamlMap, part: str, path: str, place: str = "") -> None:
    """Before an API server sees them: it repeats what is no text, and of a Secret that is the secret."""
    given = holder.get(part)
    if given is None:
        return
    if not isinstance(given, YamlMap) or not all(isinstance(value, str | None) for value in given.values()):
        raise _error(
            holder,
            path,
            f"{_called(document)}: {place}{part} must be strings",
            'write numbers and true in quotes: "1"',
            part,
        )


def _check_marks(document: YamlMap, value: Any, path: str) -> None:
    """Also those of templates: pods with the label of another VNF would be taken for its own."""
    if isinstance(value, YamlSeq):
        for one in value:
            _check_marks(document, one, path)
    if not isinstance(value, YamlMap):
        return
    for key, one in value.items():
        if key in ("labels", "annotations") and isinstance(one, YamlMap):
            if taken := [name for name in one if str(name).startswith(OURS)]:
                raise _error(one, path, f"{_called(document)} has the {str(key)[:-1]} {taken[0]}, which Slipway sets",
                             "leave it out", taken[0])  # fmt: skip
        else:
            _check_marks(document, one, path)


def _called(document: YamlMap) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, YamlMap) else None
    return f"{document['kind']} {name}"[:LONGEST_NAME] if name else str(document["kind"])[:LONGEST_NAME]


def _is_name(value: Any) -> bool:
    """Whether it can be a part of a path in the API: what can't be asked for can't be removed either."""
    return (
        isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable() and value not in (".", "..")
    )


def _error(holder: YamlMap, path: str, what: str, cure: str, key: str) -> PackageError:
    return PackageError(f"{what}.", file=path, line=holder.line_of(key), cure=f"{cure}.")
