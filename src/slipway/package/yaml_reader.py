"""Untrusted YAML, read into plain values that know their lines.

PyYAML's own constructors build what the document asks for: Python objects, dates, aliases without end. Here only the
events of the parser are used, in one loop without recursion, and nothing but maps, lists and scalars comes out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from slipway.model.errors import PackageError
from slipway.package.limits import DEFAULT_LIMITS, PackageLimits
from slipway.package.yaml_scalar import resolved, tagged

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%TAG")
_CORE = "tag:yaml.org,2002:"
_MAP_TAGS = frozenset({None, "!", _CORE + "map"})
_SEQ_TAGS = frozenset({None, "!", _CORE + "seq"})
_KEY_TAGS = frozenset({None, "!", _CORE + "str"})  # by any other a reader that comes after this one may merge
MERGE = "<<"
LONGEST_KEY = 1024
CHARACTERS = 64  # that an alias stands for count as one value more: written out, they take memory each time


class YamlMap(dict[str, Any]):
    """A mapping with the line of each key, and the text of scalars that became something other than text."""

    __slots__ = ("line", "lines", "raw")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.raw: dict[str, str] = {}

    def line_of(self, key: str) -> int:
        return self.lines.get(key, self.line)


class YamlSeq(list[Any]):
    """A sequence with the same knowledge, by position."""

    __slots__ = ("line", "lines", "raw")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []
        self.raw: dict[int, str] = {}

    def line_of(self, index: int) -> int:
        return self.lines[index]


@dataclass(frozen=True)
class YamlDocument:
    root: YamlMap
    nodes: int


@dataclass(slots=True)
class _Value:
    """A finished node: what it is, as written, and how many values and characters it has, aliases spelled out."""

    content: Any
    line: int
    raw: str | None = None
    size: int = 1
    height: int = 0
    length: int = 0


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come yet."""

    content: YamlMap | YamlSeq
    anchor: str | None
    size_before: int
    length_before: int
    height: int = 0
    key: str | None = None
    key_line: int = 0
    merges: list[YamlMap] | None = None


def read_yaml(data: bytes, file: str, limits: PackageLimits = DEFAULT_LIMITS, nodes: int | None = None) -> YamlDocument:
    """The one document of a file, whose root must be a mapping. `nodes` is what is left of the package's allowance."""
    return _Builder(file, limits, limits.yaml_nodes if nodes is None else nodes).build(_decode_utf8(data, file))


def read_yaml_documents(data: bytes, file: str, limits: PackageLimits, nodes: int) -> tuple[list[YamlMap], int]:
    """All documents of a file, with how many values they have in all. Empty ones are left out."""
    builder = _Builder(file, limits, nodes, several=True)
    builder.parse(_decode_utf8(data, file))
    return builder.documents, builder.size


