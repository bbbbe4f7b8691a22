"""Requests as those who use packages with BaseHOT and user data write them: taken whole, and what Heat is told then."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from slipway.api.v1.requests import InstantiateVnfRequest
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.record import with_outcomes
from slipway.model.descriptor import Aspect, ConnectionPoint, Descriptor, Flavour, Level, Vdu, VirtualLink
from slipway.model.instance import Instance
from slipway.model.machine import Found, FoundMachine, Outcome
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import AnyRequest, ChangeExtConnRequest, ChangePackageRequest, InstantiateRequest
from slipway.model.situation import Situation
from slipway.vim.openstack.base_hot import rendered
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.stack_change import ChangeStack
from tests.unit.lcm.situations import DESCRIPTOR, empty_instance
from tests.unit.vim.openstack_hots import TOP
from tests.unit.vim.openstack_targets import image, package_file

OUTSIDE, INSIDE = "11f8a056-0495-4ca6-8de9-94402604663f", "87512249-79b9-4e25-b173-18c327436c12"
SUBNET, SUBNET6 = "1d4877ea-b810-4093-95de-bee62b2363f1", "52a1f4cf-4b9f-4b15-90cf-0d3c8f1c6f51"
TEMPLATE = """
heat_template_version: 2013-05-23
parameters: {nfv: {type: json}}
resources:
  VDU1:
    type: VDU1.yaml
    properties:
      flavor: {get_param: [nfv, VDU, VDU1, computeFlavourId]}
      image: {get_param: [nfv, VDU, VDU1, vcImageId]}
      net1: {get_param: [nfv, CP, VDU1_CP1, network]}
      fixed_ips1: {get_param: [nfv, CP, VDU1_CP1, fixed_ips]}
      net2: {get_resource: internalVL1}
      net3: {get_resource: internalVL2}
  VDU2:
    type: VDU2.yaml
    properties:
      flavor: {get_param: [nfv, VDU, VDU2, computeFlavourId]}
      image: {get_param: [nfv, VDU, VDU2, vcImageId]}
      net1: {get_param: [nfv, CP, VDU2_CP1, network]}
      subnet1: {get_param: [nfv, CP, VDU2_CP1, fixed_ips, 0, subnet]}
      fixed_ips1: {get_param: [nfv, CP, VDU2_CP1, fixed_ips]}
  internalVL1: {type: OS::Neutron::Net}
  internalVL1_subnet:
    type: OS::Neutron::Subnet
    properties: {ip_version: 4, network: {get_resource: internalVL1}, cidr: 192.168.3.0/24}
  internalVL2: {type: OS::Neutron::Net}
"""
NESTED = """
heat_template_version: 2013-05-23
resources:
  {vdu}: {{type: OS::Nova::Server, properties: {{flavor: a, image: b}}}}
