"""Settings: file, environment, command line, and none undocumented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slipway.model.errors import SettingsError
from slipway.settings import Settings, load_settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_every_setting_is_documented_and_nothing_else_is() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert documented == list(Settings.__struct_fields__)


def test_documented_defaults_are_the_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    settings = load_settings(environment={})
    told = {name: value for name, value in rows if "/" not in value and not value.startswith("$")}
    assert len(told) >= 14
    for name, value in told.items():
        actual = getattr(settings, name)
        assert value == (str(actual).lower() if isinstance(actual, bool) else f"{actual:g}" if isinstance(actual, float)
                         else "[]" if actual == () else str(actual)), name  # fmt: skip


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "slipway.toml"
    file.write_text("port = 1\npage_size = 2\nsteps_at_once = 3\n")
    settings = load_settings(file, {"port": 9}, {"SLIPWAY_PORT": "8", "SLIPWAY_PAGE_SIZE": "7"})
    assert (settings.port, settings.page_size, settings.steps_at_once) == (9, 7, 3)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"SLIPWAY_PORT": "many"}, "port"),
        ({"SLIPWAY_PORT": "70000"}, "port"),
        ({"SLIPWAY_LOG_LEVEL": "loud"}, "log_level"),
        ({"SLIPWAY_PROT": "1"}, "prot"),
        ({"SLIPWAY_LEASE_SECONDS": "0"}, "lease_seconds"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        load_settings(environment=values)


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        load_settings(tmp_path / "nowhere.toml", environment={})
    broken = tmp_path / "broken.toml"
    broken.write_text("port = \n")
    with pytest.raises(SettingsError, match="not TOML"):
        load_settings(broken, environment={})


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.net"])  # noqa: S104
def test_without_authentication_only_a_loopback_address_will_do(host: str) -> None:
    with pytest.raises(SettingsError, match="loopback"):
        load_settings(overrides={"auth": False, "host": host}, environment={})
    assert load_settings(overrides={"auth": False, "host": "127.0.0.2"}, environment={}).auth is False


def test_names_of_secret_parameters_come_as_a_list() -> None:
    settings = load_settings(environment={"SLIPWAY_SECRET_PARAMETERS": "community,pin"})
    assert settings.secret_parameters == ("community", "pin")


def test_a_setting_of_former_versions_stops_the_start_and_the_page_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "slipway.toml"
    file.write_text('script_isolation = "process"\n')
    with pytest.raises(SettingsError, match=r"script_isolation.*docs/settings\.md"):
        load_settings(file, environment={})
    assert "`script_isolation`" in PAGE.read_text()
