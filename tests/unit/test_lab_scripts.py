"""Scripts of the lab are Python without its suffix, which no type checker looks at: what they import must be there."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

LAB = Path(__file__).parents[2] / "lab"
SCRIPTS = sorted(
    path for path in LAB.rglob("*") if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python")
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(LAB)))
def test_what_a_script_of_the_lab_imports_of_slipway_is_there(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("slipway"):
            module = importlib.import_module(node.module)
            for name in node.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{node.module}.{name.name}")
