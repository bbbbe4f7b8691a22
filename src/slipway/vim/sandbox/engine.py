"""The engine's calls that the sandbox needs, each with an end to its time, and each error in its class.

Podman and Docker answer the same calls. The `docker` package is imported when the first call is made.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.labels import of as labels_of
from slipway.vim.sandbox.specification import Endpoint, Specification, docker_container, docker_host, podman_form

if TYPE_CHECKING:
    from docker import APIClient

CALL_SECONDS = 60.0
COPY_ATTEMPTS = 3  # Podman 4.3 breaks the pipe of one copy in some 200 under load
Thing = dict[str, Any]


class Engine:
    """One engine. Its methods block; they are called in threads, and each thread has a client of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._mine = threading.local()
        self._clients: list[APIClient] = []

    def _api(self, what: str) -> Any:  # the package answers with plain JSON
        client: APIClient | None = getattr(self._mine, "client", None)
        if client is None:
            import docker

            with translated(what):
                client = docker.APIClient(base_url=self.url, version="auto", timeout=int(CALL_SECONDS))
            self._mine.client = client
            self._clients.append(client)
        return client

    def close(self) -> None:
        while self._clients:
            self._clients.pop().close()
        self._mine = threading.local()

    def version(self) -> tuple[str, str]:
        """Which engine, and its version."""
        api = self._api("say its version")
        with translated("say its version"):
            said: Thing = dict(api.version())
        first = (said.get("Components") or [{"Name": "Engine", "Version": said.get("Version", "?")}])[0]
        return str(first["Name"]), str(first["Version"])

    @cached_property
    def is_podman(self) -> bool:
        return "podman" in self.version()[0].lower()

    def has_image(self, image: str) -> bool:
        api = self._api("look for an image")
        with translated(f"look for image {image}"), absent() as there:
            api.inspect_image(image)
            there.append(True)
        return bool(there)

    def image_labels(self, image: str) -> dict[str, str]:
        """None when there is no such image, either."""
        api = self._api("look for an image")
        with translated(f"look for image {image}"), absent() as there:
            there.append(labels_of(api.inspect_image(image)))
        return dict(there[0]) if there else {}

    def import_image(self, file: Path, image: str, labels: Mapping[str, str]) -> None:
        api = self._api("import an image")
        with translated(f"import {file.name}"):
            changes = [f"LABEL {key}={value}" for key, value in labels.items()]
            api.import_image_from_file(str(file), repository=image, changes=changes)

    def remove_nameless_images(self) -> None:
        """Those whose name a newer one has taken, unless a machine still stands on them."""
        api = self._api("remove old images")
        with translated("remove old images"):
            api.prune_images({"dangling": True})

    def container(self, name: str) -> Thing | None:
        api = self._api("look for a machine")
        with translated(f"look for {name}"), absent() as there:
            there.append(api.inspect_container(name))
        return there[0] if there else None

    def containers(self, labels: Mapping[str, str]) -> list[Thing]:
        api = self._api("list machines")
        with translated("list machines"):
            return _with(labels, api.containers(all=True, filters=_filters(labels)))

    def create_container(self, spec: Specification) -> None:
        """Made and plugged in, not started."""
        api = self._api("make a machine")
        with translated(f"make {spec.name}"):
            if self.is_podman:
                url = f"{api.base_url}/v4.0.0/libpod/containers/create"
                api._raise_for_status(api.post(url, json=podman_form(spec), timeout=CALL_SECONDS))
                return
            first = {end.network: _endpoint(api, end) for end in spec.endpoints[:1]}
            api.create_container(
                spec.image,
                host_config=api.create_host_config(**docker_host(spec)),
                networking_config=api.create_networking_config(first) if first else None,
                **docker_container(spec),
            )
        for end in spec.endpoints[1:]:  # Docker takes them all at once only from API 1.44 on
            self.connect(spec.name, end)

    def put(self, name: str, archive: bytes) -> None:
        """Unpack a tar archive at a container's root."""
        api = self._api("copy files")
        for attempt in range(COPY_ATTEMPTS):
            try:
                with translated(f"copy files into {name}"):
                    api.put_archive(name, "/", archive)
                return
            except VimError as error:
                if attempt == COPY_ATTEMPTS - 1 or not error.temporary:
                    raise

    def start(self, name: str) -> None:
        api = self._api("start a machine")
        with translated(f"start {name}"):
            api.start(name)

    def unpause(self, name: str) -> None:
        api = self._api("let a machine go on")
        with translated(f"let {name} go on"):
            api.unpause(name)

    def kill(self, name: str) -> None:
        """As a power cut does it."""
        api = self._api("kill a machine")
        with translated(f"kill {name}"):
            api.kill(name)

    def stop(self, name: str, seconds: int) -> None:
        api = self._api("stop a machine")
        with translated(f"stop {name}"), absent():
            api.stop(name, timeout=seconds)

    def remove_container(self, name: str) -> None:
        """With what only it could see; nothing when it is gone already."""
        api = self._api("remove a machine")
        with translated(f"remove {name}"), absent():
            api.remove_container(name, v=True, force=True)

    def execute(self, name: str, command: list[str]) -> tuple[int, str]:
        """Exit code and output of a short command in a running container."""
        api = self._api("run a command")
        with translated(f"run {command[0]} in {name}"):
            made = api.exec_create(name, command)
            output = api.exec_start(made["Id"])
            code = api.exec_inspect(made["Id"])["ExitCode"]
        return int(code), bytes(output).decode(errors="replace")

    def logs(self, name: str, lines: int) -> str:
        api = self._api("read logs")
        with translated(f"read logs of {name}"):
            return bytes(api.logs(name, tail=lines)).decode(errors="replace")

    def network(self, name: str) -> Thing | None:
        api = self._api("look for a network")
        with translated(f"look for {name}"), absent() as there:
            there.append(api.inspect_network(name))
        return there[0] if there else None

    def networks(self, labels: Mapping[str, str] | None = None) -> list[Thing]:
        api = self._api("list networks")
        with translated("list networks"):
            return _with(labels or {}, api.networks(filters=_filters(labels or {})))

    def create_network(self, name: str, subnet: str, gateway: str, bridge: str, labels: Mapping[str, str],
                       *, internal: bool) -> None:  # fmt: skip
        from docker.types import IPAMConfig, IPAMPool

        api = self._api("make a network")
        with translated(f"make {name} with range {subnet}"):
            api.create_network(
                name,
                driver="bridge",
                internal=internal,
                labels=dict(labels),
                options={"com.docker.network.bridge.name": bridge},
                ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet, gateway=gateway)]),
            )

    def remove_network(self, name: str) -> None:
        api = self._api("remove a network")
        with translated(f"remove {name}"), absent():
            api.remove_network(name)

    def connect(self, container: str, end: Endpoint) -> None:
        api = self._api("plug a port")
        with translated(f"plug {container} into {end.network}"):
            api.connect_container_to_network(container, end.network, ipv4_address=end.address, mac_address=end.mac)

    def disconnect(self, container: str, network: str) -> None:
        api = self._api("unplug a port")
        with translated(f"unplug {container} from {network}"), absent():
            api.disconnect_container_from_network(container, network, force=True)

    def volume(self, name: str) -> Thing | None:
        api = self._api("look for a record")
        with translated(f"look for {name}"), absent() as there:
            there.append(dict(api.inspect_volume(name)))
        return there[0] if there else None

    def volumes(self, labels: Mapping[str, str]) -> list[Thing]:
        api = self._api("list records")
        with translated("list records"):
            said: Thing = dict(api.volumes(filters=_filters(labels)))
        return _with(labels, said["Volumes"] or ())

    def create_volume(self, name: str, labels: Mapping[str, str]) -> Thing:
        """The one there is, when there is one."""
        api = self._api("make a record")
        with translated(f"make {name}"):
            return dict(api.create_volume(name, labels=dict(labels)))

    def remove_volume(self, name: str) -> None:
        api = self._api("remove a record")
        with translated(f"remove {name}"), absent():
            api.remove_volume(name, force=True)


