"""The sample packages of Cluster API: they can be built, and their manifests say what the driver needs to know."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from slipway.model.target import PackageFile
from slipway.package.build import build_package
from slipway.vim.kubernetes.manifests import manifests_of, rules_of

SAMPLES = Path(__file__).parents[3] / "samples"
CLUSTERCTL = """#!/bin/sh
# clusterctl generate provider --KIND NAME
case $3 in
--core) name=capi-controller-manager ;;
--bootstrap) name=capi-kubeadm-bootstrap-controller-manager ;;
--control-plane) name=capi-kubeadm-control-plane-controller-manager ;;
*) name=capo-controller-manager ;;
esac
echo "{apiVersion: apps/v1, kind: Deployment, metadata: {name: $name, namespace: capi-system}}"
"""


def files_of(paths: tuple[str, ...], tree: Path) -> dict[str, PackageFile]:
    return {path: PackageFile(content=(tree / path).read_bytes(), digest="digest") for path in paths}


@pytest.mark.parametrize("flavour", ["in-memory", "openstack"])
def test_a_workload_cluster_has_an_object_for_each_vdu_and_rules_without_phases(flavour: str, tmp_path: Path) -> None:
    tree = SAMPLES / "workload-cluster"
    package = build_package(tree, tmp_path / "workload.csar")
    found = package.descriptor.flavours[flavour]
    files = files_of(found.manifests, tree)
    objects = {(one.kind, one.name): one.content for one in manifests_of(files, found.manifests)}
    assert {vdu.title for vdu in found.vdus.values()} == {"edge-control-plane", "edge-workers"}
    assert {
        ("Cluster", "edge"),
        ("MachineDeployment", "edge-workers"),
        ("KubeadmControlPlane", "edge-control-plane"),
    } <= (objects.keys())
    rules = rules_of(files, found.manifests)
    assert {rule.kind for rule in rules} == {"Cluster", "KubeadmControlPlane", "MachineDeployment"}
    assert "phase" not in repr(rules)
    assert all(hook.implementation == "cluster-api" for hook in found.hooks.values())


def test_the_manifests_of_a_management_cluster_come_by_a_command(tmp_path: Path) -> None:
    clusterctl, certificates, tree = tmp_path / "clusterctl", tmp_path / "cert-manager.yaml", tmp_path / "package"
    clusterctl.write_text(CLUSTERCTL)
    clusterctl.chmod(0o755)
    certificates.write_text("{apiVersion: v1, kind: Namespace, metadata: {name: cert-manager}}\n")
    command = [SAMPLES / "management-cluster" / "put-manifests", "openstack:v0.14.6", tree]
    environment = {**os.environ, "CLUSTERCTL": str(clusterctl), "CERT_MANAGER": str(certificates)}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    package = build_package(tree, tmp_path / "management.csar")
    flavour = package.descriptor.flavours["default"]
    names = {one.name for one in manifests_of(files_of(flavour.manifests, tree), flavour.manifests)}
    assert {vdu.title for vdu in flavour.vdus.values()} <= names
