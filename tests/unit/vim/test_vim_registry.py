"""Drivers are found by the type that a connection names."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.model.errors import BadRequest
from slipway.model.vim import SIMULATED
from slipway.simulator.vim import SimulatedDriver
from slipway.vim.drivers import Drivers


class Twin(SimulatedDriver):
    vim_type = "ANOTHER"


def test_a_driver_is_found_by_its_type(tmp_path: Path) -> None:
    driver = SimulatedDriver(tmp_path)
    assert Drivers([driver]).for_type(SIMULATED) is driver


def test_an_unknown_type_is_refused_with_those_known(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=f"'VMWARE'; there are: {SIMULATED}"):
        Drivers([SimulatedDriver(tmp_path)]).for_type("VMWARE")
    with pytest.raises(BadRequest, match="none"):
        Drivers([]).for_type(SIMULATED)


def test_actions_are_collected_by_name(tmp_path: Path) -> None:
    actions = Drivers([SimulatedDriver(tmp_path)]).actions()
    assert {name: action.name for name, action in actions.items()} == {name: name for name in actions}
    assert actions["simulated.make_machine"].undo is not None


def test_two_actions_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"simulated\.make_network"):
        Drivers([SimulatedDriver(tmp_path), Twin(tmp_path)]).actions()


def test_two_drivers_of_one_type_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=SIMULATED):
        Drivers([SimulatedDriver(tmp_path), SimulatedDriver(tmp_path)])
