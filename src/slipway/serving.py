"""Runs Slipway until it is told to stop: API and worker in one process, or each in its own."""

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
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway import __version__
from slipway.app import ProcessRole, Slipway, assemble
from slipway.engine.interfaces import FaultInjector
from slipway.engine.worker import Worker
from slipway.factories import read_secret, server_tls
from slipway.model.errors import SettingsError
from slipway.model.struct_types import build_struct_types
from slipway.model.vim import SIMULATED
from slipway.notify.delivery import NotificationSender
from slipway.settings import Settings
from slipway.telemetry import logs
from slipway.vim_registry.registry import VimRequest

if TYPE_CHECKING:
    from slipway.access.authenticator import Authenticator
    from slipway.http_server import HttpServer

HOUR = 3600.0
AFTER_CANCEL = 0.5  # seconds: steps and requests are cancelled first, so that none takes a broken call for its result
FIRST_VIM = "simulated"


def serve(settings: Settings, role: ProcessRole = "all", fault_injector: FaultInjector | None = None) -> None:
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
    tls = server_tls(settings)
    with _locked(settings.data_dir) if embedded else contextlib.nullcontext():
        slipway = assemble(settings, role, fault_injector)
        build_struct_types()
        try:
            import uvloop

            uvloop.run(_serve(slipway, role, tls))
        finally:
            slipway.close()