"""
FILES = {
    TOP: TEMPLATE,
    **{f"BaseHOT/simple/nested/{vdu}.yaml": NESTED.format(vdu=vdu) for vdu in ("VDU1", "VDU2")},
}
USER_DATA = {
    "lcm-operation-user-data": "./UserData/userdata_standard.py",
    "lcm-operation-user-data-class": "StandardUserData",
}


def flavour(*further: str) -> Flavour:
    """`further`: connection points of VDU1 and VDU2 from outside, that a newer VNFD has."""
    vdus = [Vdu(name=name, initial=1, maximum=3, image=image("cirros"), flavour="m1.tiny") for name in ("VDU1", "VDU2")]
    points = [
        ConnectionPoint(name="VDU1_CP1", vdu="VDU1"),
        ConnectionPoint(name="VDU2_CP1", vdu="VDU2"),
        ConnectionPoint(name="VDU1_CP2", vdu="VDU1", virtual_link="internalVL1"),
        ConnectionPoint(name="VDU1_CP3", vdu="VDU1", virtual_link="internalVL2"),
        *(ConnectionPoint(name=name, vdu=name.partition("_")[0]) for name in further),
    ]
    return Flavour(
        id="simple",
        vdus={vdu.name: vdu for vdu in vdus},
        connection_points={point.name: point for point in points},
        virtual_links={name: VirtualLink(name=name) for name in ("internalVL1", "internalVL2")},
        aspects={"VDU1_scale": Aspect(name="VDU1_scale", max_level=2, deltas={"VDU1": (1,)})},
        levels={
            name: Level(name=name, scale={"VDU1_scale": at}, counts={"VDU1": 1 + at, "VDU2": 1})
            for at, name in enumerate(("instantiation_level_1", "instantiation_level_2"))
        },
        default_level="instantiation_level_1",
    )


def addresses(*asked: dict[str, Any]) -> dict[str, Any]:
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": list(asked)}}]}


def point(name: str, *asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "cpdId": name,
        "cpConfig": {f"{name}_1": addresses(*(asked or [{"type": "IPV4", "numDynamicAddresses": 1}]))},
    }


def link(id_: str, *points: dict[str, Any], network: str = OUTSIDE) -> dict[str, Any]:
    return {"id": id_, "resourceId": network, "extCps": list(points)}


ON_SUBNET = {"type": "IPV4", "numDynamicAddresses": 1, "subnetId": SUBNET}
MANAGED = {"id": "ext_managed_vl_1", "vnfVirtualLinkDescId": "internalVL1", "resourceId": INSIDE}
INSTANTIATE: dict[str, Any] = {
    "flavourId": "simple",
    "instantiationLevelId": "instantiation_level_1",
    "extVirtualLinks": [link("ext_vl_id_net1", point("VDU1_CP1"), point("VDU2_CP1", ON_SUBNET))],
    "extManagedVirtualLinks": [MANAGED],
    "vimConnectionInfo": {
        "vim1": {
            "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
            "vimId": "3a2904a7-094a-4b26-8ddf-8b38c2efda9b",
            "interfaceInfo": {"endpoint": "http://localhost/identity/v3"},
            "accessInfo": {"username": "nfv_user", "password": "a", "project": "nfv", "region": "RegionOne"},
        }
    },
}
WITH_USER_DATA = {**INSTANTIATE, "additionalParams": {**USER_DATA, "nfv": {"VDU": {"VDU1-0": {"name": "VDU1-a-001"}}}}}
# What every attribute that a link or an address may have looks like.
MAXIMAL = {
    **INSTANTIATE,
    "extVirtualLinks": [
        {**link("l", point("VDU1_CP1", ON_SUBNET)), "vimConnectionId": "vim1", "resourceProviderId": "Company",
         "extLinkPorts": [{"id": "unused", "resourceHandle": {"resourceId": "389ade82-7618-4b42-bc90-5ebbac0863cf"}}]},
        link("k", point("VDU2_CP1", {"type": "IPV4", "fixedAddresses": ["100.100.100.11"], "subnetId": SUBNET},
                        {"type": "IPV6", "numDynamicAddresses": 1, "subnetId": SUBNET6})),
    ],
    "extManagedVirtualLinks": [
        {**MANAGED, "vimConnectionId": "vim1", "resourceProviderId": "Company",
         "extManagedMultisiteVirtualLinkId": "8e2a0e0a-5e5a-4c1c-b8c7-3d0f4a6d5c11"},
        {**MANAGED, "id": "ext_managed_vl_2", "vnfVirtualLinkDescId": "internalVL2"},
    ],
}  # fmt: skip


def situation(
    kind: OperationType, request: AnyRequest, instance: Instance, now: Flavour, before: Flavour | None = None
) -> Situation:
    descriptor: Descriptor = msgspec.structs.replace(DESCRIPTOR, flavours={"simple": now})
    files = frozenset({*FILES, "UserData/userdata_standard.py", "Scripts/coordinate_vnf.py"})
    return Situation(kind, request, instance, descriptor, now, files=files, flavour_before=before, files_before=files)


def planned(now: Situation) -> Plan:
    """Accepted, and planned with the package's files."""
    rules, driver = OPERATIONS[now.operation], OpenStackDriver()
    rules.check(now, now.request)
    assert rules.change
    change = rules.change(now, now.request)
    driver.refuse(change)
    files = {path: package_file(text) for path, text in FILES.items()}
    assert change.after
    return driver.steps(dataclasses.replace(change, before=None, after=change.after.with_files({"d": files})), Found())


