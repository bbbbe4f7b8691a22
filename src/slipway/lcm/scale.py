"""Scale: an aspect some steps up or down. Those who leave are the newest, and are known before anything happens."""

from __future__ import annotations

from msgspec.structs import replace

from slipway.lcm.rules import Rules
from slipway.lcm.targets import change_to, info_of, level_of, scale_levels, target_now
from slipway.model.errors import BadRequest
from slipway.model.instance import ScaleInfo, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import ScaleRequest, ScaleType
from slipway.model.situation import Situation
from slipway.model.target import Change


def check(situation: Situation, request: ScaleRequest) -> None:
    info_of(situation.instance.vnf)
    aspects = situation.flavour.aspects
    if request.aspect_id not in aspects:
        known = ", ".join(aspects) or "none"
        raise BadRequest(
            f"aspectId: flavour {situation.flavour.id!r} has no aspect {request.aspect_id!r}; it has: {known}."
        )
    new = _new_levels(situation, request)[request.aspect_id]
    highest = aspects[request.aspect_id].max_level
    if not 0 <= new <= highest:
        raise BadRequest(
            f"numberOfSteps: {request.type} by {request.number_of_steps} would bring aspect {request.aspect_id!r} "
            f"to level {new}; it has levels 0 to {highest}."
        )
    level = level_of(situation)
    for name, vdu in situation.flavour.vdus.items():
        count = situation.flavour.members(name, _new_levels(situation, request), level)
        if name in aspects[request.aspect_id].deltas and count > vdu.maximum:
            raise BadRequest(
                f"numberOfSteps: VDU {name!r} would have {count} members; its profile allows {vdu.maximum}."
            )


def change(situation: Situation, request: ScaleRequest) -> Change:
    return change_to(situation, target_now(situation, _new_levels(situation, request)))


def complete(situation: Situation, request: ScaleRequest) -> VnfInstance:
    vnf = situation.instance.vnf
    levels = _new_levels(situation, request)
    status = tuple(ScaleInfo(aspect_id=name, scale_level=level) for name, level in levels.items())
    return replace(vnf, instantiated_vnf_info=replace(info_of(vnf), scale_status=status))


def _new_levels(situation: Situation, request: ScaleRequest) -> dict[str, int]:
    levels = scale_levels(info_of(situation.instance.vnf))
    steps = request.number_of_steps if request.type is ScaleType.SCALE_OUT else -request.number_of_steps
    return {**levels, request.aspect_id: levels.get(request.aspect_id, 0) + steps}


RULES = Rules(OperationType.SCALE, ScaleRequest, "scale", check, complete, change)
