"""Clusters by kubespray that pull from a private registry, on simulated hosts: whatever playbooks come past."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from slipway.cluster.containerd_config import CONTAINERD
from slipway.model.errors import BadRequest
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import ChangePackageRequest, HealRequest, ModifyRequest, ScaleRequest
from tests.functional.cluster_rig import ClusterRig, out
from tests.functional.kubespray_rig import (
    BALANCER,
    KUBESPRAY,
    ansible,
    instantiate,
    inventory_of,
    kubespray_rig,
    parameters,
    server_of,
)
from tests.functional.next_package import OTHER_ID, onboard_next
from tests.functional.registry_rig import (
    CONNECTION,
    PASSWORD,
    SECURE,
    USER,
    a_registry,
    connection,
    created,
    docker_archive,
    host_at,
    onboard_cluster,
    onboard_registry,
)
from tests.functional.rig import SIMULATED_VIM, settings_in

INSTANTIATE, SCALE, HEAL, MODIFY, CHANGE = (
    OperationType.INSTANTIATE, OperationType.SCALE, OperationType.HEAL, OperationType.MODIFY_INFO,
    OperationType.CHANGE_VNFPKG,
)  # fmt: skip
NAME, PARAMETERS = "registry.example.com", "k8s_cluster_installation_param"
NEWER_ID = "6b1a5d0e-3c52-4f0a-9d57-1f5c2c7d8e13"
TOOLS = {"Files/images/tools.tar": docker_archive("registry.example.com/tools/shell:1")}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    async with kubespray_rig(settings_in(tmp_path / "data")) as rig:
        await onboard_registry(rig, tmp_path, TOOLS)
        yield rig


@pytest.fixture
async def registry(rig: ClusterRig, tmp_path: Path) -> dict[str, Any]:
    """A registry with HTTPS and a login at a name that only `hosts_string` knows; the package has its CA."""
    _, told = await a_registry(rig, **SECURE | {"tls": {"names": [NAME]}})
    await onboard_cluster(rig, tmp_path, {"Files/registries/ca.crt": told["ca"].encode()}, KUBESPRAY)
    address, _, port = told["server"].rpartition(":")
    return connection(f"{NAME}:{port}", hosts_string=f"{address} {NAME}")


async def a_cluster(rig: ClusterRig, *registries: dict[str, Any], masters: int = 1, **more: Any) -> str:
    instance_id = await created(rig, OTHER_ID)
    given = {CONNECTION: list(registries)} if registries else {}
    await rig.completed(INSTANTIATE, instance_id, instantiate(masters, **given, **more))
    return instance_id


async def modify(rig: ClusterRig, instance_id: str, registries: list[dict[str, Any]] | None) -> Operation:
    return await rig.rig.run(MODIFY, instance_id, ModifyRequest(vnf_configurable_properties={CONNECTION: registries}))


async def is_connected(rig: ClusterRig, instance_id: str, slot: str, server: str) -> bool:
    """By us: kubespray's own hosts.toml has a mirror, and its configuration no login."""
    files = (await host_at(rig, instance_id, slot)).files
    told = files.get(f"/etc/containerd/certs.d/{server}/hosts.toml")
    found = tomllib.loads(files[CONTAINERD].content.decode())["plugins"]["io.containerd.cri.v1.images"]["registry"]
    login = found.get("configs", {}).get(server, {}).get("auth")
    if told is None or login is None:
        return False
    assert login == {"username": USER, "password": PASSWORD}
    assert files[CONTAINERD].mode == 0o600
    assert tomllib.loads(told.content.decode())["ca"] == f"/etc/containerd/certs.d/{server}/ca.crt"
    assert NAME in files["/etc/hosts"].content.decode()
    return not tomllib.loads(told.content.decode())["host"]


async def connected(rig: ClusterRig, instance_id: str, server: str) -> set[str]:
    nodes = [slot for slot in await rig.machines(instance_id) if "Node" in slot]
    return {slot for slot in nodes if await is_connected(rig, instance_id, slot, server)}


