"""Values people type or keep in files: `key=value`, `key=@FILE`, `key=-`, and whole documents in YAML or JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

SECRET = re.compile(r"pass|secret|token|key|credential", re.IGNORECASE)
FILE_HINT = "or FILE is -, for standard input"


def assignments(given: Iterable[str] | None, option: str) -> dict[str, Any]:
    """`replicas=3` is a number, `on=true` a truth, `list=[1,2]` a list: JSON where it is JSON, text otherwise."""
    return {key: _value(value) for key, value in _split(given, option)}


def string_assignments(given: Iterable[str] | None, option: str) -> dict[str, str]:
    """Everything is text: `project=007` stays so."""
    return dict(_split(given, option))


def secrets(given: Iterable[str] | None, option: str) -> tuple[dict[str, str], list[str]]:
    """Texts, of which `@FILE` is read and `-` asked for; and the names of secrets given in clear."""
    values: dict[str, str] = {}
    resolve_connection: list[str] = []
    for key, value in _split(given, option):
        if value == "-":
            values[key] = _asked(key)
        elif value.startswith("@@"):
            values[key] = value[1:]
        elif value.startswith("@"):
            values[key] = _read(Path(value[1:]), option).rstrip("\r\n")
        else:
            values[key] = value
            if SECRET.search(key):
                resolve_connection.append(key)
    return values, resolve_connection


def read_mapping(path: Path, option: str) -> dict[str, Any]:
    document = read_document(path, option)
    if not isinstance(document, dict):
        raise typer.BadParameter(f"{path} holds no mapping of names to values.", param_hint=option)
    return document


def read_document(path: Path, option: str) -> Any:
    """YAML, of which JSON is a part. Dates stay text, as they do in JSON."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(_read(path, option), Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        # Only where: what stands there may be a password.
        mark = getattr(error, "problem_mark", None)
        where = f": see line {mark.line + 1}" if mark else ""
        raise typer.BadParameter(f"{path} is neither YAML nor JSON{where}.", param_hint=option) from None


def _split(given: Iterable[str] | None, option: str) -> list[tuple[str, str]]:
    pairs = []
    for one in given or ():
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise typer.BadParameter("a value has the form key=value.", param_hint=option)
        pairs.append((key, value))
    return pairs


def _value(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def _asked(key: str) -> str:
    if sys.stdin.isatty():
        answer: str = typer.prompt(key, hide_input=True, err=True)
        return answer
    return sys.stdin.readline().rstrip("\r\n")


def _read(path: Path, option: str) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} can't be read: {error}.", param_hint=option) from None
