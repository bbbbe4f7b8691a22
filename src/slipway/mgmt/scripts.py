"""Scripts that a package brings for its hooks: one step each, run apart from Slipway (docs/contracts/mgmt.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from slipway.mgmt.bubblewrap import PACKAGE
from slipway.mgmt.pickled_input import pickled, reads_pickle
from slipway.mgmt.script_limits import Language, ScriptLimits
from slipway.mgmt.script_process import run_script
from slipway.mgmt.script_result import ScriptResult, read_error_data, read_result, said
from slipway.model.action import Action, StepContext
from slipway.model.descriptor import Hook
from slipway.model.errors import StepError
from slipway.model.grant import Granting, GrantRequest
from slipway.model.instance import VnfInstance
from slipway.model.journal import ERROR_DATA
from slipway.model.machine import Outcome
from slipway.model.plan import Plan, Step
from slipway.model.secrets import find_references, redact, reference
from slipway.model.situation import Situation
from slipway.model.target import VimResource

ACTION = "script.run"
MARGIN = 120.0  # seconds for our own work around a script
_ROLLBACK = {"_start": "_rollback_end", "_end": "_rollback_start"}


class ScriptData(Protocol):
    """What scripts are given of Slipway's records."""

    async def instance(self, operation_id: str, *, ahead: bool) -> VnfInstance:
        """As it was when the operation began; or `ahead`, as it would be if the operation ended well now."""
        ...

    async def request(self, operation_id: str) -> dict[str, Any]:
        """The body of the request, in the words of v2; secrets are references."""
        ...

    async def grant_request(self, operation_id: str, left: Sequence[VimResource]) -> GrantRequest:
        """What an NFVO was asked for the operation; or would be, when it leaves that on the VIM."""
        ...

    async def granting(self, operation_id: str) -> Granting | None:
        """What an NFVO was asked for the operation, and what it answered."""
        ...

    async def error_data(self, operation_id: str) -> dict[str, Any] | None:
        """What a script of this operation left for those that come after it failed."""
        ...

    async def unpack(self, operation_id: str, vnfd_id: str, directory: Path) -> None:
        """All files of the package but its software images, readable for everybody."""
        ...


class WorkloadKubeconfig(Protocol):
    """How a script gets into the workload cluster that its VNF is: in place of the sender of credentials."""

    async def __call__(self, vnf: VnfInstance, context: StepContext) -> ScriptSecret | None:
        """None when the VNF is none."""
        ...


@dataclass(frozen=True)
class ScriptSecret:
    """What a script is given beside the rest, and the words of it that may not be repeated."""

    given: dict[str, Any] = field(repr=False)
    secrets: Sequence[str] = field(repr=False)


