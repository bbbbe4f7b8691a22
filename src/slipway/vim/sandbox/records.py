"""Ports and block volumes as engine volumes: labels are what never changes, a file inside says which machine holds it.

Who holds something is believed only while that machine is there, so that a crash leaves nothing to put right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Address, FoundPort, FoundVolume
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import labels
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.labels import engine_name

PORT, VOLUME = "port", "volume"


class Record:
    """A port or a volume as the engine keeps it."""

    def __init__(self, engine: Engine, thing: dict[str, Any]) -> None:
        self._engine = engine
        self.engine_name = str(thing["Name"])
        self.place = Path(thing["Mountpoint"])
        self.labels = labels.of(thing)
        self.id = self.labels[labels.ID]
        self.kind = self.labels[labels.KIND]
        self.name = self.labels[labels.NAME]

    @property
    def disk(self) -> Path:
        return self.place / "disk.img"

    def said_holder(self) -> str | None:
        """The machine noted last, there or not."""
        try:
            return (self.place / "holder").read_text() or None
        except OSError:
            return None

    def holder(self) -> str | None:
        machine = self.said_holder()
        return machine if machine and self._engine.container(engine_name("machine", machine)) else None

    def give_to(self, machine_id: str | None) -> None:
        part = self.place / "holder.part"
        part.write_text(machine_id or "")
        part.rename(self.place / "holder")

    @property
    def is_retained(self) -> bool:
        return (self.place / "retained").exists()

    def retain(self) -> None:
        self.give_to(None)
        (self.place / "retained").touch()

    def belongs_to(self, instance_id: str) -> bool:
        return self.labels.get(labels.INSTANCE) == instance_id

    def made_by(self, operation_id: str) -> bool:
        return self.labels.get(labels.OPERATION) == operation_id

    def found_port(self) -> FoundPort:
        return FoundPort(
            id=self.id,
            name=self.name,
            resource_id=self.engine_name,
            addresses=(Address(ip=self.labels[labels.ADDRESS]),),
            mac=self.labels[labels.MAC],
            network=self.labels.get(labels.PLACE) or None,
        )

    def found_volume(self) -> FoundVolume:
        return FoundVolume(id=self.id, name=self.name, resource_id=self.engine_name)


def read(engine: Engine, kind: str, id_: str) -> Record | None:
    thing = engine.volume(engine_name(kind, id_))
    return None if thing is None else Record(engine, thing)


def written(engine: Engine, kind: str, id_: str, name: str, maker: Maker, **more: str) -> Record:
    thing = engine.create_volume(engine_name(kind, id_), labels.labels(kind, id_, name, maker, **more))
    return checked(Record(engine, thing), maker.instance_id)


def checked(record: Record, instance_id: str) -> Record:
    if not record.belongs_to(instance_id):
        raise VimError(f"The {record.kind} {record.id} belongs to another instance.", VimFault.PERMANENT)
    return record


def all_of(engine: Engine, instance_id: str) -> list[Record]:
    """Every port and volume of an instance, by id; but for volumes that outlived it."""
    found = (Record(engine, thing) for thing in engine.volumes({labels.INSTANCE: instance_id}))
    return sorted((record for record in found if not record.is_retained), key=lambda record: record.id)
