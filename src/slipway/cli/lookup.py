"""Finding what a person names: by id, or by a name that must mean one thing only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from slipway.cli.errors import ItemNotFound, Refused
from slipway.cli.paths import INSTANCES, PACKAGES, equals, item_path

if TYPE_CHECKING:
    from slipway.cli.client import Client, Response

GONE = 404
# A list leaves out the user defined data, where a package's name is, unless it is told what to leave out.
NAMED = {"exclude_fields": "softwareImages,additionalArtifacts"}


def find_vnf(client: Client, name: str) -> Response:
    """The whole instance with its ETag."""
    if _is_id(name) and (answer := _by_id(client, INSTANCES, name)):
        return answer
    found = list(client.pages(INSTANCES, equals(vnfInstanceName=name)))
    return client.get(item_path(INSTANCES, _only(found, "VNF instance", name, "slipway vnf list")["id"]))


def find_package(client: Client, name: str) -> dict[str, Any]:
    """By its id, its VNFD's id, or the name it was uploaded with."""
    if _is_id(name) and (answer := _by_id(client, PACKAGES, name)):
        package: dict[str, Any] = answer.body
        return package
    found = [
        package
        for package in client.pages(PACKAGES, NAMED)
        if name in (package.get("vnfdId"), (package.get("userDefinedData") or {}).get("name"))
    ]
    return _only(found, "package", name, "slipway package list")


def _by_id(client: Client, collection: str, name: str) -> Response | None:
    try:
        return client.get(item_path(collection, name))
    except Refused as error:
        if error.status == GONE:
            return None
        raise


def _only(found: list[dict[str, Any]], kind: str, name: str, listing: str) -> dict[str, Any]:
    if not found:
        raise ItemNotFound(f"There is no {kind} {name!r}. `{listing}` shows what there is.")
    if len(found) > 1:
        ids = ", ".join(str(one["id"]) for one in found)
        raise ItemNotFound(f"{len(found)} {kind}s have the name {name!r}: {ids}. Name one by its id.")
    return found[0]


def _is_id(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
