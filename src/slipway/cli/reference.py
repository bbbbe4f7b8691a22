"""The reference part of docs/cli.md, made from the commands themselves, so that it can't be wrong.

python -m slipway.cli.reference docs/cli.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from slipway.cli.main import app
from slipway.cli.session import COMMON

BEGIN = "<!-- reference: begin; made by `python -m slipway.cli.reference docs/cli.md` -->"
END = "<!-- reference: end -->"


def commands() -> Iterator[tuple[str, TyperCommand]]:
    """Every command with the words that call it."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)  # noqa: S101 - Typer's promise for an app with more than one command
    yield from _below("slipway", root)


def _below(words: str, group: TyperGroup) -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _below(f"{words} {name}", command)
        elif isinstance(command, TyperCommand):
            yield f"{words} {name}", command


def reference() -> str:
    return "\n".join([BEGIN, "", *(line for words, one in commands() for line in _section(words, one)), END])


def with_reference(page: str) -> str:
    """The page with its reference part as it has to be."""
    before, _, rest = page.partition(BEGIN)
    return before + reference() + rest.partition(END)[2]


def _section(words: str, command: TyperCommand) -> Iterator[str]:
    arguments = [one for one in command.params if isinstance(one, TyperArgument)]
    options = [one for one in command.params if isinstance(one, TyperOption)]
    own = [one for one in options if one.name not in shared_options(command)]
    usage = " ".join([words, *(one.metavar or str(one.name).upper() for one in arguments)])
    yield f"### `{usage}`"
    yield ""
    yield (command.help or "").strip()
    yield ""
    for option in own:
        yield f"- {_names(option)}: {option.help}"
    if own:
        yield ""
    yield "```console"
    yield f"$ {example(command)}"
    yield "```"
    yield ""


def shared_options(command: TyperCommand) -> frozenset[str]:
    """Those that the page explains once for all. A server's --data-dir is its own."""
    is_client = any(one.name == "url" for one in command.params)
    return COMMON if is_client else frozenset({"output_format"})


def example(command: TyperCommand) -> str:
    return (command.epilog or "").partition("Example:\n")[2].strip()


def _names(option: TyperOption) -> str:
    value = "" if option.is_flag else f" {option.metavar or str(option.name).upper()}"
    names = [f"`{name}{value}`" for name in (*option.opts, *option.secondary_opts)]
    return ", ".join(names)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(with_reference(target.read_text()))
