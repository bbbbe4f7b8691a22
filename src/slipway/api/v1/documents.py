"""The core's JSON documents as v1 shows them. Attributes may be missing: a list can be asked for some of them only."""

from __future__ import annotations

from typing import Any

from slipway.api.v1.connectivity import from_links
from slipway.api.v1.vim_connections import V1VimConnection, to_list
from slipway.model import instance as core

Json = dict[str, Any]


class InstantiatedVnfInfoOfV1(core.InstantiatedVnfInfo, frozen=True, kw_only=True):
    instantiation_level_id: str | None = None


class VnfInstanceOfV1(core.VnfInstance, frozen=True, kw_only=True):
    """What differs in v1, for those who read the schema; documents are translated without being taken apart."""

    vnf_pkg_id: str | None = None
    vim_connection_info: tuple[V1VimConnection, ...] = ()  # type: ignore[assignment]
    instantiated_vnf_info: InstantiatedVnfInfoOfV1 | None = None


def instance(document: Json, package_id: str | None) -> Json:
    """VnfInstance. `package_id` is that of its package."""
    shown = dict(document)
    if package_id is not None:
        shown["vnfPkgId"] = package_id
    if "vimConnectionInfo" in shown:
        shown["vimConnectionInfo"] = to_list(shown["vimConnectionInfo"])
    if "instantiatedVnfInfo" in shown:
        shown["instantiatedVnfInfo"] = _instantiated(shown["instantiatedVnfInfo"])
    return shown


def operation(document: Json) -> Json:
    """VnfLcmOpOcc, with the parameters as a v1 request would have had them."""
    shown = dict(document)
    for name in ("operationParams", "changedInfo"):
        if name in shown:
            shown[name] = _request(shown[name])
    if "changedExtConnectivity" in shown:
        shown["changedExtConnectivity"] = [_link(link) for link in shown["changedExtConnectivity"]]
    return shown


def _instantiated(info: Json) -> Json:
    shown = _without(info, "maxScaleLevels")
    if level := info.get("metadata", {}).get("instantiationLevelId"):
        shown["instantiationLevelId"] = level
    for name, translate in (
        ("extVirtualLinkInfo", _link),
        ("extManagedVirtualLinkInfo", _managed),
        ("extCpInfo", _cp),
        ("vnfcInfo", _vnfc),
    ):
        if name in shown:
            shown[name] = [translate(one) for one in shown[name]]
    return shown


def _link(link: Json) -> Json:
    return _without(link, "currentVnfExtCpData")


def _managed(link: Json) -> Json:
    return _without(link, "extManagedMultisiteVirtualLinkId")


def _cp(cp: Json) -> Json:
    return _without(cp, "cpConfigId")


def _vnfc(vnfc: Json) -> Json:
    return _without(vnfc, "vnfcResourceInfoId")


def _request(request: Json) -> Json:
    shown = dict(request)
    if "vimConnectionInfo" in shown:
        connections = shown.pop("vimConnectionInfo")
        if named := to_list(connections):
            shown["vimConnectionInfo"] = named
        if gone := sorted(key for key, value in connections.items() if value is None):
            shown["vimConnectionInfoDeleteIds"] = gone
    if "extVirtualLinks" in shown:
        shown["extVirtualLinks"] = from_links(shown["extVirtualLinks"])
    return shown


def _without(document: Json, *names: str) -> Json:
    return {name: value for name, value in document.items() if name not in names}
