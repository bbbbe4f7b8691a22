"""VimConnectionInfo: v1 has a list of them, each with its id; the core has a map, with the id as the key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from slipway.api.v1 import LenientStruct
from slipway.model.errors import BadRequest
from slipway.model.instance import VimConnectionInfo
from slipway.model.requests import Name
from slipway.model.vim import KUBERNETES, Vim

# The short names that v1 requests use, and what they stand for.
VIM_TYPES = {"openstack": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "kubernetes": KUBERNETES}


class V1VimConnection(LenientStruct, frozen=True, kw_only=True):
    id: Name
    vim_id: str | None = None
    vim_type: str | None = None
    interface_info: dict[str, Any] | None = None
    access_info: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    @property
    def names_no_vim(self) -> bool:
        """An id and a type lead nowhere: the VIM is the default one, or the one that the VNF is on."""
        return not (self.vim_id or self.interface_info or self.access_info)


def to_map(connections: Iterable[V1VimConnection]) -> dict[str, VimConnectionInfo]:
    """For requests that say where a VNF is to be."""
    return {one.id: _info(one) for one in connections if not one.names_no_vim}


def check_type(one: V1VimConnection, vim: Vim) -> None:
    """BadRequest when the type beside a vimId is not that of the VIM.

    v1 wants a type and has short names for two; a VIM of any other type goes by either of them.
    """
    if not one.vim_type or (one.vim_type in VIM_TYPES and vim.vim_type not in VIM_TYPES.values()):
        return
    if VIM_TYPES.get(one.vim_type, one.vim_type) != vim.vim_type:
        raise BadRequest(
            f"vimConnectionInfo.{one.id}.vimType: VIM {vim.name!r} is a {vim.vim_type}, not {one.vim_type}."
        )


def to_list(connections: dict[str, Any]) -> list[dict[str, Any]]:
    """The JSON of the core's map as v1 has it. A key without a value (of a merge patch) has no place in it."""
    return [{"id": key, **value} for key, value in sorted(connections.items()) if value is not None]


def _info(one: V1VimConnection) -> VimConnectionInfo:
    info = VimConnectionInfo(
        interface_info=one.interface_info or {}, access_info=one.access_info or {}, extra=one.extra or {}
    )
    if one.vim_id:
        return replace(info, vim_id=one.vim_id)  # its registration knows the type; a short name may not be it
    return replace(info, vim_type=VIM_TYPES.get(one.vim_type or "", one.vim_type))
