"""The dependencies of the routes, injected by whoever starts the API."""

from __future__ import annotations

from dataclasses import dataclass, field

from slipway import __version__
from slipway.access.authenticator import Authenticator
from slipway.cluster_access.clusters import RunningClusters
from slipway.lcm.service import Lcm
from slipway.notify.subscription_service import SubscriptionService
from slipway.onboarding.onboarding import Onboarding
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.telemetry.telemetry import Telemetry
from slipway.vim.drivers import Drivers
from slipway.vim_registry.registry import VimRegistry

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True)
class Services:
    """`authenticator` None lets everybody in. `base_url` begins every link, without a slash at its end."""

    database: Database
    vault: Vault
    lcm: Lcm
    onboarding: Onboarding
    vims: VimRegistry
    clusters: RunningClusters
    drivers: Drivers
    subscription_service: SubscriptionService
    authenticator: Authenticator | None
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
