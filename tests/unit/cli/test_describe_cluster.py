"""`slipway vnf describe` of a cluster: what is wrong first, with the command that helps."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from slipway.cli.describe import view

VNF: dict[str, Any] = {
    "id": "11111111-2222-4333-8444-555555555555",
    "vnfInstanceName": "mycluster",
    "instantiationState": "INSTANTIATED",
    "instantiatedVnfInfo": {
        "flavourId": "simple",
        "vnfcResourceInfo": [{"id": "m", "vduId": "workerNode", "metadata": {"name": "workerNode-1"}}],
        "vnfcInfo": [{"id": "workerNode-m", "vduId": "workerNode", "vnfcState": "STARTED", "vnfcResourceInfoId": "m"}],
    },
}
NODE = {"name": "workerNode-1", "role": "worker", "version": "v1.34.4", "address": "10.0.0.7"}


def shown(cluster: dict[str, Any]) -> list[str]:
    console = Console(width=160, record=True, file=None, force_terminal=False, quiet=True)
    with console.capture() as captured:
        console.quiet = False
        console.print(view(VNF, [], cluster))
    return captured.get().splitlines()


def test_a_silent_node_comes_first_with_its_cure() -> None:
    node = NODE | {"ready": True, "answers": False}
    lines = shown({"problems": ["workerNode-1 does not answer."], "nodes": [node], "version": "v1.34.4"})
    assert [line.lstrip("│├└─ ") for line in lines[1:4]] == [
        "Problems",
        "workerNode-1 does not answer.",
        "slipway vnf heal mycluster --vnfc workerNode-m",
    ]
    assert any("workerNode-1  worker  silent  v1.34.4  10.0.0.7" in line for line in lines)


def test_a_master_tells_of_etcd_its_certificates_and_the_virtual_address() -> None:
    node = NODE | {"role": "master", "ready": True, "answers": True, "etcd": True, "cordoned": True,
                   "certificatesEnd": "2027-11-16T04:54:01Z"}  # fmt: skip
    cluster = {"problems": [], "nodes": [node], "version": "v1.34.4", "virtualAddress": "10.0.0.250",
               "virtualAddressAnswers": False}  # fmt: skip
    text = "\n".join(shown(cluster))
    assert "virtual address 10.0.0.250 does not answer" in text
    assert "Ready  v1.34.4  10.0.0.7  etcd answers  certificates until 2027-11-16  cordoned" in text


def test_a_cluster_that_can_not_be_asked_says_so() -> None:
    text = "\n".join(shown({"problems": ["No API server of the cluster is ready."], "nodes": []}))
    assert "No API server of the cluster is ready." in text
    assert "Kubernetes (does not answer)" in text


@pytest.mark.parametrize("state", ["does not answer by SSH", "is not ready"])
def test_what_else_a_heal_helps_against_has_the_same_cure(state: str) -> None:
    lines = shown({"problems": [f"workerNode-1 {state}."], "nodes": [NODE]})
    assert "slipway vnf heal mycluster --vnfc workerNode-m" in lines[3]


def test_a_machine_without_power_has_the_same_cure() -> None:
    lines = shown({"problems": ["workerNode-1 has no power."], "nodes": [NODE | {"hasPower": False}]})
    assert "slipway vnf heal mycluster --vnfc workerNode-m" in lines[3]
    assert any("workerNode-1  worker  without power" in line for line in lines)


def test_what_is_known_is_shown_while_the_nodes_are_asked() -> None:
    console = Console(width=160, record=True, force_terminal=False)
    with console.capture() as captured:
        console.print(view(VNF, [], asking=True))
    assert "Kubernetes: asking the nodes" in captured.get()
    assert "workerNode-1" in captured.get()
