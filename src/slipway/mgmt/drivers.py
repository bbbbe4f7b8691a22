"""The hooks of a VNFD (`instantiate_start`, `scale_end`, ...) become steps by the management driver they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

from slipway.mgmt.scripts import Scripts, language_of, rollback_of
from slipway.model.action import Action
from slipway.model.descriptor import Hook
from slipway.model.errors import PackageError, Unprocessable
from slipway.model.hooks import EDGES, Edge, Edges, HookPlan
from slipway.model.plan import Plan
from slipway.model.situation import PlanningSituation, Situation
from slipway.model.target import VnfTarget
from slipway.package.reader import Package

MODIFY = "modify_information"


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

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        """What those hooks of an operation ("scale") do that name this driver: `<operation>_start`, `_end`, or both.

        Pure; empty when there is nothing to do. Steps for machines carry their names as
        `nodes`: they wait for what the VIM does to those, and for nothing else. With one hook of the pair the driver
        does that half, and whatever the half leaves behind otherwise.
        """
        ...


@runtime_checkable
class RegistersVim(Protocol):
    """A driver whose VNFs become VIMs themselves."""

    def vim_name(self, situation: Situation) -> tuple[str, str] | None:
        """The parameter, and the name under which the operation will register a VIM; None when it registers none."""
        ...


@runtime_checkable
class ReadsPackageFiles(Protocol):
    """A driver whose plans depend on what files of the package say."""

    def package_files(self, situation: Situation) -> tuple[str, ...]:
        """Paths, of the package that the operation leads to; `plan` finds them in the target's files."""
        ...


@runtime_checkable
class ReadsTemplate(Protocol):
    """A driver whose parameters name things of the template that the package has for the VIM."""

    def names_template(self, situation: Situation) -> bool:
        """Whether those of a request that is right in all else do so."""
        ...

    def check_template(self, situation: Situation, target: VnfTarget) -> None:
        """RequestError when the target's files, as far as the VIM reads them, have not what is named."""
        ...


@runtime_checkable
class KeepsSecrets(Protocol):
    """A driver whose parameters hold secrets that are for one address alone."""

    def refuse_moved_secrets(self, situation: Situation) -> None:
        """BadRequest when stored ones would go elsewhere now or later. Asked of every VNF, whatever its hooks name."""
        ...


@runtime_checkable
class FollowsModification(Protocol):
    """A driver that brings to its VNFs what a modification changed, whether or not the VNFD names it for that hook."""

    def modification(self, situation: PlanningSituation) -> Plan:
        """Pure; empty when the modification changes nothing that it knows of."""
        ...


class Noop:
    """Hooks that name it are there for other managers; here they do nothing.

    What a container update does there, a modification does here by itself (lcm/modify.py).
    """

    name = "noop"
    aliases = ("vnflcm_noop", "mgmt-container-update", "mgmt_container_update")
    actions: tuple[Action[Any], ...] = ()

    def check(self, situation: Situation) -> None:
        pass

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        return HookPlan()