async def test_every_node_pulls_by_https_with_a_login_and_new_nodes_too(
    rig: ClusterRig, registry: dict[str, Any]
) -> None:
    instance_id = await a_cluster(rig, registry)
    assert await connected(rig, instance_id, registry["server"]) == {"masterNode-0", "workerNode-0", "workerNode-1"}
    scaled = await rig.completed(SCALE, instance_id, out())
    steps = [record.id for record in await rig.rig.journal(scaled.id)]
    assert [one for one in steps if one.startswith("connect")] == ["connect registries workerNode-2"]
    assert "workerNode-2" in await connected(rig, instance_id, registry["server"])
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "workerNode-1"))
    await rig.completed(HEAL, instance_id, HealRequest())
    assert len(await connected(rig, instance_id, registry["server"])) == 4


async def test_plain_http_and_several_registries(rig: ClusterRig, registry: dict[str, Any]) -> None:
    _, told = await a_registry(rig)
    plain = {"connection_type": 0, "server": told["server"], "image": "tools/shell:1"}
    instance_id = await a_cluster(rig, registry, plain)
    assert len(await connected(rig, instance_id, registry["server"])) == 3
    files = (await host_at(rig, instance_id, "workerNode-0")).files
    hosts = tomllib.loads(files[f"/etc/containerd/certs.d/{told['server']}/hosts.toml"].content.decode())
    assert hosts["server"] == f"http://{told['server']}"


async def test_a_healed_master_leaves_no_node_without_its_login(rig: ClusterRig, registry: dict[str, Any]) -> None:
    """Masters come back by cluster.yml, which writes containerd's configuration anew on all nodes."""
    instance_id = await a_cluster(rig, registry, masters=3)
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "masterNode-0", "masterNode-1", "workerNode-0"))
    assert len(await connected(rig, instance_id, registry["server"])) == 5


async def test_a_dead_worker_does_not_stop_the_heal_of_a_master(rig: ClusterRig, registry: dict[str, Any]) -> None:
    instance_id = await a_cluster(rig, registry, masters=3)
    await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, (await rig.machines(instance_id))["workerNode-1"])
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "masterNode-2"))
    assert len(await connected(rig, instance_id, registry["server"])) == 5  # the dead one was not reached


async def test_a_healed_balancer_leaves_masters_their_login(rig: ClusterRig, registry: dict[str, Any]) -> None:
    instance_id = await a_cluster(rig, registry, external_lb_param=BALANCER)
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "externalLB-0", "workerNode-1"))
    assert len(await connected(rig, instance_id, registry["server"])) == 3


async def test_an_upgrade_leaves_all_nodes_their_login(
    rig: ClusterRig, registry: dict[str, Any], tmp_path: Path
) -> None:
    instance_id = await a_cluster(rig, registry, kubernetes_version="1.33.13")
    await onboard_next(rig.rig, tmp_path / "cluster", tmp_path / "newer", NEWER_ID)
    named = {PARAMETERS: {"kubernetes_version": "1.34.4"}}
    request = ChangePackageRequest(vnfd_id=NEWER_ID, additional_params=named)
    changed = await rig.completed(CHANGE, instance_id, request)
    steps = [record.id for record in await rig.rig.journal(changed.id)]
    assert len([one for one in steps if one.startswith("connect registries")]) == 3
    assert len(await connected(rig, instance_id, registry["server"])) == 3


async def test_a_modification_reaches_all_nodes_and_what_is_built_later(
    rig: ClusterRig, registry: dict[str, Any]
) -> None:
    instance_id = await a_cluster(rig)
    assert await connected(rig, instance_id, registry["server"]) == set()
    done = await modify(rig, instance_id, [registry])
    assert done.operation_state is State.COMPLETED, done.error
    assert len(await connected(rig, instance_id, registry["server"])) == 3
    await rig.completed(SCALE, instance_id, out())
    assert "workerNode-2" in await connected(rig, instance_id, registry["server"])
    secrets = f"{inventory_of(instance_id)}/group_vars/all/slipway-secrets.yml"
    (told,) = yaml.safe_load(server_of(rig).files[secrets].content)["containerd_registries_mirrors"]
    assert told["prefix"] == registry["server"]
    gone = await modify(rig, instance_id, None)
    assert gone.operation_state is State.COMPLETED, gone.error
    assert await connected(rig, instance_id, registry["server"]) == set()


