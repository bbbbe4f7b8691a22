"""The life of a registry, and of a cluster that pulls from it and has a storage server, in every `make test`.

What else can happen to them is in the groups: test_registry.py, test_registry_sources.py, test_storage.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.lab.registry_and_cluster import RegistryAndCluster, registry_and_cluster
from tests.lab.registry_lab import SLOT
from tests.lab.stages import needs
from tests.lab.storage_lab import instantiation, until
from tests.lab.stored_data import available, read, volumes, write

pytestmark = pytest.mark.journey

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLAIM: dict[str, Any] = {
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": "nfs-pv1",
             "resources": {"requests": {"storage": "100Mi"}}},
}  # fmt: skip


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory, kubernetes_engines: Engines) -> Iterator[RegistryAndCluster]:
    with registry_and_cluster(tmp_path_factory.mktemp("both"), kubernetes_engines) as setting:
        yield setting


def test_a_registry_begins_with_the_packages_images_and_a_client_pushes(setting: RegistryAndCluster) -> None:
    setting.install()
    place = f"docker://{setting.server}/pushed:1"
    pushed = setting.skopeo("copy", "--dest-cert-dir=CERTS", f"oci-archive:{setting.proof}", place)
    assert pushed.returncode == 0, pushed.stderr


needs_registry = needs(test_a_registry_begins_with_the_packages_images_and_a_client_pushes)


@needs_registry
def test_a_cluster_pulls_from_it_and_has_volumes_although_slipway_is_killed(setting: RegistryAndCluster) -> None:
    setting.create_cluster()
    lab = setting.at_cluster()
    operation = lab.begin("instantiate", instantiation(private_registry_connection_info=[setting.connection()]))
    lab.until_step(operation, "mount volumes storageServer-0", "DONE")
    lab.kill()
    lab.start()
    lab.ended(operation)
    assert volumes(lab) == available(lab)
    setting.run_pod("workerNode-0", "pushed:1")
    write(lab, "workerNode-0", "one", "by the worker")


needs_cluster = needs(test_a_cluster_pulls_from_it_and_has_volumes_although_slipway_is_killed)


@needs_cluster
def test_a_healed_registry_serves_a_new_node_which_has_the_volumes_too(setting: RegistryAndCluster) -> None:
    before = setting.outputs
    setting.at_registry().heal(SLOT)
    assert setting.outputs == before
    lab = setting.at_cluster()
    lab.run("scale", lab.scale("SCALE_OUT"))
    setting.run_pod("workerNode-1", "pushed:1")
    assert read(lab, "workerNode-1", "one") == "by the worker"


@needs_cluster
def test_a_storage_server_in_use_is_not_healed_and_afterwards_keeps_its_data(setting: RegistryAndCluster) -> None:
    lab = setting.at_cluster()
    lab.kube(lambda api: api.create(CLAIMS, CLAIM))
    until(lambda: volumes(lab)["nfs-pv1"][0] == "Bound", "the volume is bound")
    refused = lab.heal("storageServer-0", state="FAILED_TEMP")
    assert "in use: nfs-pv1 by the claim default/data." in refused["error"]["detail"]
    lab.kube(lambda api: api.delete(f"{CLAIMS}/data"))
    until(lambda: volumes(lab)["nfs-pv1"][0] == "Released", "the volume is released")
    lab.decide(refused["id"], "retry", "COMPLETED")
    assert volumes(lab) == available(lab)
    assert read(lab, "workerNode-0", "one") == "by the worker"


@needs_registry
def test_both_leave_nothing_behind(setting: RegistryAndCluster) -> None:
    for vnf in (setting.cluster, setting.registry):
        if vnf:
            setting.lab.vnf = vnf
            setting.lab.run("terminate", {"terminationType": "FORCEFUL"})
    assert everything(setting.lab.engines.operations(LOCAL)) == {}
