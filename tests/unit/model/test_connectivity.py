"""Links of a VNF after a change: what is said counts, what is unsaid stays."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from slipway.model.connectivity import Links, connected, link_port, moved_points, used_link_ports
from slipway.model.instance import ExtVirtualLink


def links(*given: dict[str, Any]) -> Links:
    return tuple(convert(one, ExtVirtualLink) for one in given)


def link(id_: str, network: str, *points: str, **fixed: str) -> dict[str, Any]:
    def data(point: str) -> dict[str, Any]:
        if point not in fixed:
            return {"cpdId": point}
        ips = [{"type": "IPV4", "fixedAddresses": [fixed[point]]}]
        config = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": ips}}
        return {"cpdId": point, "cpConfig": {"a": {"cpProtocolData": [config]}}}

    return {"id": id_, "resourceId": network, "extCps": [data(point) for point in (*points, *fixed)]}


NOW = links(link("l1", "net-1", "a", "b"), link("l2", "net-2", "c"))


def test_a_connection_point_leaves_its_former_link_and_the_others_stay() -> None:
    after = connected(NOW, links(link("l2", "net-2", "a")))
    assert after == links(link("l1", "net-1", "b"), link("l2", "net-2", "c", "a"))
    assert moved_points(NOW, after) == {"a"}


def test_a_link_without_connection_points_is_no_longer_there() -> None:
    after = connected(NOW, links(link("new", "net-3", "c")))
    assert after == links(link("l1", "net-1", "a", "b"), link("new", "net-3", "c"))


def test_a_link_that_is_another_network_takes_its_connection_points_along() -> None:
    after = connected(NOW, links(link("l1", "net-9")))
    assert after == links(link("l1", "net-9", "a", "b"), link("l2", "net-2", "c"))
    assert moved_points(NOW, after) == {"a", "b"}


def test_said_again_as_it_is_nothing_changes() -> None:
    assert connected(NOW, NOW) == NOW
    assert connected(NOW, links(link("l1", "net-1", "b"))) == NOW
    assert moved_points(NOW, NOW) == set()


def test_addresses_asked_for_stay_on_their_network_and_do_not_go_to_another() -> None:
    now = links(link("l1", "net-1", a="10.0.0.5"))
    assert connected(now, links(link("l1", "net-1", "a"))) == now
    assert connected(now, links(link("l1", "net-2", "a"))) == links(link("l1", "net-2", "a"))
    other = links(link("l1", "net-1", a="10.0.0.6"))
    assert connected(now, other) == other
    assert moved_points(now, other) == {"a"}


def with_ports(network: str, ports: dict[str, str], **points: str) -> dict[str, Any]:
    """Ports that exist, by their ids, and connection points that are to be one of them."""
    return {
        "id": "l1",
        "resourceId": network,
        "extCps": [{"cpdId": point, "cpConfig": {"a": {"linkPortId": id_}}} for point, id_ in points.items()],
        "extLinkPorts": [{"id": id_, "resourceHandle": {"resourceId": one}} for id_, one in ports.items()],
    }


def used(given: Links) -> dict[str, str]:
    return {cp.cpd_id: port.resource_handle.resource_id for link in given for cp, port in used_link_ports(link)}


def test_a_connection_point_may_be_a_port_that_exists() -> None:
    (one,) = links(with_ports("net-1", {"p": "port-1", "q": "port-2"}, a="p"))
    (cp,) = one.ext_cps
    assert [port and port.resource_handle.resource_id for port in (link_port(one, cp, 0), link_port(one, cp, 1))] == [
        "port-1",
        None,
    ]
    assert used((one,)) == {"a": "port-1"}


def test_ports_that_exist_stay_with_the_connection_points_that_a_change_does_not_name() -> None:
    now = links(with_ports("net-1", {"p": "port-1", "q": "port-2"}, a="p", b="q"))
    after = connected(now, links(with_ports("net-1", {"r": "port-3"}, b="r")))
    assert used(after) == {"a": "port-1", "b": "port-3"}
    assert [port.id for port in after[0].ext_link_ports] == ["r", "p"]
    assert moved_points(now, after) == {"b"}
    assert connected(now, now) == now


def test_another_port_under_the_same_id_is_a_move() -> None:
    now = links(with_ports("net-1", {"p": "port-1"}, a="p"))
    after = connected(now, links(with_ports("net-1", {"p": "port-9"}, a="p")))
    assert used(after) == {"a": "port-9"}
    assert moved_points(now, after) == {"a"}
