"""Flavours of a cluster VNF to check parameters against: one master, and several."""

from __future__ import annotations

from slipway.model.descriptor import Aspect, ConnectionPoint, Flavour, Level, Storage, Vdu, VirtualLink

_POINTS = {
    "masterNode_CP1": ConnectionPoint(name="masterNode_CP1", vdu="masterNode", virtual_link="net"),
    "masterNode_CP9": ConnectionPoint(name="masterNode_CP9", vdu="masterNode"),
    "workerNode_CP2": ConnectionPoint(name="workerNode_CP2", vdu="workerNode", virtual_link="net"),
    "storage_server_CP": ConnectionPoint(name="storage_server_CP", vdu="storage_server", virtual_link="net"),
}


def flavour(masters: int = 1, cidr: str | None = "10.10.0.0/24", workers: int = 2) -> Flavour:
    return Flavour(
        id="simple",
        vdus={
            "masterNode": Vdu(name="masterNode", initial=masters, maximum=7),
            "workerNode": Vdu(name="workerNode", initial=workers, maximum=workers + 2),
            "storage_server": Vdu(name="storage_server", initial=1, storages=("storage_server_volume",)),
            "proxy": Vdu(name="proxy", container=True),
        },
        connection_points=_POINTS,
        storages={"storage_server_volume": Storage(name="storage_server_volume", kind="block", size_bytes=1 << 30)},
        virtual_links={"net": VirtualLink(name="net", cidr=cidr)},
        aspects={
            "master_instance": Aspect(name="master_instance", max_level=2, deltas={"masterNode": (1,)}),
            "worker_instance": Aspect(name="worker_instance", max_level=2, deltas={"workerNode": (1,)}),
            "both": Aspect(name="both", max_level=1, deltas={"masterNode": (0,), "workerNode": (0,)}),
            "none": Aspect(name="none", max_level=1),
        },
        levels={"large": Level(name="large", scale={"worker_instance": 2}, counts={"workerNode": 4})},
    )
