"""Which objects a change of ConfigMaps and Secrets alone is about: those, and the workloads whose pods use them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slipway.model.errors import Unprocessable
from slipway.model.target import CONFIGURATION_PATHS
from slipway.vim.kubernetes.immutable_names import is_configuration
from slipway.vim.kubernetes.pod_references import referenced
from slipway.vim.kubernetes.wanted import WantedObject


def configuration_and_users(
    wanted: Sequence[WantedObject], stale: Sequence[WantedObject], paths: Collection[str]
) -> list[WantedObject]:
    """Of what is not as it should be. Unprocessable names a file that has nothing of the kind."""
    configuration = [one for one in wanted if one.path in paths and is_configuration(one.manifest)]
    if without := sorted(set(paths) - {one.path for one in configuration}):
        raise Unprocessable(
            f"metadata.{CONFIGURATION_PATHS}: {without[0]!r} has neither a ConfigMap nor a Secret; leave it out, or "
            "change the package of the VNF (change_vnfpkg)."
        )
    chosen = {one.id for one in configuration}
    keys = {one.manifest.key for one in stale if one.id in chosen}
    return [one for one in stale if one.id in chosen or _uses(one, keys)]


def has_same_key(former: WantedObject, chosen: Sequence[WantedObject]) -> bool:
    """Whether one of them takes its place, under a new name."""
    return former.manifest.key in {one.manifest.key for one in chosen}


def _uses(one: WantedObject, keys: Collection[tuple[str, str | None, str]]) -> bool:
    namespace = one.manifest.namespace
    return any((kind, namespace, name) in keys for kind, name in referenced(one.manifest.content))
