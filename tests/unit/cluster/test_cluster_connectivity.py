"""A cluster's external connectivity: the ports that nodes are known by stay, others may move."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from slipway.model.connectivity import recorded_links
from slipway.model.errors import BadRequest
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.operation import OperationType
from slipway.model.requests import ChangeExtConnRequest
from tests.unit.cluster.cluster_situations import DRIVER, situation, slots


def link(network: str, *points: str) -> ExtVirtualLink:
    return ExtVirtualLink(id="l", resource_id=network, ext_cps=tuple(VnfExtCpData(cpd_id=one) for one in points))


def check(asked: ExtVirtualLink, *now: ExtVirtualLink) -> None:
    request, there = ChangeExtConnRequest(ext_virtual_links=(asked,)), slots(1, 2)
    made = situation(OperationType.CHANGE_EXT_CONN, request, there, there, 1)
    info = made.instance.vnf.instantiated_vnf_info
    assert info is not None
    vnf = replace(
        made.instance.vnf, instantiated_vnf_info=replace(info, ext_virtual_link_info=recorded_links(now, "default"))
    )
    DRIVER.check(dataclasses.replace(made, instance=replace(made.instance, vnf=vnf)))


@pytest.mark.parametrize("point", ["masterNode_CP1", "workerNode_CP2"])
def test_a_port_that_nodes_are_known_by_is_not_moved(point: str) -> None:
    with pytest.raises(BadRequest, match=rf"^extVirtualLinks: .*addresses of '{point}' \(.*_node.ssh_cp_name\)"):
        check(link("net-2", point))


def test_nor_along_with_its_link() -> None:
    with pytest.raises(BadRequest, match="leave that connection point on its network"):
        check(link("net-2"), link("net-1", "workerNode_CP2"))


def test_it_may_be_named_as_it_is_and_others_may_move() -> None:
    check(link("net-1", "workerNode_CP2", "masterNode_CP9"), link("net-1", "workerNode_CP2"))
    check(link("net-2", "masterNode_CP9"), link("net-1", "masterNode_CP9"))
