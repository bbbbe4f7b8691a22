"""What the routes work with. Whoever starts the API puts it together; there is no global state."""

from __future__ import annotations

from dataclasses import dataclass, field

from slipway import __version__
from slipway.lcm.front import Lcm
from slipway.lcm.onboarding import Onboarding
from slipway.lcm.standing_clusters import StandingClusters
from slipway.lcm.vim_registry import VimRegistry
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.registry import Drivers

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True)
class Services:
    """`token` None lets everybody in. `base_url` begins every link, without a slash at its end."""

    database: Database
    vault: Vault
    lcm: Lcm
    onboarding: Onboarding
    vims: VimRegistry
    clusters: StandingClusters
    drivers: Drivers
    token: str | None = field(repr=False)
    base_url: str
    page_size: int = 1000
    max_body_bytes: int = 8 * MIB
    max_package_bytes: int = 20 * GIB
    version: str = __version__
