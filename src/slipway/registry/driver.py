"""The management driver `registry`: a container registry on the VNF's machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from slipway.cluster.spec import Node, SshLogin, StepArguments
from slipway.cluster.steps.dependencies import Dependencies
from slipway.model.action import Action
from slipway.model.connectivity import refuse_moves
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.hooks import Edges, HookPlan
from slipway.model.operation import OperationType
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.requests import ChangeExtConnRequest, InstantiateRequest
from slipway.model.situation import PlanningSituation, Situation
from slipway.registry.arguments import InstallRegistry, LoadArchive, MountVolume, ServeImages
from slipway.registry.parameters import (
    NAME,
    PATH,
    InstallationParameters,
    archives_of,
    check_installation,
    document_now,
    read_installation,
)
from slipway.registry.steps import actions
from slipway.registry.steps.actions import action_name
from slipway.registry.steps.serve import OUTPUTS

HOOKED = ("instantiate", "heal")


class RegistryDriver:
    name = "registry"
    aliases = ("mgmt-drivers-private-registry", "mgmt_drivers_private_registry")

    def __init__(self, deps: Dependencies) -> None:
        self.actions: tuple[Action[Any], ...] = actions.registry_actions(deps)

    def check(self, situation: Situation) -> None:
        if check := CHECKS.get(situation.operation):
            check(situation, situation.request)

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        """The same for a new machine and for one that is made anew; a machine that stays is left alone."""
        if operation not in HOOKED or "end" not in edges:
            return HookPlan()
        parameters, document = _parameters(situation), _document(situation)[NAME]
        there = {machine.id for machine in situation.found.machines} if operation == "heal" else set[str]()
        nodes = [node for node in _nodes(situation, parameters) if node.machine not in there]
        return HookPlan(end=Plan.parallel(*(_plan(node, parameters, document, situation) for node in nodes)))


def _plan(node: Node, parameters: InstallationParameters, document: dict[str, Any], situation: Situation) -> Plan:
    steps = [_step(f"install registry {node.slot}", InstallRegistry(node=node, given=document), node)]
    if parameters.data_volume is not None:
        args = MountVolume(node=node, given=document, volume=parameters.data_volume)
        steps.append(_step(f"mount data volume {node.slot}", args, node))
    served = [Effect(Verb.MAKE, "registry", node.slot)]
    args_ = ServeImages(node=node, given=document, authority=_authority(situation))
    steps.append(_step(f"serve registry {node.slot}", args_, node, served))
    loads = [
        _step(
            f"load {path}",
            LoadArchive(node=node, given=document, path=path),
            node,
            [Effect(Verb.MAKE, "images", path)],
        )
        for path in archives_of(parameters, situation.files)
    ]
    return Plan.chain(*(Plan.of(step) for step in steps), Plan.of(*loads))


def _step(step_id: str, args: StepArguments, node: Node, effects: list[Effect] | None = None) -> Step:
    plain = msgspec.json.decode(msgspec.json.encode(args))
    return Step(
        id=step_id, action=action_name(type(args)), args=plain, nodes=(node.slot,), effects=tuple(effects or ())
    )


def _nodes(situation: PlanningSituation, parameters: InstallationParameters) -> list[Node]:
    point, target = situation.flavour.connection_points[parameters.ssh_cp_name], situation.change.after
    login = SshLogin(
        username=parameters.ssh_username,
        port=parameters.ssh_port,
        password=parameters.ssh_password.document if parameters.ssh_password else None,
        private_key=parameters.ssh_private_key.document if parameters.ssh_private_key else None,
    )
    return [
        Node(
            machine=member.id,
            slot=member.name,
            name=member.name.lower(),
            master=False,
            ssh=parameters.ssh_cp_name,
            nic=parameters.ssh_cp_name,
            login=login,
        )
        for member in (target.members if target else ())
        if member.vdu == point.vdu
    ]


def _check_instantiation(situation: Situation, request: InstantiateRequest) -> None:
    _check_parameters(situation, request)
    _check_alone(situation, request)


def _check_parameters(situation: Situation, _: Any) -> None:
    check_installation(_parameters(situation), situation.flavour, situation.files)


def _check_alone(situation: Situation, request: InstantiateRequest) -> None:
    """Two registries would be two places, each with half of the images."""
    point = situation.flavour.connection_points[_parameters(situation).ssh_cp_name]
    level = situation.flavour.level(request.instantiation_level_id)
    counts = situation.flavour.counts(dict(level.scale), level)
    if counts.get(point.vdu) != 1:
        raise BadRequest(
            f"flavourId: there would be {counts.get(point.vdu)} machines of {point.vdu}, and a registry is one; "
            "choose a flavour or level with one."
        )


def _check_connectivity(situation: Situation, request: ChangeExtConnRequest) -> None:
    """Its certificate, the record and every cluster that pulls from it have its address."""
    if info := situation.instance.vnf.instantiated_vnf_info:
        used = [(f"{PATH}.ssh_cp_name", _parameters(situation).ssh_cp_name)]
        refuse_moves(info, request.ext_virtual_links, used, "registry")


def _refuse_scale(_situation: Situation, _request: Any) -> None:
    raise Unprocessable("A registry is one machine with its images: it can't be scaled.")


def _refuse_package(_situation: Situation, _request: Any) -> None:
    """No hook of ours would follow: the operation would end COMPLETED with a machine that serves nothing."""
    raise Unprocessable(
        "The package of a registry can't be changed: its machine may be made anew by that, and only instantiate and "
        "heal set a registry up. Instantiate another one from the new package."
    )


def _parameters(situation: Situation) -> InstallationParameters:
    return read_installation(_document(situation))


def _document(situation: Situation) -> dict[str, Any]:
    """Of an instantiation or a heal; what is stored, of any other operation."""
    if situation.operation is OperationType.INSTANTIATE:
        return situation.additional_params
    given = situation.additional_params if situation.operation is OperationType.HEAL else {}
    return document_now(situation.instance.parameters, given)


def _authority(situation: Situation) -> dict[str, Any] | None:
    """Of the certificate that was made for the machine before: whoever trusts it goes on to."""
    info = situation.instance.vnf.instantiated_vnf_info
    outputs = info.metadata.get(OUTPUTS) if info else None
    if not isinstance(outputs, dict) or "caPrivateKey" not in outputs:
        return None
    return {"certificate": outputs["ca"], "private_key": outputs["caPrivateKey"]}


CHECKS: dict[OperationType, Callable[[Situation, Any], None]] = {  # with the operation's own request
    OperationType.INSTANTIATE: _check_instantiation,
    OperationType.HEAL: _check_parameters,
    OperationType.SCALE: _refuse_scale,
    OperationType.CHANGE_VNFPKG: _refuse_package,
    OperationType.CHANGE_EXT_CONN: _check_connectivity,
}
