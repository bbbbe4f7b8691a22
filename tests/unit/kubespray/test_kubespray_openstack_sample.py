"""The sample for OpenStack: its templates have a resource for each VDU and connection point of the VNFD."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.package.build import build_package
from slipway.vim.openstack.hot_template import PORT, VOLUME, read_base_hot

SAMPLE = Path(__file__).parents[3] / "samples" / "cluster-kubespray-openstack"


@pytest.mark.parametrize("name", ["simple", "ha", "storage"])
def test_the_templates_have_what_the_vnfd_names(tmp_path: Path, name: str) -> None:
    flavour = build_package(SAMPLE, tmp_path / "cluster.csar").descriptor.flavours[name]
    files = {
        path.relative_to(SAMPLE).as_posix(): path.read_bytes() for path in SAMPLE.rglob(f"BaseHOT/{name}/**/*.yaml")
    }
    hot = read_base_hot(f"BaseHOT/{name}/cluster.yaml", files)
    inner = {key: one for part in (hot.template, *hot.nested.values()) for key, one in part["resources"].items()}
    assert set(flavour.vdus) <= set(hot.resources)
    assert {storage for storage in flavour.storages if inner[storage]["type"] == VOLUME} == {*flavour.storages}
    assert {point for point in flavour.connection_points if inner[point]["type"] == PORT} == {
        *flavour.connection_points
    }
    assert list(hot.template["parameters"]) == ["nfv"]


@pytest.mark.parametrize(
    "file", ["Scripts/ExternalLB_installation.sh", "Files/kubernetes/nfs-pv1.yaml", "Files/kubernetes/nfs-pv2.yaml"]
)
def test_both_samples_have_the_same_script_for_the_balancer_and_the_same_volumes(file: str) -> None:
    assert (SAMPLE / file).read_text() == (SAMPLE.parent / "cluster-kubespray-sandbox" / file).read_text()
