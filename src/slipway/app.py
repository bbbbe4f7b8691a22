"""Puts Slipway together from its settings. Nothing runs yet; serving.py does that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from cryptography import x509
from prometheus_client import Metric

from slipway.cluster.checks import check_cluster
from slipway.cluster.cluster_api.credentials import WorkloadClusters
from slipway.cluster.cluster_api.driver import ClusterApiDriver
from slipway.cluster.cluster_api.steps import WorkloadDependencies
from slipway.cluster.connectors import ConnectorByVim, SshConnector
from slipway.cluster.driver import KubernetesDriver
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.liveness import LivenessLimits
from slipway.cluster_access.clusters import RunningClusters
from slipway.cluster_access.token_renewal import ClusterTokens
from slipway.cluster_access.workload_clusters import WorkloadAccess
from slipway.engine.interfaces import FaultInjector
from slipway.engine.worker import Worker
from slipway.factories import notification_client
from slipway.kubespray.checks import check_kubespray_cluster
from slipway.kubespray.driver import KubesprayDriver
from slipway.lcm.drift_watch import DriftWatch
from slipway.lcm.grants import Grants
from slipway.lcm.operation_handler import LcmOperationHandler
from slipway.lcm.script_data import RecordedScriptData, WorkloadKubeconfigs
from slipway.lcm.service import Lcm
from slipway.lcm.vim_moves import missing_there
from slipway.load_balancer.cluster_context import ClusterContexts
from slipway.load_balancer.cnf_driver import CnfNodePortDriver
from slipway.load_balancer.cnf_steps import CnfSteps
from slipway.load_balancer.records import BalancerRecords
from slipway.load_balancer.steps import BalancerSteps
from slipway.mgmt.drivers import ManagementDriver, ManagementDrivers, Noop
from slipway.mgmt.script_limits import ScriptLimits
from slipway.mgmt.scripts import Scripts
from slipway.mgmt.user_data import UserDataScripts
from slipway.model.vim import SANDBOX, SIMULATED
from slipway.notify.client import NotificationClient
from slipway.notify.subscription_service import SubscriptionService
from slipway.onboarding.download import DownloadLimits
from slipway.onboarding.onboarding import Onboarding
from slipway.onboarding.package_files import PackageFiles
from slipway.onboarding.records import hide_clear_secrets
from slipway.outgoing.guard import Guard
from slipway.package.signature import UnsignedPolicy
from slipway.registry.driver import RegistryDriver
from slipway.settings import Settings
from slipway.simulator.cluster.connector import SimulatedConnector
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.store import subscriptions
from slipway.store.database import Database
from slipway.store.migrate import upgrade
from slipway.store.project_limits import ProjectLimits
from slipway.store.secrets import Vault
from slipway.telemetry.metrics import gauge
from slipway.telemetry.telemetry import Telemetry, telemetry_for
from slipway.vim.contract import VimDriver
from slipway.vim.drivers import Drivers
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.sandbox.driver import SandboxDriver
from slipway.vim_registry.clusters import RegisteredClusters
from slipway.vim_registry.registry import VimRegistry

ProcessRole = Literal["all", "api", "worker"]

DAY = 86400.0
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
    connector: ConnectorByVim
    simulated_connector: SimulatedConnector
    clusters: RunningClusters
    cluster_tokens: ClusterTokens
    drift_watch: DriftWatch
    lcm: Lcm
    onboarding: Onboarding
    vims: VimRegistry
    notification_client: NotificationClient
    subscription_service: SubscriptionService
    worker: Worker | None
    telemetry: Telemetry

    @property
    def is_embedded(self) -> bool:
        """Alone with its database: the lock on the data directory says so."""
        return self.database.is_sqlite

    def close(self) -> None:
        self.drivers.close()
        self.simulated_connector.close()
        self.database.close()
        self.telemetry.close()


def assemble(
    settings: Settings,
    role: ProcessRole = "all",
    fault_injector: FaultInjector | None = None,
    management_drivers: Sequence[ManagementDriver] = (),
    liveness: LivenessLimits | None = None,
    simulated_driver: type[SimulatedDriver] = SimulatedDriver,
    vim_drivers: Sequence[VimDriver] = (),
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
    kubernetes_vims = KubernetesVimDriver(guard=guard, helm=settings.helm_program)
    drivers = Drivers([simulated, sandbox, kubernetes_vims, OpenStackDriver(guard), *vim_drivers])
    names = settings.secret_parameters
    client = notification_client(settings, guard)
    telemetry.collectors["notifications"] = partial(_notifications, database)
    project_limits = ProjectLimits(
        packages=settings.max_project_packages,
        package_bytes=settings.max_project_package_bytes,
        subscriptions=settings.max_project_subscriptions,
        vims=settings.max_project_vims,
    )
    vims = VimRegistry(database, vault, drivers, partial(missing_there, drivers), names, project_limits)
    simulated_connector = SimulatedConnector(settings.simulated_path)
    # The sandbox is run by this host: its machines are on bridges of this host, whatever networks are allowed.
    connector = ConnectorByVim(SshConnector(guard), {SIMULATED: simulated_connector, SANDBOX: SshConnector()})
    files = PackageFiles(database, settings.packages_path)
    registered = RegisteredClusters(vims)
    deps = Dependencies(connector, registered, files, drivers, liveness or LivenessLimits())
    kubernetes = KubernetesDriver(deps)
    kubespray = KubesprayDriver(deps)
    checks = {
        **dict.fromkeys((kubernetes.name, *kubernetes.aliases), check_cluster),
        **dict.fromkeys((kubespray.name, *kubespray.aliases), check_kubespray_cluster),
    }
    clusters = RunningClusters(database, vault, deps, checks)
    script_data, script_limits = RecordedScriptData(database, settings.packages_path), _script_limits(settings)
    workload_clusters = WorkloadClusters(kubernetes_vims.api)
    cluster_api = ClusterApiDriver(WorkloadDependencies(workload_clusters, script_data, registered, guard))
    scripts = Scripts(script_data, script_limits, WorkloadKubeconfigs(workload_clusters))
    user_data = UserDataScripts(script_data, script_limits)
    balancers, contexts = BalancerRecords(database), ClusterContexts(database, vault)
    cnf_steps = CnfSteps(deps, balancers, contexts, script_data, kubernetes_vims.api)
    cnf_nodeport = CnfNodePortDriver(cnf_steps, BalancerSteps(deps, balancers))
    built_in = (Noop(), kubernetes, kubespray, cluster_api, RegistryDriver(deps), cnf_nodeport)
    management = ManagementDrivers([*built_in, *management_drivers], scripts)
    actions = {**drivers.actions(), **management.actions(), **{one.name: one for one in user_data.actions}}
    grants = None
    if settings.nfvo_url:
        from slipway.factories import nfvo_client

        own = settings.api_address()
        grants = Grants(nfvo_client(settings, settings.nfvo_url), database, vault, drivers, names, own)
    handler = LcmOperationHandler(database, vault, drivers, management, names, grants, files=files)
    drift_watch = DriftWatch(database, handler.drift, drivers.reporting_drift, settings.drift_seconds)
    worker = None
    if role != "api":
        worker = Worker(
            database,
            handler,
            actions,
            lease=settings.lease_seconds,
            poll=settings.poll_seconds,
            operations_at_once=settings.operations_at_once,
            steps_at_once=settings.steps_at_once,
            retention=settings.journal_retention_days * DAY,
            fault_injector=fault_injector,
            observer=telemetry,
        )
        telemetry.collectors["worker"] = partial(_slots, worker)
        telemetry.collectors["drift"] = drift_watch.metrics
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
            handler,
            drivers,
            management,
            notifier=worker,
            secret_names=names,
            observer=telemetry,
        ),
        onboarding=Onboarding(
            database,
            settings.packages_path,
            vault,
            secret_names=names,
            project_limits=project_limits,
            policy=UnsignedPolicy(settings.unsigned_packages),
            trust=_trusted(settings.trusted_certificates),
            check=management.check_hooks,
            guard=guard,
            download_limits=DownloadLimits(max_bytes=settings.max_package_bytes),
        ),
        vims=vims,
        notification_client=client,
        subscription_service=SubscriptionService(
            database, vault, guard, client, test=settings.callback_test, project_limits=project_limits
        ),
        clusters=clusters,
        cluster_tokens=ClusterTokens(
            database, vims, clusters, WorkloadAccess(database, vault, workload_clusters, guard)
        ),
        drift_watch=drift_watch,
        connector=connector,
        simulated_connector=simulated_connector,
        worker=worker,
        telemetry=telemetry,
    )


def _script_limits(settings: Settings) -> ScriptLimits:
    return ScriptLimits(
        user=settings.script_user,
        seconds=settings.script_seconds,
        memory_bytes=settings.script_memory_bytes,
        network=settings.script_network,
    )


async def _notifications(database: Database) -> list[Metric]:
    pending, failing = await database.read(subscriptions.counts)
    return [
        gauge("slipway_notifications_pending", "Notifications that wait to be delivered.", {(): pending}),
        gauge("slipway_subscribers_failing", "Subscribers that did not answer the last time.", {(): failing}),
    ]


async def _slots(worker: Worker) -> list[Metric]:
    """How busy this process's worker is."""
    return [
        gauge("slipway_steps_waiting", "Steps of this process that wait for a slot.", {(): worker.slots.waiting}),
        gauge("slipway_steps_running", "Steps of this process that have a slot.", {(): worker.slots.taken}),
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
