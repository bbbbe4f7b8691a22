"""What a request says about charts, in the forms that people know from other managers; what is wrong is named."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.errors import RequestError, Unprocessable
from slipway.model.machine import FoundObject
from slipway.model.target import Renewal, VnfTarget
from slipway.outgoing.guard import Guard
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.helm.parameters import helm_parameters
from slipway.vim.kubernetes.helm.repository import refuse_repositories
from tests.unit.vim.helm_targets import PATH, flavour, helm_target, releases_of
from tests.unit.vim.kubernetes_targets import change, target, workload

MANIFESTS: dict[str, Any] = {"lcm-kubernetes-def-files": ["a.yaml"]}
LOCAL = {"exthelmchart": "false", "helmreleasename": "web", "helmchartfile_path": PATH}
EXTERNAL = {
    "exthelmchart": "true",
    "helmreleasename": "db",
    "helmchartname": "bitnami/postgres",
    "helmchartversion": "1.2.0",
    "exthelmrepo_url": "https://charts.example.com/stable/",
}


def listed(*charts: dict[str, Any], **more: Any) -> VnfTarget:
    mapping = {"web": {"kind": "Deployment", "name": "web-front", "helmreleasename": "web"}}
    given = {"use_helm": "true", "using_helm_install_param": list(charts), "vdu_mapping": mapping, **more}
    return helm_target(of=flavour(()), helm_value_names=None, helm_replica_values={"web": "replicaCount"}, **given)


def test_one_chart_is_named_by_its_path_with_values() -> None:
    found = helm_parameters(helm_target(helm_chart_path=f"/{PATH}", helm_parameters={"a.b": 1, "image": {"tag": "2"}}))
    (chart,) = found.charts
    assert (chart.key, chart.path, chart.values) == ("vnf", PATH, {"a": {"b": 1}, "image": {"tag": "2"}})
    assert found.vdus["web"].replicas == ("web", "replicas")


def test_charts_of_the_vnfd_need_no_parameter() -> None:
    (chart,) = helm_parameters(helm_target()).charts
    assert chart.path == PATH


def test_several_charts_are_named_as_other_managers_have_it() -> None:
    found = helm_parameters(listed({**LOCAL, "helmparameter": ["service.port=8081", "name=x", "on=true"]}, EXTERNAL))
    local, external = found.charts
    assert local.values == {"service": {"port": 8081}, "name": "x", "on": True}
    assert external.repository is not None
    assert external.repository.url == "https://charts.example.com/stable"
    assert (external.repository.chart, external.repository.version) == ("postgres", "1.2.0")
    where = found.vdus["web"]
    assert (where.release, where.name, where.kind) == ("web", "web-front", "Deployment")
    assert where.replicas == ("replicaCount",)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (helm_target(helm_chart_path=3), "helm_chart_path"),
        (helm_target(helm_chart_path="../../etc"), "helm_chart_path"),
        (helm_target(helm_chart_path="https://example.com/web.tgz"), "helm_chart_path"),
        (helm_target(helm_parameters=["a=1"]), "helm_parameters"),
        (helm_target(helm_parameters={"a": 1, "a.b": 2}), "helm_parameters.a.b"),
        (helm_target(helm_parameters={"--set": 1, "a[0]": 2}), "helm_parameters.a[0]"),
        (helm_target(helm_parameters={"a\nb": 2}), "path of a value"),
        (helm_target(helm_value_names={"other": {"replica": "a"}}), "helm_value_names.other"),
        (helm_target(helm_value_names={"web": {"replicas": "a"}}), "helm_value_names.web"),
        (helm_target(helm_replica_values={"other": "a"}), "helm_replica_values.other"),
        (helm_target(vdu_mapping={"other": {}}), "vdu_mapping.other"),
        (helm_target(vdu_mapping={"web": {"replicas_path": "a"}}), "vdu_mapping.web.replicas_path"),
        (helm_target(vdu_mapping={"web": {"helmreleasename": "other"}}), "vdu_mapping.web.helmreleasename"),
        (helm_target(namespace="-n"), "namespace"),
        (helm_target(**MANIFESTS, helm_chart_path=PATH), "lcm-kubernetes-def-files"),
        (helm_target(of=flavour(()), helm_parameters={"a": 1}), "no chart is named"),
        (listed(LOCAL, helm_chart_path=PATH), "helm_chart_path"),
        (listed(LOCAL, LOCAL), "'web'"),
        (listed(LOCAL, use_helm="no"), "use_helm"),
        (listed(LOCAL, use_helm=False), "use_helm"),
        (helm_target(use_helm=False), "use_helm"),
        (helm_target(use_helm="no", helm_chart_path=PATH), "use_helm"),
        (listed({**LOCAL, "helmreleasename": "--debug"}), "using_helm_install_param[0].helmreleasename"),
        (listed({**LOCAL, "helmchartname": "x"}), "using_helm_install_param[0].helmchartname"),
        (listed({**LOCAL, "helmparameter": ["a=1,b=2"]}), "helmparameter[0]"),
        (listed({**LOCAL, "helmparameter": ["--post-renderer"]}), "helmparameter[0]"),
        (listed({**EXTERNAL, "helmchartversion": None}), "helmchartversion"),
        (listed({**EXTERNAL, "exthelmrepo_url": "oci://example.com/x"}), "exthelmrepo_url"),
        (listed({**EXTERNAL, "exthelmrepo_url": "https://example.com/x?token=1"}), "exthelmrepo_url: it has a query"),
        (listed({**EXTERNAL, "helmchartname": "../x y"}), "helmchartname"),
        (listed({**EXTERNAL, "repository_username": "me"}), "repository_password"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_name(asked: VnfTarget, named: str) -> None:
    with pytest.raises(RequestError) as raised:
        helm_parameters(asked)
    assert named in raised.value.detail


def test_a_secret_among_texts_is_refused_and_not_repeated() -> None:
    with pytest.raises(RequestError, match="helm_parameters") as raised:
        helm_parameters(listed({**LOCAL, "helmparameter": ["db.password=hunter2"]}))
    assert "hunter2" not in raised.value.detail


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://169.254.169.254/latest", "never allowed"),
        ("http://127.0.0.1:8080/charts", "loopback"),
        ("https://me:secret@charts.example.com/x", "password"),
    ],
)
def test_a_repository_that_may_not_be_asked_is_refused_at_the_request(url: str, why: str) -> None:
    with pytest.raises(Unprocessable, match="exthelmrepo_url") as raised:
        refuse_repositories(helm_parameters(listed({**EXTERNAL, "exthelmrepo_url": url}, LOCAL)), Guard())
    assert why in raised.value.detail


def test_without_helm_the_request_says_how_to_get_it(tmp_path: Any) -> None:
    driver = KubernetesVimDriver(helm=tmp_path / "helm")
    with pytest.raises(Unprocessable, match="helm_program"):
        driver.refuse(change(None, helm_target()))


def test_a_chart_that_the_package_lacks_is_refused_at_the_request(helm: Any) -> None:
    with pytest.raises(Unprocessable, match="Files/charts/other"):
        KubernetesVimDriver(helm=helm).refuse(change(None, helm_target(helm_chart_path="Files/charts/other")))


def test_what_was_read_at_the_instantiation_is_refused_later(helm: Any) -> None:
    before = helm_target()
    asked = {"helm_parameters": {"a": 1}}
    with pytest.raises(Unprocessable, match="helm_parameters: it is read at the instantiation"):
        KubernetesVimDriver(helm=helm).refuse(
            change(before, helm_target(3), releases_of(before), additional_params=asked)
        )


def test_a_value_beside_an_object_that_it_belongs_to_is_read_the_same_each_time() -> None:
    asked = helm_target(helm_parameters={"image": {"tag": "2"}, "image.name": "web"})
    for _ in range(2):
        assert helm_parameters(asked).charts[0].values == {"image": {"tag": "2", "name": "web"}}
    assert asked.parameters["helm_parameters"] == {"image": {"tag": "2"}, "image.name": "web"}


def test_configmaps_of_a_chart_are_not_changed_by_themselves(helm: Any) -> None:
    before = helm_target()
    modification = change(before, before, releases_of(before), configuration_files=("Files/charts/web/values.yaml",))
    with pytest.raises(Unprocessable, match="configmap_secret_paths: the VNF is made of charts"):
        KubernetesVimDriver(helm=helm).refuse(modification)


def test_a_package_of_manifests_does_not_take_the_place_of_charts() -> None:
    before = helm_target(helm_value_names=None)
    with pytest.raises(Unprocessable, match="made of charts, and the package brings manifests"):
        KubernetesVimDriver().refuse(change(before, target(workload()), releases_of(helm_target())))


def test_a_vnfc_is_healed_when_a_mapping_says_which_release_its_vdu_is_in(helm: Any) -> None:
    before = listed(LOCAL)
    heal = change(before, before, releases_of(before), renewal=Renewal(members=frozenset({"pod-0", "pod-1"})))
    KubernetesVimDriver(helm=helm).refuse(heal)


def test_all_masters_of_a_chart_are_not_healed_at_once(helm: Any) -> None:
    before, found = helm_target(), releases_of(helm_target())
    plane = FoundObject(
        id="HelmRelease/vnf/plane",
        kind="KubeadmControlPlane",
        name="edge",
        api_version="controlplane.cluster.x-k8s.io/v1beta2",
        vdu="web",
    )
    found = replace(found, objects=(*found.objects, plane))
    heal = change(before, before, found, renewal=Renewal(members=frozenset({"pod-0", "pod-1"})))
    with pytest.raises(Unprocessable, match="control plane web"):
        KubernetesVimDriver(helm=helm).refuse(heal)


@pytest.fixture
def helm(tmp_path: Any) -> Any:
    path = tmp_path / "helm"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path
