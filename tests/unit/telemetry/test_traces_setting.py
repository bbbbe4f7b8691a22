"""A wrong `traces_endpoint` stops the start, and says what to do."""

from __future__ import annotations

import sys

import pytest

from slipway.model.errors import SettingsError
from slipway.telemetry.telemetry import telemetry_for


def test_without_the_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "slipway.telemetry.traces", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(SettingsError, match=r"pip install 'slipway\[traces\]'"):
        telemetry_for("http://127.0.0.1:4318")


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", ""])
def test_what_is_no_url_is_named(endpoint: str) -> None:
    with pytest.raises(SettingsError, match="traces_endpoint"):
        telemetry_for(endpoint)
