"""The sample packages of Cluster API: they can be built, and their manifests say what the driver needs to know."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography import x509

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
cat <<END
{apiVersion: apps/v1, kind: Deployment, metadata: {name: $name, namespace: capi-system}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: serving-cert, namespace: capi-system},
 spec: {secretName: webhook-cert, dnsNames: [webhook.capi-system.svc, webhook.capi-system.svc.cluster.local]}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: self-signed, namespace: capi-system}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
 metadata: {name: $name, annotations: {cert-manager.io/inject-ca-from: capi-system/serving-cert}},
 webhooks: [{name: a, clientConfig: {service: {name: webhook, namespace: capi-system, path: /a}}}]}
END
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
    kinds = {"Cluster", "KubeadmControlPlane", "MachineDeployment", "ClusterResourceSet"}
    assert {rule.kind for rule in rules} == kinds
    assert "phase" not in repr(rules)
    assert all(hook.implementation == "cluster-api" for hook in found.hooks.values())


@pytest.fixture(scope="module")
def management_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("management")
    clusterctl, tree = place / "clusterctl", place / "package"
    clusterctl.write_text(CLUSTERCTL)
    clusterctl.chmod(0o755)
    script = SAMPLES / "management-cluster" / "put-manifests"
    command = [sys.executable, str(script), "openstack:v0.14.6", str(tree)]
    subprocess.run(command, env={**os.environ, "CLUSTERCTL": str(clusterctl)}, check=True, capture_output=True)
    return tree


def test_the_manifests_of_a_management_cluster_come_by_a_command(management_package: Path, tmp_path: Path) -> None:
    package = build_package(management_package, tmp_path / "management.csar")
    flavour = package.descriptor.flavours["default"]
    names = {one.name for one in manifests_of(files_of(flavour.manifests, management_package), flavour.manifests)}
    assert {vdu.title for vdu in flavour.vdus.values()} <= names


def test_webhooks_trust_the_certificates_that_come_with_them(management_package: Path) -> None:
    """In place of cert-manager, of which nothing is left."""
    text = (management_package / "Files" / "kubernetes" / "core.yaml").read_text()
    objects = {one["kind"]: one for one in yaml.safe_load_all(text)}
    assert objects.keys() == {"Deployment", "Secret", "ValidatingWebhookConfiguration"}
    served = x509.load_pem_x509_certificate(base64.b64decode(objects["Secret"]["data"]["tls.crt"]))
    client = objects["ValidatingWebhookConfiguration"]["webhooks"][0]["clientConfig"]
    served.verify_directly_issued_by(x509.load_pem_x509_certificate(base64.b64decode(client["caBundle"])))
    names = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "webhook.capi-system.svc" in names.get_values_for_type(x509.DNSName)
    assert "cert-manager" not in text
