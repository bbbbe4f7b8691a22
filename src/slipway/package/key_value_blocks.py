"""The `Key: value` blocks of which TOSCA.meta and SOL004 manifests are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from slipway.model.errors import PackageError

NAMING = ("Source", "Name")
LONGEST_LINE = 4096
MOST_LINES = 100_000


@dataclass(slots=True)
class Block:
    line: int
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str | None:
        """The file that the block is about."""
        return next((self.fields[key] for key in NAMING if key in self.fields), None)


def read_blocks(data: bytes, file: str) -> list[Block]:
    """Blocks are parted by empty lines; a second Source or Name begins a new one too."""
    blocks: list[Block] = []
    current: Block | None = None
    last_key = ""
    for number, line in _lines(data, file):
        if not line.strip():
            current = None
            continue
        if line[0].isspace() and current is not None and ":" not in line:
            current.fields[last_key] += line.strip()
            continue
        key, value = _pair(line, file, number)
        if current is None or (key in NAMING and current.name is not None):
            current = Block(number)
            blocks.append(current)
        if key in current.fields:
            raise PackageError(f"{key} is given twice in one block.", file=file, line=number, cure="keep one of them.")
        current.fields[key] = value
        last_key = key
    return blocks


def _lines(data: bytes, file: str) -> Iterator[tuple[int, str]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PackageError("The file is not UTF-8 text.", file=file, cure="save it as UTF-8.") from None
    if text.count("\n") > MOST_LINES:
        raise PackageError(f"The file has more than {MOST_LINES} lines.", file=file, cure="list fewer files.")
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.lstrip().startswith("#"):
            yield number, line


def _pair(line: str, file: str, number: int) -> tuple[str, str]:
    key, colon, value = line.strip().removeprefix("- ").partition(":")
    if len(line) > LONGEST_LINE:
        fault = f"has {len(line)} characters; at most {LONGEST_LINE} are read"
    elif not line.isprintable() and "\t" not in line:
        fault = "contains control or invisible characters"
    elif not colon or not key.strip():
        fault = "is not of the form `Key: value`"
    else:
        return key.strip(), value.strip()
    raise PackageError(f"The line {fault}.", file=file, line=number, cure="correct or remove the line.")
