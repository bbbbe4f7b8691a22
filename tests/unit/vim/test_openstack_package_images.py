"""Which images of a package a stack needs, when they are uploaded, and when they are freed."""

from __future__ import annotations

import dataclasses
from typing import Any

from msgspec.structs import replace

from slipway.model.descriptor import Flavour, Storage
from slipway.model.machine import Found, FoundMachine, FoundObject
from slipway.model.package import Checksum, SoftwareImage
from slipway.model.plan import Plan, Step
from slipway.model.target import Change, Renewal, VnfTarget
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.package_images import image_name
from tests.unit.vim.openstack_hots import GROUPS, INDEXED, groups_flavour, indexed_flavour
from tests.unit.vim.openstack_targets import INSTANCE, fixed, flavour, image, link, target

OLD, NEW, DATA = "a" * 64, "b" * 64, "d" * 64  # digests
UPLOAD, RELEASE = "openstack.upload_image", "openstack.release_images"
USER_DATA = {"lcm-operation-user-data": "./UserData/data.py", "lcm-operation-user-data-class": "Data"}


def carried(digest: str, name: str = "debian") -> SoftwareImage:
    return SoftwareImage(
        id=name, name=name, checksum=Checksum("SHA-256", digest), image_path=f"Files/{name}.img", disk_format="QCOW2",
        container_format="BARE", min_disk=(2 << 30) - 1, min_ram=(512 << 20) + 1,
    )  # fmt: skip


def with_images(made_of: Flavour, **images: SoftwareImage) -> Flavour:
    vdus = {name: replace(vdu, image=images.get(name, vdu.image)) for name, vdu in made_of.vdus.items()}
    return replace(made_of, vdus=vdus)


def one_image(digest: str = OLD, **changes: Any) -> VnfTarget:
    """Both VDUs are made from one file."""
    return target(with_images(flavour(), base=carried(digest), work=carried(digest)), **changes)


def machine(name: str, made_from: str | None) -> FoundMachine:
    vdu = name.rpartition("-")[0]
    return FoundMachine(
        id=f"id of {name}", name=name, vdu=vdu, resource_id=name, ready=True, image=made_from,
        flavour="m1.small" if vdu == "base" else "m1.large",
    )  # fmt: skip


def standing(*images: str) -> tuple[FoundMachine, ...]:
    """base-0, work-0, work-1, made from those; from the first if it is the only one."""
    made_from = images * 3 if len(images) == 1 else images
    return tuple(machine(name, one) for name, one in zip(("base-0", "work-0", "work-1"), made_from, strict=True))


def plan(
    before: VnfTarget | None, after: VnfTarget | None, machines: tuple[FoundMachine, ...] = (), **changes: Any
) -> Plan:
    there = Found(machines=machines, objects=(FoundObject(id="s", kind="OS::Heat::Stack", name="s"),) if before else ())
    change = Change(
        instance_id=INSTANCE, version=1, inventory=Found(machines=machines), before=before, after=after, **changes
    )
    return OpenStackDriver().steps(change, there).checked()


def ids(made: Plan) -> list[str]:
    return [step.id for step in made.steps]


def uploads(made: Plan) -> dict[str, bool]:
    """Digests, and whether the VNF had them before."""
    return {step.args["digest"]: step.args.get("kept", False) for step in made.steps if step.action == UPLOAD}


def release(made: Plan) -> Step | None:
    return next((step for step in made.steps if step.action == RELEASE), None)


def images_told(made: Plan) -> set[str]:
    (step,) = (step for step in made.steps if step.action == "openstack.stack")
    resources = step.args["after"]["template"]["resources"].values()
    return {one["properties"]["image"] for one in resources if "image" in one.get("properties", {})}


def test_a_file_is_uploaded_once_before_the_stack_is_made() -> None:
    made = plan(None, one_image())
    assert ids(made) == ["upload image debian", "make stack"]
    upload, stack = made.steps
    assert stack.after == (upload.id,)
    assert upload.args == {
        "title": "debian", "vnfd_id": "vnfd", "path": "Files/debian.img", "digest": OLD, "disk_format": "qcow2",
        "container_format": "bare", "min_disk": 2, "min_ram": 513,
    }  # fmt: skip
    assert images_told(made) == {image_name(OLD)}
    assert [one.name for one in upload.effects] == ["debian"]


def test_an_image_that_the_package_does_not_carry_is_one_that_glance_has() -> None:
    made = plan(None, target())
    assert ids(made) == ["make stack"]
    assert images_told(made) == {"debian"}


def test_what_a_grant_chose_is_not_uploaded() -> None:
    made = plan(None, one_image(images={"base": "granted", "work": "granted"}))
    assert uploads(made) == {}
    assert images_told(made) == {"granted"}


