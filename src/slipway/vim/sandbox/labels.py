"""Names and labels of what the sandbox makes. They are made from ids, and they are all the memory there is."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from slipway.vim.machine_by_machine.arguments import Maker

KIND, ID, NAME = "slipway.kind", "slipway.id", "slipway.name"
INSTANCE, OPERATION = "slipway.instance", "slipway.operation"
VDU, ZONE, HOST_KEY = "slipway.vdu", "slipway.zone", "slipway.host-key"
IMAGE, FLAVOUR = "slipway.image", "slipway.flavour"  # as they were asked for
NETWORK, ADDRESS, MAC = "slipway.network", "slipway.address", "slipway.mac"
PLACE = "slipway.place"  # of a port: the id of its network, as it was asked for
CIDR = "slipway.cidr"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def engine_name(kind: str, id_: str) -> str:
    """The engine's name for a machine, network, port or volume: the same whoever makes it, whenever."""
    return f"slipway-{kind}-{id_ if _PLAIN.fullmatch(id_) else sha256(id_.encode()).hexdigest()}"


def bridge_name(engine_url: str, id_: str) -> str:
    """A device's name has at most 15 characters, and all engines of a host share the names."""
    return f"sw-{sha256(f'{engine_url} {id_}'.encode()).hexdigest()[:10]}"


def hostname(slot: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", slot).strip("-")[:63] or "machine"


def labels(kind: str, id_: str, name: str, maker: Maker, **more: str) -> dict[str, str]:
    return {
        KIND: kind,
        ID: id_,
        NAME: name,
        INSTANCE: maker.instance_id,
        OPERATION: maker.operation_id,
        **{f"slipway.{key.replace('_', '-')}": value for key, value in more.items()},
    }


def of(thing: dict[str, Any]) -> dict[str, str]:
    """The labels of what the engine shows, in a list or alone: a container has them one level down."""
    found = thing.get("Labels") or (thing.get("Config") or {}).get("Labels") or {}
    return dict(found)
