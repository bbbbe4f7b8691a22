"""A package that brings its own scripts: the simulated sample with hooks, as a source tree."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.functional.rig import SAMPLE

_HOOKS = "      interfaces:\n        Vnflcm:\n"
SCRIPT = "Scripts/hooks.py"


def scripted_tree(
    directory: Path,
    hooks: Iterable[str] | Mapping[str, str],
    code: str,
    *,
    name: str = "own-script",
    file: str = SCRIPT,
    kind: str = "tosca.artifacts.Implementation.Python",
) -> Path:
    """`hooks` are names of hooks for the script, or also who does them."""
    named = dict(hooks) if isinstance(hooks, Mapping) else dict.fromkeys(hooks, name)
    tree = directory / "tree"
    shutil.copytree(SAMPLE, tree)
    (tree / file).parent.mkdir(exist_ok=True)
    (tree / file).write_text(code)
    lines = "".join(f"          {hook}: {{ implementation: {who} }}\n" for hook, who in named.items())
    artifacts = f"      artifacts:\n        {name}:\n          type: {kind}\n          file: ../{file}\n"
    for flavour in (tree / "Definitions").glob("cluster_df_*.yaml"):
        text = flavour.read_text()
        before, _, rest = text.partition(_HOOKS)
        kept = rest[rest.index("\n\n") :]
        flavour.write_text(f"{before}{artifacts}{_HOOKS}{lines}{kept[1:]}")
    return tree
