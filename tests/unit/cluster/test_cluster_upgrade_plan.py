"""An upgrade's plan: whose turn it is, who waits for whom, which versions may follow each other."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster.request import read_request
from slipway.cluster.upgrade import HOOK, RECORD, wanted_version
from slipway.model.descriptor import Hook
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.json_documents import merge_patch
from slipway.model.operation import OperationType
from slipway.model.package import SoftwareImage
from slipway.model.plan import Plan
from slipway.model.requests import ChangePackageRequest
from slipway.model.situation import PlanningSituation
from tests.unit.cluster.cluster_situations import DRIVER, earlier, situation, slots

OLD = "1.33.13"
SCRIPT = {"script_path": "Scripts/install.sh"}
FILES = {
    "kind": "files",
    "files": [
        {"name": name, "url": f"https://files.example/{name}", "sha256": "0" * 64}
        for name in ("kubeadm", "kubelet", "kubectl")
    ],
}
PACKAGES = {"kind": "packages", "repository": "https://pkgs.example/deb", "allow_unsigned": True}


def change(
    masters: int = 1,
    workers: int = 2,
    *,
    asked: str | None = "1.34.4",
    image: str = "7",
    recorded: dict[str, Any] | None = None,
    hook: bool = True,
) -> PlanningSituation:
    given = {"k8s_cluster_installation_param": {"kubernetes_version": asked}} if asked else {}
    request = ChangePackageRequest(vnfd_id="d", additional_params=given)
    there = slots(masters, workers)
    now = situation(OperationType.CHANGE_VNFPKG, request, there, there, masters)
    info = now.instance.vnf.instantiated_vnf_info
    assert info is not None
    info = replace(info, metadata={"kubernetesVersion": OLD} if recorded is None else recorded)
    vnf = replace(now.instance.vnf, instantiated_vnf_info=info)
    vdus = {
        name: replace(vdu, image=SoftwareImage(id=name, name="kubernetes", version=image))
        for name, vdu in now.flavour.vdus.items()
    }
    hooks = {HOOK: Hook(operation=HOOK, implementation="kubernetes")} if hook else {}
    return dataclasses.replace(
        now, instance=replace(now.instance, vnf=vnf), flavour=replace(now.flavour, vdus=vdus, hooks=hooks)
    )


def plan(now: PlanningSituation) -> Plan:
    DRIVER.check(now)
    return DRIVER.plan("change_current_package", frozenset({"end"}), now).end.checked()


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ("Files/cni.yaml", "Files/cni-2.yaml", False),
        ("flannel", "Files/cni.yaml", True),
        ("Files/cni.yaml", "none", True),
    ],
)
def test_a_manifest_of_the_pods_network_may_have_another_name_in_the_new_package(
    before: str, after: str, refused: bool
) -> None:
    now = change()
    parameters = merge_patch(now.instance.parameters, {"k8s_cluster_installation_param": {"cni": before}})
    given = {"k8s_cluster_installation_param": {"kubernetes_version": "1.34.4", "cni": after}}
    now = dataclasses.replace(
        now,
        instance=replace(now.instance, parameters=parameters),
        request=ChangePackageRequest(vnfd_id="d", additional_params=given),
        files=frozenset({after}),
    )
    with pytest.raises(BadRequest, match=r"\.cni: the cluster was made") if refused else nullcontext():
        DRIVER.check(now)


def versions(made: Plan) -> set[str]:
    return {step.args["site"]["version"] for step in made.steps}


def test_no_node_is_touched_before_every_node_was_looked_at() -> None:
    made = plan(change(3, 4))
    looks = {f"examine {slot}" for slot in slots(3, 4)}
    assert earlier(made, "check quorum without masterNode-0") == looks
    assert earlier(made, "upgrade masterNode-0") == looks | {"check quorum without masterNode-0"}


def test_masters_go_one_by_one_and_workers_after_them_a_third_at_a_time() -> None:
    made = plan(change(3, 7))
    for before, after in ((0, 1), (1, 2)):
        assert f"uncordon masterNode-{before}" in earlier(made, f"upgrade masterNode-{after}")
    first = {"upgrade workerNode-0", "upgrade workerNode-1"}
    for step in first:
        assert "uncordon masterNode-2" in earlier(made, step)
        assert not [one for one in earlier(made, step) if "worker" in one and not one.startswith("examine")]
    assert {f"uncordon workerNode-{number}" for number in range(4)} <= earlier(made, "upgrade workerNode-4")
    assert "upgrade workerNode-5" not in earlier(made, "upgrade workerNode-4")
    assert {f"uncordon {slot}" for slot in slots(3, 7)} | {"run a pod"} <= earlier(made, RECORD)


def test_a_node_is_emptied_before_its_kubelet_changes_and_open_again_afterwards() -> None:
    made = plan(change())
    after = {step.id: step.after for step in made.steps}
    for slot in slots(1, 2):
        assert after[f"drain {slot}"] == (f"upgrade {slot}",)
        assert after[f"restart {slot}"] == (f"drain {slot}",)
        assert after[f"uncordon {slot}"] == (f"restart {slot}",)


def test_the_cluster_changes_at_the_first_master_and_etcd_is_asked_where_there_are_several() -> None:
    for masters in (1, 3):
        made = plan(change(masters))
        assert [step.id for step in made.steps if step.args.get("first")] == ["upgrade masterNode-0"]
        assert len([step for step in made.steps if step.id.startswith("check quorum")]) == (
            masters if masters > 1 else 0
        )


def test_the_version_is_the_requests_or_the_images_or_stays() -> None:
    assert versions(plan(change(asked="1.34.4", image="1.33.14"))) == {"1.34.4"}
    assert versions(plan(change(asked=None, image="1.33.14"))) == {"1.33.14"}
    assert plan(change(asked=None, image="22.04")).steps == ()
    assert plan(change(asked=OLD)).steps == ()
    assert plan(change(asked=None, image=OLD, hook=False)).steps == ()


def test_without_a_record_of_its_version_a_cluster_is_asked_itself() -> None:
    assert versions(plan(change(recorded={}))) == {"1.34.4"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("1.33.12", r"kubernetes_version: the cluster has Kubernetes 1\.33\.13, and 1\.33\.12 is older"),
        ("1.35.0", "minor versions would be left out; go to a version 1.34 first"),
        ("1.99.0", "Kubernetes 1.99.0 is not supported"),
    ],
)
def test_a_version_that_cant_follow_is_refused(asked: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        DRIVER.check(change(asked=asked))


def test_an_image_that_cant_follow_and_a_package_without_the_hook_are_refused() -> None:
    with pytest.raises(Unprocessable, match=r"vnfdId: the image of masterNode has Kubernetes 1\.32\.0: .* is older"):
        DRIVER.check(change(asked=None, image="1.32.0"))
    with pytest.raises(Unprocessable, match=f"has no hook {HOOK}"):
        DRIVER.check(change(hook=False))


def made_with(now: PlanningSituation, **given: Any) -> PlanningSituation:
    stored = merge_patch(now.instance.parameters, {"k8s_cluster_installation_param": given})
    return dataclasses.replace(now, instance=replace(now.instance, parameters=stored))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (SCRIPT, "script_path: nodes that a script made stay at their version"),
        ({"source": FILES, "kubernetes_version": OLD}, r"source\.files: .* name those of 1\.34\.4"),
    ],
)
def test_nodes_that_nobody_can_bring_to_the_version_are_told_before(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        wanted_version(read_request(made_with(change(), **given)))


@pytest.mark.parametrize("given", [SCRIPT, {"source": FILES}, {"source": PACKAGES, "kubernetes_version": OLD}])
def test_an_image_of_another_version_is_nothing_to_nodes_whose_programs_come_from_elsewhere(
    given: dict[str, Any],
) -> None:
    assert wanted_version(read_request(made_with(change(asked=None, image="1.34.4"), **given))) is None


def test_programs_from_elsewhere_are_on_every_node_before_any_changes() -> None:
    made = plan(made_with(change(), source=PACKAGES, kubernetes_version=OLD))
    slots = ("masterNode-0", "workerNode-0", "workerNode-1")
    steps = {step.id: step for step in made.steps}
    for slot in slots:
        assert steps[f"fetch {slot}"].after == ()
        assert steps[f"examine {slot}"].after == (f"fetch {slot}",)
        assert steps[f"restart {slot}"].args["source"] == "packages"
    assert set(steps["upgrade masterNode-0"].after) == {f"examine {slot}" for slot in slots}
    assert versions(made) == {"1.34.4"}


def test_an_upgrade_that_was_given_up_can_only_be_finished() -> None:
    left = {"kubernetesVersion": "1.34.4", "kubernetesUpgradeUnfinished": True}
    assert versions(plan(change(asked="1.34.4", recorded=left))) == {"1.34.4"}
    with pytest.raises(BadRequest, match=r"the upgrade to 1\.34\.4 was given up .*finish it: name 1\.34\.4"):
        DRIVER.check(change(asked="1.35.0", recorded=left))
