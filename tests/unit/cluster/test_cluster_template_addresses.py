"""Addresses of a template's port and floating IPs: what is checked once they are known."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.parameters import PATH
from slipway.cluster.spec import ClusterSpec, Node, SshLogin
from slipway.cluster.steps.bootstrap import further_names
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.template_addresses import refuse_shared_address, with_template_addresses
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Address, FoundMachine, FoundPort

MASTERS = tuple(
    Node(machine=f"m{at}", slot=f"masterNode-{at}", name=f"n{at}", master=True, ssh="CP1", nic="CP1",
         login=SshLogin(username="root"))
    for at in range(3)
)  # fmt: skip
NETWORKS = ClusterNetworks(pods="192.168.0.0/16", services="10.96.0.0/12", nodes="10.10.0.0/24", node_prefix=24)
CLUSTER = ClusterSpec(instance="i", masters=MASTERS, networks=NETWORKS, vip_port="vip_CP")


class Stack:
    """Two of three masters are made; the third comes later in the same operation."""

    def __init__(
        self, address: str | None = "10.10.0.50", network: str | None = "net", floating: dict[str, str] | None = None
    ) -> None:
        self._floating = floating or {}
        self._port = FoundPort(
            id="p",
            name="vip_CP",
            resource_id="p",
            addresses=(Address(ip=address),),
            network=network,
            floating=self._floating,
        )

    async def port(self, name: str) -> FoundPort:
        if name != self._port.name:
            raise StepError(f"No port {name}.")
        return self._port

    async def machine(self, machine_id: str) -> FoundMachine:
        at = int(machine_id[1:])
        if at == 2:
            raise StepError("No step made it.")
        port = FoundPort(
            id="q",
            name="CP1",
            resource_id="q",
            addresses=(Address(ip=f"10.10.0.{at + 5}"),),
            network="net",
            floating={name: f"{ip}{at}" for name, ip in self._floating.items()},
        )
        return FoundMachine(id=machine_id, name="m", vdu="masterNode", resource_id="r", ready=True, ports=(port,))


async def known(cluster: ClusterSpec, **port: Any) -> ClusterSpec:
    return await with_template_addresses(cluster, cast(StepContext, Stack(**port)))


async def test_a_step_gets_the_address_of_the_port() -> None:
    assert CLUSTER.balanced
    assert (await known(CLUSTER)).vip == "10.10.0.50"
    assert (await known(replace(CLUSTER, vip="10.10.0.50"))).vip == "10.10.0.50"
    assert (await known(CLUSTER, network=None)).vip == "10.10.0.50"
    given = replace(CLUSTER, vip="10.10.0.100", vip_port=None)
    assert await known(given) == given


@pytest.mark.parametrize(
    ("changes", "port", "reason"),
    [
        ({"vip_port": "x"}, {}, "No port x."),
        ({}, {"address": None}, "the port 'vip_CP' has no address"),
        ({"vip": "10.10.0.51"}, {}, "has the address 10.10.0.50, and cluster_ip is 10.10.0.51"),
        ({}, {"address": "10.10.1.50"}, "is outside the nodes' network 10.10.0.0/24"),
        ({}, {"address": "192.168.1.1"}, "is in the pods' network"),
        ({}, {"address": "10.10.0.6"}, "is a node's own"),
        ({}, {"network": "other"}, "is on the network other, masterNode-0 on net"),
    ],
)
async def test_an_address_that_can_not_be_is_refused_with_field_and_cure(
    changes: dict[str, Any], port: dict[str, Any], reason: str
) -> None:
    with pytest.raises(StepError) as caught:
        await known(replace(CLUSTER, **changes), **port)
    assert caught.value.detail.startswith(f"{PATH}.master_node.cluster_cp_name: ")
    assert reason in caught.value.detail
    assert not caught.value.temporary


FLOATING = {"vip_FloatingIP": "203.0.113.7"}


async def test_the_floating_ip_of_the_shared_port_is_where_the_cluster_is_called_from_elsewhere() -> None:
    named = replace(CLUSTER, floating_ip="vip_FloatingIP")
    assert (await known(named, floating=FLOATING)).outside == "203.0.113.7"
    assert (await known(CLUSTER, floating=FLOATING)).outside is None, "nobody asked for it"


async def test_of_one_master_it_is_that_of_its_own_port_once_it_is_made() -> None:
    alone = replace(CLUSTER, vip_port=None, floating_ip="vip_FloatingIP", masters=MASTERS[:1])
    assert (await known(alone, floating=FLOATING)).outside == "203.0.113.70"
    later = replace(alone, masters=MASTERS[2:])
    assert await known(later, floating=FLOATING) == later


@pytest.mark.parametrize("cluster", [CLUSTER, replace(CLUSTER, vip_port=None, masters=MASTERS[:1])])
async def test_a_floating_ip_that_leads_elsewhere_is_refused_with_field_and_cure(cluster: ClusterSpec) -> None:
    with pytest.raises(StepError) as caught:
        await known(replace(cluster, floating_ip="other"), floating=FLOATING)
    assert caught.value.detail.startswith(f"{PATH}.master_node.cluster_fip_name: no floating IP 'other' leads to ")
    assert "those that do: vip_FloatingIP" in caught.value.detail
    assert "port_id" in caught.value.detail


async def test_ssh_goes_to_a_floating_ip_by_its_name() -> None:
    ctx = cast(StepContext, Stack(floating={"node_FloatingIP": "203.0.113.9"}))
    node = replace(MASTERS[1], ssh="node_FloatingIP")
    assert await address_of(node, ctx, node.ssh) == "203.0.113.91"
    assert await address_of(node, ctx) == "10.10.0.6", "the cluster's own traffic does not"
    with pytest.raises(StepError, match="it has the floating IPs: node_FloatingIP"):
        await address_of(replace(node, ssh="other"), ctx, "other")


async def test_the_api_servers_certificate_has_the_floating_ips() -> None:
    ctx = cast(StepContext, Stack(floating={"node_FloatingIP": "203.0.113.9"}))
    nodes = tuple(replace(node, ssh="node_FloatingIP") for node in MASTERS[:2])
    cluster = replace(CLUSTER, masters=nodes, outside="203.0.113.7")
    assert await further_names(cluster, ctx) == ("203.0.113.7", "203.0.113.90", "203.0.113.91")


async def test_a_machine_that_the_vim_gave_the_masters_address_is_named_before_it_is_contacted() -> None:
    ctx = cast(StepContext, Stack())
    with pytest.raises(
        StepError, match=r"cluster_ip: the VIM gave masterNode-1 the address 10.10.0.6 at CP1.*roll back"
    ):
        await refuse_shared_address(MASTERS[1], "10.10.0.6", ctx)
    await refuse_shared_address(MASTERS[0], "10.10.0.6", ctx)
    await refuse_shared_address(MASTERS[1], None, ctx)
