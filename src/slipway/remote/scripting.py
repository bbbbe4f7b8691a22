"""The fixed shell scripts that run on machines: files in scripts/, which get values as arguments only."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("scripts")


@cache
def script(name: str, folder: Path = _FOLDER) -> str:
    """Its text, without the comments: a machine's process list is no place for them."""
    lines = (folder / f"{name}.sh").read_text().splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def run_script(name: str, *arguments: str, folder: Path = _FOLDER) -> list[str]:
    """The argument list that runs it with these arguments."""
    return ["sh", "-c", script(name, folder), f"slipway-{name}", *arguments]
