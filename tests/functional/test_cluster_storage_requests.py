"""A cluster that was instantiated without a storage server gets none later, whatever its flavour has machines for.

What a heal says is not stored: the next one would replace the server under those who use its volumes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest, HealRequest, InstantiateRequest
from tests.functional.cluster_rig import CLUSTER, ClusterRig, cluster_rig, out, parameters, storage_parameters
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
