"""Clusters that Slipway made, as registered VIMs."""

from __future__ import annotations

from typing import Any

from slipway.cluster.steps.dependencies import ClientCertificate, ClusterVim, VimAccess
from slipway.model.errors import RequestError, StepError
from slipway.model.vim import KUBERNETES
from slipway.vim_registry.names import vim_id_of
from slipway.vim_registry.registry import VimRegistry, VimRequest

TOKEN_EXPIRES, CERTIFICATE_EXPIRES = "tokenExpires", "certificateExpires"  # in a VIM's extra


class RegisteredClusters:
    """Clusters in the registry of VIMs."""

    def __init__(self, vims: VimRegistry) -> None:
        self._vims = vims

    async def register(self, instance_id: str, vim: ClusterVim) -> str:
        told = access_attributes(vim.access)
        named = {"tls_server_name": vim.server_name} if vim.server_name else {}
        request = VimRequest(
            name=vim.name,
            vim_type=KUBERNETES,
            description=f"The cluster of VNF instance {instance_id}",
            interface_info={"endpoint": vim.endpoint, "ssl_ca_cert": vim.ca, **named},
            access_info=told["accessInfo"],
            extra=told["extra"],
        )
        try:
            return (await self._vims.register_cluster(vim_id_of(instance_id), request, instance_id)).id
        except RequestError as error:
            raise StepError(error.detail, cure="give another vim_name, or remove the VIM that has it.") from None

    async def unregister(self, instance_id: str) -> None:
        try:
            await self._vims.unregister_cluster(vim_id_of(instance_id), instance_id)
        except RequestError as error:
            raise StepError(error.detail) from None


def access_attributes(access: VimAccess) -> dict[str, dict[str, Any]]:
    """A token or a certificate, and when it ends, as attributes of a VIM."""
    ends = access.expires.isoformat()
    if isinstance(access, ClientCertificate):
        login = {"client_certificate": access.certificate, "client_key": access.key}
        return {"accessInfo": login, "extra": {CERTIFICATE_EXPIRES: ends}}
    return {"accessInfo": {"bearer_token": access.value}, "extra": {TOKEN_EXPIRES: ends}}
