"""How answers reach a person or a program: as a table, or as the API's own document in JSON or YAML.

Names come from strangers. Nothing is printed that a terminal could take for a command, and Rich sees no markup in data.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from slipway.cli.errors import document
from slipway.model.errors import SlipwayError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

WIDE = 10_000  # nothing is cut where no terminal's width says so
LONGEST_CELL = 100  # characters of an explanation in a table


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def clean(value: object) -> str:
    """One line of printable text."""
    if value is None:
        return ""
    return "".join(c if c.isprintable() else " " if c.isspace() else "" for c in str(value))


def text(value: object, style: str = "") -> Text:
    """A value as Rich prints it untouched."""
    from rich.text import Text

    return Text(clean(value), style=style)


# What JSON leaves as it is and a terminal may obey: C1 controls, line and paragraph ends, changes of direction.
_OBEYED = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def as_json(data: object, *, indent: int | None = 2) -> str:
    plain = json.dumps(data, indent=indent, ensure_ascii=False)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def as_yaml(data: object) -> str:
    import yaml

    plain: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return plain.rstrip("\n")


class Output:
    """Standard output and standard error in the format that was asked for."""

    def __init__(self, form: Format) -> None:
        self.form = form

    @property
    def for_people(self) -> bool:
        return self.form is Format.TABLE

    def show(self, data: object, view: Callable[[], RenderableType]) -> None:
        """The document for programs, the view for people."""
        if self.form is Format.JSON:
            print(as_json(data))
        elif self.form is Format.YAML:
            print(as_yaml(data))
        else:
            self._draw(view())

    def _draw(self, view: RenderableType) -> None:
        console = self.console()
        with console.capture() as drawing:
            console.print(text(view) if isinstance(view, str) else view)
        for line in drawing.get().splitlines():
            print(line.rstrip())

    @contextmanager
    def until_known(self, view: Callable[[], RenderableType]) -> Iterator[None]:
        """What is known already, on a terminal only, for as long as the rest is asked for."""
        if not self.for_people or not sys.stdout.isatty():
            yield
            return
        from rich.live import Live

        with Live(view(), console=self.console(), auto_refresh=False, transient=True):
            yield

    def say(self, message: str) -> None:
        """A sentence for people; programs get their document instead."""
        if self.for_people:
            print(clean(message))

    def note(self, message: str) -> None:
        """A sentence beside the answer, whatever its format."""
        print(clean(message), file=sys.stderr)

    def error(self, error: SlipwayError) -> None:
        if self.form is Format.JSON:
            print(as_json(document(error), indent=None), file=sys.stderr)
        else:
            self.note(f"Error: {error.detail}")

    def console(self) -> Console:
        from rich.console import Console

        width = None if sys.stdout.isatty() else WIDE
        return Console(markup=False, emoji=False, highlight=False, width=width, soft_wrap=False)


def table(columns: Mapping[str, str], rows: Iterable[Sequence[object]]) -> RenderableType:
    """Columns by title, each with a style. The first is never folded: it is what people copy."""
    from rich.table import Table

    result = Table(box=None, pad_edge=False, header_style="bold")
    for number, (title, style) in enumerate(columns.items()):
        result.add_column(title, style=style, no_wrap=number == 0, overflow="fold")
    for row in rows:
        result.add_row(*(text(cell) for cell in row))
    return result if result.row_count else text("None.")


def facts(pairs: Iterable[tuple[str, object]]) -> RenderableType:
    """What is known about one thing, a line each; what says nothing is left out."""
    from rich.table import Table

    result = Table(box=None, pad_edge=False, show_header=False)
    result.add_column(no_wrap=True, style="bold")
    result.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, "", {}, [], ()):
            result.add_row(text(name), text(_plain(value)))
    return result


def _plain(value: object) -> object:
    return as_json(value, indent=None) if isinstance(value, dict | list) else value


def brief(value: object) -> str:
    """An explanation in a table, which is for looking through: `show` and `-o json` have all of it."""
    whole = clean(value)
    return whole if len(whole) <= LONGEST_CELL else f"{whole[: LONGEST_CELL - 1].rstrip()}…"


def short_time(value: Any) -> str:
    """2026-01-31T10:20:30.123Z as people read it."""
    return clean(value).replace("T", " ")[:19]
