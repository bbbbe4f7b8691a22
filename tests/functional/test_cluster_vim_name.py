"""The name under which a cluster becomes a VIM is looked at when it is asked for, not when everything else is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.model.errors import Conflict, Unprocessable
from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest
from slipway.model.vim import SIMULATED
from slipway.vim_registry.registry import VimRequest
from tests.functional.cluster_rig import FORCEFUL, cluster_rig, instantiate
from tests.functional.rig import settings_in

FIELD = r"additionalParams\.k8s_cluster_installation_param\.vim_name"


async def test_a_name_that_is_taken_is_refused_at_the_request(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data")) as rig:
        first = await rig.cluster(vim_name="kubernetes_vim")
        lcm, second = rig.rig.slipway.lcm, await rig.rig.create()
        wanted = instantiate(vim_name="kubernetes_vim")
        for ask in (lcm.start_operation, lcm.preview_plan):
            with pytest.raises(Unprocessable, match=rf"^{FIELD}: .*'kubernetes_vim' already.*another vim_name"):
                await ask(OperationType.INSTANTIATE, second, wanted)
        with pytest.raises(Unprocessable, match=FIELD):
            await lcm.start_operation(OperationType.INSTANTIATE, second, instantiate(vim_name="simulated"))
        await rig.completed(OperationType.HEAL, first, HealRequest())  # its own name is no obstacle
        await rig.completed(OperationType.TERMINATE, first, FORCEFUL)
        await rig.completed(OperationType.INSTANTIATE, second, wanted)


async def test_a_name_that_another_instantiation_will_take_is_refused(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), working=False) as rig:
        lcm, first, second = rig.rig.slipway.lcm, await rig.rig.create(), await rig.rig.create()
        await lcm.start_operation(OperationType.INSTANTIATE, first, instantiate(vim_name="kubernetes_vim"))
        with pytest.raises(Unprocessable, match=f"{FIELD}: .*{first}"):
            await lcm.start_operation(OperationType.INSTANTIATE, second, instantiate(vim_name="kubernetes_vim"))
        await lcm.start_operation(OperationType.INSTANTIATE, second, instantiate())


async def test_nobody_registers_a_vim_under_a_name_that_an_instantiation_will_take(tmp_path: Path) -> None:
    """Or the cluster could not be registered, after all else was done."""
    async with cluster_rig(settings_in(tmp_path / "data"), working=False) as rig:
        slipway, instance_id = rig.rig.slipway, await rig.rig.create()
        await slipway.lcm.start_operation(
            OperationType.INSTANTIATE, instance_id, instantiate(vim_name="kubernetes_vim")
        )
        other = VimRequest(name="kubernetes_vim", vim_type=SIMULATED, interface_info={"endpoint": "sim://other"})
        with pytest.raises(Conflict, match=f"{instance_id}.*'kubernetes_vim'"):
            await slipway.vims.add(other)
        with pytest.raises(Conflict, match=f"{instance_id}.*'kubernetes_vim'"):
            await slipway.vims.modify("simulated", {"name": "kubernetes_vim"})
        await slipway.vims.modify("simulated", {"description": "as before"})