async def test_a_mistyped_login_reaches_no_node(rig: ClusterRig, registry: dict[str, Any]) -> None:
    instance_id = await a_cluster(rig, registry)
    failed = await modify(rig, instance_id, [registry | {"password": "mistyped"}])
    assert failed.operation_state is State.FAILED_TEMP
    assert failed.error is not None
    assert "(login)" in failed.error.detail
    await rig.rig.slipway.lcm.roll_back(failed.id)
    assert (await rig.rig.rest(failed.id)).operation_state is State.ROLLED_BACK
    assert len(await connected(rig, instance_id, registry["server"])) == 3


async def test_a_modification_with_a_bad_value_is_refused(rig: ClusterRig, registry: dict[str, Any]) -> None:
    instance_id = await a_cluster(rig)
    wrong = registry | {"certificate_path": "Files/none.crt"}
    request = ModifyRequest(vnf_configurable_properties={CONNECTION: [wrong]})
    with pytest.raises(BadRequest, match=rf"{CONNECTION}\[0\].certificate_path: the package has no file"):
        await rig.rig.slipway.lcm.start_operation(MODIFY, instance_id, request)


async def test_a_change_of_package_can_not_change_them_behind_the_nodes_backs(
    rig: ClusterRig, registry: dict[str, Any]
) -> None:
    instance_id = await a_cluster(rig)
    request = ChangePackageRequest(vnfd_id=OTHER_ID, vnf_configurable_properties={CONNECTION: [registry]})
    with pytest.raises(BadRequest, match=f"vnfConfigurableProperties.{CONNECTION}: .* by a modification"):
        await rig.rig.slipway.lcm.start_operation(CHANGE, instance_id, request)


def moved(*registries: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {CONNECTION: list(registries)} if registries else {}
    return parameters(ansible=ansible(ip_address="192.0.2.66"), **given, **more)


def scale_out(additional_params: dict[str, Any]) -> ScaleRequest:
    return replace(out(), additional_params=additional_params)


@pytest.mark.parametrize("modified", [False, True])
async def test_logins_of_registries_go_to_another_ansible_server_only_if_given_again(
    rig: ClusterRig, registry: dict[str, Any], modified: bool
) -> None:
    instance_id = await a_cluster(rig, *(() if modified else (registry,)))
    if modified:
        done = await modify(rig, instance_id, [registry])
        assert done.operation_state is State.COMPLETED, done.error
    with pytest.raises(BadRequest, match=f"give again: {CONNECTION}"):
        await rig.rig.slipway.lcm.start_operation(SCALE, instance_id, scale_out(moved()))
    await rig.completed(SCALE, instance_id, scale_out(moved(registry)))
    assert "workerNode-2" in await connected(rig, instance_id, registry["server"])


async def test_logins_of_a_modification_do_not_follow_to_an_ansible_server_that_stays(
    rig: ClusterRig, registry: dict[str, Any], tmp_path: Path
) -> None:
    """The next operation would send them there, whatever password this request gave."""
    instance_id = await a_cluster(rig, kubernetes_version="1.33.13")
    done = await modify(rig, instance_id, [registry])
    assert done.operation_state is State.COMPLETED, done.error
    await onboard_next(rig.rig, tmp_path / "cluster", tmp_path / "newer", NEWER_ID)
    asked = moved(registry | {"password": "a guess"}, kubernetes_version="1.34.4")
    request = ChangePackageRequest(vnfd_id=NEWER_ID, additional_params=asked)
    with pytest.raises(BadRequest, match="set the property to null"):
        await rig.rig.slipway.lcm.start_operation(CHANGE, instance_id, request)


async def test_logins_of_the_instantiation_do_not_follow_behind_a_modification(
    rig: ClusterRig, registry: dict[str, Any], tmp_path: Path
) -> None:
    """They count again when the modification's are set to null."""
    instance_id = await a_cluster(rig, registry, kubernetes_version="1.33.13")
    done = await modify(rig, instance_id, [])
    assert done.operation_state is State.COMPLETED, done.error
    await onboard_next(rig.rig, tmp_path / "cluster", tmp_path / "newer", NEWER_ID)
    request = ChangePackageRequest(vnfd_id=NEWER_ID, additional_params=moved(kubernetes_version="1.34.4"))
    with pytest.raises(BadRequest, match=f"give again: {CONNECTION}"):
        await rig.rig.slipway.lcm.start_operation(CHANGE, instance_id, request)