async def _serve(slipway: Slipway, role: ProcessRole, tls: ssl.SSLContext | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await slipway.onboarding.recover()
    if slipway.is_embedded:
        await _add_first_vim(slipway)
    working = await _start_worker(slipway)
    settings = slipway.settings
    if role != "worker":
        await _serve_http(slipway, stop, working, tls)
    elif settings.metrics_port is not None:
        await _serve_http(slipway, stop, working, tls, metrics_port=settings.metrics_port)
    else:
        print(f"Slipway {__version__} worker {_worker_id(slipway)} is ready", flush=True)
        async with _delivering_notifications(slipway, settings.api_address()):
            await stop.wait()
            await _ended(slipway, _stop_worker(slipway, working))


async def _add_first_vim(slipway: Slipway) -> None:
    """At the very first start: a simulated VIM to try Slipway on."""
    if not (slipway.settings.simulated_path / f"{FIRST_VIM}.db").exists():
        endpoint = {"endpoint": f"sim://{FIRST_VIM}"}
        await slipway.vims.add(VimRequest(name=FIRST_VIM, vim_type=SIMULATED, is_default=True, interface_info=endpoint))


async def _start_worker(slipway: Slipway) -> asyncio.Task[None] | None:
    if slipway.worker is None:
        return None
    await slipway.worker.take_lease(alone=slipway.is_embedded)
    return asyncio.create_task(_work(slipway, slipway.worker), name="worker")


async def _work(slipway: Slipway, worker: Worker) -> None:
    """Tokens of clusters are renewed, and drift is looked for, where operations run: all connect to VIMs."""
    beside = [
        asyncio.create_task(slipway.cluster_tokens.serve(), name="cluster tokens"),
        asyncio.create_task(slipway.drift_watch.serve(), name="drift watch"),
    ]
    try:
        await worker.serve()
    finally:
        slipway.cluster_tokens.shut_down()
        slipway.drift_watch.shut_down()
        for task in beside:
            task.cancel()
        await asyncio.wait(beside)


async def _stop_worker(slipway: Slipway, working: asyncio.Task[None] | None) -> None:
    if slipway.worker is not None and working is not None:
        await slipway.worker.shut_down(slipway.settings.shutdown_seconds)
        await working
        await slipway.connector.close()


async def _ended(slipway: Slipway, *parts: Awaitable[None]) -> None:
    """All of them have ended. Calls to VIMs that would take longer than the grace period are broken off."""
    ending = asyncio.gather(*parts)
    await asyncio.wait([ending], timeout=slipway.settings.shutdown_seconds + AFTER_CANCEL)
    await asyncio.to_thread(slipway.drivers.close)
    await ending


async def _serve_http(
    slipway: Slipway,
    stop: asyncio.Event,
    working: asyncio.Task[None] | None,
    tls: ssl.SSLContext | None,
    metrics_port: int | None = None,
) -> None:
    """The whole API; or, at a port of its own, no more than a worker's health and metrics."""
    from slipway.access.authenticator import Authenticator
    from slipway.factories import identity_providers

    settings = slipway.settings
    listening = _listen(settings.host, settings.port if metrics_port is None else metrics_port)
    own_port = listening.getsockname()[1]
    url = settings.api_address(own_port if metrics_port is None else None)
    authenticator = None
    if settings.auth:
        authenticator = Authenticator(token_of(settings.token_path), slipway.database, identity_providers(settings))
    ready = f"is ready at {url} (data in {settings.data_dir})"
    if metrics_port is not None:
        ready = f"worker {_worker_id(slipway)} is ready, its metrics at {settings.listens_at(own_port)}/metrics"
    app = _application(slipway, authenticator, url, whole=metrics_port is None)
    server = _server(slipway, app, f"Slipway {__version__} {ready}", tls)
    async with _delivering_notifications(slipway, url) if working else contextlib.nullcontext():
        serving = asyncio.create_task(server.serve([listening]))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await _ended(slipway, serving, _stop_worker(slipway, working))
        await slipway.onboarding.close()
        stopping.cancel()
    if authenticator:
        await authenticator.close()


def _application(slipway: Slipway, authenticator: Authenticator | None, url: str, *, whole: bool) -> Any:
    from slipway.api.application import make_app
    from slipway.api.services import Services

    settings = slipway.settings
    services = Services(
        database=slipway.database,
        vault=slipway.vault,
        lcm=slipway.lcm,
        onboarding=slipway.onboarding,
        vims=slipway.vims,
        clusters=slipway.clusters,
        drivers=slipway.drivers,
        subscription_service=slipway.subscription_service,
        authenticator=authenticator,
        base_url=url,
        nfvo_url=settings.nfvo_url,
        page_size=settings.page_size,
        max_body_bytes=settings.max_body_bytes,
        max_package_bytes=settings.max_package_bytes,
        version=__version__,
        telemetry=slipway.telemetry,
        metrics_public=settings.metrics_public,
    )
    app = make_app(services, whole=whole)
    build_struct_types()  # those that came with the API
    return app


def _server(slipway: Slipway, app: Any, ready: str, tls: ssl.SSLContext | None) -> HttpServer:
    import uvicorn

    from slipway.api.telemetry_middleware import TelemetryMiddleware
    from slipway.http_server import BoundedProtocol, HttpServer

    config = uvicorn.Config(
        TelemetryMiddleware(app, slipway.telemetry.metrics),
        log_config=None,
        access_log=False,
        http=BoundedProtocol,
        ws="none",
        server_header=False,
        proxy_headers=False,  # X-Forwarded-For is not trusted
        timeout_graceful_shutdown=max(1, int(slipway.settings.shutdown_seconds)),
    )
    return HttpServer(config, ready=ready, tls=tls)


@contextlib.asynccontextmanager
async def _delivering_notifications(slipway: Slipway, base_url: str) -> AsyncIterator[None]:
    """Deliver notifications until the block ends."""
    settings = slipway.settings
    sender = NotificationSender(
        slipway.database,
        slipway.vault,
        slipway.notification_client,
        base_url,
        poll=settings.poll_seconds,
        give_up_after=settings.notification_hours * HOUR,
    )
    slipway.telemetry.listeners.append(sender.wake)
    task = asyncio.create_task(sender.serve(), name="sender")
    try:
        yield
    finally:
        await sender.shut_down()
        await task


def _worker_id(slipway: Slipway) -> str | None:
    return slipway.worker.id if slipway.worker else None


def _listen(host: str, port: int) -> socket.socket:
    """Bound before anything else starts, so that a taken port is said at once and port 0 is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise SettingsError(f"Can't listen on {host}:{port}: {error.strerror}. Choose another with --port.") from None


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Lock the data directory: SQLite is for one process, which may take over all it finds there."""
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
    token = read_secret(path, "token_file").strip()
    if len(token) < 16:
        raise SettingsError(f"{path} holds no usable token. Remove it, and a new one is made at the next start.")
    return token
