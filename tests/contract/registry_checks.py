"""What nodes say of registries, once they are prepared."""

from __future__ import annotations

from typing import Any

from slipway.cluster.containerd_config import CONTAINERD
from slipway.cluster.steps import registries
from slipway.cluster.steps.arguments import CheckRegistries, ConnectRegistries
from slipway.cluster.steps.machine import address_of
from tests.contract.cluster_world import Check, Stage, refused

SECRET = 'let "me" in'


def asked(stage: Stage, server: str, **more: Any) -> CheckRegistries:
    registry = {"connection_type": 1, "server": server, "username": "me", "password": SECRET, **more}
    return CheckRegistries(node=stage.worker, cluster=stage.cluster, registries=(registry,))


async def a_registry_whose_name_nobody_knows_is_told(stage: Stage) -> None:
    call = registries.check(stage.world, asked(stage, "registry.invalid:5000"), stage.ctx)
    words = ("workerNode-0 can't use the registry registry.invalid:5000 (name resolution)", "hosts_string")
    error = await refused(call, *words, temporary=True)
    assert SECRET not in error.detail


async def a_registry_that_does_not_run_is_told(stage: Stage) -> None:
    server = f"{await address_of(stage.master, stage.ctx)}:5999"
    words = (f"workerNode-0 can't use the registry {server} (connection)",)
    await refused(registries.check(stage.world, asked(stage, server), stage.ctx), *words, temporary=True)
    named = asked(stage, "registry.invalid:5999", hosts_string=f"{server.rpartition(':')[0]} registry.invalid")
    await refused(registries.check(stage.world, named, stage.ctx), "(connection)", temporary=True)


async def a_node_is_not_changed_by_what_it_can_not_use(stage: Stage) -> None:
    host = await stage.host(stage.worker)
    before = await host.get(CONTAINERD, sudo=True)
    wanted = asked(stage, "registry.invalid:5000")
    connect = ConnectRegistries(node=stage.worker, cluster=stage.cluster, registries=wanted.registries)
    await refused(registries.connect(stage.world, connect, stage.ctx), "(name resolution)", temporary=True)
    nothing = ConnectRegistries(node=stage.worker, cluster=stage.cluster, registries=(), former=())
    await registries.connect(stage.world, nothing, stage.ctx)
    await registries.disconnect(stage.world, nothing, stage.ctx)
    assert await host.get(CONTAINERD, sudo=True) == before
    assert await host.get("/etc/containerd/certs.d/registry.invalid:5000/hosts.toml", sudo=True) is None


REGISTRY_CHECKS: tuple[Check, ...] = (
    a_registry_whose_name_nobody_knows_is_told,
    a_registry_that_does_not_run_is_told,
    a_node_is_not_changed_by_what_it_can_not_use,
)
