"""CONTRIBUTING.md leads to files and make targets that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
NAMED = sorted(
    {*re.findall(r"`((?:src|tests|lab|docs)/[^`\s]*)`", TEXT), *re.findall(r"\]\(([\w./-]+)(?:#\w+)?\)", TEXT)}
)


@pytest.mark.parametrize("path", NAMED)
def test_a_path_that_it_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z][a-z-]+)", TEXT)) <= targets
