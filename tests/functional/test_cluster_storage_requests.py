"""What requests say of storage servers, and is refused: a volume that no template has, a server that comes later."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import InstantiationState
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest, HealRequest, InstantiateRequest
from slipway.model.target import VnfTarget
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.vim.openstack.base_hot import package_files
from tests.functional.cluster_rig import (
    CLUSTER,
    ClusterRig,
    cluster_rig,
    instantiate_storage,
    out,
    parameters,
    storage_parameters,
)
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import settings_in

HEAL = OperationType.HEAL
SAID = {"k8s_cluster_installation_param": storage_parameters()}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    async with cluster_rig(settings_in(tmp_path / "data")) as rig:
        await onboard_next(rig.rig, CLUSTER, tmp_path / "next", NEXT_ID)
        yield rig


async def test_no_later_request_brings_a_server(rig: ClusterRig) -> None:
    instance_id = await rig.rig.create()
    without = InstantiateRequest(flavour_id="storage", additional_params=parameters())
    await rig.completed(OperationType.INSTANTIATE, instance_id, without)
    of_the_machine = await rig.heal(instance_id, "storageServer-0")
    for kind, request in (
        (HEAL, replace(of_the_machine, additional_params=SAID)),
        (HEAL, HealRequest(additional_params=SAID)),
        (OperationType.SCALE, replace(out(1), additional_params=SAID)),
        (OperationType.CHANGE_VNFPKG, ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=SAID)),
    ):
        with pytest.raises(BadRequest, match="storage_server: the cluster has none, and its nodes no NFS client"):
            await rig.rig.slipway.lcm.start_operation(kind, instance_id, request)
    await rig.completed(HEAL, instance_id, of_the_machine)


class ReadsTemplates(SimulatedDriver):
    """As a VIM is that makes what a template of the package says."""

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        return package_files(target)


TEMPLATE = """heat_template_version: 2021-04-16
resources:
  {}: {{type: OS::Cinder::Volume, properties: {{size: 1}}}}
"""


@pytest.mark.parametrize("volume", ["storageServer_volume", "otherVolume"])
async def test_a_volume_that_the_template_has_not_is_refused_at_the_request(tmp_path: Path, volume: str) -> None:
    sample = tmp_path / "sample"
    shutil.copytree(CLUSTER, sample)
    template = sample / "BaseHOT" / "storage" / "cluster.yaml"
    template.parent.mkdir(parents=True)
    template.write_text(TEMPLATE.format(volume))
    async with cluster_rig(settings_in(tmp_path / "data"), sample=sample, simulated=ReadsTemplates) as rig:
        instance_id = await rig.rig.create()
        if volume == "storageServer_volume":
            await rig.completed(OperationType.INSTANTIATE, instance_id, instantiate_storage())
            return
        with pytest.raises(Unprocessable) as refused:
            await rig.rig.slipway.lcm.start_operation(OperationType.INSTANTIATE, instance_id, instantiate_storage())
        assert str(refused.value.detail) == (
            "additionalParams.k8s_cluster_installation_param.storage_server.cinder_volume_setup_params[0]."
            "volume_resource_id: BaseHOT/storage/cluster.yaml has no OS::Cinder::Volume 'storageServer_volume'; write "
            "one of: otherVolume."
        )
        instance = await rig.rig.instance(instance_id)
        assert instance.vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED
        wrong = instantiate_storage(storage_server={})
        with pytest.raises(BadRequest, match="storage_server"):  # what is wrong before any template is looked at
            await rig.rig.slipway.lcm.start_operation(OperationType.INSTANTIATE, instance_id, wrong)
