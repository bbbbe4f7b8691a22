"""What can be written is documented, and what is documented can be written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from slipway.cluster.parameters import NAME, ClusterParameters, ShortCredentials, read_parameters
from slipway.cluster.versions import SUPPORTED
from tests.unit.cluster.parameter_names import parameter_names

PAGE = (Path(__file__).parents[3] / "docs" / "cluster-parameters.md").read_text()
FIRST_CELLS = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")]
DOCUMENTED = {name for cell in FIRST_CELLS for name in re.findall(r"`([^`]+)`", cell)}
KNOWN = {*parameter_names(ClusterParameters)}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_parameter_is_documented(name: str) -> None:
    assert name in DOCUMENTED


def test_nothing_else_is_documented() -> None:
    assert set() == DOCUMENTED - KNOWN


@pytest.mark.parametrize("name", list(parameter_names(ShortCredentials)))
def test_the_short_form_of_credentials_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_the_supported_versions_are_told_as_they_are() -> None:
    first, last = min(SUPPORTED), max(SUPPORTED)
    assert f"of {first[0]}.{first[1]} to {last[0]}.{last[1]}" in PAGE


def test_the_example_is_accepted() -> None:
    example = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert example
    assert read_parameters(json.loads(example[1])["additionalParams"]).kubernetes_version is not None
    assert NAME in example[1]
