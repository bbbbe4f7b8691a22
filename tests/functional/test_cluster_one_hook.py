"""Clusters whose VNFD names their driver for one hook of a pair alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from tests.functional import cluster_rig as kubeadm
from tests.functional import kubespray_rig as kubespray
from tests.functional.cluster_rig import cluster_rig
from tests.functional.rig import settings_in


@pytest.mark.parametrize(
    ("sample", "instantiate"),
    [(kubeadm.CLUSTER, kubeadm.instantiate), (kubespray.KUBESPRAY, kubespray.instantiate)],
    ids=["kubernetes", "kubespray"],
)
async def test_nodes_that_went_without_a_hook_before_it_join_again(
    sample: Path, instantiate: Callable[..., InstantiateRequest], tmp_path: Path
) -> None:
    """etcd still has the masters that are gone as members, and takes no others meanwhile."""
    async with cluster_rig(settings_in(tmp_path), sample=_without_hook("heal_start", sample, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        await rig.completed(OperationType.INSTANTIATE, instance_id, instantiate(3))
        request = await rig.heal(instance_id, "masterNode-0", "masterNode-1", "workerNode-0")
        operation = await rig.completed(OperationType.HEAL, instance_id, request)
        assert {record.attempt for record in await rig.rig.journal(operation.id)} == {1}
        await rig.check(instance_id)


def _without_hook(hook: str, sample: Path, directory: Path) -> Path:
    tree = directory / "package"
    shutil.copytree(sample, tree)
    for flavour in (tree / "Definitions").glob("*_df_*.yaml"):
        lines = flavour.read_text().splitlines(keepends=True)
        flavour.write_text("".join(line for line in lines if not line.lstrip().startswith(f"{hook}:")))
    return tree
