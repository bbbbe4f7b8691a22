"""What `/v1.0` answers, for those who read the schema. A caller may have chosen some attributes of a VIM only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class LegacyVim(msgspec.Struct, kw_only=True):
    id: str | UnsetType = UNSET
    tenant_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    auth_url: str | UnsetType = UNSET
    auth_cred: dict[str, Any] | UnsetType = UNSET
    vim_project: dict[str, Any] | UnsetType = UNSET
    is_default: bool | UnsetType = UNSET
    status: str | UnsetType = UNSET
    placement_attr: dict[str, Any] | UnsetType = UNSET
    extra: dict[str, Any] | UnsetType = UNSET
    created_at: datetime | UnsetType = UNSET
    updated_at: datetime | UnsetType | None = UNSET


class OneVim(msgspec.Struct):
    vim: LegacyVim


class AllVims(msgspec.Struct):
    vims: tuple[LegacyVim, ...]


class Link(msgspec.Struct):
    href: str
    rel: str


class LegacyVersion(msgspec.Struct):
    id: str
    status: str
    links: tuple[Link, ...]


class LegacyVersions(msgspec.Struct):
    versions: tuple[LegacyVersion, ...]


class LegacyCollection(msgspec.Struct):
    name: str
    collection: str
    links: tuple[Link, ...]


class LegacyResources(msgspec.Struct):
    resources: tuple[LegacyCollection, ...]
