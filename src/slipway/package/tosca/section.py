"""A part of a VNFD file, read with types: every wrong value becomes an error that names file, line and cure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from slipway.model.errors import PackageError
from slipway.package.yaml_reader import YamlMap, YamlSeq, plain

WHOLE = re.compile("[+-]?[0-9]+")
LONGEST_ERROR = 600  # names come from the package, and may be of any length
LONGEST_NAME = 60  # of one in a list
LARGEST_SIZE = 2**63 - 1  # bytes
MOST = 10_000  # instances, steps and levels: more is a mistake or an attack

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]{1,6})?)\s*([kmgt]i?)?(?:b(?:ytes)?)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Section:
    """A mapping in a file. `inputs` are the topology's, for `{get_input: x}` with a default."""

    def __init__(self, content: YamlMap, file: str, inputs: YamlMap | None = None) -> None:
        self.content, self.file, self.inputs = content, file, inputs

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def __bool__(self) -> bool:
        return bool(self.content)

    def error(self, what: str, cure: str, key: str | None = None) -> PackageError:
        line = self.content.line if key is None else self.content.line_of(key)
        return PackageError(what[:LONGEST_ERROR], file=self.file, line=line, cure=cure)

    def value(self, key: str) -> Any:
        """What stands there, inputs replaced by their defaults; None when it is only known at run time."""
        return self._look(key)[0]

    def _look(self, key: str) -> tuple[Any, str | None]:
        holder, name = self.content, key
        if (asked := _input_name(self.content.get(key))) is not None:
            declared = self.inputs.get(asked) if self.inputs is not None else None
            if not isinstance(declared, YamlMap):
                return None, None
            holder, name = declared, "default"
        value = holder.get(name)
        if _is_function(value) or (holder is not self.content and _is_large(value)):
            return None, None
        return value, holder.raw.get(name)

    def text(self, key: str) -> str | None:
        """A scalar as it was written: version 1.10 stays 1.10."""
        value, raw = self._look(key)
        if value is None:
            return None
        if isinstance(value, YamlMap | YamlSeq):
            raise self.error(f"{key} is not a string.", "write a single value.", key)
        return raw if raw is not None else str(value)

    def words(self, key: str) -> tuple[str, ...]:
        """A list of texts; a single one counts as a list."""
        value = self.value(key)
        if value is None:
            return ()
        if not isinstance(value, YamlSeq):
            text = self.text(key)
            return () if text is None else (text,)
        if any(isinstance(one, YamlMap | YamlSeq) or one is None for one in value):
            raise self.error(f"{key} is not a list of names.", "write it as [one, two].", key)
        return tuple(value.raw.get(index, str(one)) for index, one in enumerate(value))

    def number(self, key: str, most: int = MOST) -> int | None:
        """A whole number from 0 to `most`."""
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, str) and WHOLE.fullmatch(value):
            digits = value.lstrip("+-0") or "0"
            if len(digits) >= 19:
                what = f"{key} has {len(digits)} digits; it must be between 0 and {most}."
                raise self.error(what, "correct the number.", key)
            value = -int(digits) if value.startswith("-") else int(digits)
        if isinstance(value, float):
            raise self.error(f"{key} is {value}; it must be a whole number.", "write a number such as 1.", key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"{key} is not a whole number.", "write a number such as 1.", key)
        if not 0 <= value <= most:
            raise self.error(f"{key} is {value}; it must be between 0 and {most}.", "correct the number.", key)
        return value

    def size(self, key: str) -> int | None:
        text = self.text(key)
        if text is None:
            return None
        size = size_in_bytes(text)
        if size is not None and size > LARGEST_SIZE:
            what = f"{key} is {text[:40]}, which is larger than {LARGEST_SIZE} bytes."
            raise self.error(what, "write a number and a unit such as 4 GB.", key)
        if size is None:
            raise self.error(f"{key} is not a size: {text[:40]!r}.", "write a number and a unit such as 4 GB.", key)
        return size

    def section(self, key: str) -> Section:
        """A mapping below; empty when absent."""
        value = self.value(key)
        if value is None or value == []:
            return self.empty(key)
        if not isinstance(value, YamlMap):
            raise self.error(f"{key} is not a mapping.", "write `name: value` lines below it.", key)
        return Section(value, self.file, self.inputs)

    def empty(self, key: str) -> Section:
        return Section(YamlMap(self.content.line_of(key)), self.file, self.inputs)

    def sections(self, key: str) -> Iterator[tuple[str, Section]]:
        """The named mappings below `key`."""
        below = self.section(key)
        for name in below.content:
            yield name, below.section(name)

    def listed(self, key: str) -> list[Section]:
        """A list of mappings; a single mapping counts as a list."""
        value = self.value(key)
        if value is None:
            return []
        items = value if isinstance(value, YamlSeq) else [value]
        if not all(isinstance(item, YamlMap) for item in items):
            raise self.error(f"{key} is not a list of mappings.", "write `- name: value` lines below it.", key)
        return [Section(item, self.file, self.inputs) for item in items]

    def pairs(self, key: str) -> Iterator[tuple[str, Section]]:
        """TOSCA's list of single-key mappings, or one mapping: (name, the mapping that holds it)."""
        for item in self.listed(key):
            for name in item.content:
                yield name, item

    def plain(self) -> dict[str, Any]:
        content: dict[str, Any] = plain(self.content)
        return content


def _input_name(value: Any) -> str | None:
    if isinstance(value, YamlMap) and len(value) == 1:
        asked = value.get("get_input")
        return asked if isinstance(asked, str) else None
    return None


def _is_large(value: Any) -> bool:
    """A default that many places could multiply is not taken."""
    return isinstance(value, YamlMap) or (isinstance(value, YamlSeq) and len(value) > 100)


def some(names: Iterable[str]) -> str:
    """The first few names, for an error. As in a repr, but for the quotes: they come from the package."""
    few = [repr(name[:LONGEST_NAME])[1:-1] for name in islice(names, 11)]
    return ", ".join(few[:10]) + (", …" if len(few) > 10 else "") if few else "none"


def remove_or_name(names: Collection[str]) -> str:
    """The cure for what names something that is not there; `names` are there."""
    return f"remove it, or name one of: {some(names)}." if names else "remove it, or declare what it names."


def _is_function(value: Any) -> bool:
    """`{get_property: ...}` and the like."""
    return isinstance(value, YamlMap) and len(value) == 1 and next(iter(value)).startswith("get_")


def size_in_bytes(text: str) -> int | None:
    """Of a TOSCA size (`4 GB`, `512 MiB`, `4096`); None when it is not a size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    prefix = (match[2] or "").lower()
    base = 1024 if prefix.endswith("i") else 1000
    number = match[1].lstrip("0") or "0"
    number = number if len(number) <= 30 else "9" * 30  # however long it is: too large, and no work to compute
    factor: int = base ** _POWERS[prefix.removesuffix("i")]
    return round(float(number) * factor) if "." in number else int(number) * factor
