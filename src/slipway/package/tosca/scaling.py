"""How many there are of what: scaling aspects, their deltas, and instantiation levels."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from slipway.model.descriptor import Aspect, Level, Vdu
from slipway.package.tosca.section import Section, remove_or_name, some
from slipway.package.tosca.topology import Topology, ToscaPolicy
from slipway.package.warnings import Warnings

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
            deltas[name] = {}
            aspects[name] = Aspect(name=name, max_level=highest, deltas=deltas[name])
    for policy in topology.policies_of("VduScalingAspectDeltas"):
        name = policy.properties.text("aspect") or ""
        if name not in steps:
            named = f"the scaling aspect {name[:100]!r}, which is not declared"
            what = f"The policy {policy.name!r} is for {named}: it is ignored."
            topology.warnings.add(policy.properties.error(what, remove_or_name(steps), "aspect"))
        elif numbers := _step_deltas(policy, name, steps[name], topology.warnings):
            deltas[name] |= dict.fromkeys(targets(policy, topology, vdus), numbers)
    return aspects


def _step_deltas(policy: ToscaPolicy, name: str, steps: tuple[str, ...], warnings: Warnings) -> tuple[int, ...]:
    """What each step of the aspect adds; nothing, when the policy is about other steps only."""
    properties = policy.properties
    numbers = {delta: section.number("number_of_instances") for delta, section in properties.sections("deltas")}
    listed = steps or tuple(numbers)[:1]
    if unknown := [delta for delta in numbers if delta not in set(listed)]:
        about_others = len(unknown) == len(numbers)
        ignored = f"it is ignored, and {name!r} does not scale its VDUs" if about_others else "those are ignored"
        what = f"The policy {policy.name!r} has deltas for steps that aspect {name!r} does not have ({some(unknown)}): "
        warnings.add(properties.error(f"{what}{ignored}.", remove_or_name(listed), "deltas"))
        if about_others:
            return ()
    deltas = []
    for step in listed:
        if (number := numbers.get(step)) is None:
            raise properties.error(
                f"The policy {policy.name!r} says nothing of the step {step!r} of aspect {name!r}.",
                "give the delta a number_of_instances.",
                "deltas",
            )
        deltas.append(number)
    return tuple(deltas)


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
            scales[name] = _scale(name, section, aspects, topology.warnings)
        _check_number_of_levels(policy, scales)
        default = _default_level(policy, scales)
    counts: dict[str, dict[str, int]] = {name: {} for name in scales}
    for policy in topology.policies_of("VduInstantiationLevels"):
        _add_counts(policy, counts, targets(policy, topology, vdus), topology.warnings, are_declared=bool(scales))
        _check_number_of_levels(policy, counts)
    levels = {name: Level(name=name, scale=scales.get(name, {}), counts=counts[name]) for name in counts}
    if default is None and len(levels) == 1:
        default = next(iter(levels))
    return levels, default


def _check_number_of_levels(policy: ToscaPolicy, levels: Collection[str]) -> None:
    if len(levels) > MOST_LEVELS:
        raise policy.properties.error(f"There are more than {MOST_LEVELS} levels.", "declare fewer.", "levels")


def _scale(level: str, section: Section, aspects: dict[str, Aspect], warnings: Warnings) -> dict[str, int]:
    scale_info = section.section("scale_info")
    if unknown := [name for name in scale_info.content if name not in aspects]:
        what = f"The level {level!r} sets scaling aspects that are not declared ({some(unknown)}): those are ignored."
        warnings.add(scale_info.error(what, remove_or_name(aspects), unknown[0]))
    scale = {}
    for name, info in section.sections("scale_info"):
        if name not in aspects:
            continue
        scale[name] = info.number("scale_level") or 0
        if scale[name] > aspects[name].max_level:
            raise info.error(
                f"The level {level!r} sets {name!r} to {scale[name]}, above its max_scale_level"
                f" {aspects[name].max_level}.",
                "lower scale_level, or raise max_scale_level.",
                "scale_level",
            )
    return scale


def _default_level(policy: ToscaPolicy, levels: Collection[str]) -> str | None:
    name = policy.properties.text("default_level")
    if name is not None and name not in levels:
        raise policy.properties.error(
            f"The default_level {name!r} is not one of the levels.",
            f"name one of: {some(levels)}.",
            "default_level",
        )
    return name


def _add_counts(
    policy: ToscaPolicy,
    counts: dict[str, dict[str, int]],
    names: tuple[str, ...],
    warnings: Warnings,
    *,
    are_declared: bool,
) -> None:
    """`are_declared`: `counts` has all levels that there are."""
    levels = policy.properties.section("levels")
    _check_number_of_levels(policy, levels.content)
    if are_declared and (unknown := [level for level in levels.content if level not in counts]):
        what = f"The policy {policy.name!r} is for levels that are not declared ({some(unknown)}): those are ignored."
        warnings.add(levels.error(what, remove_or_name(counts), unknown[0]))
    for level, section in policy.properties.sections("levels"):
        if are_declared and level not in counts:
            continue
        number = section.number("number_of_instances")
        if number is not None:
            counts.setdefault(level, {}).update(dict.fromkeys(names, number))


def targets(policy: ToscaPolicy, topology: Topology, vdus: dict[str, Vdu]) -> tuple[str, ...]:
    """The VDUs that a policy is for. What is declared and is no VDU is taken for one whose type is wrong."""
    named = tuple(dict.fromkeys(policy.section.words("targets")))
    if unknown := [name for name in named if name not in topology.nodes]:
        what = f"The policy {policy.name!r} has targets that are not declared ({some(unknown)}): those are ignored."
        topology.warnings.add(policy.section.error(what, remove_or_name(vdus), "targets"))
    names = tuple(name for name in named if name in topology.nodes)
    for name in names:
        if name not in vdus:
            subject = f"The policy {policy.name!r} is for the VDU"
            raise topology.no_such("VDU", name, subject, policy.section, "targets", f"name one of: {some(vdus)}.")
    return names
