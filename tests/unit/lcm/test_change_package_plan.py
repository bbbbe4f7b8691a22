"""What a change of package wants of the VIM: machines that the new VNFD makes from something else, one by one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.lcm import change_package
from slipway.lcm.planning import plan_on_vim
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.model.descriptor import Aspect, ConnectionPoint, Flavour, Hook, Level
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.operation import OperationType
from slipway.model.package import SoftwareImage
from slipway.model.plan import Plan
from slipway.model.requests import ChangePackageRequest, InstantiateRequest
from slipway.model.situation import Situation
from tests.unit.lcm.situations import DESCRIPTOR, FLAVOUR, PlanningDriver, instantiated, situation

OUTSIDE = ExtVirtualLink(id="out", resource_id="net-1", ext_cps=(VnfExtCpData(cpd_id="worker_ext"),))


WITH_LINK = InstantiateRequest(flavour_id="simple", ext_virtual_links=(OUTSIDE,))


def change(flavour: Flavour, **more: Any) -> Situation:
    instance, _ = instantiated(WITH_LINK)
    now = situation(OperationType.CHANGE_VNFPKG, ChangePackageRequest(vnfd_id="e", **more), instance)
    new = replace(DESCRIPTOR, vnfd_id="e", vnfd_version="2", flavours={"simple": flavour})
    return dataclasses.replace(
        now,
        descriptor=new,
        flavour=flavour,
        flavour_before=FLAVOUR,
        files=frozenset({"Scripts/new.py", "Files/text.txt"}),
        files_before=frozenset({"Scripts/old.sh"}),
    )


def made_from(**vdus: dict[str, Any]) -> Flavour:
    """The flavour with other machines: `master={"flavour": "big"}`."""
    changed = {name: replace(FLAVOUR.vdus[name], **words) for name, words in vdus.items()}
    return replace(FLAVOUR, vdus={**FLAVOUR.vdus, **changed})


def named(*vdus: str) -> dict[str, Any]:
    return {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": name} for name in vdus]}


NEW_IMAGE = {"image": SoftwareImage(id="i", name="system", version="2")}


def plan(now: Situation) -> Plan:
    request: Any = now.request
    driver: Any = PlanningDriver()
    change_package.check(now, request)
    return plan_on_vim(now, instantiated(WITH_LINK)[1], driver, ManagementDrivers([Noop()])).checked()


def test_the_same_machines_are_left_alone() -> None:
    assert plan(change(FLAVOUR)).steps == ()


def test_machines_of_a_vdu_that_differs_are_replaced_one_after_another_with_what_they_hold() -> None:
    steps = plan(change(made_from(worker=NEW_IMAGE))).steps
    assert [(step.id, step.after) for step in steps] == [
        ("remove machine worker-0", ()),
        ("remove machine worker-1", ("make machine worker-0",)),
        ("make machine worker-0", ("remove machine worker-0",)),
        ("make machine worker-1", ("remove machine worker-1",)),
    ]
    assert not any(step.irreversible for step in steps)
    for slot in (0, 1):
        old, new = (step.args["machine"] for step in steps if step.nodes == (f"worker-{slot}",))
        assert old["id"] != new["id"]
        assert new["image"] == "system"
        assert "image" not in old
        ports = [[port["id"] for port in machine["ports"]] for machine in (old, new)]
        assert ports[0] == ports[1]
        assert old["volumes"] == new["volumes"]


@pytest.mark.parametrize(
    "words",
    [
        NEW_IMAGE,
        {"flavour": "m1.big"},
        {"cpus": 8},
        {"memory_bytes": 1 << 33},
        {"disk_bytes": 1 << 33},
        {"boot_data": "#!/bin/sh"},
        {"metadata": {"role": "master"}},
    ],
)
def test_whatever_a_machine_is_made_from_counts(words: dict[str, Any]) -> None:
    assert [step.id for step in plan(change(made_from(master=words))).steps] == [
        "remove machine master-0",
        "make machine master-0",
    ]


def test_vdus_that_others_depend_on_come_first() -> None:
    both: dict[str, dict[str, Any]] = {"master": {**NEW_IMAGE, "depends_on": ("worker",)}, "worker": NEW_IMAGE}
    now = change(made_from(**both))
    request: Any = now.request
    assert change_package.change(now, request).batches == (("worker-0",), ("worker-1",), ("master-0",))
    assert len(plan(now).steps) == 6


def test_vdus_that_are_not_named_stay() -> None:
    flavour = made_from(master=NEW_IMAGE, worker=NEW_IMAGE)
    steps = plan(change(flavour, additional_params=named("master"))).steps
    assert {node for step in steps for node in step.nodes} == {"master-0"}
    assert plan(change(made_from(worker=NEW_IMAGE), additional_params=named("master"))).steps == ()


@pytest.mark.parametrize(("params", "chosen"), [({}, None), (named("master"), {"master"})])
def test_a_vim_without_machines_is_told_which_vdus_are_named(params: dict[str, Any], chosen: set[str] | None) -> None:
    now = change(FLAVOUR, additional_params=params)
    request: Any = now.request
    assert change_package.change(now, request).chosen_vdus == chosen


def test_the_way_of_the_change_is_not_kept_for_later_operations() -> None:
    now = change(FLAVOUR, additional_params={**named("master"), "colour": "red"})
    request: Any = now.request
    assert change_package.parameters_after(now.instance, request) == {"colour": "red"}


@pytest.mark.parametrize("before", [True, False])
def test_machines_of_a_cluster_stay(before: bool) -> None:
    """Also when only one of the two packages says that it is one: its nodes can't be taken away by the VIM alone."""
    new, hook = made_from(worker=NEW_IMAGE), {"heal_end": Hook(operation="heal_end", implementation="kubernetes")}
    now = change(new if before else replace(new, hooks=hook))
    if before:
        now = dataclasses.replace(now, flavour_before=replace(FLAVOUR, hooks=hook))
    request: Any = now.request
    wanted = change_package.change(now, request)
    assert wanted.batches == ()
    assert wanted.renewal.members == frozenset()
    named_one: Any = replace(request, additional_params=named("worker"))
    with pytest.raises(BadRequest, match="vdu_params: the VNF is a cluster"):
        change_package.check(now, named_one)


