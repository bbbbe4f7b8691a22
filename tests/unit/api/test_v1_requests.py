"""Requests of v1 in the core's words, and documents of the core in v1's."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from slipway.api.request_body import Body
from slipway.api.v1 import documents
from slipway.api.v1.requests import OPERATIONS, CreateVnfRequest, InstantiateVnfRequest, VnfInfoModificationRequest
from slipway.lcm.operations import OPERATIONS as CORE
from slipway.model.clock import utcnow
from slipway.model.errors import BadRequest
from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import OperationType
from slipway.model.requests import ModifyRequest, TerminateRequest, TerminationType
from slipway.model.vim import SIMULATED, Vim
from tests.unit.cluster.documents import KUBESPRAY, REGISTRIES, REGISTRY_VNF, VOLUMES

USER_DATA = {
    "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
    "lcm-operation-user-data-class": "KubernetesClusterUserData",
}
ON_OPENSTACK = [
    {
        "id": "8a3adb69-0784-43c7-833e-aab0b6ab4470",
        "vimId": "8d8373fe-6977-49ff-83ac-7756572ed186",
        "vimType": "openstack",
    }
]


def link(name: str, cpd_id: str) -> dict[str, Any]:
    config = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    network = "f0c82461-36b5-4d86-8322-b0bc19cda65f"
    return {"id": name, "resourceId": network, "extCps": [{"cpdId": cpd_id, "cpConfig": [config]}]}


def of_a_cluster(parameters: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    return {
        "flavourId": "simple",
        "additionalParams": {"k8s_cluster_installation_param": parameters, **USER_DATA},
        "extVirtualLinks": [link("net0_master", "masterNode_CP1"), link("net0_worker", "workerNode_CP2"), *more],
        "vimConnectionInfo": ON_OPENSTACK,
    }


# As the documents print them, for all they have been written for.
PRINTED = {
    "kubespray": of_a_cluster(KUBESPRAY, link("net0_externalLB", "externalLB_CP1")),
    "registries": of_a_cluster(REGISTRIES),
    "volumes": of_a_cluster(VOLUMES, link("net0_storage", "storage_server_CP")),
    "registry": {
        "flavourId": "simple",
        "extVirtualLinks": [link("net0", "CP1")],
        "additionalParams": {"private_registry_installation_param": REGISTRY_VNF},
        "vimConnectionInfo": ON_OPENSTACK,
    },
}


def read(kind: OperationType, body: Any) -> Any:
    return Body(OPERATIONS[kind], strict=False).decode(msgspec.json.encode(body)).translated()


@pytest.mark.parametrize("name", PRINTED)
def test_printed_instantiations_are_read_as_they_stand(name: str) -> None:
    body = PRINTED[name]
    request = read(OperationType.INSTANTIATE, body)

    assert request.additional_params == body["additionalParams"]
    where = VimConnectionInfo(vim_id="8d8373fe-6977-49ff-83ac-7756572ed186")
    assert request.vim_connection_info == {"8a3adb69-0784-43c7-833e-aab0b6ab4470": where}
    points = [(one.id, cp.cpd_id) for one in request.ext_virtual_links for cp in one.ext_cps]
    assert points == [(one["id"], one["extCps"][0]["cpdId"]) for one in body["extVirtualLinks"]]
    assert all(len(cp.cp_config) == 1 for one in request.ext_virtual_links for cp in one.ext_cps)


@pytest.mark.parametrize("kind", ["SCALE_OUT", "SCALE_IN"])
def test_printed_scalings_count_in_text(kind: str) -> None:
    body = {"type": kind, "aspectId": "worker_instance", "numberOfSteps": "1"}
    request = read(OperationType.SCALE, body)
    assert (request.type, request.aspect_id, request.number_of_steps) == (kind, "worker_instance", 1)
    assert read(OperationType.SCALE, {**body, "numberOfSteps": 3}).number_of_steps == 3
    assert read(OperationType.SCALE, {"type": kind, "aspectId": "a"}).number_of_steps == 1


@pytest.mark.parametrize(("given", "named"), [(["a", "b"], ("a", "b")), ("a", ("a",)), ([], ()), (None, ())])
def test_a_heal_names_vnfcs_in_a_list_or_one_as_it_is(given: Any, named: tuple[str, ...]) -> None:
    request = read(OperationType.HEAL, {"vnfcInstanceId": given, "cause": "sick", "additionalParams": {"all": True}})
    assert request.vnfc_instance_id == named
    assert request.additional_params == {"all": True}


def test_a_grace_of_nothing_is_the_shortest_there_is() -> None:
    body = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0}
    wanted = TerminateRequest(termination_type=TerminationType.GRACEFUL, graceful_termination_timeout=1)
    assert read(OperationType.TERMINATE, body) == wanted
    assert read(OperationType.TERMINATE, {"terminationType": "FORCEFUL"}).graceful_termination_timeout is None


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], {}),
        ([{"id": "a", "vimType": "openstack"}], {}),
        ([{"id": "a", "vimType": "kubernetes", "accessInfo": {}, "interfaceInfo": None}], {}),
        ([{"id": "a", "vimId": "v", "vimType": "openstack"}], {"a": VimConnectionInfo(vim_id="v")}),
        (
            [{"id": "a", "vimId": "v", "accessInfo": {"region": "r"}}],
            {"a": VimConnectionInfo(vim_id="v", access_info={"region": "r"})},
        ),
        (
            [{"id": "a", "vimType": "openstack", "interfaceInfo": {"endpoint": "e"}}],
            {"a": VimConnectionInfo(vim_type="ETSINFV.OPENSTACK_KEYSTONE.V_3", interface_info={"endpoint": "e"})},
        ),
        (
            [{"id": "a", "vimType": "kubernetes", "accessInfo": {"bearer_token": "t"}}],
            {"a": VimConnectionInfo(vim_type="ETSINFV.KUBERNETES.V_1", access_info={"bearer_token": "t"})},
        ),
        (
            [{"id": "a", "vimType": SIMULATED, "interfaceInfo": {"endpoint": "e"}}],
            {"a": VimConnectionInfo(vim_type=SIMULATED, interface_info={"endpoint": "e"})},
        ),
    ],
)
def test_a_vim_is_named_registered_or_described_or_is_the_default(given: list[Any], wanted: dict[str, Any]) -> None:
    request = read(OperationType.INSTANTIATE, {"flavourId": "f", "vimConnectionInfo": given})
    assert request.vim_connection_info == wanted


def test_attributes_that_nobody_knows_are_passed_over() -> None:
    body = {"vnfdId": "v", "vnfInstanceName": "", "nonsense": {"a": 1}, "metadata": None}
    created = msgspec.convert(body, CreateVnfRequest).translated()
    assert (created.vnfd_id, created.vnf_instance_name, created.metadata) == ("v", None, {})
    where = {"id": "a", "vimId": "v", "vimType": "openstack", "nonsense": 1}
    request = read(OperationType.INSTANTIATE, {"flavourId": "f", "nonsense": 1, "vimConnectionInfo": [where]})
    assert request.vim_connection_info == {"a": VimConnectionInfo(vim_id="v")}


def connected(*configs: Any) -> dict[str, Any]:
    return {"extVirtualLinks": [{"id": "l", "resourceId": "r", "extCps": [{"cpdId": "cp", "cpConfig": configs}]}]}


def asked(**address: Any) -> dict[str, Any]:
    data = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [{"type": "IPV4", **address}]}}
    return {"cpProtocolData": [data]}


def test_configurations_keep_their_order_as_slots_have_it() -> None:
    configs = [asked(fixedAddresses=[f"10.0.0.{number}"]) for number in range(12)]
    request = read(OperationType.CHANGE_EXT_CONN, connected(*configs))
    found = [config for _, config in sorted(request.ext_virtual_links[0].ext_cps[0].cp_config.items())]
    addresses = [config.cp_protocol_data[0].ip_over_ethernet.ip_addresses[0].fixed_addresses for config in found]
    assert addresses == [(f"10.0.0.{number}",) for number in range(12)]


def test_numbers_of_addresses_may_be_text() -> None:
    request = read(OperationType.CHANGE_EXT_CONN, connected(asked(numDynamicAddresses="2", subnetId="s")))
    config = next(iter(request.ext_virtual_links[0].ext_cps[0].cp_config.values()))
    ips = config.cp_protocol_data[0].ip_over_ethernet.ip_addresses[0]
    assert (ips.num_dynamic_addresses, ips.subnet_id) == (2, "s")


PLACE = "extVirtualLinks[0].extCps[0].cpConfig"


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("SCALE", {"type": "SCALE_OUT", "aspectId": "a", "numberOfSteps": "some"}, "numberOfSteps: Expected"),
        ("SCALE", {"type": "SCALE_OUT", "aspectId": "a", "numberOfSteps": "0"}, "numberOfSteps: Expected"),
        ("SCALE", {"type": "SIDEWAYS", "aspectId": "a"}, "type: Invalid enum value"),
        ("INSTANTIATE", {}, "flavourId"),
        ("INSTANTIATE", {"flavourId": "f", "vimConnectionInfo": [{"vimId": "v"}]}, "required field `id`"),
        ("INSTANTIATE", {"flavourId": "f", "vimConnectionInfo": [{"id": "a"}, {"id": "b"}]}, "vimConnectionInfo: "),
        ("TERMINATE", {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": -1}, "gracefulTerminationTimeout"),
        ("HEAL", {"vnfcInstanceId": ""}, "vnfcInstanceId"),
        ("CHANGE_EXT_CONN", {}, "extVirtualLinks"),
        ("CHANGE_EXT_CONN", {"extVirtualLinks": []}, "extVirtualLinks"),
        ("CHANGE_EXT_CONN", connected(), PLACE),
        ("CHANGE_EXT_CONN", connected({"cpProtocolData": [{"layerProtocol": "TOKEN_RING"}]}), f"{PLACE}[0]"),
        ("CHANGE_EXT_CONN", connected(asked()), "exactly one of fixedAddresses"),
        ("CHANGE_EXT_CONN", connected(asked(fixedAddresses=["10.0.0.1"], numDynamicAddresses=1)), "exactly one of"),
        ("CHANGE_EXT_CONN", connected(asked(fixedAddresses=["10.0.0"])), "'10.0.0' is not an IP address"),
        ("CHANGE_EXT_CONN", connected(asked(fixedAddresses=["::1"])), "not of the type IPV4"),
        ("CHANGE_EXT_CONN", connected(asked(type="IPV6", fixedAddresses=["fd00::5%x"])), "'fd00::5%x' has a zone"),
        ("CHANGE_EXT_CONN", connected(asked(numDynamicAddresses=0)), f"{PLACE}[0].cpProtocolData[0]"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(kind: str, body: dict[str, Any], told: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        read(OperationType(kind), body)
    assert told in refusal.value.detail


NAMES = st.sampled_from(
    [
        "flavourId", "vimConnectionInfo", "id", "vimId", "accessInfo", "extVirtualLinks", "resourceId", "extCps",
        "cpdId", "cpConfig", "cpProtocolData", "layerProtocol", "ipOverEthernet", "ipAddresses", "type", "aspectId",
        "fixedAddresses", "numberOfSteps", "terminationType", "vnfcInstanceId", "additionalParams",
    ]
)  # fmt: skip
LEAVES = st.none() | st.integers() | st.sampled_from(["", "a", "1", "IPV4", "IP_OVER_ETHERNET", "SCALE_IN", "GRACEFUL"])
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=6))


@given(st.dictionaries(NAMES, ANYTHING))
def test_whatever_comes_is_translated_or_refused(body: dict[str, Any]) -> None:
    for kind in OPERATIONS:
        try:
            request = read(kind, body)
        except BadRequest:
            continue
        assert msgspec.convert(msgspec.to_builtins(request), CORE[kind].request) == request


def registered(name: str) -> Vim:
    return Vim(id=f"id-of-{name}", name=name, vim_type=SIMULATED, created_at=utcnow())


def modified(**body: Any) -> ModifyRequest:
    request = msgspec.convert(body, VnfInfoModificationRequest)
    return request.translated(lambda package: f"vnfd-of-{package}", registered)


def test_a_modification_says_only_what_it_says() -> None:
    assert modified() == ModifyRequest()
    assert modified(vnfInstanceName="n").vnf_instance_name == "n"
    assert modified(vnfInstanceName="").vnf_instance_name is None
    assert modified(vnfInstanceDescription=None).vnf_instance_description is None
    assert modified(metadata={"a": None}).metadata == {"a": None}
    assert modified(metadata={}).vim_connection_info is UNSET
    properties = modified(vnfcInfoModifications=[{"id": "a", "vnfcConfigurableProperties": {"b": 1}}])
    assert msgspec.to_builtins(properties) == {
        "vnfcInfoModifications": ({"id": "a", "vnfcConfigurableProperties": {"b": 1}},)
    }


def test_a_modification_names_a_package_by_itself_or_its_vnfd() -> None:
    assert modified(vnfdId="v").vnfd_id == "v"
    assert modified(vnfPkgId="p").vnfd_id == "vnfd-of-p"
    assert modified(vnfPkgId="p", vnfdId="vnfd-of-p").vnfd_id == "vnfd-of-p"
    with pytest.raises(BadRequest, match="vnfPkgId"):
        modified(vnfPkgId="p", vnfdId="another")


def test_a_modification_of_connections_is_a_patch_of_the_map() -> None:
    by_id = modified(vimConnectionInfo=[{"id": "a", "vimId": "sim", "vimType": "openstack"}, {"id": "b"}])
    assert by_id.vim_connection_info == {"a": {"vimId": "id-of-sim", "vimType": SIMULATED}}
    described = modified(
        vimConnectionInfo=[{"id": "a", "vimType": "kubernetes", "accessInfo": {"bearer_token": "t"}}],
        vimConnectionInfoDeleteIds=["z"],
    )
    assert described.vim_connection_info == {
        "z": None,
        "a": {"vimType": "ETSINFV.KUBERNETES.V_1", "accessInfo": {"bearer_token": "t"}},
    }


@pytest.mark.parametrize("name", PRINTED)
def test_parameters_are_shown_as_they_were_asked(name: str) -> None:
    request = msgspec.convert(PRINTED[name], InstantiateVnfRequest).translated()
    stored = msgspec.json.decode(msgspec.json.encode(request))
    shown = documents.operation({"id": "o", "operationParams": stored})["operationParams"]
    where = [{key: one[key] for key in ("id", "vimId")} for one in ON_OPENSTACK]
    assert shown == {**PRINTED[name], "vimConnectionInfo": where}


def test_every_translation_is_what_the_core_takes() -> None:
    for kind, request in OPERATIONS.items():
        made = request.translated.__annotations__["return"]
        assert made.removeprefix("core.") == CORE[kind].request.__name__


def test_an_operation_in_v1() -> None:
    link_info = {"id": "l", "resourceHandle": {"resourceId": "r"}, "currentVnfExtCpData": [{"cpdId": "cp"}]}
    stored = {
        "id": "o",
        "operationParams": {"vimConnectionInfo": {"b": {"vimId": "v"}, "a": None}},
        "changedInfo": {"vimConnectionInfo": {"b": {"vimId": "v"}}, "vnfInstanceName": "n"},
        "changedExtConnectivity": [link_info],
        "error": {"status": 500, "detail": "why"},
    }
    assert documents.operation(stored) == {
        "id": "o",
        "operationParams": {"vimConnectionInfo": [{"id": "b", "vimId": "v"}], "vimConnectionInfoDeleteIds": ["a"]},
        "changedInfo": {"vimConnectionInfo": [{"id": "b", "vimId": "v"}], "vnfInstanceName": "n"},
        "changedExtConnectivity": [{"id": "l", "resourceHandle": {"resourceId": "r"}}],
        "error": {"status": 500, "detail": "why"},
    }


def test_an_instance_in_v1() -> None:
    stored = {
        "id": "i",
        "vnfdId": "v",
        "vimConnectionInfo": {"vim": {"vimId": "x", "vimType": SIMULATED}},
        "instantiatedVnfInfo": {
            "flavourId": "f",
            "maxScaleLevels": [{"aspectId": "a", "scaleLevel": 1}],
            "extVirtualLinkInfo": [{"id": "l", "resourceHandle": {"resourceId": "r"}, "currentVnfExtCpData": []}],
            "extCpInfo": [{"id": "e", "cpdId": "cp", "cpConfigId": "c"}],
            "vnfcInfo": [{"id": "n", "vduId": "u", "vnfcResourceInfoId": "m", "vnfcState": "STARTED"}],
            "metadata": {"instantiationLevelId": "big"},
        },
    }
    shown = documents.instance(stored, "p")
    assert shown["vnfPkgId"] == "p"
    assert shown["vimConnectionInfo"] == [{"id": "vim", "vimId": "x", "vimType": SIMULATED}]
    assert shown["instantiatedVnfInfo"] == {
        "flavourId": "f",
        "instantiationLevelId": "big",
        "extVirtualLinkInfo": [{"id": "l", "resourceHandle": {"resourceId": "r"}}],
        "extCpInfo": [{"id": "e", "cpdId": "cp"}],
        "vnfcInfo": [{"id": "n", "vduId": "u", "vnfcState": "STARTED"}],
        "metadata": {"instantiationLevelId": "big"},
    }
    assert documents.instance({"id": "i", "vnfdId": "v"}, None) == {"id": "i", "vnfdId": "v"}
