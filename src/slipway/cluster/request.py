"""What an operation asks of a cluster: the one place that knows which request says what, and where the rest is stored.

A request to instantiate says everything. Every other one says what is new, and the rest is what the instance keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgspec import UNSET

from slipway.cluster.checks import CheckedCluster, NetworkFacts, check_cluster
from slipway.cluster.parameters import (
    NAME,
    PATH,
    REGISTRIES,
    STORAGE,
    ClusterParameters,
    default_vim_name,
    parameters_now,
    read_parameters,
)
from slipway.cluster.recorded import recorded_version
from slipway.cluster.versions import Version
from slipway.model.descriptor import Flavour, Level
from slipway.model.errors import BadRequest
from slipway.model.json_documents import merge_patch
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest, InstantiateRequest, ModifyRequest
from slipway.model.situation import Situation

BASE_HOT = "BaseHOT"  # where packages have their templates, in a folder for each flavour
Check = Callable[[ClusterParameters, Flavour, dict[str, int], Level | None, NetworkFacts], CheckedCluster]
SETUP = ("source", "proxy", REGISTRIES)


@dataclass(frozen=True)
class ClusterRequest:
    """`asked` and `document` are the request alone, and with what is stored: both as they were written.

    `check`: what those who build the cluster can do with parameters and a flavour.
    """

    situation: Situation
    asked: dict[str, Any]
    document: dict[str, Any]
    parameters: ClusterParameters
    scale_levels: dict[str, int]
    level: Level
    check: Check = check_cluster

    @cached_property
    def checked(self) -> CheckedCluster:
        """BadRequest that names everything that does not fit."""
        facts = NetworkFacts(
            has_template=self.has_template,
            managed_links=_managed_links(self.situation),
        )
        return self.check(self.parameters, self.situation.flavour, self.scale_levels, self.level, facts)

    @property
    def has_template(self) -> bool:
        """Whether the package has one for the flavour."""
        folder = f"{BASE_HOT}/{self.situation.flavour.id}/"
        return any(path.startswith(folder) for path in self.situation.files)

    @property
    def version(self) -> Version | None:
        """What the request names, or what the cluster has, or what was asked for at instantiation."""
        recorded = recorded_version(self.situation.instance.vnf)
        named = self.asked.get("kubernetes_version") is not None
        return recorded if recorded and not named else self.parameters.kubernetes_version

    @property
    def stored_registries(self) -> list[dict[str, Any]]:
        """What the instantiate request said of them, whatever was said later."""
        return (self.situation.instance.parameters.get(NAME) or {}).get(REGISTRIES) or []

    @property
    def setup(self) -> dict[str, object]:
        """What a machine is prepared with, as it was written: secrets in it are references."""
        return {key: self.document[key] for key in SETUP if self.document.get(key) is not None}


def _managed_links(situation: Situation) -> frozenset[str]:
    """Internal links whose networks exist, says the request or the record."""
    info, asked = situation.instance.vnf.instantiated_vnf_info, situation.request
    recorded = info.ext_managed_virtual_link_info if info else ()
    given = asked.ext_managed_virtual_links if isinstance(asked, InstantiateRequest | ChangePackageRequest) else ()
    names = [link.vnf_virtual_link_desc_id for link in recorded]
    return frozenset([*names, *(link.vnf_virtual_link_desc_id for link in given)])


def read_request(situation: Situation, check: Check = check_cluster) -> ClusterRequest:
    """BadRequest that names every parameter that is wrong."""
    request, instance = situation.request, situation.instance
    if isinstance(request, InstantiateRequest):
        _refuse_registries_twice(situation, request)
        parameters = read_parameters(_configured(request.additional_params, situation))
        level = situation.flavour.level(request.instantiation_level_id)
        return ClusterRequest(situation, *_documents(situation), parameters, dict(level.scale), level, check)
    parameters = parameters_now(stored_parameters(situation), situation.additional_params)
    info = instance.vnf.instantiated_vnf_info
    levels, level = info.scale_levels if info else {}, situation.flavour.level_of(info)
    return ClusterRequest(situation, *_documents(situation), parameters, levels, level, check)


def has_storage(situation: Situation) -> bool:
    """Whether the request or the instance says anything of a storage server: then there is a reason to read more."""
    given = (situation.additional_params.get(NAME), situation.instance.parameters.get(NAME))
    return any(isinstance(one, dict) and bool(one.get(STORAGE)) for one in given)


def cluster_vim_name(situation: Situation) -> str:
    """Of a request that was checked: it is not read again for this."""
    _, document = _documents(situation)
    return document.get("vim_name") or default_vim_name(situation.instance.vnf.id)


def _documents(situation: Situation) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = situation.additional_params.get(NAME) or {}
    if situation.operation is OperationType.INSTANTIATE:
        return asked, _configured(situation.additional_params, situation).get(NAME) or {}
    return asked, merge_patch(stored_parameters(situation).get(NAME) or {}, asked)


def stored_parameters(situation: Situation) -> dict[str, Any]:
    """What the instance keeps for operations that don't say otherwise."""
    return _configured(situation.instance.parameters, situation)


def _configured(parameters: dict[str, Any], situation: Situation) -> dict[str, Any]:
    """Registries are a configurable property of the VNF: what a modification said of them goes before all else."""
    configured = registries_property(situation)
    if configured is None or not isinstance(parameters.get(NAME), dict):
        return parameters
    return merge_patch(parameters, {NAME: {REGISTRIES: configured}})  # type: ignore[no-any-return]


def registries_property(situation: Situation) -> Any:
    """As the operation leaves it."""
    request, properties = situation.request, situation.instance.vnf.vnf_configurable_properties
    if isinstance(request, InstantiateRequest):
        properties = {**properties, **request.vnf_configurable_properties}
    if isinstance(request, ModifyRequest) and request.vnf_configurable_properties is not UNSET:
        properties = merge_patch(properties, request.vnf_configurable_properties) or {}
    return properties.get(REGISTRIES)


def _refuse_registries_twice(situation: Situation, request: InstantiateRequest) -> None:
    given = request.additional_params.get(NAME)
    if isinstance(given, dict) and given.get(REGISTRIES) and registries_property(situation) is not None:
        raise BadRequest(
            f"{PATH}.{REGISTRIES}: vnfConfigurableProperties.{REGISTRIES} says it, too, and would count; leave one of "
            "them out (a modification that sets the property to null removes it)."
        )
