"""Puts Slipway together from its settings, and runs it: API and worker in one process, or each in its own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from cryptography import x509

from slipway import __version__
from slipway.cluster.driver import KubernetesDriver
from slipway.cluster.reach import SshReach
from slipway.cluster.reaches import ReachByVim
from slipway.cluster.simulated.reach import SimulatedReach
from slipway.cluster.steps.world import World
from slipway.engine.seam import Boundary
from slipway.engine.worker import Worker
from slipway.lcm.clusters import Clusters, PackageFiles
from slipway.lcm.front import Lcm
from slipway.lcm.grants import Grants
from slipway.lcm.hook_check import check_hooks
from slipway.lcm.lifecycle import RecordedLifecycle
from slipway.lcm.onboarding import Onboarding
from slipway.lcm.package_download import Bounds
from slipway.lcm.script_world import RecordedScriptWorld
from slipway.lcm.standing_clusters import StandingClusters
from slipway.lcm.subscribing import Subscribing
from slipway.lcm.vim_registry import VimRegistry, VimRequest
from slipway.mgmt.drivers import ManagementDriver, ManagementDrivers, Noop
from slipway.mgmt.scripts import Scripts
from slipway.mgmt.walls import Walls
from slipway.model.errors import SettingsError
from slipway.model.vim import SIMULATED
from slipway.notify.calling import Calling
from slipway.notify.sender import Sender
from slipway.outside.guard import Guard
from slipway.own_certificate import caller_of_subscribers
from slipway.package.signature import UnsignedPolicy
from slipway.server_tls import server_tls
from slipway.settings import Settings
from slipway.store import subscriptions
from slipway.store.database import Database
from slipway.store.migrate import upgrade
from slipway.store.secrets import Vault
from slipway.telemetry import logs
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
) -> Slipway:
    """Open the store, bring it up to date, and connect the parts."""
    telemetry = telemetry_for(settings.traces_endpoint)
    database = Database(settings.database)
    upgrade(database)
    vault = Vault(settings.key_path)
    simulated = SimulatedDriver(settings.simulated_path)
    sandbox = SandboxDriver(settings.sandbox_path)
    guard = Guard.from_settings(settings, listens=role != "worker")
    drivers = Drivers([simulated, sandbox, KubernetesVimDriver(guard=guard), OpenStackDriver(guard)])
    names = settings.secret_parameters
    calling = caller_of_subscribers(settings, guard)
    telemetry.collectors["notifications"] = partial(_notifications, database)
    vims = VimRegistry(database, vault, drivers, names)
    reach = ReachByVim(SshReach(), SimulatedReach(settings.simulated_path))
    world = World(reach, Clusters(vims), PackageFiles(database, settings.packages_path))
    kubernetes = KubernetesDriver(world)
    scripts = Scripts(RecordedScriptWorld(database, settings.packages_path), _walls(settings))
    management = ManagementDrivers([Noop(), kubernetes, *management_drivers], scripts)
    actions = {**drivers.actions(), **management.actions()}
    grants = None
    if settings.nfvo_url:
        from slipway.orchestrator import nfvo

        own = settings.base_url or _address(settings.host, settings.port, tls=settings.tls_certificate is not None)
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
            actions,
            bell=worker,
            secret_names=names,
            watch=telemetry,
        ),
        onboarding=Onboarding(
            database,
            settings.packages_path,
            policy=UnsignedPolicy(settings.unsigned_packages),
            trust=_trusted(settings.trusted_certificates),
            check=partial(check_hooks, management=management),
            guard=guard,
            bounds=Bounds(size=settings.max_package_bytes),
        ),
        vims=vims,
        calling=calling,
        subscribing=Subscribing(database, vault, guard, calling, test=settings.callback_test),
        clusters=StandingClusters(database, vault, world, (kubernetes.name, *kubernetes.aliases)),
        reach=reach,
        worker=worker,
        telemetry=telemetry,
    )


def _walls(settings: Settings) -> Walls:
    return Walls(
        user=settings.script_user,
        seconds=settings.script_seconds,
        memory_bytes=settings.script_memory_bytes,
        isolation=settings.script_isolation,
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


def serve(settings: Settings, role: Role = "all", boundary: Boundary | None = None) -> None:
    """Run until SIGTERM or SIGINT."""
    logs.set_up(settings.log_level, settings.log_format, sys.stderr)
    os.umask(0o077)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    embedded = settings.database.startswith("sqlite")
    if embedded and role != "all":
        raise SettingsError(
            f"`slipway {role}` runs beside other processes and needs PostgreSQL: set database_url. "
            "With SQLite use `slipway serve`, which is API and worker in one process."
        )
    tls = None if role == "worker" else server_tls(settings)
    with _alone_with(settings.data_dir) if embedded else contextlib.nullcontext():
        slipway = assemble(settings, role, boundary)
        try:
            import uvloop

            uvloop.run(_serve(slipway, role, tls))
        finally:
            slipway.close()


async def _serve(slipway: Slipway, role: Role, tls: ssl.SSLContext | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await slipway.onboarding.recover()
    if slipway.is_embedded:
        await _add_first_vim(slipway)
    working = await _start_worker(slipway)
    if role == "worker":
        print(f"Slipway {__version__} worker {slipway.worker and slipway.worker.id} is ready", flush=True)
        settings = slipway.settings
        async with _sending(slipway, settings.base_url or _address(settings.host, settings.port)):
            await stop.wait()
            await _stop_worker(slipway, working)
        return
    await _serve_http(slipway, stop, working, tls)


async def _add_first_vim(slipway: Slipway) -> None:
    """At the very first start, something to try Slipway on."""
    if not (slipway.settings.simulated_path / f"{FIRST_VIM}.db").exists():
        endpoint = {"endpoint": f"sim://{FIRST_VIM}"}
        await slipway.vims.add(VimRequest(name=FIRST_VIM, vim_type=SIMULATED, is_default=True, interface_info=endpoint))


def _trusted(directory: Path | None) -> list[x509.Certificate]:
    """Every certificate in the *.pem files of a directory."""
    if directory is None:
        return []
    return [
        certificate
        for file in sorted(directory.glob("*.pem"))
        for certificate in x509.load_pem_x509_certificates(file.read_bytes())
    ]


async def _start_worker(slipway: Slipway) -> asyncio.Task[None] | None:
    if slipway.worker is None:
        return None
    await slipway.worker.begin(alone=slipway.is_embedded)
    return asyncio.create_task(slipway.worker.serve(), name="worker")


async def _stop_worker(slipway: Slipway, working: asyncio.Task[None] | None) -> None:
    if slipway.worker is not None and working is not None:
        await slipway.worker.leave(slipway.settings.shutdown_seconds)
        await working
        await slipway.reach.close()


async def _serve_http(
    slipway: Slipway, stop: asyncio.Event, working: asyncio.Task[None] | None, tls: ssl.SSLContext | None
) -> None:
    import uvicorn

    from slipway.access.callers import Callers
    from slipway.api.application import make_app
    from slipway.api.services import Services
    from slipway.api.watched import Watched
    from slipway.http_server import BoundedProtocol, Server
    from slipway.identity import providers

    settings = slipway.settings
    listening = _listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    url = settings.base_url or _address(settings.host, port, tls=tls is not None)
    callers = None
    if settings.auth:
        callers = Callers(token_of(settings.token_path), slipway.database, providers(settings))
    app = make_app(
        Services(
            database=slipway.database,
            vault=slipway.vault,
            lcm=slipway.lcm,
            onboarding=slipway.onboarding,
            vims=slipway.vims,
            clusters=slipway.clusters,
            drivers=slipway.drivers,
            subscribing=slipway.subscribing,
            callers=callers,
            base_url=url,
            nfvo_url=settings.nfvo_url,
            page_size=settings.page_size,
            max_body_bytes=settings.max_body_bytes,
            max_package_bytes=settings.max_package_bytes,
            version=__version__,
            telemetry=slipway.telemetry,
            metrics_public=settings.metrics_public,
        )
    )
    server = Server(
        uvicorn.Config(
            Watched(app, slipway.telemetry.numbers),
            log_config=None,
            access_log=False,
            http=BoundedProtocol,
            ws="none",
            server_header=False,
            proxy_headers=False,  # what others say of who asks is not believed
            timeout_graceful_shutdown=max(1, int(settings.shutdown_seconds)),
        ),
        ready=f"Slipway {__version__} is ready at {url} (data in {settings.data_dir})",
        tls=tls,
    )
    async with _sending(slipway, url) if working else contextlib.nullcontext():
        serving = asyncio.create_task(server.serve([listening]))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await asyncio.gather(serving, _stop_worker(slipway, working))
        await slipway.onboarding.close()
        stopping.cancel()
    if callers:
        await callers.close()


@contextlib.asynccontextmanager
async def _sending(slipway: Slipway, base_url: str) -> AsyncIterator[None]:
    """Deliver notifications meanwhile."""
    settings = slipway.settings
    sender = Sender(
        slipway.database,
        slipway.vault,
        slipway.calling,
        base_url,
        poll=settings.poll_seconds,
        give_up_after=settings.notification_hours * HOUR,
    )
    slipway.telemetry.listeners.append(sender.wake)
    task = asyncio.create_task(sender.serve(), name="sender")
    try:
        yield
    finally:
        await sender.leave()
        await task


def _address(host: str, port: int, *, tls: bool = False) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    """Bound before anything else starts, so that a taken port is said at once and port 0 is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise SettingsError(f"Can't listen on {host}:{port}: {error.strerror}. Choose another with --port.") from None


@contextmanager
def _alone_with(data_dir: Path) -> Iterator[None]:
    """Hold the data directory: SQLite is for one process, and that process may take over all it finds there."""
    with (data_dir / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                f"Another Slipway uses {data_dir}. Stop it, choose another --data-dir, or use PostgreSQL."
            ) from None
        yield


def token_of(path: Path) -> str:
    """The access token, made at the first start."""
    try:
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:  # noqa: PTH123 - by descriptor
            file.write(secrets.token_urlsafe(32) + "\n")
    except FileExistsError:
        pass
    token = path.read_text().strip()
    if len(token) < 16:
        raise SettingsError(f"{path} holds no usable token. Remove it, and a new one is made at the next start.")
    return token
