"""Arguments of a registry's steps: all that is known when a plan is made. `given` are the request's own words."""

from __future__ import annotations

from typing import Any

from slipway.cluster.spec import Node, StepArguments


class OnRegistry(StepArguments, frozen=True, kw_only=True):
    """`given` is `private_registry_installation_param`; secrets in it are references."""

    node: Node
    given: dict[str, Any]


class InstallRegistry(OnRegistry, frozen=True, kw_only=True):
    """The registry's program, or a container engine and the registry's image."""


class MountVolume(OnRegistry, frozen=True, kw_only=True):
    """The volume that the images are kept on; `volume` is the storage's name in the VNFD."""

    volume: str


class ServeImages(OnRegistry, frozen=True, kw_only=True):
    """`authority`: that of a certificate which was made before: its certificate, and its key as a reference."""

    authority: dict[str, Any] | None = None


class LoadArchive(OnRegistry, frozen=True, kw_only=True):
    """All images of one archive of the package."""

    path: str
