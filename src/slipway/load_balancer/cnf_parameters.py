"""What a request says about the load balancer that a CNF is behind: `additionalParams.lcm-kubernetes-external-lb`.

All of it may be left out: the balancer is that of the cluster which the CNF is on, and its login is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from slipway.cluster.schema import Nested, Parameters, Refusal, read
from slipway.cluster.spec import SshLogin
from slipway.cluster.values import Secret, address, key_text, optional_package_path, secret, user, whole
from slipway.model.errors import BadRequest
from slipway.model.json_documents import merge_patch
from slipway.model.operation import OperationType
from slipway.model.situation import Situation

NAME = "lcm-kubernetes-external-lb"
PATH = f"additionalParams.{NAME}"


class BalancerAccess(Parameters, frozen=True, kw_only=True):
    """`ssh_ip` must be the balancer's: it is no way to reach other machines."""

    ssh_ip: Annotated[str, address]
    ssh_username: Annotated[str, user]
    ssh_password: Annotated[Secret | None, secret] = None
    ssh_private_key: Annotated[Secret | None, key_text] = None
    ssh_passphrase: Annotated[Secret | None, secret] = None
    ssh_port: Annotated[int, whole(1, 65535)] = 22

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if "ssh_password" not in given and "ssh_private_key" not in given:
            cure = "give one of them, or leave external_lb_param out: the cluster's login is used then"
            yield "ssh_password", Refusal("there is neither ssh_password nor ssh_private_key", cure)

    @property
    def login(self) -> SshLogin:
        secrets = (self.ssh_password, self.ssh_private_key, self.ssh_passphrase)
        password, private_key, passphrase = (one.document if one else None for one in secrets)
        return SshLogin(
            username=self.ssh_username,
            port=self.ssh_port,
            password=password,
            private_key=private_key,
            passphrase=passphrase,
        )


class CnfBalancerParameters(Parameters, frozen=True, kw_only=True):
    script_path: Annotated[str | None, optional_package_path] = None
    external_lb_param: Annotated[BalancerAccess | None, Nested(BalancerAccess)] = None


def cnf_balancer_parameters(situation: Situation) -> CnfBalancerParameters:
    """Of the request, over what the instance keeps. BadRequest names every field that is wrong."""
    is_new = situation.operation is OperationType.INSTANTIATE
    asked = situation.additional_params.get(NAME)
    stored = {} if is_new else situation.instance.parameters.get(NAME)
    if isinstance(asked, dict) and isinstance(stored, dict):
        asked = merge_patch(stored, asked)
    parameters = read(CnfBalancerParameters, stored if asked is None else asked, PATH) if asked or stored else None
    if parameters is None:
        return CnfBalancerParameters()
    if parameters.script_path is not None and parameters.script_path not in situation.files:
        raise BadRequest(
            f"{PATH}.script_path: the package has no file {parameters.script_path}; name one that it has, or leave it "
            "out."
        )
    return parameters
