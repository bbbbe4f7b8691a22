"""Names of ConfigMaps and Secrets that are `immutable: true`: other content is another object, under a new name.

So pods of the former version, which may start again at any moment of a rolling change, keep what they were made with,
and a rollback finds it as it was. A name is the manifest's own, or that with the digest of its content at the end,
when the own one is taken by other content. Only what nothing but pods names is renamed: their manifests are rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slipway.vim.kubernetes.manifests import Manifest
from slipway.vim.kubernetes.pod_references import names_outside_of_pods, referenced

LONGEST = 253
SUFFIX = 8  # characters of a digest
CONFIGURATION = ("ConfigMap", "Secret")


def is_configuration(manifest: Manifest) -> bool:
    return manifest.kind in CONFIGURATION and not manifest.group


def may_be_renamed(manifests: Sequence[Manifest]) -> set[tuple[str, str | None, str]]:
    """Kind, namespace and name of those that only pods of the manifests use."""
    immutable = [one for one in manifests if is_configuration(one) and one.content.get("immutable") is True]
    if not immutable:
        return set()
    used = {(kind, one.namespace, name) for one in manifests for kind, name in referenced(one.content)}
    elsewhere = {name for one in manifests for name in names_outside_of_pods(one.content)}
    keys = {one.key for one in immutable}
    return {key for key in keys & used if key[2] not in elsewhere}


def name_for(name: str, id_: str, digest: str, there: Mapping[str, str | None]) -> str:
    """`there`: digests of what stands, by id."""
    other = f"{name[: LONGEST - SUFFIX - 1]}-{digest[:SUFFIX]}"
    if there.get(id_) == digest:
        return name
    return other if id_ in there or f"{id_.removesuffix(name)}{other}" in there else name
