"""The management driver `cluster-api`: what the hooks of a workload cluster's VNFD mean.

The VIM's driver applies the package's objects and waits for them; what is left is to let others into the new cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from slipway.cluster.cluster_api.parameters import (
    NAME,
    PATH,
    RECEIVER,
    WorkloadClusterParameters,
    keeps_moved_login,
    place_of,
    read_workload,
    workload_document,
)
from slipway.cluster.cluster_api.steps import (
    KEY,
    SENT,
    RegisterWorkloadCluster,
    SendCredentials,
    UnregisterWorkloadCluster,
    WorkloadDependencies,
    WorkloadSteps,
)
from slipway.cluster.spec import StepArguments
from slipway.model.action import Action
from slipway.model.descriptor import Flavour
from slipway.model.errors import BadRequest, OutgoingRequestError
from slipway.model.hooks import Edges, HookPlan
from slipway.model.json_documents import merge_patch
from slipway.model.operation import OperationType
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.requests import InstantiateRequest
from slipway.model.situation import PlanningSituation, Situation
from slipway.outgoing.guard import Guard

SEND, REGISTER, UNREGISTER = "send credentials", "register as VIM", "unregister VIM"
# After these the credentials may be others: they are looked at, and sent and registered again if they are.
CHANGES_CREDENTIALS = ("instantiate", "scale", "heal", "change_current_package")


class ClusterApiDriver:
    name = "cluster-api"
    aliases = ("credentials-sender", "credentials_sender")

    def __init__(self, deps: WorkloadDependencies) -> None:
        self._guard = deps.guard
        self.actions: tuple[Action[Any], ...] = WorkloadSteps(deps).actions

    def check(self, situation: Situation) -> None:
        if situation.operation is OperationType.TERMINATE:
            return  # a termination is never refused for its parameters
        asked, request = _parameters(situation), situation.request
        _check_addresses(self._guard, asked)
        if not isinstance(request, InstantiateRequest):
            return
        first = situation.flavour.hooks.get(FIRST)
        sends = first is not None and first.implementation in (self.name, *self.aliases)
        if sends and asked.credentials_receiver is None and asked.register_vim is None:
            raise BadRequest(
                f"{PATH}: it names neither credentials_receiver nor register_vim, so nobody would get into the new "
                "cluster; give one of them, or both."
            )
        if KEY in request.vim_connection_info:
            raise BadRequest(f"vimConnectionInfo.{KEY}: this key is for the workload cluster itself; choose another.")

    def refuse_moved_secrets(self, situation: Situation) -> None:
        """Whatever the hooks name: packages that name another driver may come in between."""
        if situation.operation in (OperationType.INSTANTIATE, OperationType.TERMINATE):
            return
        changes_package = situation.operation is OperationType.CHANGE_VNFPKG
        stored, asked = situation.instance.parameters, situation.additional_params if changes_package else {}
        given = _lasting(situation.flavour_before or situation.flavour, stored)
        documents = [_lasting(situation.flavour, merge_patch(stored, asked))]
        if _names_driver(situation.flavour):
            documents.append(_document(situation))
        if any(keeps_moved_login(stored.get(NAME), given, document) for document in documents):
            by = "in a change of the package (change_vnfpkg)" if situation.flavour_before else "in this request"
            raise BadRequest(
                f"{PATH}.{RECEIVER}: the stored login was given for the url and ca_certificate of the receiver that "
                f"this VNF has, and goes to no other; give it again {by}, or null for none."
            )

    def vim_name(self, situation: Situation) -> tuple[str, str] | None:
        if situation.operation is not OperationType.INSTANTIATE:
            return None
        asked = _parameters(situation)
        if asked.register_vim is None:
            return None
        return f"{PATH}.register_vim.name", asked.vim_name_for(situation.instance.vnf.id)

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        if operation == "terminate":
            removed = _unregistering(situation)
            return HookPlan(start=removed) if "start" in edges else HookPlan(end=removed)
        if operation not in CHANGES_CREDENTIALS or "end" not in edges:
            return HookPlan()
        return HookPlan(end=Plan.parallel(_sending(situation), _registering(situation)))


def _check_addresses(guard: Guard, asked: WorkloadClusterParameters) -> None:
    """A receiver that nothing would ever be sent to is refused before a cluster is made for it."""
    receiver = asked.credentials_receiver
    if receiver is None:
        return
    addresses = {"url": receiver.url} | ({"oauth2.token_url": receiver.oauth2.token_url} if receiver.oauth2 else {})
    for name, address in addresses.items():
        try:
            guard.check_form(address)
        except OutgoingRequestError as error:
            raise BadRequest(f"{PATH}.{RECEIVER}.{name}: {error.detail}") from None


def _sending(situation: Situation) -> Plan:
    document = _document(situation)
    if read_workload(document).credentials_receiver is None:
        return Plan()
    info = situation.instance.vnf.instantiated_vnf_info
    args = SendCredentials(receiver=document[RECEIVER], sent=info.metadata.get(SENT) if info else None)
    return Plan.of(_step(SEND, "cluster_api.send", args))


def lasting_receiver(flavour: Flavour, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """Who is told when no request is there to say it: the package, over it the instantiation.

    A package that takes the place of one with a receiver may say none: then nobody is.
    """
    document = _lasting(flavour, parameters)
    if place_of(document)[0] is None or read_workload(document).credentials_receiver is None:
        return None
    receiver: dict[str, Any] = document[RECEIVER]
    return receiver


def _lasting(flavour: Flavour, parameters: Mapping[str, Any]) -> Any:
    """What inputs say in a package that names the driver nowhere is for others."""
    first = flavour.hooks.get(FIRST)
    inputs = first.inputs if first and _names_driver(flavour) else {}
    return workload_document(inputs, parameters, {})


def _names_driver(flavour: Flavour) -> bool:
    names = (ClusterApiDriver.name, *ClusterApiDriver.aliases)
    return any(hook.implementation in names for hook in flavour.hooks.values())


def _registering(situation: Situation) -> Plan:
    asked = _parameters(situation)
    if asked.register_vim is None:
        return Plan()
    vnf = situation.instance.vnf
    args = RegisterWorkloadCluster(
        vim_name=asked.vim_name_for(vnf.id), access=asked.register_vim.access, anew=KEY not in vnf.vim_connection_info
    )
    effect = Effect(Verb.MAKE if args.anew else Verb.CHANGE, "VIM", args.vim_name)
    return Plan.of(_step(REGISTER, "cluster_api.register", args, effect))


def _unregistering(situation: Situation) -> Plan:
    """Before anything of the cluster is gone: while VNFs run on it, it stays."""
    if KEY not in situation.instance.vnf.vim_connection_info:
        return Plan()
    effect = Effect(Verb.REMOVE, "VIM", "of the workload cluster")
    return Plan.of(
        msgspec.structs.replace(
            _step(UNREGISTER, "cluster_api.unregister", UnregisterWorkloadCluster(), effect), irreversible=True
        )
    )


def _parameters(situation: Situation) -> WorkloadClusterParameters:
    return read_workload(_document(situation))


def _document(situation: Situation) -> Any:
    """A name of a VIM is one instance's: the package can't give it."""
    stored = {} if _is_new(situation) else situation.instance.parameters
    inputs = _inputs(situation)
    given = inputs.get(NAME)
    vim = given.get("register_vim") if isinstance(given, dict) else None
    if isinstance(vim, dict) and "name" in vim:
        raise BadRequest(
            f"The VNFD's inputs of its hooks: {NAME}.register_vim.name would be the same for all VNFs of the package; "
            f"let requests give it as {PATH}.register_vim.name."
        )
    return workload_document(inputs, stored, situation.additional_params)


def _inputs(situation: Situation) -> dict[str, Any]:
    """Of the operation's own hook where it has some, else those of instantiate_end."""
    hooks = situation.flavour.hooks
    own, first = hooks.get(HOOKS.get(situation.operation, FIRST)), hooks.get(FIRST)
    return (own.inputs if own else {}) or (first.inputs if first else {})


def _is_new(situation: Situation) -> bool:
    return situation.operation is OperationType.INSTANTIATE


def _step(name: str, action: str, args: StepArguments, *effects: Effect) -> Step:
    return Step(id=name, action=action, args=msgspec.json.decode(msgspec.json.encode(args)), effects=effects)


FIRST = "instantiate_end"
HOOKS = {
    OperationType.INSTANTIATE: FIRST,
    OperationType.SCALE: "scale_end",
    OperationType.HEAL: "heal_end",
    OperationType.CHANGE_VNFPKG: "change_current_package_end",
}
