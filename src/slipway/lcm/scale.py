"""Scale: an aspect some steps up or down. Those who leave are the newest, and are known before anything happens."""

from __future__ import annotations

from msgspec.structs import replace

from slipway.cluster.parameters import with_storage_said
from slipway.lcm.operation_rules import OperationRules
from slipway.lcm.targets import change_to, info_of, target_now
from slipway.model.errors import BadRequest
from slipway.model.instance import VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import ScaleRequest
from slipway.model.situation import Situation
from slipway.model.target import Change


def check(situation: Situation, request: ScaleRequest) -> None:
    info = info_of(situation.instance.vnf)
    aspects = situation.flavour.aspects
    if request.aspect_id not in aspects:
        known = ", ".join(aspects) or "none"
        raise BadRequest(
            f"aspectId: flavour {situation.flavour.id!r} has no aspect {request.aspect_id!r}; it has: {known}."
        )
    levels = request.levels_after(info.scale_levels)
    new = levels[request.aspect_id]
    highest = aspects[request.aspect_id].max_level
    if not 0 <= new <= highest:
        raise BadRequest(
            f"numberOfSteps: {request.type} by {request.number_of_steps} would bring aspect {request.aspect_id!r} "
            f"to level {new}; it has levels 0 to {highest}."
        )
    counts = situation.flavour.counts(levels, situation.flavour.level_of(info))
    for name, count in counts.items():
        most = situation.flavour.vdus[name].maximum
        if name in aspects[request.aspect_id].deltas and count > most:
            raise BadRequest(f"numberOfSteps: VDU {name!r} would have {count} members; its profile allows {most}.")


def change(situation: Situation, request: ScaleRequest) -> Change:
    levels = request.levels_after(info_of(situation.instance.vnf).scale_levels)
    return change_to(situation, target_now(situation, levels))


def complete(situation: Situation, request: ScaleRequest) -> VnfInstance:
    vnf = situation.instance.vnf
    info = info_of(vnf)
    status = situation.flavour.scale_status(request.levels_after(info.scale_levels))
    return replace(vnf, instantiated_vnf_info=replace(info, scale_status=status))


RULES = OperationRules(
    operation=OperationType.SCALE,
    request=ScaleRequest,
    hook="scale",
    check=check,
    change=change,
    complete=complete,
    parameters=lambda instance, request: with_storage_said(instance.parameters, request.additional_params),
)
