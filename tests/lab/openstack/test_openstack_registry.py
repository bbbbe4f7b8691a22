"""The sample of a registry on a real OpenStack: from no template at all, with its images on a volume of Cinder's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.vim.sandbox.engines import Engines
from tests.lab.openstack.openstack_cluster import LOGIN, OpenStackVnf, ensure_kubernetes_image
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.registry_lab import SLOT, RegistryLab, installation, registry_package
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="registry")

SAMPLE = Path(__file__).parents[3] / "samples" / "registry-openstack"


@pytest.fixture(scope="module")
def setting(
    tmp_path_factory: pytest.TempPathFactory, openstack_lab: OpenStackLab, kubernetes_engines: Engines
) -> Iterator[RegistryLab[OpenStackVnf]]:
    directory = tmp_path_factory.mktemp("registry")
    ensure_kubernetes_image(kubernetes_engines)  # a Debian with what machines need that reach no repository
    tree, proof = registry_package(SAMPLE, directory, {"name: debian-12": "name: kubernetes"})
    cloud = openstack_lab.project("registry")
    with cloud.nothing_left():
        vnf = OpenStackVnf(directory / "lab", cloud, tree)
        try:
            yield RegistryLab(vnf, directory, proof)
        finally:
            vnf.kill()


def test_a_client_pushes_and_pulls(setting: RegistryLab[OpenStackVnf]) -> None:
    vnf = setting.lab
    vnf.create()
    setting.registry = vnf.vnf
    asked = installation(ssh_username=LOGIN["username"], ssh_password=LOGIN["password"])
    links = vnf.connected("CP1")
    vnf.run("instantiate", {"flavourId": "simple", "extVirtualLinks": links, "additionalParams": asked})
    setting.push_and_pull()


needs_registry = needs(test_a_client_pushes_and_pulls)


@needs_registry
@pytest.mark.parametrize("whole", [False, True])
def test_a_heal_keeps_images_address_and_authority(setting: RegistryLab[OpenStackVnf], whole: bool) -> None:
    vnf, before = setting.lab, setting.outputs
    server, (volume,) = vnf.server(SLOT).id, vnf.cloud.user.block_storage.volumes(details=False)
    if whole:
        vnf.run("heal", {})
    else:
        vnf.heal(SLOT)
    assert vnf.server(SLOT).id != server
    assert [one.id for one in vnf.cloud.user.block_storage.volumes(details=False)] == [volume.id]
    assert setting.outputs == before
    setting.has_images("pushed:1", "proof:1")


@needs_registry
def test_terminated_without_a_trace(setting: RegistryLab[OpenStackVnf]) -> None:
    setting.lab.run("terminate", {"terminationType": "FORCEFUL"})
    assert setting.lab.machines() == {}
