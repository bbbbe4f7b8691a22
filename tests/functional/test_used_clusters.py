"""A cluster on which VNFs run is neither terminated nor made anew under them, and not used while it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.errors import Conflict
from slipway.model.instance import InstantiationState, VimConnectionInfo
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest, InstantiateRequest
from slipway.store import instances
from slipway.vim_registry.names import vim_id_of
from tests.functional.cluster_rig import FORCEFUL, ClusterRig, cluster_rig
from tests.functional.rig import settings_in

pytestmark = pytest.mark.sqlite_suffices


async def put_on(rig: ClusterRig, cluster: str, name: str) -> str:
    """A VNF that runs on the cluster."""
    user = await rig.rig.create(name)

    def place(connection: Any) -> None:
        instance = instances.get(connection, user)
        on_it = {"vim": VimConnectionInfo(vim_id=vim_id_of(cluster))}
        vnf = replace(instance.vnf, vim_connection_info=on_it, instantiation_state=InstantiationState.INSTANTIATED)
        instances.update(connection, replace(instance, vnf=vnf))

    await rig.rig.slipway.database.write(place)
    return user


async def test_terminating_a_cluster_with_vnfs_on_it_is_refused_with_their_names(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        cluster, lcm = await rig.cluster(vim_name="edge"), rig.rig.slipway.lcm
        first, second = await put_on(rig, cluster, "router"), await put_on(rig, cluster, "firewall")
        for ask in (lcm.start_operation, lcm.preview_plan):
            with pytest.raises(Conflict) as refused:
                await ask(OperationType.TERMINATE, cluster, FORCEFUL)
            assert f"router ({first})" in refused.value.detail
            assert f"firewall ({second})" in refused.value.detail
            assert "VIM 'edge'" in refused.value.detail


async def test_a_whole_heal_is_refused_too_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        cluster, lcm = await rig.cluster(), rig.rig.slipway.lcm
        user = await put_on(rig, cluster, "router")
        everyone = await rig.heal(cluster, *await rig.machines(cluster))
        for whole in (HealRequest(), everyone):
            with pytest.raises(Conflict, match=rf"router \({user}\).*additionalParams\.even_if_used"):
                await lcm.start_operation(OperationType.HEAL, cluster, whole)
        await rig.completed(OperationType.HEAL, cluster, await rig.heal(cluster, "workerNode-1"))
        await rig.completed(OperationType.HEAL, cluster, HealRequest(additional_params={"even_if_used": True}))
        await rig.check(cluster)


@pytest.mark.parametrize("named", [False, True])
async def test_a_cluster_that_is_being_made_anew_takes_no_vnfs(tmp_path: Path, named: bool) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        cluster = await rig.cluster()
        await rig.rig.slipway.worker.shut_down(grace=5)  # type: ignore[union-attr]
        lcm, comes = rig.rig.slipway.lcm, await rig.rig.create()
        whole = await rig.heal(cluster, *await rig.machines(cluster)) if named else HealRequest()
        heal = await lcm.start_operation(OperationType.HEAL, cluster, whole)
        on_it = InstantiateRequest(
            flavour_id="simple", vim_connection_info={"vim": VimConnectionInfo(vim_id=vim_id_of(cluster))}
        )
        with pytest.raises(Conflict, match=rf"cluster of VNF instance {cluster}, whose operation {heal.id} \(HEAL\)"):
            await lcm.start_operation(OperationType.INSTANTIATE, comes, on_it)