def told(plan: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """The template's resources and `nfv`, by Slipway itself."""
    spec = msgspec.convert(plan.steps[-1].args, ChangeStack).after
    assert spec
    template, _ = rendered(spec, {path: text.encode() for path, text in FILES.items()})
    return template["resources"], spec.parameters["nfv"]


def instantiated(body: dict[str, Any]) -> Instance:
    request = msgspec.convert(body, InstantiateRequest)
    now = situation(OperationType.INSTANTIATE, request, empty_instance(), flavour())
    rules = OPERATIONS[OperationType.INSTANTIATE]
    assert rules.change
    members = rules.change(now, request).members
    machines = tuple(
        FoundMachine(id=one.id, name=one.name, vdu=one.vdu, resource_id=one.name, ready=True)
        for one in members.values()
    )
    vnf = rules.complete(now, request)
    assert vnf.instantiated_vnf_info
    info = with_outcomes(vnf.instantiated_vnf_info, [Outcome(machines=machines)], now.flavour, "vim1", members, 1)
    vnf = msgspec.structs.replace(vnf, instantiated_vnf_info=info)
    instance: Instance = msgspec.structs.replace(empty_instance(), vnf=vnf, parameters=request.additional_params)
    return instance


@pytest.mark.parametrize("body", [INSTANTIATE, WITH_USER_DATA, MAXIMAL])
def test_instantiations_in_v2(body: dict[str, Any]) -> None:
    request = msgspec.convert(body, InstantiateRequest)
    now = situation(OperationType.INSTANTIATE, request, empty_instance(), flavour())
    OPERATIONS[OperationType.INSTANTIATE].check_vim(now.instance.vnf, request.vim_connection_info["vim1"], request)
    resources, nfv = told(planned(now))
    assert resources["VDU1-0"]["properties"]["net2"] == INSIDE
    assert "internalVL1" not in resources
    assert nfv["CP"]["VDU2_CP1"]["fixed_ips"][0]["subnet"] == SUBNET
    assert ("internalVL2" in resources) == (body is not MAXIMAL)


def test_several_addresses_stand_in_nfv_in_their_order() -> None:
    request = msgspec.convert(MAXIMAL, InstantiateRequest)
    _, nfv = told(planned(situation(OperationType.INSTANTIATE, request, empty_instance(), flavour())))
    assert nfv["CP"]["VDU2_CP1"] == {
        "network": OUTSIDE,
        "fixed_ips": [{"ip_address": "100.100.100.11", "subnet": SUBNET}, {"subnet": SUBNET6}],
    }


def test_instantiations_in_v1() -> None:
    """Where a connection point has a list of configurations, and the VIM an id of its own."""
    as_list = [
        {**one, "extCps": [{**cp, "cpConfig": list(cp["cpConfig"].values())} for cp in one["extCps"]]}
        for one in INSTANTIATE["extVirtualLinks"]
    ]
    vims = [{"id": "vim1", "vimId": "3a2904a7-094a-4b26-8ddf-8b38c2efda9b", "vimType": "openstack"}]
    body = {**WITH_USER_DATA, "extVirtualLinks": as_list, "vimConnectionInfo": vims}
    request = msgspec.convert(body, InstantiateVnfRequest).translated()
    resources, nfv = told(planned(situation(OperationType.INSTANTIATE, request, empty_instance(), flavour())))
    assert resources["VDU1-0"]["properties"]["net2"] == INSIDE
    assert nfv["CP"]["VDU2_CP1"] == {"network": OUTSIDE, "fixed_ips": [{"subnet": SUBNET}]}


def test_other_networks_with_subnets_and_several_addresses() -> None:
    other = "4529333c-dbcc-4d93-9b64-210647712569"
    asked: list[dict[str, Any]] = [{"type": "IPV4", "fixedAddresses": ["22.22.22.101"], "subnetId": SUBNET},
             {"type": "IPV6", "numDynamicAddresses": 1, "subnetId": SUBNET6}]  # fmt: skip
    body = {
        "extVirtualLinks": [link("changed", point("VDU2_CP1", *asked), network=other)],
        "additionalParams": USER_DATA,
    }
    request = msgspec.convert(body, ChangeExtConnRequest)
    now = situation(OperationType.CHANGE_EXT_CONN, request, instantiated(WITH_USER_DATA), flavour())
    resources, nfv = told(planned(now))
    assert resources["VDU1-0"]["properties"]["net2"] == INSIDE, "the internal link stays where it is"
    assert nfv["CP"]["VDU2_CP1"] == {
        "network": other,
        "fixed_ips": [{"ip_address": "22.22.22.101", "subnet": SUBNET}, {"subnet": SUBNET6}],
    }


def test_a_change_of_package_that_adds_connection_points() -> None:
    net4 = "859db81a-2d3f-4634-be04-bdf052af5792"
    login = {"cp_name": "VDU1_CP1", "username": "ubuntu", "password": "ubuntu"}
    body = {
        "vnfdId": "d",
        "extVirtualLinks": [link("ext_vl_id_net4", point("VDU1_CP4"), point("VDU2_CP4"), network=net4)],
        "extManagedVirtualLinks": [MANAGED],
        "additionalParams": {
            **USER_DATA,
            "upgrade_type": "RollingUpdate",
            "lcm-operation-coordinate-new-vnf": "./Scripts/coordinate_vnf.py",
            "lcm-operation-coordinate-old-vnf": "./Scripts/coordinate_vnf.py",
            "vdu_params": [{"vdu_id": "VDU1", "old_vnfc_param": login, "new_vnfc_param": login}],
        },
    }
    request = msgspec.convert(body, ChangePackageRequest)
    standing = instantiated(WITH_USER_DATA)
    now = situation(OperationType.CHANGE_VNFPKG, request, standing, flavour("VDU1_CP4", "VDU2_CP4"), flavour())
    rules = OPERATIONS[OperationType.CHANGE_VNFPKG]
    rules.check(now, request)
    after = rules.complete(now, request).instantiated_vnf_info
    assert after
    assert [(one.id, one.network_resource.resource_id) for one in after.ext_managed_virtual_link_info] == [
        ("ext_managed_vl_1", INSIDE)
    ]
    assert rules.change
    target = rules.change(now, request).after
    assert target
    assert dict(target.managed_networks) == {"internalVL1": INSIDE}
    assert {cp.cpd_id for one in target.links for cp in one.ext_cps} == {
        "VDU1_CP1", "VDU2_CP1", "VDU1_CP4", "VDU2_CP4"
    }  # fmt: skip
