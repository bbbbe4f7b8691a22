"""Two ways to the same VNF packages: all of them by their ids, the onboarded ones by the ids of their VNFDs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table

from slipway.api.links import ONBOARDED_PACKAGES, PACKAGES, Links, LinksOf
from slipway.api.routing import BY_HANDLER, AnyRequest, caller_of
from slipway.lcm.onboarding import Onboarding
from slipway.store import tables
from slipway.store.filters import Filter, parse


@dataclass(frozen=True)
class Way:
    """`one` is the path of a package, `within` what `route` wants to know of it, `id_of` the package that it names.

    `only` and `links` are for lists.
    """

    collection: str
    one: str
    within: Table | str
    id_of: Callable[[AnyRequest], Awaitable[str]]
    only: tuple[Filter, ...]
    links: LinksOf[Any]


def by_id(links: Links) -> Way:
    async def id_of(request: AnyRequest) -> str:
        return str(request.path_params["id"])

    return Way(PACKAGES, f"{PACKAGES}/{{id:str}}", tables.packages, id_of, (), links.package)


def by_vnfd(onboarding: Onboarding, links: Links) -> Way:
    async def id_of(request: AnyRequest) -> str:
        return await onboarding.id_of(request.path_params["vnfdId"], caller_of(request).project)

    one = f"{ONBOARDED_PACKAGES}/{{vnfdId:str}}"
    only = parse("(eq,onboardingState,ONBOARDED)")
    return Way(ONBOARDED_PACKAGES, one, BY_HANDLER, id_of, only, links.onboarded_package)
