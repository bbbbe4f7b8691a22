"""Which engine a sandbox uses: the one named, else one that is there, else one of our own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.image.build import cached_image
from slipway.vim.sandbox.locks import Locks
from slipway.vim.sandbox.paths import SandboxPaths
from slipway.vim.sandbox.service import Service

USUAL_SOCKETS = (Path("/run/podman/podman.sock"), Path("/run/docker.sock"))


class Engines:
    """The engines of a process, each opened once."""

    def __init__(
        self,
        paths: SandboxPaths,
        environment: Mapping[str, str] = os.environ,
        sockets: tuple[Path, ...] = USUAL_SOCKETS,
    ) -> None:
        self.paths = paths
        self.service = Service(paths)
        self._environment, self._sockets = environment, sockets
        self._open: dict[str, Engine] = {}

    def operations(self, endpoint: str) -> EngineOperations:
        """On a running engine; started if it is ours to start."""
        url = self.url(endpoint)
        if url == self.service.url:
            self.service.start()
        return EngineOperations(self._engine(url), Locks(self.paths.runtime.parent / "locks"), self.paths)

    def url(self, endpoint: str) -> str:
        """The engine's socket. Nothing is started."""
        if endpoint != LOCAL:
            if not Path(endpoint.removeprefix("unix://")).is_socket():
                raise VimError(f"There is no engine at {endpoint}.", VimFault.PERMANENT, cure="slipway sandbox check")
            return endpoint
        if self.service.process():
            return self.service.url
        if named := self._environment.get("DOCKER_HOST"):
            return named
        return next((f"unix://{one}" for one in self._sockets if one.is_socket()), self.service.url)

    @property
    def image_file(self) -> Path:
        """The machine image outside the engine, made or not."""
        return cached_image(self.paths.cache)

    def close(self) -> None:
        for engine in self._open.values():
            engine.close()
        self._open.clear()

    def _engine(self, url: str) -> Engine:
        if url not in self._open:
            self._open[url] = self.make(url)
        return self._open[url]

    def make(self, url: str) -> Engine:
        return Engine(url)
