"""What an operation asks of a cluster: the one place that knows which request says what, and where the rest is stored.

A request to instantiate says everything. Every other one says what is new, and the rest is what the instance keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from slipway.cluster.checks import CheckedCluster, NetworkFacts, check_cluster
from slipway.cluster.parameters import NAME, ClusterParameters, default_vim_name, parameters_now, read_parameters
from slipway.cluster.recorded import recorded_version
from slipway.cluster.versions import Version
from slipway.model.descriptor import Level
from slipway.model.json_documents import merge_patch
from slipway.model.requests import ChangePackageRequest, InstantiateRequest, ModifyRequest
from slipway.model.situation import Situation

BASE_HOT = "BaseHOT"  # where packages have their templates, in a folder for each flavour
SETUP = ("source", "proxy", "private_registry_connection_info")


@dataclass(frozen=True)
class ClusterRequest:
    """`asked` and `document` are the request alone, and with what is stored: both as they were written."""

    situation: Situation
    asked: dict[str, Any]
    document: dict[str, Any]
    parameters: ClusterParameters
    scale_levels: dict[str, int]
    level: Level

    @cached_property
    def checked(self) -> CheckedCluster:
        """BadRequest that names everything that does not fit."""
        folder = f"{BASE_HOT}/{self.situation.flavour.id}/"
        facts = NetworkFacts(
            has_template=any(path.startswith(folder) for path in self.situation.files),
            managed_links=_managed_links(self.situation),
        )
        return check_cluster(self.parameters, self.situation.flavour, self.scale_levels, self.level, facts)

    @property
    def version(self) -> Version | None:
        """What the request names, or what the cluster has, or what was asked for at instantiation."""
        recorded = recorded_version(self.situation.instance.vnf)
        named = self.asked.get("kubernetes_version") is not None
        return recorded if recorded and not named else self.parameters.kubernetes_version

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


def read_request(situation: Situation) -> ClusterRequest:
    """BadRequest that names every parameter that is wrong."""
    request, instance = situation.request, situation.instance
    if isinstance(request, InstantiateRequest):
        parameters = read_parameters(request.additional_params)
        level = situation.flavour.level(request.instantiation_level_id)
        return ClusterRequest(situation, *_documents(situation), parameters, dict(level.scale), level)
    given = {} if isinstance(request, ModifyRequest) else request.additional_params
    parameters = parameters_now(instance.parameters, given)
    info = instance.vnf.instantiated_vnf_info
    levels, level = info.scale_levels if info else {}, situation.flavour.level_of(info)
    return ClusterRequest(situation, *_documents(situation), parameters, levels, level)


def cluster_vim_name(situation: Situation) -> str:
    """Of a request that was checked: it is not read again for this."""
    _, document = _documents(situation)
    return document.get("vim_name") or default_vim_name(situation.instance.vnf.id)


def _documents(situation: Situation) -> tuple[dict[str, Any], dict[str, Any]]:
    request = situation.request
    asked = {} if isinstance(request, ModifyRequest) else request.additional_params.get(NAME) or {}
    if isinstance(request, InstantiateRequest):
        return asked, asked
    return asked, merge_patch(situation.instance.parameters.get(NAME) or {}, asked)