def test_the_volume_of_a_storage_is_made_from_what_was_granted() -> None:
    data = Storage(name="data", size_bytes=1, image=SoftwareImage(id="data", name="data-image"))
    made = plan(None, target(flavour(storages={"data": data}), images={"data": "granted"}))
    assert images_told(made) == {"debian", "granted"}


def test_files_of_the_same_name_are_told_apart() -> None:
    made = plan(None, target(with_images(flavour(), base=carried(OLD), work=carried(NEW))))
    assert ids(made)[:2] == [f"upload image debian ({OLD[:12]})", f"upload image debian ({NEW[:12]})"]


def test_a_volume_is_made_from_an_image_too() -> None:
    storage = Storage(name="data", size_bytes=1 << 30, image=carried(DATA, "data"))
    made = plan(None, target(flavour(storages={"data": storage})))
    assert uploads(made) == {DATA: False}
    assert images_told(made) == {"debian", image_name(DATA)}


def test_a_scale_makes_sure_of_the_image_and_leaves_it_to_the_vnf_when_it_is_undone() -> None:
    before, after = one_image(), one_image(members=["base-0", "work-0", "work-1", "work-2"])
    made = plan(before, after, standing(image_name(OLD)))
    assert uploads(made) == {OLD: True}
    assert release(made) is None


def test_a_heal_keeps_the_image() -> None:
    before = one_image()
    renewed = tuple(replace(one, id="another") if one.name == "work-1" else one for one in before.members)
    after = dataclasses.replace(before, members=renewed)
    made = plan(before, after, standing(image_name(OLD)), renewal=Renewal(members=frozenset({"id of work-1"})))
    assert uploads(made) == {OLD: True}
    assert release(made) is None


def test_another_package_brings_its_image_and_servers_that_stand_keep_theirs() -> None:
    after = dataclasses.replace(one_image(NEW, members=["base-0", "work-0", "work-1", "work-2"]), vnfd_id="next")
    made = plan(one_image(), after, standing(image_name(OLD)))
    assert uploads(made) == {NEW: False}
    assert images_told(made) == {image_name(OLD), image_name(NEW)}
    assert release(made) is None


def test_the_old_image_is_freed_last_when_no_server_is_made_from_it_any_more() -> None:
    before = one_image(NEW)
    members = tuple(replace(one, id=f"new {one.id}") for one in before.members)
    after = dataclasses.replace(before, members=members)
    everybody = Renewal(members=frozenset(one.id for one in before.members))
    made = plan(before, after, standing(image_name(OLD)), renewal=everybody)
    assert ids(made) == ["upload image debian", "change stack", "release images"]
    last = made.steps[-1]
    assert last.args == {"kept": (NEW,)}
    assert (last.last, last.irreversible, last.after) == (True, True, ("change stack",))


def test_a_change_of_the_package_can_be_rolled_back_until_the_old_image_is_freed() -> None:
    """VNFC by VNFC: both images are there all the time."""
    before = one_image()
    members = tuple(replace(one, id=f"new {one.id}") for one in before.members)
    after = dataclasses.replace(one_image(NEW), vnfd_id="next", members=members)
    renewal = Renewal(members=frozenset(one.id for one in before.members), reversible=True)
    turns = tuple((one.name,) for one in before.members)
    made = plan(before, after, standing(image_name(OLD)), renewal=renewal, batches=turns)
    assert ids(made) == [
        "upload image debian", "change stack (1/3)", "change stack (2/3)", "change stack (3/3)", "release images",
    ]  # fmt: skip
    assert [step.id for step in made.steps if step.irreversible] == ["release images"]
    assert uploads(made) == {NEW: False}


def test_a_termination_frees_them_after_the_stack_is_gone() -> None:
    made = plan(one_image(), None, standing(image_name(OLD)))
    assert ids(made) == ["remove stack", "release images"]
    assert made.steps[1].after == ("remove stack",)
    assert made.steps[1].args == {}


def test_also_when_somebody_else_deleted_the_stack_or_the_package_has_changed_since() -> None:
    gone = Change(instance_id=INSTANCE, version=1, inventory=Found(), before=one_image())
    assert ids(OpenStackDriver().steps(gone, Found())) == ["release images"]
    assert ids(plan(target(), None, standing(image_name(OLD)))) == ["remove stack", "release images"]


def test_also_those_that_only_an_operation_which_failed_has_uploaded() -> None:
    """Neither the record nor the package knows of them: the VNF's tag does."""
    assert ids(plan(target(), None, standing("debian"))) == ["remove stack", "release images"]


