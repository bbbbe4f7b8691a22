"""What the routes work with. Whoever starts the API puts it together; there is no global state."""

from __future__ import annotations

from dataclasses import dataclass, field

from slipway import __version__
from slipway.access.callers import Callers
from slipway.lcm.front import Lcm
from slipway.lcm.onboarding import Onboarding
from slipway.lcm.standing_clusters import StandingClusters
from slipway.lcm.subscribing import Subscribing
from slipway.lcm.vim_registry import VimRegistry
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.telemetry.watching import Telemetry
from slipway.vim.registry import Drivers

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True)
class Services:
    """`callers` None lets everybody in. `base_url` begins every link, without a slash at its end."""

    database: Database
    vault: Vault
    lcm: Lcm
    onboarding: Onboarding
    vims: VimRegistry
    clusters: StandingClusters
    drivers: Drivers
    subscribing: Subscribing
    callers: Callers | None
    base_url: str
    nfvo_url: str | None = None  # begins the links to grants
    page_size: int = 1000
    max_body_bytes: int = 8 * MIB
    max_package_bytes: int = 20 * GIB
    max_artifacts_bytes: int = GIB  # of all artifacts of a package in one answer
    body_seconds: float = 60.0  # for a body to come, or for the next piece of a package
    version: str = __version__
    telemetry: Telemetry = field(default_factory=Telemetry)
    metrics_public: bool = False  # whether /metrics answers without a token
