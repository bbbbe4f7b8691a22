"""How many of an object there are to be, and where its number stands: by `/scale`, or a declared path. Pure."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slipway.model.descriptor import Aspect
from slipway.model.errors import BadRequest, Unprocessable
from slipway.vim.kubernetes.object_plan import rendered
from slipway.vim.kubernetes.wanted import wanted_objects
from tests.unit.vim.kubernetes_targets import INSTANCE, flavour, target, together, workload

POOL = "apiVersion: example.com/v1\nkind: Pool\nmetadata: {name: web}\nspec: {colour: red}\n"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pools.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Pool, plural: pools}
  versions:
  - {name: v1, served: true, storage: true, SUBRESOURCES}
"""
SCALE = "subresources: {scale: {specReplicasPath: .spec.nodes.count, statusReplicasPath: .status.count}}"


def test_the_definition_in_the_package_says_where_the_number_is() -> None:
    _, pool = wanted_objects(target(together(DEFINITION.replace("SUBRESOURCES", SCALE), POOL), count=3))
    assert rendered(pool.manifest.content, pool.plan, INSTANCE)["spec"] == {"colour": "red", "nodes": {"count": 3}}


def test_a_path_of_the_request_comes_first() -> None:
    mapping = {"web": {"kind": "Pool", "name": "web", "replicas_path": "spec.size"}}
    text = together(DEFINITION.replace("SUBRESOURCES", SCALE), POOL)
    _, pool = wanted_objects(target(text, count=3, vdu_mapping=mapping))
    assert rendered(pool.manifest.content, pool.plan, INSTANCE)["spec"] == {"colour": "red", "size": 3}


@pytest.mark.parametrize("path", ["metadata", "metadata.name", "kind", "apiVersion", "status.size", ""])
def test_a_path_that_is_no_place_for_a_number_is_refused(path: str) -> None:
    mapping = {"web": {"kind": "Pool", "name": "web", "replicas_path": path}}
    with pytest.raises(BadRequest, match=r"vdu_mapping\.web\.replicas_path"):
        wanted_objects(target(POOL, vdu_mapping=mapping))
    scale = SCALE.replace(".spec.nodes.count", f".{path}")
    with pytest.raises(Unprocessable, match="no number of replicas"):
        wanted_objects(target(together(DEFINITION.replace("SUBRESOURCES", scale), POOL)))


def test_without_a_definition_in_the_package_the_cluster_is_asked() -> None:
    (two,), (three,) = (wanted_objects(target(POOL, count=count)) for count in (2, 3))
    assert (three.plan.replicas, three.plan.replicas_path, three.plan.scales) == (3, None, True)
    assert two.plan.digest != three.plan.digest, "another number is another content"


def test_an_aspect_for_a_kind_without_a_number_is_refused() -> None:
    text = together(DEFINITION.replace("SUBRESOURCES", "schema: {}"), POOL)
    with pytest.raises(Unprocessable, match=r"Pool web, which has no number of replicas.*replicas_path"):
        wanted_objects(target(text))


def test_a_kind_without_a_number_is_left_as_it_is_where_no_aspect_scales_it() -> None:
    text = together(DEFINITION.replace("SUBRESOURCES", "schema: {}"), POOL)
    _, pool = wanted_objects(target(text, of=replace(flavour(), aspects={})))
    assert rendered(pool.manifest.content, pool.plan, INSTANCE)["spec"] == {"colour": "red"}


AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}}
"""


def test_a_number_that_an_autoscaler_of_the_package_sets_is_left_to_it() -> None:
    """Else the next change would be a conflict, which no manifest could avoid."""
    one = replace(flavour(), aspects={})
    text = together(workload(), AUTOSCALER.replace("NAME", "web"))
    deployment, _ = wanted_objects(target(text, of=one))
    assert "replicas" not in rendered(deployment.manifest.content, deployment.plan, INSTANCE)["spec"]
    assert (deployment.plan.vdu, deployment.plan.replicas) == ("web", None)


@pytest.mark.parametrize(("name", "aspects"), [("other", {}), ("web", flavour().aspects)])
def test_a_number_that_no_autoscaler_sets_or_that_an_aspect_scales_is_that_of_the_vnfd(
    name: str, aspects: dict[str, Aspect]
) -> None:
    of = replace(flavour(), aspects=aspects)
    deployment, _ = wanted_objects(target(together(workload(), AUTOSCALER.replace("NAME", name)), of=of))
    assert rendered(deployment.manifest.content, deployment.plan, INSTANCE)["spec"]["replicas"] == 2
