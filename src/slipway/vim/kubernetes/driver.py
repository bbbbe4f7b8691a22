"""The driver of Kubernetes VIMs: who may log in, and what is there."""

from __future__ import annotations

from typing import Any

from slipway.kube.credentials import Credentials
from slipway.kube.failure import KubeError
from slipway.model.action import Action, Connection
from slipway.model.errors import BadRequest, StepError, Unprocessable, VimError, VimFault
from slipway.model.machine import Found, Wanted
from slipway.model.plan import Plan
from slipway.model.vim import KUBERNETES
from slipway.vim.contract import Capabilities


class KubernetesVimDriver:
    """It can be logged in to; it holds nothing of a VNF yet."""

    vim_type = KUBERNETES
    capabilities = Capabilities()
    actions: tuple[Action[Any], ...] = ()

    def validate(self, connection: Connection) -> None:
        try:
            _credentials(connection)
        except StepError as error:
            raise BadRequest(f"interfaceInfo, accessInfo: {error.detail}") from None

    async def check(self, connection: Connection) -> str:
        from slipway.kube.api import Api

        try:
            async with Api(_credentials(connection)) as api:
                version = (await api.get("/version")).get("gitVersion", "of no known version")
                nodes = await api.list("/api/v1/nodes")
        except KubeError as error:
            raise VimError(error.detail, _fault(error)) from None
        return f"Kubernetes {version}: {len(nodes)} node{'' if len(nodes) == 1 else 's'}"

    async def find(self, connection: Connection, instance_id: str) -> Found:
        return Found()

    def steps_towards(self, wanted: Wanted, found: Found) -> Plan:
        if wanted.machines or wanted.networks:
            raise Unprocessable("A Kubernetes VIM holds no machines; choose a VIM that does.")
        if wanted.objects:
            raise Unprocessable("Slipway does not run workloads on a Kubernetes VIM yet.")
        return Plan()


def _credentials(connection: Connection) -> Credentials:
    interface, access = connection.interface_info, connection.access_info
    for name, value in (("interfaceInfo.endpoint", interface.get("endpoint")),
                        ("interfaceInfo.ssl_ca_cert", interface.get("ssl_ca_cert")),
                        ("accessInfo.bearer_token", access.get("bearer_token"))):  # fmt: skip
        if not isinstance(value, str) or not value:
            raise BadRequest(f"{name}: is missing; a Kubernetes VIM needs its URL, its CA as PEM, and a bearer token.")
    return Credentials(server=interface["endpoint"], ca=interface["ssl_ca_cert"], token=access["bearer_token"])


def _fault(error: KubeError) -> VimFault:
    if error.status in (401, 403):
        return VimFault.AUTH
    return VimFault.TEMPORARY if error.temporary else VimFault.PERMANENT
