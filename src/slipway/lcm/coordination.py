"""Scripts that coordinate a change of package VNFC by VNFC: steps around what the VIM does to each.

    (rollback of VDU1-0) ── what the VIM does to VDU1-0 ── coordinate VDU1-0

The first does nothing on the way there. Its undo runs the old package's script, once the VNFC is what it was.
"""

from __future__ import annotations

from slipway.lcm.hook_ordering import with_hooks
from slipway.lcm.upgrade_parameters import (
    NEW_SCRIPT,
    NEW_VNFC,
    OLD_SCRIPT,
    OLD_VNFC,
    UpgradeParameters,
    upgrade_parameters,
)
from slipway.mgmt.scripts import CoordinatedVnfc, Script, language_of_file, script_step
from slipway.model.hooks import HookPlan
from slipway.model.plan import Plan, Step
from slipway.model.situation import Situation
from slipway.model.target import Change, VnfcMember


def with_coordination(work: Plan, situation: Situation, change: Change) -> Plan:
    """The VIM's work on VNFCs that are made anew, with the scripts that the request names around each of them."""
    if change.before is None or change.after is None:
        return work
    params = upgrade_parameters(situation, situation.additional_params)
    renewed = {name for turn in change.batches for name in turn}
    old = [one for one in change.before.members if one.name in renewed and OLD_SCRIPT in params.scripts]
    new = [one for one in change.after.members if one.name in renewed and NEW_SCRIPT in params.scripts]
    hooks = HookPlan(
        start=Plan(tuple(_rollback(situation, params, member) for member in old)),
        end=Plan(tuple(_coordinate(situation, params, member) for member in new)),
    )
    return with_hooks(hooks, work)


def _coordinate(situation: Situation, params: UpgradeParameters, member: VnfcMember) -> Step:
    script = _script(params, member, NEW_SCRIPT, NEW_VNFC)
    name = f"coordinate {member.name}: {script.path}"
    return script_step(name, situation, run=script, ahead=True, nodes=(member.name,))


def _rollback(situation: Situation, params: UpgradeParameters, member: VnfcMember) -> Step:
    script = _script(params, member, OLD_SCRIPT, OLD_VNFC, situation.instance.vnf.vnfd_id)
    return script_step(
        f"coordinate {member.name}: nothing but its rollback", situation, undo=script, nodes=(member.name,)
    )


def _script(
    params: UpgradeParameters, member: VnfcMember, parameter: str, told: str, vnfd_id: str | None = None
) -> Script:
    path, given = params.scripts[parameter], dict((params.vdus or {})[member.vdu][told])
    vnfc = CoordinatedVnfc(id=member.id, cp_name=given["cp_name"], params=given, is_rollback=parameter == OLD_SCRIPT)
    return Script(parameter, path, language_of_file(path) or "python", vnfd_id, vnfc)
