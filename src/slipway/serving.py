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
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway import __version__
from slipway.app import Role, Slipway, assemble
from slipway.engine.seam import Boundary
from slipway.engine.worker import Worker
from slipway.lcm.vim_registry import VimRequest
from slipway.model.errors import SettingsError
from slipway.model.vim import SIMULATED
from slipway.notify.sender import Sender
from slipway.server_tls import server_tls
from slipway.setting_files import read_secret
from slipway.settings import Settings
from slipway.telemetry import logs

if TYPE_CHECKING:
    from slipway.access.callers import Callers
    from slipway.http_server import Server

HOUR = 3600.0
FIRST_VIM = "simulated"


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
    tls = server_tls(settings)
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
    settings = slipway.settings
    if role != "worker":
        await _serve_http(slipway, stop, working, tls)
    elif settings.metrics_port is not None:
        await _serve_http(slipway, stop, working, tls, numbers_at=settings.metrics_port)
    else:
        print(f"Slipway {__version__} worker {_id(slipway)} is ready", flush=True)
        async with _sending(slipway, settings.api_address()):
            await stop.wait()
            await _stop_worker(slipway, working)


async def _add_first_vim(slipway: Slipway) -> None:
    """At the very first start, something to try Slipway on."""
    if not (slipway.settings.simulated_path / f"{FIRST_VIM}.db").exists():
        endpoint = {"endpoint": f"sim://{FIRST_VIM}"}
        await slipway.vims.add(VimRequest(name=FIRST_VIM, vim_type=SIMULATED, is_default=True, interface_info=endpoint))


async def _start_worker(slipway: Slipway) -> asyncio.Task[None] | None:
    if slipway.worker is None:
        return None
    await slipway.worker.begin(alone=slipway.is_embedded)
    return asyncio.create_task(_work(slipway, slipway.worker), name="worker")


async def _work(slipway: Slipway, worker: Worker) -> None:
    """The tokens of clusters are looked after where operations are run: it takes the same way to machines."""
    renewing = asyncio.create_task(slipway.cluster_tokens.serve(), name="cluster tokens")
    try:
        await worker.serve()
    finally:
        slipway.cluster_tokens.leave()
        renewing.cancel()
        await asyncio.wait([renewing])


async def _stop_worker(slipway: Slipway, working: asyncio.Task[None] | None) -> None:
    if slipway.worker is not None and working is not None:
        await slipway.worker.leave(slipway.settings.shutdown_seconds)
        await working
        await slipway.reach.close()


async def _serve_http(
    slipway: Slipway,
    stop: asyncio.Event,
    working: asyncio.Task[None] | None,
    tls: ssl.SSLContext | None,
    numbers_at: int | None = None,
) -> None:
    """The whole API; or, at a port of its own, no more than a worker's health and numbers."""
    from slipway.access.callers import Callers
    from slipway.identity import providers

    settings = slipway.settings
    listening = _listen(settings.host, settings.port if numbers_at is None else numbers_at)
    own_port = listening.getsockname()[1]
    url = settings.api_address(own_port if numbers_at is None else None)
    callers = None
    if settings.auth:
        callers = Callers(token_of(settings.token_path), slipway.database, providers(settings))
    ready = f"is ready at {url} (data in {settings.data_dir})"
    if numbers_at is not None:
        ready = f"worker {_id(slipway)} is ready, its numbers at {settings.listens_at(own_port)}/metrics"
    app = _application(slipway, callers, url, whole=numbers_at is None)
    server = _server(slipway, app, f"Slipway {__version__} {ready}", tls)
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


def _application(slipway: Slipway, callers: Callers | None, url: str, *, whole: bool) -> Any:
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
    return make_app(services, whole=whole)


def _server(slipway: Slipway, app: Any, ready: str, tls: ssl.SSLContext | None) -> Server:
    import uvicorn

    from slipway.api.watched import Watched
    from slipway.http_server import BoundedProtocol, Server

    config = uvicorn.Config(
        Watched(app, slipway.telemetry.numbers),
        log_config=None,
        access_log=False,
        http=BoundedProtocol,
        ws="none",
        server_header=False,
        proxy_headers=False,  # what others say of who asks is not believed
        timeout_graceful_shutdown=max(1, int(slipway.settings.shutdown_seconds)),
    )
    return Server(config, ready=ready, tls=tls)


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


def _id(slipway: Slipway) -> str | None:
    return slipway.worker.id if slipway.worker else None


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
    token = read_secret(path, "token_file").strip()
    if len(token) < 16:
        raise SettingsError(f"{path} holds no usable token. Remove it, and a new one is made at the next start.")
    return token
