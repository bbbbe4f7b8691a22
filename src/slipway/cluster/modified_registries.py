"""Registries of a cluster that stands: `vnfConfigurableProperties.private_registry_connection_info` of a modification.

The whole list is replaced. `null` goes back to what the instantiate request said.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from slipway.cluster.checks import check_files
from slipway.cluster.parameters import REGISTRIES, RegistryList
from slipway.cluster.request import read_request, registries_property
from slipway.cluster.schema import Problems, Refusal, read
from slipway.model.errors import BadRequest
from slipway.model.instance import InstantiationState
from slipway.model.requests import ChangePackageRequest, ModifyRequest
from slipway.model.situation import Situation

PATH = "vnfConfigurableProperties"
Registries = tuple[dict[str, Any], ...]
BY_MODIFICATION = (
    f"the nodes that stay would not hear of it; change {PATH}.{REGISTRIES} by a modification (PATCH), which reaches "
    "all nodes."
)


def check_modified_registries(situation: Situation) -> None:
    """BadRequest that names all that is wrong with them."""
    if not _is_asked(situation):
        return
    given = read(RegistryList, {REGISTRIES: registries_property(situation)}, PATH)
    problems = Problems()
    for at, one in enumerate(given.private_registry_connection_info):
        if one.certificate_path is not None and one.certificate_path not in situation.files:
            refusal = Refusal(
                f"the package has no file {one.certificate_path}", "name one that it has, or add it to the package"
            )
            problems.add(f"{PATH}.{REGISTRIES}[{at}].certificate_path", refusal)
    problems.raise_if_any()
    if situation.instance.vnf.instantiation_state is InstantiationState.INSTANTIATED:
        check_files(read_request(situation).parameters, situation.files)


def modified_registries(situation: Situation) -> tuple[Registries, Registries] | None:
    """Those before and after, if the modification says anything about them."""
    if not _is_asked(situation):
        return None
    vnf, stored = situation.instance.vnf, read_request(situation).stored_registries
    before, after = vnf.vnf_configurable_properties.get(REGISTRIES), registries_property(situation)
    return (tuple(stored if before is None else before), tuple(stored if after is None else after))


def refuse_registries_property(request: Any) -> None:
    """A change of the package sets properties, too, and would tell no node."""
    if isinstance(request, ChangePackageRequest) and REGISTRIES in request.vnf_configurable_properties:
        raise BadRequest(f"{PATH}.{REGISTRIES}: {BY_MODIFICATION}")


def _is_asked(situation: Situation) -> bool:
    request = situation.request
    if not isinstance(request, ModifyRequest) or request.vnf_configurable_properties is UNSET:
        return False
    given = request.vnf_configurable_properties
    return given is None or REGISTRIES in given
