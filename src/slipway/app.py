"""Puts Slipway together from its settings. Nothing runs yet; serving.py does that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from cryptography import x509

from slipway.cluster.driver import KubernetesDriver
from slipway.cluster.reach import SshReach
from slipway.cluster.reaches import ReachByVim
from slipway.cluster.simulated.reach import SimulatedReach
from slipway.cluster.steps.liveness import Limits
from slipway.cluster.steps.world import World
from slipway.engine.seam import Boundary
from slipway.engine.worker import Worker
from slipway.lcm.cluster_tokens import ClusterTokens
from slipway.lcm.clusters import Clusters, PackageFiles
from slipway.lcm.front import Lcm
from slipway.lcm.grants import Grants
from slipway.lcm.hook_check import check_hooks
from slipway.lcm.lifecycle import RecordedLifecycle
from slipway.lcm.onboarding import Onboarding
from slipway.lcm.package_download import Bounds
from slipway.lcm.package_records import hide_clear_secrets
from slipway.lcm.project_limits import ProjectLimits
from slipway.lcm.script_world import RecordedScriptWorld
from slipway.lcm.standing_clusters import StandingClusters
from slipway.lcm.subscribing import Subscribing
from slipway.lcm.vim_registry import VimRegistry
from slipway.mgmt.drivers import ManagementDriver, ManagementDrivers, Noop
from slipway.mgmt.scripts import Scripts
from slipway.mgmt.walls import Walls
from slipway.notify.calling import Calling
from slipway.outside.guard import Guard
from slipway.own_certificate import caller_of_subscribers
from slipway.package.signature import UnsignedPolicy
from slipway.settings import Settings
from slipway.store import subscriptions
from slipway.store.database import Database
from slipway.store.migrate import upgrade
from slipway.store.secrets import Vault
from slipway.telemetry.numbers import Gauge
from slipway.telemetry.watching import Telemetry, telemetry_for
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.registry import Drivers
from slipway.vim.sandbox.driver import SandboxDriver
from slipway.vim.simulated.driver import SimulatedDriver

Role = Literal["all", "api", "worker"]

DAY = 86400.0
HOUR = 3600.0
FIRST_VIM = "simulated"
SHORTEST_IDLE = 5.0  # seconds inside a transaction: a process that is merely slow keeps its session


@dataclass(frozen=True)
class Slipway:
    """All parts, put together. Nothing runs yet."""

    settings: Settings
    database: Database
    vault: Vault
    drivers: Drivers
    simulated: SimulatedDriver
    sandbox: SandboxDriver
    reach: ReachByVim
    clusters: StandingClusters
    cluster_tokens: ClusterTokens
    lcm: Lcm
    onboarding: Onboarding
    vims: VimRegistry
    calling: Calling
    subscribing: Subscribing
    worker: Worker | None
    telemetry: Telemetry

    @property
    def is_embedded(self) -> bool:
        """Alone with its database: the lock on the data directory says so."""
        return self.database.is_sqlite

    def close(self) -> None:
        self.simulated.close()
        self.reach.simulated.close()
        self.sandbox.close()
        self.database.close()
        self.telemetry.close()


def assemble(
    settings: Settings,
    role: Role = "all",
    boundary: Boundary | None = None,
    management_drivers: Sequence[ManagementDriver] = (),
    liveness: Limits | None = None,
    simulated_driver: type[SimulatedDriver] = SimulatedDriver,
) -> Slipway:
    """Open the store, bring it up to date, and connect the parts. `liveness`: when a machine counts as dead."""
    telemetry = telemetry_for(settings.traces_endpoint)
    database = Database(settings.database, idle_seconds=max(settings.lease_seconds, SHORTEST_IDLE))
    upgrade(database)
    vault = Vault(settings.key_path)
    hide_clear_secrets(database, vault, settings.secret_parameters)
    simulated = simulated_driver(settings.simulated_path)
    sandbox = SandboxDriver(
        settings.sandbox_path,
        on=settings.sandbox_is_on(listens=role != "worker"),
        sockets=settings.sandbox_sockets,
    )
    guard = Guard.from_settings(settings, listens=role != "worker")
    drivers = Drivers([simulated, sandbox, KubernetesVimDriver(guard=guard), OpenStackDriver(guard)])
    names = settings.secret_parameters
    calling = caller_of_subscribers(settings, guard)
    telemetry.collectors["notifications"] = partial(_notifications, database)
    project_limits = ProjectLimits(
        packages=settings.max_project_packages,
        package_bytes=settings.max_project_package_bytes,
        subscriptions=settings.max_project_subscriptions,
        vims=settings.max_project_vims,
    )
    vims = VimRegistry(database, vault, drivers, names, project_limits)
    reach = ReachByVim(SshReach(), SimulatedReach(settings.simulated_path))
    files = PackageFiles(database, settings.packages_path)
    world = World(reach, Clusters(vims), files, drivers, liveness or Limits())
    kubernetes = KubernetesDriver(world)
    clusters = StandingClusters(database, vault, world, (kubernetes.name, *kubernetes.aliases))
    scripts = Scripts(RecordedScriptWorld(database, settings.packages_path), _walls(settings))
    management = ManagementDrivers([Noop(), kubernetes, *management_drivers], scripts)
    actions = {**drivers.actions(), **management.actions()}
    grants = None
    if settings.nfvo_url:
        from slipway.orchestrator import nfvo

        own = settings.api_address()
        grants = Grants(nfvo(settings, settings.nfvo_url), database, vault, drivers, names, own)
    lifecycle = RecordedLifecycle(database, vault, drivers, management, names, grants)
    worker = None
    if role != "api":
        worker = Worker(
            database,
            lifecycle,
            actions,
            lease=settings.lease_seconds,
            poll=settings.poll_seconds,
            operations_at_once=settings.operations_at_once,
            steps_at_once=settings.steps_at_once,
            retention=settings.journal_retention_days * DAY,
            boundary=boundary,
            watch=telemetry,
        )
        telemetry.collectors["worker"] = partial(_slots, worker)
    return Slipway(
        settings=settings,
        database=database,
        vault=vault,
        drivers=drivers,
        simulated=simulated,
        sandbox=sandbox,
        lcm=Lcm(
            database,
            vault,
            lifecycle,
            drivers,
            management,
            bell=worker,
            secret_names=names,
            watch=telemetry,
        ),
        onboarding=Onboarding(
            database,
            settings.packages_path,
            vault,
            secret_names=names,
            project_limits=project_limits,
            policy=UnsignedPolicy(settings.unsigned_packages),
            trust=_trusted(settings.trusted_certificates),
            check=partial(check_hooks, management=management),
            guard=guard,
            bounds=Bounds(size=settings.max_package_bytes),
        ),
        vims=vims,
        calling=calling,
        subscribing=Subscribing(
            database, vault, guard, calling, test=settings.callback_test, project_limits=project_limits
        ),
        clusters=clusters,
        cluster_tokens=ClusterTokens(database, vims, clusters),
        reach=reach,
        worker=worker,
        telemetry=telemetry,
    )


def _walls(settings: Settings) -> Walls:
    return Walls(
        user=settings.script_user,
        seconds=settings.script_seconds,
        memory_bytes=settings.script_memory_bytes,
        network=settings.script_network,
    )


async def _notifications(database: Database) -> list[Gauge]:
    pending, failing = await database.read(subscriptions.counts)
    return [
        Gauge("slipway_notifications_pending", "Notifications that wait to be delivered.", {(): pending}),
        Gauge("slipway_subscribers_failing", "Subscribers that did not answer the last time.", {(): failing}),
    ]


async def _slots(worker: Worker) -> list[Gauge]:
    """How busy this process's worker is."""
    return [
        Gauge("slipway_steps_waiting", "Steps of this process that wait for a slot.", {(): worker.slots.waiting}),
        Gauge("slipway_steps_running", "Steps of this process that have a slot.", {(): worker.slots.taken}),
    ]


def _trusted(directory: Path | None) -> list[x509.Certificate]:
    """Every certificate in the *.pem files of a directory."""
    if directory is None:
        return []
    return [
        certificate
        for file in sorted(directory.glob("*.pem"))
        for certificate in x509.load_pem_x509_certificates(file.read_bytes())
    ]