NEW, OLD = "lcm-operation-coordinate-new-vnf", "lcm-operation-coordinate-old-vnf"
LOGIN = {"cp_name": "worker_cp", "username": "ubuntu", "password": "secret"}


def coordinated(params: dict[str, Any] | None = None, **vdus: dict[str, Any]) -> dict[str, Any]:
    """With the script of the new package, and what it is told of the workers."""
    entries = [{"vdu_id": name, "new_vnfc_param": told} for name, told in vdus.items()] or [{"vdu_id": "worker"}]
    return {NEW: "Scripts/new.py", **({"vdu_params": entries} if params is None else params)}


def entry(**fields: Any) -> dict[str, Any]:
    return {"vdu_params": [{"vdu_id": "master"}, {"vdu_id": "worker", **fields}]}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"upgrade_type": "BlueGreen"}, "upgrade_type: it is 'BlueGreen'; RollingUpdate is the only one"),
        ({"vdu_params": "master"}, "vdu_params: it is a list of objects, each with a vdu_id"),
        ({"vdu_params": ["master"]}, "vdu_params: it is a list of objects"),
        (entry(vdu_id="nobody"), r"vdu_params\[1\].vdu_id: the VNF has no VDU 'nobody'; it has: master, worker"),
        (entry(vdu_id="master"), r"vdu_params\[1\].vdu_id: 'master' is there twice"),
        (entry(timeout=3), r"vdu_params\[1\].timeout: there is no such field; it has: vdu_id, new_vnfc_param"),
        (entry(new_vnfc_param=LOGIN), r"vdu_params\[1\].new_vnfc_param: it is for a script, and .* names none"),
        (coordinated({}, master=LOGIN), r"vdu_params: it is missing"),
        (coordinated(), r"vdu_params\[0\].new_vnfc_param: the script of .*-new-vnf needs it, as an object"),
        (coordinated(worker={**LOGIN, "port": 22}), r"vdu_params\[0\].new_vnfc_param.port: there is no such field"),
        (coordinated(worker={"cp_name": "worker_cp"}), r"vdu_params\[0\].new_vnfc_param.username: it is missing"),
        (
            coordinated(worker={**LOGIN, "cp_name": "master_cp"}),
            r"vdu_params\[0\].new_vnfc_param.cp_name: VDU 'worker' has no connection point 'master_cp'; it has: worker",
        ),
        ({f"{NEW}-class": "Coordinate"}, f"{NEW}-class: a script is a whole file"),
        ({NEW: 3}, f"{NEW}: it must be the path of a script"),
        ({"vdu_params": [{}]}, r"vdu_params\[0\].vdu_id: the VNF has no VDU None"),
    ],
)
def test_parameters_that_cant_be_are_refused_by_name(params: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest, match=f"^additionalParams.{said}"):
        plan(change(made_from(worker=NEW_IMAGE), additional_params=params))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({NEW: "Scripts/nobody.py"}, f"{NEW}: the new package has no file 'Scripts/nobody.py'"),
        ({OLD: "Scripts/new.py"}, f"{OLD}: the present package has no file 'Scripts/new.py'"),
        ({NEW: "Files/text.txt"}, f"{NEW}: 'Files/text.txt' is neither Python"),
    ],
)
def test_scripts_that_cant_be_run_are_refused(params: dict[str, Any], said: str) -> None:
    with pytest.raises(Unprocessable, match=f"^additionalParams.{said}"):
        plan(change(made_from(worker=NEW_IMAGE), additional_params=params))


