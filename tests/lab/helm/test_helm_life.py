"""The life of a CNF of a Helm chart on a real API server, by the real helm. Its pods are played."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.helm.helm_lab import CHART, HelmLab
from tests.lab.kubernetes.cnf_lab import node_in_background, vnfcs
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="helm")
PASSWORD = "canary-8d1f0c"


@pytest.fixture(scope="module")
def cnf(tmp_path_factory: pytest.TempPathFactory, kubeconfig: str, helm: Path) -> Iterator[HelmLab]:
    with node_in_background(kubeconfig) as node:
        lab = HelmLab(tmp_path_factory.mktemp("cnf"), kubeconfig, "helm-life", node, helm)
        try:
            yield lab
        finally:
            lab.kill()


def test_installed_although_slipway_is_killed_while_helm_waits_for_a_hook(cnf: HelmLab) -> None:
    cnf.vnfd = cnf.with_hook(1)
    cnf.create()
    cnf.node.starts = False
    given = {"store.password": PASSWORD}
    operation = cnf.begin("instantiate", cnf.instantiate(helm_parameters=given))
    _until(lambda: cnf.revisions() == {1: "pending-install"})
    cnf.kill()
    assert not _helm_processes(cnf), "helm ends with Slipway"
    cnf.node.starts = True
    cnf.start()
    cnf.ended(operation)
    assert cnf.revisions() == {1: "deployed"}
    assert cnf.pods() == {"front": 2, "store": 1}
    objects = cnf.shown()["instantiatedVnfInfo"]["metadata"]["objects"]
    assert {(one["kind"], one["name"]) for one in objects} >= {
        ("HelmRelease", cnf.release),
        ("Deployment", f"{cnf.release}-front"),
        ("Secret", f"{cnf.release}-store"),
    }


needs_cnf = needs(test_installed_although_slipway_is_killed_while_helm_waits_for_a_hook)


@needs_cnf
def test_a_secret_value_is_nowhere_but_in_the_cluster(cnf: HelmLab) -> None:
    files = [path for path in cnf.directory.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]
    assert PASSWORD not in cnf.http.get("/vnflcm/v2/vnf_lcm_op_occs").text
    assert PASSWORD not in cnf.http.get(f"/vnflcm/v2/vnf_instances/{cnf.vnf}").text


@needs_cnf
def test_scaled_by_value_without_a_touch_on_the_others(cnf: HelmLab) -> None:
    before = vnfcs(cnf, "front")
    cnf.run("scale", {"type": "SCALE_OUT", "aspectId": "front", "numberOfSteps": 1})
    assert before.items() < vnfcs(cnf, "front").items()
    assert cnf.replicas() == 3
    assert cnf.revisions() == {1: "superseded", 2: "deployed"}


@needs_cnf
def test_a_pod_is_healed_and_the_others_stay(cnf: HelmLab) -> None:
    before = vnfcs(cnf, "front")
    sick = min(before)
    cnf.heal(sick)
    after = vnfcs(cnf, "front")
    assert before.items() - after.items() == {(sick, before[sick])}
    assert len(after) == 3


@needs_cnf
def test_what_others_change_is_shown_and_left(cnf: HelmLab) -> None:
    assert cnf.drift() == []
    cnf.change_as_somebody(f"v1/configmaps/{cnf.release}-front", {"data": {"greeting": "hey"}})
    assert cnf.drift() == [
        f"ConfigMap helm-life/{cnf.release}-front was changed by somebody: it is not as Slipway applied it."
    ]
    assert cnf.get(f"v1/configmaps/{cnf.release}-front")["data"] == {"greeting": "hey"}


@needs_cnf
def test_another_package_is_an_upgrade_that_survives_kill_9(cnf: HelmLab) -> None:
    new = cnf.with_hook(2, (f"{CHART}/values.yaml", 'tag: "1.0"', 'tag: "1.1"'))
    refused = cnf.run("change_vnfpkg", {"vnfdId": new}, "FAILED_TEMP")
    assert (
        f"ConfigMap helm-life/{cnf.release}-front of the release was changed by somebody" in refused["error"]["detail"]
    )
    cnf.decide(refused["id"], "rollback", "ROLLED_BACK")
    assert cnf.get(f"v1/configmaps/{cnf.release}-front")["data"] == {"greeting": "hey"}
    cnf.node.starts = False
    operation = cnf.begin("change_vnfpkg", {"vnfdId": new, "additionalParams": {"force_conflicts": True}})
    _until(lambda: cnf.revisions().get(3) == "pending-upgrade")
    cnf.kill()
    cnf.node.starts = True
    cnf.start()
    cnf.ended(operation)
    assert cnf.image().endswith(":1.1")
    assert cnf.revisions()[3] == "deployed"
    assert cnf.pods() == {"front": 3, "store": 1}


@needs(test_another_package_is_an_upgrade_that_survives_kill_9)
def test_an_upgrade_that_the_cluster_refuses_goes_back_to_the_old_revision(cnf: HelmLab) -> None:
    bad = cnf.variant(
        4,
        (f"{CHART}/values.yaml", 'tag: "1.0"', 'tag: "2.0"'),
        (f"{CHART}/templates/workloads.yaml", "serviceName: {{ .Release.Name }}-store", "serviceName: other"),
    )
    operation = cnf.run("change_vnfpkg", {"vnfdId": bad}, "FAILED_TEMP")
    assert "updates to statefulset spec" in operation["error"]["detail"]
    assert max(cnf.revisions().items())[1] == "failed"
    assert cnf.image().endswith(":2.0")
    cnf.decide(operation["id"], "rollback", "ROLLED_BACK")
    assert cnf.image().endswith(":1.1")
    assert max(cnf.revisions().items())[1] == "deployed"
    assert cnf.pods() == {"front": 3, "store": 1}
    assert cnf.drift() == []


@needs_cnf
def test_a_release_that_somebody_else_upgraded_is_not_overwritten(cnf: HelmLab) -> None:
    made = _by_hand(cnf, "rollback", cnf.release, "2")
    assert made.returncode == 0, made.stderr
    newest = max(cnf.revisions())
    assert cnf.drift()[0].startswith(f"Helm release helm-life/{cnf.release} was changed: it is at revision {newest}")
    scale = {"type": "SCALE_IN", "aspectId": "front", "numberOfSteps": 1}
    operation = cnf.run("scale", scale, "FAILED_TEMP")
    assert f"somebody else made its revision {newest}" in operation["error"]["detail"]
    cnf.decide(operation["id"], "rollback", "ROLLED_BACK")
    cnf.run("scale", {**scale, "additionalParams": {"force_conflicts": True}})
    assert cnf.replicas() == 2
    assert cnf.drift() == []


@needs_cnf
def test_terminated_without_a_trace(cnf: HelmLab) -> None:
    cnf.run("terminate", {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1})
    assert [one for one in cnf.left() if "prepare" not in one] == [], "hooks are Helm's to keep"
    assert cnf.revisions() == {}
    assert cnf.machines() == {}


def _until(true: Callable[[], bool], within: float = 120) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def _helm_processes(lab: HelmLab) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if lab.release in words:
            found.append(" ".join(words))
    return found


def _by_hand(lab: HelmLab, *words: str) -> subprocess.CompletedProcess[str]:
    file = lab.directory / "by-hand.kubeconfig"
    file.write_text(lab.kubeconfig)
    command = [str(lab.helm), *words, f"--kubeconfig={file}", f"--namespace={lab.namespace}"]
    return subprocess.run(command, capture_output=True, text=True)
