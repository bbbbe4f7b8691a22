"""Plans of clusters with a storage server: who waits for whom."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster import plans, storage_plan
from slipway.lcm.hook_ordering import with_hooks
from slipway.model.descriptor import Aspect
from slipway.model.errors import BadRequest, PackageError, Unprocessable
from slipway.model.hooks import Edges
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import AnyRequest, HealRequest, InstantiateRequest, ScaleRequest, ScaleType
from slipway.model.situation import PlanningSituation
from slipway.model.target import PackageFile
from tests.unit.cluster.cluster_situations import (
    DRIVER,
    Slots,
    earlier,
    parameters,
    renewed,
    situation,
    slots,
    vim_steps,
)
from tests.unit.cluster.documents import VOLUMES
from tests.unit.cluster.test_persistent_volumes import manifest

BOTH: Edges = frozenset({"start", "end"})
STORAGE = {key: VOLUMES[key] for key in ("storage_server", "pv_registration_params", "proxy")}
SERVER = "storage_server-0"
SERVE = f"serve NFS {SERVER}"
TEMPLATE = b"""
heat_template_version: "2021-04-16"
resources:
  storage_server: {type: "OS::Nova::Server"}
  NAME: {type: "OS::Cinder::Volume"}
"""


def with_server(workers: int = 2) -> dict[str, str]:
    return {**slots(1, workers), SERVER: f"old-{SERVER}"}


def given() -> dict[str, Any]:
    plain = parameters(1)
    return {name: {**value, **STORAGE} for name, value in plain.items()}


def stored(kind: OperationType, request: AnyRequest, before: Slots, after: Slots, **more: bytes) -> PlanningSituation:
    now = situation(kind, request, before, after, 1)
    files = {f"Files/kubernetes/nfs-pv{at}.yaml": manifest(at).encode() for at in (1, 2, 3)}
    files |= {path.replace("__", "/").replace("_yaml", ".yaml"): content for path, content in more.items()}
    loaded = {path: PackageFile(content=content, digest="") for path, content in files.items()}
    assert now.change.after is not None
    change = dataclasses.replace(now.change, after=dataclasses.replace(now.change.after, files=loaded))
    instance = replace(now.instance, parameters=given())
    return dataclasses.replace(now, change=change, instance=instance, files=frozenset(files))


def test_for_a_cluster_without_a_storage_server_nothing_is_read_to_find_its_files() -> None:
    unreadable = {"k8s_cluster_installation_param": {"nobody_knows": 1}}
    request = InstantiateRequest(flavour_id="simple", additional_params=unreadable)
    now = situation(OperationType.INSTANTIATE, request, {}, slots(1, 2), 1)
    assert not DRIVER.names_template(now)
    assert DRIVER.package_files(now) == ()


def planned(name: str, now: PlanningSituation) -> Plan:
    DRIVER.check(now)
    return with_hooks(DRIVER.plan(name, BOTH, now), vim_steps(now)).checked()


def instantiate(**more: bytes) -> Plan:
    request = InstantiateRequest(flavour_id="simple", additional_params=given())
    return planned("instantiate", stored(OperationType.INSTANTIATE, request, {}, with_server(), **more))


def heal(*healed: str) -> Plan:
    before = with_server()
    request = HealRequest(vnfc_instance_id=tuple(f"vnfc-{slot}" for slot in healed))
    return planned("heal", stored(OperationType.HEAL, request, before, renewed(before, *(healed or before))))


def test_the_server_is_set_up_beside_the_cluster_and_its_volumes_come_before_the_vim() -> None:
    plan = instantiate()
    assert earlier(plan, SERVE) == {f"make machine {SERVER}", f"mount volumes {SERVER}"}
    assert "ready workerNode-1" in earlier(plan, "NFS client workerNode-1")
    clients = {f"NFS client {slot}" for slot in slots(1, 2)}
    assert {SERVE, plans.SMOKE, *clients} <= earlier(plan, storage_plan.REGISTER)
    assert storage_plan.REGISTER in earlier(plan, plans.REGISTER)


def test_the_plan_says_which_volumes_there_will_be() -> None:
    (register,) = (step for step in instantiate().steps if step.id == storage_plan.REGISTER)
    assert [effect.name for effect in register.effects] == ["pv1", "pv2", "pv3"]


def test_the_volumes_leave_before_the_machine_does_and_come_back_last() -> None:
    plan = heal(SERVER)
    gone = earlier(plan, f"remove machine {SERVER}")
    assert gone == {storage_plan.CHECK, storage_plan.DELETE}
    assert f"remove machine {SERVER}" in earlier(plan, f"mount volumes {SERVER}")
    assert SERVE in earlier(plan, storage_plan.REGISTER)
    assert not [step.id for step in plan.steps if "Node-" in step.id]


def test_a_rollback_can_serve_them_again_through_the_proxy() -> None:
    """The machine that it makes again may have to fetch the NFS server once more."""
    steps = {step.id: step for step in heal(SERVER).steps}
    proxy = steps[SERVE].args["setup"]["proxy"]
    assert proxy["http_proxy"]
    assert steps[storage_plan.DELETE].args["setup"]["proxy"] == proxy


def test_a_rollback_serves_what_was_served_before_and_not_what_the_heal_said() -> None:
    before, said = with_server(), given()["k8s_cluster_installation_param"]
    exports = said["storage_server"]["nfs_server_setup_params"]
    fewer = {
        "storage_server": {"nfs_server_setup_params": exports[:1]},
        "pv_registration_params": said["pv_registration_params"][:1],
    }
    request = HealRequest(
        vnfc_instance_id=(f"vnfc-{SERVER}",), additional_params={"k8s_cluster_installation_param": fewer}
    )
    now = stored(OperationType.HEAL, request, before, renewed(before, SERVER))
    assert len(DRIVER.package_files(now)) == len(said["pv_registration_params"])
    steps = {step.id: step for step in planned("heal", now).steps}
    gone, back = steps[storage_plan.DELETE].args, steps[storage_plan.REGISTER].args
    assert (len(gone["volumes"]), len(gone["exports"])) == (len(said["pv_registration_params"]), len(exports))
    assert (len(back["volumes"]), len(steps[SERVE].args["exports"])) == (1, 1)


def test_nodes_that_are_healed_with_it_leave_when_nobody_uses_the_volumes() -> None:
    assert storage_plan.CHECK in earlier(heal("workerNode-1", SERVER), "drain workerNode-1")


def test_a_healed_node_serves_again_when_it_can_mount_them() -> None:
    hooks = DRIVER.plan("heal", BOTH, stored(
        OperationType.HEAL, HealRequest(vnfc_instance_id=("vnfc-workerNode-1",)), with_server(),
        renewed(with_server(), "workerNode-1"),
    ))  # fmt: skip
    (batch,) = (batch for rollout in hooks.rollouts for batch in rollout)
    assert batch.back == ("ready workerNode-1", "NFS client workerNode-1")
    assert {step.id for step in hooks.start.steps} == {"drain workerNode-1"}


def test_a_whole_heal_asks_nothing_of_the_old_cluster() -> None:
    ids = {step.id for step in heal().steps}
    assert not {storage_plan.CHECK, storage_plan.DELETE} & ids
    assert {SERVE, storage_plan.REGISTER, "NFS client masterNode-0"} <= ids


def test_a_scale_out_touches_the_new_node_alone() -> None:
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="worker_instance")
    plan = planned("scale", stored(OperationType.SCALE, request, with_server(), with_server(3)))
    assert {step.nodes for step in plan.steps} == {("workerNode-2",)}
    assert plan.steps[-1].id == "NFS client workerNode-2"


def test_the_storage_server_is_not_scaled() -> None:
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="servers")
    now = stored(OperationType.SCALE, request, with_server(), with_server())
    aspect = Aspect(name="servers", max_level=1, deltas={"storage_server": (1,)})
    scalable = replace(now.flavour, aspects={**now.flavour.aspects, "servers": aspect})
    with pytest.raises(BadRequest, match="aspectId: 'servers' scales the storage server"):
        DRIVER.check(dataclasses.replace(now, flavour=scalable))


def test_a_template_without_the_volume_is_refused_before_anything_is_made() -> None:
    path = "BaseHOT__simple__top_yaml"
    assert instantiate(**{path: TEMPLATE.replace(b"NAME", b"storage_server_volume")}).steps
    with pytest.raises(
        Unprocessable, match=r"BaseHOT/simple/top.yaml has no OS::Cinder::Volume 'storage_server_volume'"
    ):
        instantiate(**{path: TEMPLATE.replace(b"NAME", b"other")})


def test_a_manifest_that_is_wrong_is_refused_before_anything_is_made() -> None:
    request = InstantiateRequest(flavour_id="simple", additional_params=given())
    now = stored(OperationType.INSTANTIATE, request, {}, with_server(), Files__kubernetes__x=b"")
    files = {path: file for path, file in now.change.after.files.items() if "pv3" not in path}  # type: ignore[union-attr]
    files["Files/kubernetes/nfs-pv3.yaml"] = PackageFile(content=manifest(2).encode(), digest="")
    after = dataclasses.replace(now.change.after, files=files)  # type: ignore[type-var]
    with pytest.raises(PackageError, match="another one of that name"):
        DRIVER.plan("instantiate", BOTH, dataclasses.replace(now, change=dataclasses.replace(now.change, after=after)))
