"""What additionalParams say about the way of a change of package: which VDUs, and scripts that coordinate it.

upgrade_type: RollingUpdate
lcm-operation-coordinate-new-vnf: Scripts/coordinate.py       of the new package, after each VNFC that is made anew
lcm-operation-coordinate-old-vnf: Scripts/coordinate.py       of the old one, after each that a rollback makes again
vdu_params:
- vdu_id: VDU1
  new_vnfc_param: {cp_name, username, password, endpoint, authentication, authentication_type}
  old_vnfc_param: the same, for the old script
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.mgmt.scripts import language_of_file
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.situation import Situation

UPGRADE_TYPE, ROLLING = "upgrade_type", "RollingUpdate"
VDU_PARAMS, VDU_ID = "vdu_params", "vdu_id"
NEW_SCRIPT, OLD_SCRIPT = "lcm-operation-coordinate-new-vnf", "lcm-operation-coordinate-old-vnf"
NEW_VNFC, OLD_VNFC = "new_vnfc_param", "old_vnfc_param"
SCRIPT_FOR = {NEW_VNFC: NEW_SCRIPT, OLD_VNFC: OLD_SCRIPT}
CLASSES = (f"{NEW_SCRIPT}-class", f"{OLD_SCRIPT}-class")
FORCE_CONFLICTS = "force_conflicts"  # for VIMs of objects: fields that others have set are set all the same
# Not kept for later ones.
OF_THIS_REQUEST = frozenset({UPGRADE_TYPE, VDU_PARAMS, NEW_SCRIPT, OLD_SCRIPT, FORCE_CONFLICTS, *CLASSES})
NEEDED = ("cp_name", "username", "password")  # of what a script is told about a VNFC
FURTHER = ("endpoint", "authentication", "authentication_type")


@dataclass(frozen=True)
class UpgradeParameters:
    """`vdus`: those that the request names, each with what scripts are told of its VNFCs, by `*_vnfc_param`.

    None: it names none, and all that differ are meant. `scripts`: paths in the packages, by the parameter.
    """

    vdus: Mapping[str, Mapping[str, Any]] | None = None
    scripts: Mapping[str, str] = field(default_factory=dict)


def upgrade_parameters(situation: Situation, given: Mapping[str, Any]) -> UpgradeParameters:
    """RequestError for what can't be, by name."""
    if (kind := given.get(UPGRADE_TYPE, ROLLING)) != ROLLING:
        raise BadRequest(
            f"additionalParams.{UPGRADE_TYPE}: it is {kind!r}; {ROLLING} is the only one, or leave it out."
        )
    for name in CLASSES:
        if name in given:
            raise BadRequest(f"additionalParams.{name}: a script is a whole file, and no class of one; leave it out.")
    files = {NEW_SCRIPT: situation.files, OLD_SCRIPT: situation.files_before}
    scripts = {name: _script(name, given[name], files[name]) for name in files if name in given}
    vdus = _vdus(situation, given, scripts)
    if scripts and vdus is None:
        raise BadRequest(f"additionalParams.{VDU_PARAMS}: it is missing, and scripts are told by it how to log in.")
    return UpgradeParameters(vdus, scripts)


def _script(name: str, path: Any, files: Collection[str]) -> str:
    if not isinstance(path, str):
        raise BadRequest(f"additionalParams.{name}: it must be the path of a script, as a string.")
    plain = posixpath.normpath(path).lstrip("/")
    which = "new" if name == NEW_SCRIPT else "present"
    if plain not in files:
        raise Unprocessable(f"additionalParams.{name}: the {which} package has no file {path!r}.")
    if language_of_file(plain) is None:
        raise Unprocessable(f"additionalParams.{name}: {path!r} is neither Python (.py) nor Bash (.sh).")
    return plain


def _vdus(situation: Situation, given: Mapping[str, Any], scripts: Collection[str]) -> dict[str, dict[str, Any]] | None:
    entries = given.get(VDU_PARAMS)
    if entries is None:
        return None
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise BadRequest(f"additionalParams.{VDU_PARAMS}: it is a list of objects, each with a {VDU_ID}.")
    vdus: dict[str, dict[str, Any]] = {}
    for at, entry in enumerate(entries):
        path = f"additionalParams.{VDU_PARAMS}[{at}]"
        vdu, known = entry.get(VDU_ID), situation.flavour.vdus
        if not isinstance(vdu, str) or vdu not in known:
            raise BadRequest(f"{path}.{VDU_ID}: the VNF has no VDU {vdu!r}; it has: {', '.join(known)}.")
        if vdu in vdus:
            raise BadRequest(f"{path}.{VDU_ID}: {vdu!r} is there twice; name it once.")
        _refuse_unknown(path, entry, (VDU_ID, NEW_VNFC, OLD_VNFC))
        told = {key: value for key, value in entry.items() if key != VDU_ID}
        for key, script in SCRIPT_FOR.items():
            _check_vnfc(situation, vdu, f"{path}.{key}", told.get(key), script, needed=script in scripts)
        vdus[vdu] = told
    return vdus


def _check_vnfc(situation: Situation, vdu: str, path: str, told: Any, script: str, *, needed: bool) -> None:
    if told is None and not needed:
        return
    if not needed:
        raise BadRequest(f"{path}: it is for a script, and {script} names none; name one, or leave it out.")
    if situation.flavour.vdus[vdu].container:
        raise BadRequest(f"{path}: {vdu!r} is a container, which no script logs in to; leave {script} out.")
    if not isinstance(told, dict):
        raise BadRequest(f"{path}: the script of {script} needs it, as an object with: {', '.join(NEEDED)}.")
    _refuse_unknown(path, told, (*NEEDED, *FURTHER))
    if missing := [name for name in NEEDED if name not in told]:
        raise BadRequest(f"{path}.{missing[0]}: it is missing, and the script of {script} needs it.")
    flavour = situation.flavour if script == NEW_SCRIPT else situation.flavour_before or situation.flavour
    points = [cp.name for cp in flavour.connection_points.values() if cp.vdu == vdu]
    if told["cp_name"] not in points:
        known = ", ".join(points) or "none"
        raise BadRequest(f"{path}.cp_name: VDU {vdu!r} has no connection point {told['cp_name']!r}; it has: {known}.")


def _refuse_unknown(path: str, fields: Mapping[str, Any], known: Collection[str]) -> None:
    for name in fields:
        if name not in known:
            raise BadRequest(f"{path}.{name}: there is no such field; it has: {', '.join(known)}.")