class CoordinatedVnfc(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The VNFC that a script coordinates: its id, the connection point to reach it by, and what the request says."""

    id: str
    cp_name: str
    params: dict[str, Any]
    is_rollback: bool = False


class Script(msgspec.Struct, frozen=True, omit_defaults=True):
    """`hook`: what names it. `vnfd_id`: its package, when it is not the one that the operation leads to.

    `inputs` are those of the hook in the VNFD.
    """

    hook: str
    path: str
    language: Language
    vnfd_id: str | None = None
    vnfc: CoordinatedVnfc | None = None
    inputs: dict[str, Any] = {}


class ScriptArgs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`run` and `undo` are the scripts for the two directions, where the VNFD names them."""

    vnfd_id: str
    request: dict[str, Any]
    parameters: dict[str, Any] = {}
    ahead: bool = False
    run: Script | None = None
    undo: Script | None = None


class Scripts:
    def __init__(self, data: ScriptData, limits: ScriptLimits, workload: WorkloadKubeconfig | None = None) -> None:
        self._data = data
        self._workload = workload
        self._limits = limits
        limit = limits.seconds + MARGIN
        self.actions: tuple[Action[Any], ...] = (
            Action(ACTION, ScriptArgs, self._run, self._undo, timeout=limit, attempts=1),
        )

    def plan(self, hook: str, run: Hook | None, undo: Hook | None, situation: Situation) -> Plan:
        """One step, which waits for all before it and for which all behind it waits."""
        script, back = _script(run), _script(undo)
        name = f"{hook}: {script.path}" if script else f"{hook}: nothing but its rollback"
        return Plan.of(script_step(name, situation, run=script, undo=back, ahead=hook.endswith("_end")))

    async def _run(self, args: ScriptArgs, context: StepContext) -> Outcome:
        return await self._done(args.run, args, context)

    async def _undo(self, args: ScriptArgs, context: StepContext) -> Outcome:
        return await self._done(args.undo, args, context)

    async def _done(self, script: Script | None, args: ScriptArgs, context: StepContext) -> Outcome:
        if script is None:
            return Outcome()
        granting = await self._data.granting(context.operation_id)
        vnf = await self._data.instance(context.operation_id, ahead=args.ahead)
        before = without_vims(msgspec.to_builtins(vnf))
        hidden = {
            "operation": script.hook,
            "request": args.request,
            "additionalParams": args.parameters,
            "vnfInstance": before,
            "grantRequest": msgspec.to_builtins(granting.request) if granting else None,
            "grant": without_vims(msgspec.to_builtins(granting.grant)) if granting else None,
            "inputs": script.inputs,
            ERROR_DATA: await self._data.error_data(context.operation_id),
        }
        if script.vnfc:
            hidden |= {"vnfLcmOpOccId": context.operation_id, **_coordination(script.vnfc, vnf)}
        given = await context.decrypt_secrets(hidden)
        workload = await self._workload(vnf, context) if self._workload and _reaches_cluster(script) else None
        given["workloadCluster"] = workload.given if workload else None
        encode: Callable[[dict[str, Any]], bytes] = msgspec.json.encode

        async def unpack(directory: Path) -> None:
            nonlocal encode
            await self._data.unpack(context.operation_id, script.vnfd_id or args.vnfd_id, directory)
            if script.language == "python" and await asyncio.to_thread(reads_pickle, directory / script.path):
                encode = pickled

        ended = await run_script(
            f"{PACKAGE}/{script.path}",
            script.language,
            lambda package: encode({**given, "packageDirectory": package}),
            unpack,
            self._limits,
        )
        if ended.fault:
            secrets = await context.decrypt_secrets([reference(one) for one in find_references(hidden)])
            secrets += workload.secrets if workload else ()
            raise StepError(
                f"{script.path}, the script for {script.hook}, {ended.fault.reason}.{said(ended.stderr, secrets)}",
                cure=ended.fault.cure,
                data=read_error_data(ended.stdout),
            )
        if encode is pickled and not ended.stdout.strip():
            return Outcome()  # such scripts answer only where they have something to say
        return _outcome(read_result(ended.stdout, script.path, script.hook, before))


def script_step(
    name: str,
    situation: Situation,
    *,
    run: Script | None = None,
    undo: Script | None = None,
    ahead: bool = False,
    nodes: tuple[str, ...] = (),
) -> Step:
    """`ahead`: scripts see the VNF as it will be."""
    args = ScriptArgs(
        vnfd_id=situation.descriptor.vnfd_id,
        request=without_vims(msgspec.to_builtins(situation.request)),
        parameters=situation.instance.parameters,
        ahead=ahead,
        run=run,
        undo=undo,
    )
    return Step(id=name, action=ACTION, args=msgspec.to_builtins(args), nodes=nodes)


def language_of(hook: Hook) -> Language | None:
    """What the script is written in; None when the hook names no script that can be run here."""
    if hook.file is None:
        return None
    kind = (hook.type or "").rpartition(".")[2]
    if kind == "Python":
        return "python"
    return language_of_file(hook.file) or ("bash" if kind == "Bash" else None)


def language_of_file(path: str) -> Language | None:
    suffix = Path(path).suffix
    if suffix == ".py":
        return "python"
    return "bash" if suffix in (".sh", ".bash") else None


def rollback_of(hook: str) -> str:
    """A rollback goes backward: what stands at the end of the way there is first on the way back."""
    operation, _, edge = hook.rpartition("_")
    return operation + _ROLLBACK.get(f"_{edge}", "")


def _coordination(vnfc: CoordinatedVnfc, vnf: VnfInstance) -> dict[str, Any]:
    """What a script is given about one VNFC; no address when the VIM told none."""
    info = vnf.instantiated_vnf_info
    resource = next((one for one in info.vnfc_resource_info if one.id == vnfc.id), None) if info else None
    known = {one.vnfc_resource_info_id: one.id for one in info.vnfc_info} if info else {}
    points = (cp for cp in resource.vnfc_cp_info if cp.cpd_id == vnfc.cp_name) if resource else ()
    layers = (layer.ip_over_ethernet for cp in points for layer in cp.cp_protocol_info if layer.ip_over_ethernet)
    addresses = [address for layer in layers for ips in layer.ip_addresses for address in ips.addresses]
    return {
        "vnfcInfoId": known.get(vnfc.id),
        "vnfcParam": vnfc.params,
        "sshIp": addresses[0] if addresses else None,
        "isRollback": vnfc.is_rollback,
    }


def _script(hook: Hook | None) -> Script | None:
    if hook is None or hook.file is None:
        return None
    language = language_of(hook)
    return Script(hook.operation, hook.file, language, inputs=hook.inputs) if language else None


def _reaches_cluster(script: Script) -> bool:
    """Before the VIM's work there may be no workload cluster yet, and after a termination there is none any more."""
    return script.hook.endswith("_end") and not script.hook.startswith("terminate") and "rollback" not in script.hook


def without_vims(document: dict[str, Any]) -> dict[str, Any]:
    """The keys to a VIM are for Slipway only."""
    vims = document.get("vimConnectionInfo")
    return document if vims is None else {**document, "vimConnectionInfo": redact(vims)}


def _outcome(answer: ScriptResult) -> Outcome:
    return Outcome(instance=answer.instance, data={ERROR_DATA: answer.error_data} if answer.error_data else {})
