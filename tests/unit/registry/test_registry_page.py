"""What can be written about a registry is documented, and what is documented can be written."""

from __future__ import annotations

import json
import re
from pathlib import Path

from slipway.registry.parameters import InstallationParameters, read_installation
from tests.unit.cluster.parameter_names import parameter_names

PAGE = (Path(__file__).parents[3] / "docs" / "registry.md").read_text()
TABLE = PAGE.split("What comes of it", maxsplit=1)[0]
CELLS = [line.split(" | ")[0] for line in TABLE.splitlines() if line.startswith("| `")]
DOCUMENTED = {name for cell in CELLS for name in re.findall(r"`([^`]+)`", cell)}


def test_every_parameter_is_documented_and_no_other() -> None:
    assert set(parameter_names(InstallationParameters)) == DOCUMENTED


def test_the_example_is_accepted() -> None:
    example = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert example
    assert read_installation(json.loads(example[1])["additionalParams"]).tls is not None
