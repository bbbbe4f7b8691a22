"""The page on storage: its request is one that the sample takes, and what it says of files and labels is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

from slipway.cluster.checks import check_cluster
from slipway.cluster.parameters import NAME, read_parameters
from slipway.cluster.steps.machine import SCRIPTS
from slipway.cluster.storage_plan import CHECK, DELETE, REGISTER
from slipway.kube.ownership import INSTANCE
from slipway.package.build import build_package

ROOT = Path(__file__).parents[3]
LOGIN = {"username": "slipway", "password": "x"}
NODES = {
    "master_node": {"ssh_cp_name": "masterNode_CP1", **LOGIN},
    "worker_node": {"ssh_cp_name": "workerNode_CP1", **LOGIN},
}
PAGE = (ROOT / "docs" / "storage.md").read_text()


def test_the_request_is_one_that_the_sample_takes(tmp_path: Path) -> None:
    sample = ROOT / "samples" / "cluster-sandbox"
    shape = build_package(sample, tmp_path / "cluster.csar").descriptor.flavours["storage"]
    example = re.search(r"<!-- request: .*?-->\n```json\n(.*?)```", PAGE, re.DOTALL)
    assert example
    parameters = read_parameters({NAME: {**NODES, **json.loads(example[1])}})
    assert check_cluster(parameters, shape, {}, shape.level(None)).storage == "storageServer"


def test_steps_and_labels_are_called_as_they_are() -> None:
    for name in (CHECK, DELETE, REGISTER):
        assert f"**{name}**" in PAGE
    assert f"`{INSTANCE}`" in PAGE
    assert "label=slipway" in (SCRIPTS / "mount_volume.sh").read_text()
