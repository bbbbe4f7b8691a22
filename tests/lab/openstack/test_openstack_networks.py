"""Networks, subnets and addresses that a request names, on a real Neutron."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.openstack.openstack_cluster import OpenStackVnf
from tests.lab.openstack.openstack_lab import OpenStackLab

pytestmark = pytest.mark.group(name="openstack")

SMALL = Path(__file__).with_name("small_vnf")
RANGES = {"given": ("10.91.0.0/24",), "outside": ("10.92.0.0/24", "10.93.0.0/24")}
ADDRESS = "10.92.0.50"


def with_internal_link(directory: Path) -> Path:
    """The small VNF with a link of its own, and without a template: one is generated."""
    sample = directory / "linked"
    shutil.copytree(SMALL, sample)
    shutil.rmtree(sample / "BaseHOT")
    path = sample / "Definitions" / "small_df_simple.yaml"
    document = yaml.safe_load(path.read_text())
    rates = {"root": 1_000_000}
    document["topology_template"]["node_templates"] |= {
        "internalVL": {
            "type": "tosca.nodes.nfv.VnfVirtualLink",
            "properties": {
                "connectivity_type": {"layer_protocols": ["ipv4"]},
                "vl_profile": {"max_bitrate_requirements": rates, "min_bitrate_requirements": rates},
            },
        },
        "server_CP2": {
            "type": "tosca.nodes.nfv.VduCp",
            "properties": {"layer_protocols": ["ipv4"], "order": 1},
            "requirements": [{"virtual_binding": "server"}, {"virtual_link": "internalVL"}],
        },
    }
    path.write_text(yaml.safe_dump(document))
    return sample


@pytest.fixture(scope="module")
def project(openstack_lab: OpenStackLab) -> Iterator[OpenStackLab]:
    project = openstack_lab.project("networks")
    network = project.user.network
    project.clear()
    made = []
    for name, ranges in RANGES.items():
        for left in list(network.networks(name=name, project_id=project.user.current_project_id)):
            network.delete_network(left)  # by a run that was killed
        made.append(network.create_network(name=name))
        for cidr in ranges:
            network.create_subnet(name=cidr, network_id=made[-1].id, ip_version=4, cidr=cidr)
    with project.nothing_left():
        yield project
    for one in made:
        network.delete_network(one)


@pytest.fixture(scope="module")
def vnf(tmp_path_factory: pytest.TempPathFactory, project: OpenStackLab) -> Iterator[OpenStackVnf]:
    directory = tmp_path_factory.mktemp("networks")
    vnf = OpenStackVnf(directory, project, with_internal_link(directory))
    yield vnf
    vnf.kill()


def outside(project: OpenStackLab, *asked: dict[str, Any]) -> list[dict[str, Any]]:
    ethernet = {"ipAddresses": list(asked)}
    config = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}]}
    point = {"cpdId": "server_CP1", "cpConfig": {"first": config}}
    return [{"id": "link", "resourceId": project.network_id("outside"), "extCps": [point]}]


def ports(vnf: OpenStackVnf) -> dict[str, list[tuple[str, str]]]:
    """Addresses and subnets of the server's ports as Neutron has them, by network."""
    network = vnf.cloud.user.network
    names = {one.id: one.name for one in network.networks()}
    held = network.ports(device_id=vnf.server("server-0").id)
    return {
        names[port.network_id]: sorted((one["ip_address"], one["subnet_id"]) for one in port.fixed_ips) for port in held
    }


def test_a_life_on_networks_that_exist(vnf: OpenStackVnf, project: OpenStackLab) -> None:
    subnets = {one.name: one.id for one in project.user.network.subnets()}
    first, second = (subnets[cidr] for cidr in RANGES["outside"])
    fixed = {"type": "IPV4", "fixedAddresses": [ADDRESS], "subnetId": first}
    chosen = {"type": "IPV4", "numDynamicAddresses": 1, "subnetId": second}
    given = {"id": "given", "vnfVirtualLinkDescId": "internalVL", "resourceId": project.network_id("given")}
    networks = {one.id for one in project.user.network.networks()}
    vnf.create()
    links = outside(project, fixed, chosen)
    vnf.run("instantiate", {"flavourId": "simple", "extVirtualLinks": links, "extManagedVirtualLinks": [given]})
    there = ports(vnf)
    assert sorted(there) == ["given", "outside"]
    assert [subnet for _, subnet in there["outside"]] == [first, second]
    assert there["outside"][0] == (ADDRESS, first)
    assert {one.id for one in project.user.network.networks()} == networks, "none was made"

    info = vnf.shown()["instantiatedVnfInfo"]
    assert info["extManagedVirtualLinkInfo"][0]["networkResource"]["resourceId"] == given["resourceId"]
    assert "vnfVirtualLinkResourceInfo" not in info
    shown = info["extCpInfo"][0]["cpProtocolInfo"][0]["ipOverEthernet"]["ipAddresses"]
    assert sorted((one["addresses"][0], one["subnetId"], one["isDynamic"]) for one in shown) == [
        (*there["outside"][0], False),
        (*there["outside"][1], True),
    ]

    vnf.heal("server-0")
    assert ports(vnf) == there
    vnf.run("change_ext_conn", {"extVirtualLinks": outside(project, chosen)})
    after = ports(vnf)
    assert [subnet for _, subnet in after["outside"]] == [second]
    assert after["given"] == there["given"]
    vnf.run("terminate", {"terminationType": "FORCEFUL"})
