"""What a request says about a registry that is a VNF itself: `additionalParams.private_registry_installation_param`."""

from __future__ import annotations

from typing import Annotated, Any

from slipway.cluster.reading import Nested, Parameters, read
from slipway.cluster.source_parameters import ProxyParameters
from slipway.cluster.values import Secret, name, optional_package_path, secret, user, whole
from slipway.model.errors import BadRequest

NAME = "private_registry_installation_param"
PATH = f"additionalParams.{NAME}"


class RegistryVnfParameters(Parameters, frozen=True, kw_only=True):
    """`image_path` is an archive of the registry's image in the package; without it the image is pulled."""

    ssh_cp_name: Annotated[str, name]
    ssh_username: Annotated[str, user]
    ssh_password: Annotated[Secret, secret]
    image_path: Annotated[str | None, optional_package_path] = None
    port_no: Annotated[int, whole(1, 65535)] = 5000
    proxy: Annotated[ProxyParameters, Nested(ProxyParameters)] = ProxyParameters()


def read_registry_vnf_parameters(additional_params: dict[str, Any]) -> RegistryVnfParameters:
    if additional_params.get(NAME) is None:
        raise BadRequest(f"{PATH}: is missing; describe how to reach the machine of the registry in it.")
    return read(RegistryVnfParameters, additional_params[NAME], PATH)
