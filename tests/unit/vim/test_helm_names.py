"""Releases that are uninstalled are those whose names Slipway gave, whatever else looks like one."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from slipway.kube.interface import Objects
from slipway.model.machine import FoundObject
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.kubernetes.helm.releases import newest_of_instance, release_name
from tests.unit.vim.helm_targets import helm_target, releases_of
from tests.unit.vim.kubernetes_targets import INSTANCE, change, standing, target, together, workload

DRIVER = KubernetesVimDriver()
OURS = release_name("web", INSTANCE)


class Secrets:
    """An API server whose Secrets have these labels."""

    def __init__(self, *labels: dict[str, str]) -> None:
        self.labels = labels

    async def list(self, path: str, *, metadata_only: bool, labelSelector: str) -> Objects:
        assert (path, metadata_only) == ("/api/v1/namespaces/prod/secrets", True)
        wanted = dict(one.split("=") for one in labelSelector.split(","))
        found = [one for one in self.labels if wanted.items() <= one.items()]
        return [{"metadata": {"name": f"secret-{at}", "labels": one}} for at, one in enumerate(found)]


def revision(name: str, **more: str) -> dict[str, str]:
    labels = {"owner": "helm", "name": name, "version": "1", "status": "deployed", "slipway.io/instance": INSTANCE}
    return {**labels, **{f"slipway.io/{key}": value for key, value in more.items()}}


@pytest.mark.parametrize("forged", [revision("theirs"), revision("theirs", release="web"), revision("web-2")])
async def test_a_secret_that_a_chart_made_is_no_release_of_the_vnf(forged: dict[str, str]) -> None:
    api = cast(Any, Secrets(forged, revision(OURS, release="web")))
    found = await newest_of_instance(api, INSTANCE, ["prod"])
    assert [(place, one.release) for place, one in found] == [("prod", OURS)]


FLUX = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: theirs}\nspec: {}\n"


def test_an_object_of_a_kind_that_is_called_the_same_is_no_release() -> None:
    """Flux has one: it is applied and removed as any object."""
    cnf = target(together(workload(), FLUX))
    assert DRIVER.steps(change(cnf, cnf), standing(cnf)).steps == ()
    removal = DRIVER.steps(change(cnf, None), standing(cnf))
    assert "uninstall releases" not in [step.id for step in removal.steps]


def test_an_object_of_a_chart_of_such_a_kind_is_none_either() -> None:
    stands = releases_of(helm_target())
    flux = FoundObject(
        id="HelmRelease/vnf/HelmRelease.helm.toolkit.fluxcd.io/theirs",
        kind="HelmRelease",
        name="theirs",
        namespace="prod",
        api_version="helm.toolkit.fluxcd.io/v2",
    )
    stands = replace(stands, objects=(*stands.objects, flux))
    plan = DRIVER.steps(change(helm_target(), None, stands), stands)
    (uninstall,) = (step for step in plan.steps if step.id == "uninstall releases")
    assert list(uninstall.args["releases"]) == ["HelmRelease/vnf"]
    assert "theirs" in [one["name"] for one in uninstall.args["objects"]]
