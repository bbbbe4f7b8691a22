"""The one place where arguments become a command line.

SSH carries a single string to a login shell. Everything is put in single quotes, with nothing left to the shell to
interpret, so that each argument arrives as exactly one argument. No other module may build a command string.

What is in a command line is seen by every user of the machine: secrets go by stdin, or into files with `put`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from slipway.model.errors import StepError

LONGEST = 128 * 1024 - 1  # bytes in one argument of a Linux process, and the login shell gets ours as one
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPARE = 1.0  # seconds that the machine's own time limit comes after ours
_FOLDER = Path(__file__).with_name("scripts")


def command_line(
    argv: Sequence[str], *, sudo: bool = False, env: Mapping[str, str] | None = None, limit: float | None = None
) -> str:
    """`argv` for a POSIX login shell. `limit`: the machine itself ends the command and its children after that."""
    line = "exec " + " ".join(quoted(word) for word in wrapped(argv, sudo=sudo, env=env, limit=limit))
    if (size := len(line.encode())) > LONGEST:
        raise StepError(
            f"The command {argv[0]!r} is {size} bytes long; a machine takes {LONGEST}.",
            cure="give what is long by stdin or in a file.",
        )
    return line


def wrapped(
    argv: Sequence[str], *, sudo: bool = False, env: Mapping[str, str] | None = None, limit: float | None = None
) -> list[str]:
    """`argv` behind the programs that give it root's rights, its variables and its time limit."""
    if not argv or not argv[0] or argv[0].startswith("-") or "=" in argv[0]:
        raise StepError(f"{argv[0] if argv else ''!r} can't be the name of a program.")
    words: list[str] = []
    if sudo:
        words += ["sudo", "-n", "--"]
    if env:
        words += ["env", *(f"{_variable(name)}={value}" for name, value in env.items())]
    if limit is not None:
        words += ["timeout", "--kill-after=5", f"{limit + _SPARE:.3f}"]
    return [*words, *argv]


def quoted(word: str) -> str:
    """One word, whatever is in it, as one argument."""
    if "\0" in word:
        raise StepError(f"The argument {word[:40]!r} holds a NUL character, which no argument can.")
    try:
        word.encode()
    except UnicodeEncodeError:
        raise StepError(f"The argument {word[:40]!r} holds a lone surrogate, which is no character.") from None
    return "'" + word.replace("'", "'\\''") + "'"


def _variable(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise StepError(f"{name!r} can't be the name of an environment variable.")
    return name


@cache
def script(name: str, folder: Path = _FOLDER) -> str:
    """Its text, without the comments: a machine's process list is no place for them."""
    lines = (folder / f"{name}.sh").read_text().splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def run_script(name: str, *arguments: str, folder: Path = _FOLDER) -> list[str]:
    """The argument list that runs it with these arguments."""
    return ["sh", "-c", script(name, folder), f"slipway-{name}", *arguments]