def groups(**changes: Any) -> VnfTarget:
    links = (
        link("masterNode_CP1", network="net0"),
        link("workerNode_CP2", network="net0"),
        link("storage_CP", fixed("192.0.2.9"), network="net1"),
    )
    made_of = with_images(groups_flavour(), masterNode=carried(OLD, "master"), workerNode=carried(NEW, "worker"))
    return target(made_of, **{"files": GROUPS, "links": links, "parameters": {"key": "mine"}, **changes})


def told(made: Plan) -> dict[str, Any]:
    (step,) = (step for step in made.steps if step.action == "openstack.stack")
    vdus: dict[str, Any] = step.args["after"]["parameters"]["nfv"]["VDU"]
    return vdus


def test_a_template_of_the_package_is_told_the_images_in_the_names_of_both_forms() -> None:
    made = plan(None, groups())
    assert uploads(made) == {OLD: False, NEW: False}
    assert told(made)["masterNode"]["image"] == told(made)["masterNode"]["vcImageId"] == image_name(OLD)


def test_what_the_template_does_not_ask_for_is_not_uploaded() -> None:
    fixed_image = {path: text.replace("{get_param: [nfv, VDU, masterNode, image]}", "cirros")
                   for path, text in GROUPS.items()}  # fmt: skip
    assert uploads(plan(None, groups(files=fixed_image))) == {NEW: False}


def test_unless_it_hands_all_of_nfv_on() -> None:
    handed_on = {path: text.replace("{get_param: [nfv, VDU, masterNode, image]}", "{get_param: nfv}")
                 for path, text in GROUPS.items()}  # fmt: skip
    assert uploads(plan(None, groups(files=handed_on))) == {OLD: False, NEW: False}


def test_nor_is_what_the_request_has_another_image_for() -> None:
    parameters = {"key": "mine", "nfv": {"VDU": {"masterNode": {"image": "own", "vcImageId": "own"}}}}
    made = plan(None, groups(parameters=parameters, images={"masterNode": "own"}))
    assert uploads(made) == {NEW: False}


def test_copies_of_a_resource_have_images_of_their_own() -> None:
    links = (
        link("VDU1_CP1", *(fixed(f"192.0.2.1{slot}") for slot in range(3)), network="net0"),
        link("VDU2_CP1", network="net1"),
    )
    made_of = with_images(indexed_flavour(), VDU1=carried(NEW))
    after = target(made_of, files=INDEXED, links=links)
    made = plan(None, after)
    assert uploads(made) == {NEW: False}
    assert {one["image"] for key, one in told(made).items() if key.startswith("VDU1")} == {image_name(NEW)}


def test_user_data_may_use_any_image_and_gets_their_names() -> None:
    files = {**GROUPS, "UserData/data.py": "class Data: ..."}
    fixed_image = {path: text.replace("{get_param: [nfv, VDU, masterNode, image]}", "cirros")
                   for path, text in files.items()}  # fmt: skip
    made = plan(None, groups(files=fixed_image, parameters={"key": "mine", **USER_DATA}))
    assert ids(made) == ["upload image master", "upload image worker", "read stack", "run user data", "make stack"]
    run = next(step for step in made.steps if step.id == "run user data")
    assert run.args["images"] == {"masterNode": image_name(OLD), "workerNode": image_name(NEW)}


def test_but_not_those_in_whose_place_a_grant_has_others() -> None:
    files = {**GROUPS, "UserData/data.py": "class Data: ..."}
    made = plan(None, groups(files=files, parameters={"key": "mine", **USER_DATA}, images={"masterNode": "granted"}))
    assert uploads(made) == {NEW: False}
    run = next(step for step in made.steps if step.id == "run user data")
    assert run.args["images"] == {"workerNode": image_name(NEW)}


def test_with_user_data_an_old_image_stays_until_the_termination() -> None:
    """Its code may have left the stack with it."""
    files = {**GROUPS, "UserData/data.py": "class Data: ..."}
    before = groups(files=files, parameters={"key": "mine", **USER_DATA})
    made_of = with_images(before.flavour, masterNode=carried(DATA, "master"))
    after = dataclasses.replace(before, flavour=made_of, vnfd_id="next")
    machines = tuple(machine(one.name, image_name(OLD)) for one in before.members)
    assert release(plan(before, after, machines)) is None
    assert release(plan(after, None, machines)) is not None


def test_an_image_whose_digest_is_of_another_kind_is_as_before() -> None:
    """Of a package that was onboarded when planners knew no digests."""
    other = replace(carried(OLD), checksum=Checksum("SHA-512", "0" * 128))
    assert uploads(plan(None, target(with_images(flavour(), base=other)))) == {}
    assert image("debian").image_path is None
