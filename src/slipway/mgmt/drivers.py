"""The hooks of a VNFD (`instantiate_start`, `scale_end`, ...) become steps by the management driver they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from slipway.model.action import Action
from slipway.model.errors import Unprocessable
from slipway.model.plan import Plan
from slipway.model.situation import Situation


class ManagementDriver(Protocol):
    name: str

    @property
    def aliases(self) -> tuple[str, ...]:
        """What packages written for other managers call it."""
        ...

    @property
    def actions(self) -> tuple[Action[Any], ...]: ...

    def check(self, situation: Situation) -> None:
        """RequestError when it can be known that the operation can't be done. No I/O; nothing of the VIM is known."""
        ...

    def plan(self, hook: str, situation: Situation) -> Plan:
        """The steps for one hook. Pure; empty when there is nothing to do. `wanted` and `found` are known.

        Steps for a machine carry its name as their node: they wait for what the VIM does to it, and for nothing else.
        """
        ...


class Noop:
    """Hooks that name it are there for other managers; here they do nothing."""

    name = "noop"
    aliases = ("vnflcm_noop",)
    actions: tuple[Action[Any], ...] = ()

    def check(self, situation: Situation) -> None:
        pass

    def plan(self, hook: str, situation: Situation) -> Plan:
        return Plan()


class ManagementDrivers:
    def __init__(self, drivers: Iterable[ManagementDriver]) -> None:
        self._drivers = {driver.name: driver for driver in drivers}
        self._aliases = {alias: driver for driver in self._drivers.values() for alias in driver.aliases}

    def actions(self) -> dict[str, Action[Any]]:
        return {action.name: action for driver in self._drivers.values() for action in driver.actions}

    def plan(self, hook: str, situation: Situation) -> Plan:
        """What the VNFD wants done at `hook`; nothing when it names nobody."""
        named = situation.flavour.hooks.get(hook)
        return self._named(named.implementation).plan(hook, situation) if named else Plan()

    def check(self, situation: Situation) -> None:
        """Refuse early what nobody here can do, rather than in the middle of an operation."""
        named = [self._named(hook.implementation) for hook in situation.flavour.hooks.values()]
        for driver in dict.fromkeys(named):
            driver.check(situation)

    def _named(self, name: str) -> ManagementDriver:
        driver = self._drivers.get(name) or self._aliases.get(name)
        if driver is None:
            raise Unprocessable(
                f"The VNFD names the management driver {name!r}, which this Slipway does not have; "
                f"it has: {', '.join(sorted(self._drivers))}."
            )
        return driver