def test_scripts_come_after_each_vnfc_and_before_the_next_one() -> None:
    params = {**coordinated(worker=LOGIN), OLD: "./Scripts/old.sh"}
    params["vdu_params"][0]["old_vnfc_param"] = LOGIN
    steps = {step.id: step for step in plan(change(made_from(worker=NEW_IMAGE), additional_params=params)).steps}
    assert {id_: step.after for id_, step in steps.items()} == {
        "coordinate worker-0: nothing but its rollback": (),
        "remove machine worker-0": ("coordinate worker-0: nothing but its rollback",),
        "make machine worker-0": ("remove machine worker-0",),
        "coordinate worker-0: Scripts/new.py": ("make machine worker-0",),
        "coordinate worker-1: nothing but its rollback": ("coordinate worker-0: Scripts/new.py",),
        "remove machine worker-1": ("coordinate worker-1: nothing but its rollback",),
        "make machine worker-1": ("remove machine worker-1",),
        "coordinate worker-1: Scripts/new.py": ("make machine worker-1",),
    }
    new = steps["coordinate worker-0: Scripts/new.py"].args
    old = steps["coordinate worker-0: nothing but its rollback"].args
    assert (new["run"]["vnfc"]["id"], old["undo"]["vnfc"]["id"]) == (
        steps["make machine worker-0"].args["machine"]["id"],
        steps["remove machine worker-0"].args["machine"]["id"],
    )
    assert (old["undo"]["vnfd_id"], old["undo"]["language"]) == ("d", "bash")


def test_scripts_are_not_run_for_vnfcs_that_stay() -> None:
    assert plan(change(FLAVOUR, additional_params=coordinated(worker=LOGIN))).steps == ()


def test_another_image_for_a_volume_counts_too() -> None:
    storage = replace(FLAVOUR.storages["data"], image=NEW_IMAGE["image"])
    flavour = replace(FLAVOUR, storages={"data": storage})
    assert len(plan(change(flavour)).steps) == 4
    assert plan(change(flavour, additional_params=named("master"))).steps == ()


def test_a_port_that_the_new_vnfd_adds_is_added_to_the_machines_that_are_there() -> None:
    point = ConnectionPoint(name="master_more", vdu="master", virtual_link="net", order=1)
    flavour = replace(FLAVOUR, connection_points={**FLAVOUR.connection_points, "master_more": point})
    assert [step.id for step in plan(change(flavour)).steps] == ["repair machine master-0"]


def test_the_record_has_the_new_levels_and_keeps_its_networks() -> None:
    aspects = {
        "workers": Aspect(name="workers", max_level=9, deltas={"worker": (1,)}),
        "more": Aspect(name="more", max_level=1),
    }
    now = change(replace(FLAVOUR, aspects=aspects))
    request: Any = now.request
    vnf = change_package.complete(now, request)
    info = vnf.instantiated_vnf_info
    assert info is not None
    assert (vnf.vnfd_id, vnf.vnfd_version) == ("e", "2")
    assert [(one.aspect_id, one.scale_level) for one in info.scale_status] == [("workers", 0), ("more", 0)]
    assert [(one.aspect_id, one.scale_level) for one in info.max_scale_levels] == [("workers", 9), ("more", 1)]
    assert [link.id for link in info.ext_virtual_link_info] == ["out"]


def test_a_network_for_a_new_port_is_taken_and_ports_that_are_there_stay_where_they_are() -> None:
    point = ConnectionPoint(name="worker_more", vdu="worker", order=2)
    flavour = replace(FLAVOUR, connection_points={**FLAVOUR.connection_points, "worker_more": point})
    more = ExtVirtualLink(id="more", resource_id="net-2", ext_cps=(VnfExtCpData(cpd_id="worker_more"),))
    now = change(flavour, ext_virtual_links=(OUTSIDE, more))
    request: Any = now.request
    machines = [step.args["machine"] for step in plan(now).steps]
    assert [[port.get("external_network") for port in machine["ports"]] for machine in machines] == [
        [None, "net-1", "net-2"],
        [None, "net-1", "net-2"],
    ]
    info = change_package.complete(now, request).instantiated_vnf_info
    assert info is not None
    assert [link.id for link in info.ext_virtual_link_info] == ["out", "more"]
    for link in (replace(OUTSIDE, resource_id="net-2"), replace(OUTSIDE, id="other", resource_id="net-2")):
        with pytest.raises(BadRequest, match="a change of the package moves no ports"):
            plan(change(FLAVOUR, ext_virtual_links=(link,)))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Unprocessable, match="has no instantiation level 'small'; it has: tiny"):
        plan(change(replace(FLAVOUR, levels={"tiny": Level(name="tiny")}, default_level="tiny")))
    with pytest.raises(Unprocessable, match="has no aspect 'workers'; it has: none"):
        plan(change(replace(FLAVOUR, aspects={}, levels={"small": Level(name="small")})))
    unknown = replace(OUTSIDE, ext_cps=(VnfExtCpData(cpd_id="nobody's"),))
    with pytest.raises(BadRequest, match='has no connection point "nobody\'s"'):
        plan(change(FLAVOUR, ext_virtual_links=(unknown,)))
