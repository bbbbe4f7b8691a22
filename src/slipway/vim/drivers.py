"""The drivers Slipway has, found by the VIM type that a connection names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slipway.model.action import Action
from slipway.model.errors import BadRequest, Forbidden
from slipway.vim.contract import Closable, ReportsDrift, Switchable, VimDriver


class Drivers:
    def __init__(self, drivers: Iterable[VimDriver]) -> None:
        self._drivers: dict[str, VimDriver] = {}
        for driver in drivers:
            if driver.vim_type in self._drivers:
                raise ValueError(f"two drivers for VIM type {driver.vim_type}")
            self._drivers[driver.vim_type] = driver

    def for_type(self, vim_type: str) -> VimDriver:
        """The driver. BadRequest names the types there are; Forbidden says how to turn this one on."""
        driver = self._drivers.get(vim_type)
        if driver is None:
            known = ", ".join(sorted(self._drivers)) or "none"
            raise BadRequest(f"vimType: there is no driver for {vim_type!r}; there are: {known}.")
        if isinstance(driver, Switchable) and driver.turned_off:
            raise Forbidden(f"vimType: {driver.turned_off}")
        return driver

    @property
    def reporting_drift(self) -> tuple[str, ...]:
        """Types of VIMs that tell what others have done to what they hold."""
        return tuple(type_ for type_, driver in self._drivers.items() if isinstance(driver, ReportsDrift))

    def close(self) -> None:
        for driver in self._drivers.values():
            if isinstance(driver, Closable):
                driver.close()

    def actions(self) -> dict[str, Action[Any]]:
        """The actions of all drivers by name. ValueError when two have the same."""
        found: dict[str, Action[Any]] = {}
        for driver in self._drivers.values():
            for action in driver.actions:
                if action.name in found:
                    raise ValueError(f"two actions are named {action.name}")
                found[action.name] = action
        return found