def _decode_utf8(data: bytes, file: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PackageError("The file is not UTF-8 text.", file=file, line=line, cure="save it as UTF-8.") from None
    if match := _TAG_DIRECTIVE.search(text):
        line = text.count("\n", 0, match.end()) + 1
        raise PackageError("%TAG directives are not read.", file=file, line=line, cure="remove the directive.")
    return text


class _Builder:
    def __init__(self, file: str, limits: PackageLimits, nodes: int, *, several: bool = False) -> None:
        self.file, self.limits, self.allowance, self.several = file, limits, nodes, several
        self.documents: list[YamlMap] = []
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Value | None] = {}
        self.size = self.length = 0
        self.root: _Value | None = None

    def build(self, text: str) -> YamlDocument:
        self.parse(text)
        return YamlDocument(self._mapping(), self.size)

    def parse(self, text: str) -> None:
        try:
            for event in yaml.parse(text, Loader=_Loader):
                self._take(event)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be parsed"
            line = mark.line + 1 if mark is not None else None
            raise PackageError(f"Not valid YAML: {problem}.", file=self.file, line=line, cure="correct it.") from None

    def _mapping(self) -> YamlMap:
        if self.root is None or not isinstance(self.root.content, YamlMap):
            line = self.root.line if self.root else 1
            raise self._error("The file's root is not a mapping.", line, "begin with `key: value` lines.")
        return self.root.content

    def _end_document(self) -> None:
        if self.root is not None and self.root.content is not None:
            self.documents.append(self._mapping())
        self.root, self.anchors = None, {}

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, YamlMap(_line(event)), _MAP_TAGS)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, YamlSeq(_line(event)), _SEQ_TAGS)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentEndEvent) and self.several:
            self._end_document()
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise self._error("The file holds more than one document.", _line(event), "keep one document a file.")

    def _error(self, what: str, line: int, cure: str) -> PackageError:
        return PackageError(what, file=self.file, line=line, cure=cure)

    def _count(self, nodes: int, line: int) -> None:
        self.size += nodes
        if self.size > self.allowance:
            most = max(self.allowance, self.limits.yaml_nodes)  # what is left for one of several files says little
            raise self._error(
                f"The package's YAML has more than {most} values, aliases spelled out.",
                line,
                "use fewer aliases, or a smaller file.",
            )

    def _open(self, event: yaml.CollectionStartEvent, content: YamlMap | YamlSeq, tags: frozenset[str | None]) -> None:
        if event.tag not in tags:
            raise self._foreign_tag(event.tag, content.line)
        if len(self.stack) >= self.limits.yaml_depth:
            raise self._error("The YAML is nested too deeply.", content.line, "flatten it.")
        if self.stack and isinstance(self.stack[-1].content, YamlMap) and self.stack[-1].key is None:
            raise self._error("A mapping's key is itself a mapping or list.", content.line, "use text as keys.")
        if event.anchor:
            self.anchors[event.anchor] = None
        self.stack.append(_Open(content, event.anchor, self.size, self.length))
        self._count(1, content.line)

    def _close(self) -> None:
        done = self.stack.pop()
        if done.merges:
            _merge(done.content, done.merges)
        size, length = self.size - done.size_before, self.length - done.length_before
        self._add(_Value(done.content, done.content.line, None, size, done.height + 1, length), done.anchor)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text, line = event.value, _line(event)
        self._count(1, line)
        self.length += len(text)
        if "\0" in text or not (text.isascii() or _encodable(text)):
            raise self._error("The text contains a NUL or half a character.", line, "remove it.")
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.content, YamlMap) and top.key is None:
            if event.tag not in _KEY_TAGS:
                raise self._foreign_tag(event.tag, line)
            self._key(top, top.content, text, line, plain=event.implicit[0])
            if event.anchor:
                self.anchors[event.anchor] = _Value(text, line, length=len(text))
            return
        content = self._resolve(event, text, line)
        raw = None if isinstance(content, str) else text
        self._add(_Value(content, line, raw, length=len(text)), event.anchor)

    def _resolve(self, event: yaml.ScalarEvent, text: str, line: int) -> Any:
        if event.tag is None or event.tag == "!":
            return resolved(text) if event.implicit[0] and event.tag is None else text
        try:
            return tagged(event.tag.removeprefix(_CORE) if event.tag.startswith(_CORE) else "?", text)
        except LookupError:
            raise self._foreign_tag(event.tag, line) from None
        except ValueError:
            if event.tag == _CORE + "int" and (digits := text.lstrip("+-")).isdecimal():
                what = f"The number has {len(digits)} digits; those that fit 64 bits are read."
                raise self._error(what, line, "correct the number.") from None
            raise self._error(f"The value is not what its tag {event.tag[:60]} says.", line, "drop the tag.") from None

    def _foreign_tag(self, tag: str | None, line: int) -> PackageError:
        return self._error(f"The tag {(tag or '')[:60]!r} is not one of plain YAML.", line, "remove the tag.")

    def _key(self, top: _Open, content: YamlMap, text: str, line: int, *, plain: bool) -> None:
        if text == MERGE and plain and top.merges is None:
            top.merges = []
        elif text in content or text == MERGE:
            raise self._error(f"The key {text[:60]!r} is given twice.", line, "keep one of them.")
        elif not 0 < len(text) <= LONGEST_KEY:
            raise self._error(f"A key is empty or longer than {LONGEST_KEY} characters.", line, "rename it.")
        top.key, top.key_line = text, line

    def _alias(self, event: yaml.AliasEvent) -> None:
        line = _line(event)
        value = self.anchors.get(event.anchor or "")
        if value is None:
            raise self._error(
                f"The alias {event.anchor!r:.60} has no finished anchor before it.", line, "spell it out."
            )
        if len(self.stack) + value.height > self.limits.yaml_depth:
            raise self._error("The YAML is nested too deeply.", line, "flatten it.")
        self._count(value.size + value.length // CHARACTERS, line)
        self.length += value.length
        top = self.stack[-1]
        if isinstance(top.content, YamlMap) and top.key is None:
            if not isinstance(value.content, str):
                raise self._error("A key is an alias of something other than text.", line, "use text as keys.")
            self._key(top, top.content, value.content, line, plain=False)
            return
        self._add(value, None)

    def _add(self, value: _Value, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = value
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.height = max(top.height, value.height)
        if isinstance(top.content, YamlSeq):
            if value.raw is not None:
                top.content.raw[len(top.content)] = value.raw
            top.content.append(value.content)
            top.content.lines.append(value.line)
            return
        key, top.key = top.key or "", None
        if key == MERGE and top.merges is not None:
            top.merges.extend(self._merged(value))
            return
        top.content[key] = value.content
        top.content.lines[key] = top.key_line
        if value.raw is not None:
            top.content.raw[key] = value.raw

    def _merged(self, value: _Value) -> list[YamlMap]:
        maps = value.content if isinstance(value.content, YamlSeq) else [value.content]
        if not all(isinstance(one, YamlMap) for one in maps):
            raise self._error("The merge key '<<' wants a mapping or a list of mappings.", value.line, "correct it.")
        return list(maps)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _merge(content: YamlMap | YamlSeq, merges: list[YamlMap]) -> None:
    """Own keys win over merged ones, earlier merged maps over later ones."""
    if not isinstance(content, YamlMap):
        return
    for source in merges:
        for key, value in source.items():
            if key not in content:
                content[key] = value
                content.lines[key] = source.line_of(key)
                if key in source.raw:
                    content.raw[key] = source.raw[key]


def plain(value: Any) -> Any:
    """The same as ordinary dicts and lists. Depth and size were bounded when it was read."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value