class ManagementDrivers:
    """Those built in, by name and alias, and the scripts of packages. What is built in goes before a package's copy."""

    def __init__(self, drivers: Iterable[ManagementDriver], scripts: Scripts | None = None) -> None:
        self._scripts = scripts
        self._drivers = {driver.name: driver for driver in drivers}
        self._aliases = {alias: driver for driver in self._drivers.values() for alias in driver.aliases}

    def actions(self) -> dict[str, Action[Any]]:
        makers = (*self._drivers.values(), *((self._scripts,) if self._scripts else ()))
        return {action.name: action for maker in makers for action in maker.actions}

    def plan(self, operation: str, situation: PlanningSituation) -> HookPlan:
        """What the VNFD wants done around an operation: scripts of the package, and what is built in."""
        edges: dict[ManagementDriver, set[Edge]] = {}
        for edge in EDGES:
            named = situation.flavour.hooks.get(f"{operation}_{edge}")
            if named is not None and not self._is_script(named):
                edges.setdefault(self._named(named.implementation), set()).add(edge)
        plans = [driver.plan(operation, frozenset(its), situation) for driver, its in edges.items()]
        return HookPlan(
            start=Plan.chain(self._script(f"{operation}_start", situation), *(plan.start for plan in plans)),
            end=Plan.chain(
                self._script(f"{operation}_end", situation),
                *(plan.end for plan in plans),
                *(self._modifications(situation) if operation == MODIFY else ()),
            ),
            rollouts=tuple(rollout for plan in plans for rollout in plan.rollouts),
        )

    def _modifications(self, situation: PlanningSituation) -> Iterator[Plan]:
        for driver in self._of(situation):
            if isinstance(driver, FollowsModification):
                yield driver.modification(situation)

    def _script(self, hook: str, situation: Situation) -> Plan:
        """The package's script for a hook, and the one that takes it back."""
        hooks = situation.flavour.hooks
        named, back = hooks.get(hook), hooks.get(rollback_of(hook))
        run, undo = named if self._is_script(named) else None, back if self._is_script(back) else None
        return self._scripts.plan(hook, run, undo, situation) if self._scripts and (run or undo) else Plan()

    def check(self, situation: Situation) -> None:
        """Refuse early what no driver can do, rather than in the middle of an operation."""
        for one in self._drivers.values():
            if isinstance(one, KeepsSecrets):
                one.refuse_moved_secrets(situation)
        for driver in self._of(situation):
            driver.check(situation)

    def names_template(self, situation: Situation) -> bool:
        return any(isinstance(one, ReadsTemplate) and one.names_template(situation) for one in self._of(situation))

    def check_template(self, situation: Situation, target: VnfTarget) -> None:
        """Against what the package's files say, beside what `check` knows."""
        for driver in self._of(situation):
            if isinstance(driver, ReadsTemplate) and driver.names_template(situation):
                driver.check_template(situation, target)

    def vim_names(self, situation: Situation) -> Iterator[tuple[str, str]]:
        """The names under which the operation will register VIMs, each with the parameter that gives it."""
        for driver in self._of(situation):
            if isinstance(driver, RegistersVim) and (named := driver.vim_name(situation)):
                yield named

    def package_files(self, situation: Situation) -> Iterator[str]:
        for driver in self._of(situation):
            if isinstance(driver, ReadsPackageFiles):
                yield from driver.package_files(situation)

    def _of(self, situation: Situation) -> Iterable[ManagementDriver]:
        hooks = [hook for hook in situation.flavour.hooks.values() if not self._is_script(hook)]
        return dict.fromkeys(self._named(hook.implementation) for hook in hooks)

    def why_unusable(self, hook: Hook) -> str | None:
        """Why no driver or script does what a hook names, and what can be named; None when one does."""
        if self._is_built_in(hook.implementation) or self._is_script(hook):
            return None
        what = (
            f"the script {hook.file!r}, which is neither Python nor Bash" if hook.file else "no script of the package"
        )
        return (
            f"{hook.implementation!r} is not a built-in management driver, and {what}. Built in are: "
            f"{', '.join(sorted((*self._drivers, *self._aliases)))}."
        )

    def check_hooks(self, package: Package) -> None:
        """At onboarding: PackageError when a hook of the VNFD names neither a built-in driver nor a script."""
        for flavour in package.descriptor.flavours.values():
            for hook in flavour.hooks.values():
                if why_unusable := self.why_unusable(hook):
                    file, line = _place(package, hook)
                    raise PackageError(
                        f"Hook {hook.operation!r} of flavour {flavour.id!r}: {why_unusable}",
                        file=file,
                        line=line,
                        cure="name one of those, or a .py or .sh file of the package that is an artifact of the node.",
                    )

    def _is_script(self, hook: Hook | None) -> bool:
        if hook is None or self._scripts is None or self._is_built_in(hook.implementation):
            return False
        return language_of(hook) is not None

    def _is_built_in(self, name: str) -> bool:
        return name in self._drivers or name in self._aliases

    def _named(self, name: str) -> ManagementDriver:
        driver = self._drivers.get(name) or self._aliases.get(name)
        if driver is None:
            raise Unprocessable(
                f"The VNFD names the management driver {name!r}, which this Slipway does not have; "
                f"it has: {', '.join(sorted(self._drivers))}."
            )
        return driver


def _place(package: Package, hook: Hook) -> tuple[str, int | None]:
    """Where a person finds it: the file that holds both names, and the line of the hook."""
    files = {path: content.decode(errors="replace") for path, content in package.vnfd_files().items()}
    for path, text in files.items():
        if hook.implementation in text:
            for number, line in enumerate(text.splitlines(), 1):
                if hook.operation in line:
                    return path, number
    return next(iter(files)), None
