from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Slipway


@pytest.mark.parametrize("command", ["serve", "api"])
def test_a_server_without_authentication_does_not_listen_to_the_world(
    command: str, slipway: Slipway, tmp_path: Path
) -> None:
    result = slipway(command, "--no-auth", "--host", "192.0.2.1", "--data-dir", str(tmp_path))

    assert result.exit_code == 1
    assert "loopback" in result.stderr


@pytest.mark.parametrize("command", [["serve"], ["api"], ["worker"], ["secrets", "rotate"]])
def test_a_settings_file_that_is_not_there_is_said(command: list[str], slipway: Slipway, tmp_path: Path) -> None:
    result = slipway(*command, "--config", str(tmp_path / "none.toml"))

    assert result.exit_code == 1
    assert "no settings file" in result.stderr


def test_a_port_that_can_not_be_is_a_usage_error(slipway: Slipway) -> None:
    assert slipway("serve", "--port", "70000").exit_code == 2