def _endpoint(api: Any, end: Endpoint) -> Any:
    return api.create_endpoint_config(ipv4_address=end.address, mac_address=end.mac)


def _filters(labels: Mapping[str, str]) -> dict[str, list[str]]:
    return {"label": [f"{key}={value}" if value else key for key, value in labels.items()]} if labels else {}


def _with(labels: Mapping[str, str], things: Iterable[Thing]) -> list[Thing]:
    """Those that have all labels: Podman is content with any of them. An empty value stands for every one."""
    return [
        thing
        for thing in things
        if all(key in (found := labels_of(thing)) and value in ("", found[key]) for key, value in labels.items())
    ]


@contextmanager
def absent() -> Iterator[list[Any]]:
    """What isn't there is no error; the block notes what was."""
    import docker

    found: list[Any] = []
    try:
        yield found
    except docker.errors.NotFound:
        return


@contextmanager
def translated(what: str) -> Iterator[None]:
    """The package's errors as the contract's."""
    import docker
    import requests

    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise VimError(f"The engine could not {what}: {error.explanation}.", VimFault.PERMANENT,
                       cure="slipway sandbox image build") from None  # fmt: skip
    except docker.errors.APIError as error:
        said = str(error.explanation or error)
        raise VimError(f"The engine could not {what}: {said}.", _fault(error.status_code, said)) from None
    except requests.exceptions.Timeout:
        raise VimError(f"The engine did not {what} within {CALL_SECONDS:.0f} s.", VimFault.TEMPORARY) from None
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        denied = "Permission denied" in str(error)
        raise VimError(
            f"The engine could not be asked to {what}: {error}.",
            VimFault.AUTH if denied else VimFault.TEMPORARY,
            cure="slipway sandbox check",
        ) from None


_FULL = ("no space left", "disk quota", "no free ip", "too many open files", "resource temporarily unavailable")
_HOPELESS = ("already allocated", "address already in use", "invalid", "not in any subnet", "not supported", "overlap")


def _fault(status: int | None, said: str) -> VimFault:
    """Podman answers 500 to nearly everything; the words tell more."""
    words = said.lower()
    if status in (401, 403):
        return VimFault.AUTH
    if any(part in words for part in _FULL):
        return VimFault.QUOTA
    if status == 400 or any(part in words for part in _HOPELESS):
        return VimFault.PERMANENT
    return VimFault.TEMPORARY
