"""How many there are of what: scaling aspects, their deltas, and instantiation levels."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from slipway.model.descriptor import Aspect, Level, Vdu
from slipway.package.tosca.section import Section, some
from slipway.package.tosca.topology import Policy, Topology

MOST_STEPS = 100
MOST_LEVELS = 50


def read_aspects(topology: Topology, vdus: dict[str, Vdu]) -> dict[str, Aspect]:
    aspects: dict[str, Aspect] = {}
    deltas: dict[str, dict[str, tuple[int, ...]]] = {}
    steps: dict[str, tuple[str, ...]] = {}
    for policy in topology.policies_of("ScalingAspects"):
        for name, section in policy.properties.sections("aspects"):
            highest = section.number("max_scale_level")
            if highest is None:
                raise section.error(f"The aspect {name!r} has no max_scale_level.", "give it one.")
            steps[name] = section.words("step_deltas")
            if len(steps[name]) > MOST_STEPS or (len(steps[name]) > 1 and len(steps[name]) != highest):
                raise section.error(
                    f"The aspect {name!r} has {len(steps[name])} step_deltas for {highest} levels.",
                    f"list one delta for all steps, or one for each of at most {MOST_STEPS}.",
                    "step_deltas",
                )
            description = section.text("description") or ""
            deltas[name] = {}
            aspects[name] = Aspect(name=name, max_level=highest, description=description, deltas=deltas[name])
    for policy in topology.policies_of("VduScalingAspectDeltas"):
        name, numbers = _step_deltas(policy, steps)
        if numbers:
            deltas[name] |= dict.fromkeys(targets(policy, topology, vdus), numbers)
    return aspects


def _step_deltas(policy: Policy, steps: dict[str, tuple[str, ...]]) -> tuple[str, tuple[int, ...]]:
    """The aspect that the policy is for, and what each step adds."""
    properties = policy.properties
    name = properties.text("aspect") or ""
    if name not in steps:
        raise properties.error(
            f"The policy {policy.name!r} is for the scaling aspect {name!r}, which is not declared.",
            f"name one of: {some(steps)}.",
            "aspect",
        )
    numbers = {delta: section.number("number_of_instances") for delta, section in properties.sections("deltas")}
    listed = steps[name] or tuple(numbers)[:1]
    deltas = []
    for step in listed:
        if (number := numbers.get(step)) is None:
            raise properties.error(
                f"The policy {policy.name!r} says nothing of the step {step!r} of aspect {name!r}.",
                "give the delta a number_of_instances.",
                "deltas",
            )
        deltas.append(number)
    return name, tuple(deltas)


def with_initial_deltas(topology: Topology, vdus: dict[str, Vdu]) -> dict[str, Vdu]:
    result = dict(vdus)
    for policy in topology.policies_of("VduInitialDelta"):
        delta = policy.properties.section("initial_delta")
        number = delta.number("number_of_instances")
        if number is None:
            raise delta.error(f"The policy {policy.name!r} has no number_of_instances.", "give it one.")
        for name in targets(policy, topology, vdus):
            if number > vdus[name].maximum:
                raise delta.error(
                    f"VDU {name!r} begins with {number} instances, but has at most {vdus[name].maximum}.",
                    "raise max_number_of_instances, or lower the initial delta.",
                    "number_of_instances",
                )
            result[name] = msgspec.structs.replace(vdus[name], initial=number)
    return result


def read_levels(
    topology: Topology, aspects: dict[str, Aspect], vdus: dict[str, Vdu]
) -> tuple[dict[str, Level], str | None]:
    """The instantiation levels and the default one."""
    scales: dict[str, dict[str, int]] = {}
    default = None
    for policy in topology.policies_of("InstantiationLevels"):
        for name, section in policy.properties.sections("levels"):
            scales[name] = _scale(name, section, aspects)
        _check_number_of_levels(policy, scales)
        default = _default_level(policy, scales)
    counts: dict[str, dict[str, int]] = {name: {} for name in scales}
    for policy in topology.policies_of("VduInstantiationLevels"):
        _add_counts(policy, counts, targets(policy, topology, vdus), levels_are_declared=bool(scales))
        _check_number_of_levels(policy, counts)
    levels = {name: Level(name=name, scale=scales.get(name, {}), counts=counts[name]) for name in counts}
    if default is None and len(levels) == 1:
        default = next(iter(levels))
    return levels, default


def _check_number_of_levels(policy: Policy, levels: Collection[str]) -> None:
    if len(levels) > MOST_LEVELS:
        raise policy.properties.error(f"There are more than {MOST_LEVELS} levels.", "declare fewer.", "levels")


def _scale(level: str, section: Section, aspects: dict[str, Aspect]) -> dict[str, int]:
    scale = {}
    for name, info in section.sections("scale_info"):
        if name not in aspects:
            raise info.error(
                f"The level {level!r} sets the scaling aspect {name!r}, which is not declared.",
                f"name one of: {some(aspects)}.",
            )
        scale[name] = info.number("scale_level") or 0
        if scale[name] > aspects[name].max_level:
            raise info.error(
                f"The level {level!r} sets {name!r} to {scale[name]}, above its max_scale_level"
                f" {aspects[name].max_level}.",
                "lower scale_level, or raise max_scale_level.",
                "scale_level",
            )
    return scale


def _default_level(policy: Policy, levels: Collection[str]) -> str | None:
    name = policy.properties.text("default_level")
    if name is not None and name not in levels:
        raise policy.properties.error(
            f"The default_level {name!r} is not one of the levels.",
            f"name one of: {some(levels)}.",
            "default_level",
        )
    return name


def _add_counts(
    policy: Policy, counts: dict[str, dict[str, int]], names: tuple[str, ...], *, levels_are_declared: bool
) -> None:
    _check_number_of_levels(policy, policy.properties.section("levels").content)
    for level, section in policy.properties.sections("levels"):
        if level not in counts and levels_are_declared:
            raise section.error(
                f"The policy {policy.name!r} is for the level {level!r}, which is not declared.",
                f"name one of: {some(counts)}.",
            )
        number = section.number("number_of_instances")
        if number is not None:
            counts.setdefault(level, {}).update(dict.fromkeys(names, number))


def targets(policy: Policy, topology: Topology, vdus: dict[str, Vdu]) -> tuple[str, ...]:
    """The VDUs that a policy is for."""
    names = tuple(dict.fromkeys(policy.section.words("targets")))
    for name in names:
        if name not in vdus:
            subject = f"The policy {policy.name!r} is for the VDU"
            raise topology.no_such("VDU", name, subject, policy.section, "targets", f"name one of: {some(vdus)}.")
    return names
