"""The lifecycle interface in v1: a whole life, what is refused and how, and the same things as v2 sees."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from slipway.package.build import build_package
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.rig import SAMPLE
from tests.functional.v1.v1_caller import (
    FORCEFUL,
    INSTANCES,
    OP_OCCS,
    RULES,
    SIMPLE,
    SLOW,
    UNKNOWN,
    V1,
    Caller,
    resources,
)
from tests.unit.api.world import BASE_URL, LCM, PACKAGES

pytestmark = pytest.mark.sqlite_suffices


async def test_a_cluster_lives_and_goes(v1: Caller) -> None:
    vim = await v1.world.add_vim()
    instance_id = await v1.create(vnfInstanceName="one", metadata={"a": 1}, nonsense=True)
    here = f"{BASE_URL}{INSTANCES}/{instance_id}"
    new = await v1.show(instance_id)
    assert new["_links"] == {"self": {"href": here}, "instantiate": {"href": f"{here}/instantiate"}}
    assert (new["instantiationState"], new["metadata"]) == ("NOT_INSTANTIATED", {"a": 1})

    begun = await v1.run(instance_id, "instantiate", {**SIMPLE, "instantiationLevelId": "default"})
    assert begun["operationParams"] == {"flavourId": "simple", "instantiationLevelId": "default"}
    assert begun["_links"] == {
        "self": {"href": f"{BASE_URL}{OP_OCCS}/{begun['id']}"},
        "vnfInstance": {"href": here},
    }
    shown = await v1.show(instance_id)
    assert set(shown["_links"]) == {"self", "terminate", "scale", "heal", "changeExtConn"}
    assert shown["_links"]["changeExtConn"] == {"href": f"{here}/change_ext_conn"}
    assert shown["vnfPkgId"] == (await v1.world.call("GET", PACKAGES, 200)).json()[0]["id"]
    assert shown["vimConnectionInfo"] == [{"id": "vim", "vimId": vim["id"], "vimType": "SLIPWAY.SIMULATED.V_1"}]
    assert shown["instantiatedVnfInfo"]["instantiationLevelId"] == "default"
    assert len(resources(shown)) == 3

    scale = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": "2"}
    scaled = await v1.run(instance_id, "scale", scale)
    assert Counter(vnfc["changeType"] for vnfc in scaled["resourceChanges"]["affectedVnfcs"]) == {"ADDED": 2}
    assert scaled["operationParams"] == {**scale, "numberOfSteps": 2}
    await v1.run(instance_id, "scale", {"type": "SCALE_IN", "aspectId": "workers", "numberOfSteps": 1})
    before = resources(await v1.show(instance_id))
    assert len(before) == 4

    await v1.run(instance_id, "heal", {"vnfcInstanceId": [before[0]], "cause": "it is sick"})
    await v1.run(instance_id, "heal", {"vnfcInstanceId": before[1]})
    after = resources(await v1.show(instance_id))
    assert set(before) - set(after) == set(before[:2])

    await v1.run(instance_id, "terminate", {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0})
    assert "instantiatedVnfInfo" not in await v1.show(instance_id)
    # The stock client sends these with a DELETE that follows a POST.
    odd = {"Content-Type": "application/json", "Content-Length": "0", "Version": "1.3.0"}
    await v1.call("GET", f"{INSTANCES}/{instance_id}", 200, headers={"Content-Type": "application/json"})
    await v1.call("DELETE", f"{INSTANCES}/{instance_id}", 204, headers=odd)
    await v1.call("GET", f"{INSTANCES}/{instance_id}", 404)


async def test_both_versions_see_the_same(v1: Caller) -> None:
    instance_id = await v1.instantiated(vimConnectionInfo=[{"id": "mine", "vimType": "openstack"}])
    theirs = await v1.world.show(instance_id)
    assert theirs["vimConnectionInfo"]["vim"]["vimType"] == "SLIPWAY.SIMULATED.V_1"
    assert theirs["_links"]["self"]["href"] == f"{BASE_URL}{LCM}/vnf_instances/{instance_id}"
    other = await v1.world.create(theirs["vnfdId"], vnfInstanceName="of v2")
    operation_id = await v1.world.begin(other, "instantiate", {**SIMPLE, "vimConnectionInfo": {"k": {"vimId": "sim"}}})
    operation = await v1.ended(operation_id)
    assert operation["operationParams"]["vimConnectionInfo"] == [{"id": "k", "vimId": "sim"}]

    ours = await v1.show(other)
    assert ours["vimConnectionInfo"][0]["id"] == "k"
    assert ours["vnfInstanceName"] == "of v2"
    await v1.run(other, "terminate", FORCEFUL)
    await v1.world.run(instance_id, "terminate", FORCEFUL)
    assert (await v1.world.show(other))["instantiationState"] == "NOT_INSTANTIATED"
    assert (await v1.show(instance_id))["instantiationState"] == "NOT_INSTANTIATED"


async def test_a_vim_is_named_and_its_secrets_never_shown(v1: Caller) -> None:
    await v1.world.add_vim(isDefault=False)
    instance_id = await v1.create()
    path = f"{INSTANCES}/{instance_id}/instantiate"
    refused = await v1.call("POST", path, 400, json=SIMPLE)
    assert "no default" in refused.json()["detail"]
    refused = await v1.call("POST", path, 400, json={**SIMPLE, "vimConnectionInfo": [{"id": "a", "vimId": "other"}]})
    assert refused.json()["detail"].startswith("vimConnectionInfo.a.vimId")

    where = {"id": "a", "vimId": "sim", "vimType": "kubernetes", "accessInfo": {"region": "r", "password": "canary-1"}}
    params = {"k8s_cluster_installation_param": {"master_node": {"username": "u", "password": "canary-2"}}}
    operation = await v1.run(
        instance_id, "instantiate", {**SIMPLE, "vimConnectionInfo": [where], "additionalParams": params}
    )
    shown = await v1.show(instance_id)
    assert shown["vimConnectionInfo"][0]["id"] == "a"
    assert shown["vimConnectionInfo"][0]["accessInfo"] == {"region": "r"}
    everything = [
        operation,
        shown,
        (await v1.call("GET", INSTANCES, 200)).json(),
        (await v1.call("GET", f"{OP_OCCS}?all_fields", 200)).json(),
    ]
    assert "canary" not in str(everything)
    assert "$secret" not in str(everything)
    asked = operation["operationParams"]
    assert asked["additionalParams"]["k8s_cluster_installation_param"] == {"master_node": {"username": "u"}}
    assert asked["vimConnectionInfo"] == [{"id": "a", "vimId": "sim", "accessInfo": {"region": "r"}}]


async def test_a_type_that_is_not_the_named_vims_is_refused(v1: Caller) -> None:
    await v1.world.add_vim()
    where = {"vimId": "sim", "vimType": "ETSINFV.KUBERNETES.V_1"}
    instance_id = await v1.create()
    path = f"{INSTANCES}/{instance_id}"
    named = {**SIMPLE, "vimConnectionInfo": [{"id": "a", **where}]}
    refused = await v1.call("POST", f"{path}/instantiate", 400, json=named)
    assert refused.json()["detail"].startswith("vimConnectionInfo.a.vimType: VIM 'sim' is a SLIPWAY.SIMULATED.V_1")
    await v1.run(instance_id, "instantiate", SIMPLE)
    refused = await v1.call("PATCH", path, 400, json={"vimConnectionInfo": [{"id": "vim", **where}]})
    assert refused.json()["detail"].startswith("vimConnectionInfo.vim.vimType: VIM 'sim' is a SLIPWAY.SIMULATED.V_1")


async def test_a_modification(v1: Caller, tmp_path: Path) -> None:
    vim = await v1.world.add_vim()
    instance_id = await v1.create(vnfInstanceName="old", metadata={"a": 1, "b": 2})
    patch = {"vnfInstanceName": "new", "metadata": {"a": None, "c": 3}}
    operation = await v1.patch(instance_id, patch)
    assert operation["operation"] == "MODIFY_INFO"
    assert operation["changedInfo"] == patch
    shown = await v1.show(instance_id)
    assert (shown["vnfInstanceName"], shown["metadata"]) == ("new", {"b": 2, "c": 3})
    merge = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}
    answer = await v1.call("PATCH", f"{INSTANCES}/{instance_id}", 202, json={"vnfInstanceName": "it"}, headers=merge)
    await v1.ended(v1.begun(answer))

    csar = tmp_path / "next.csar"
    build_package(next_package(SAMPLE, tmp_path, NEXT_ID, words={}), csar)
    package = await v1.world.onboard(csar)
    await v1.patch(instance_id, {"vnfPkgId": package["id"]})
    shown = await v1.show(instance_id)
    assert (shown["vnfdId"], shown["vnfPkgId"]) == (NEXT_ID, package["id"])

    one = f"{INSTANCES}/{instance_id}"
    connection = [{"id": "vim", "vimId": "sim", "vimType": "openstack", "extra": {"x": 1}}]
    await v1.call("PATCH", one, 400, json={"vimConnectionInfo": connection})
    await v1.run(instance_id, "instantiate", SIMPLE)
    operation = await v1.patch(instance_id, {"vimConnectionInfo": connection})
    now = {"id": "vim", "vimId": vim["id"], "vimType": "SLIPWAY.SIMULATED.V_1", "extra": {"x": 1}}
    assert operation["changedInfo"]["vimConnectionInfo"] == [now]
    assert (await v1.show(instance_id))["vimConnectionInfo"] == [now]
    for wrong, told in (
        ({"vnfdId": "nobody's"}, "vnfdId"),
        ({"vnfPkgId": UNKNOWN}, "vnfPkgId"),
        ({"vnfPkgId": package["id"], "vnfdId": "another"}, "vnfPkgId"),
        ({"vimConnectionInfo": [{"id": "vim", "vimId": "nobody's"}]}, "vimConnectionInfo.vimId"),
        ({"metadata": 1}, "metadata"),
    ):
        assert (await v1.call("PATCH", one, 400, json=wrong)).json()["detail"].startswith(told)
    await v1.call("PATCH", one, 415, content=b"{}", headers={"Content-Type": "text/csv"})


async def test_connection_points_move_to_another_network(v1: Caller) -> None:
    def connected(network: str, address: str) -> list[dict[str, Any]]:
        ips = [{"type": "IPV4", "fixedAddresses": [address]}]
        data = [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": ips}}]
        cp = {"cpdId": "masterNode_CP1", "cpConfig": [{"cpProtocolData": data}]}
        return [{"id": "outside", "resourceId": network, "extCps": [cp]}]

    instance_id = await v1.instantiated(extVirtualLinks=connected("network-1", "192.168.1.5"))
    change = {"extVirtualLinks": connected("network-2", "192.168.2.5")}
    operation = await v1.run(instance_id, "change_ext_conn", change)

    assert operation["operation"] == "CHANGE_EXT_CONN"
    assert operation["operationParams"] == change
    shown = (await v1.show(instance_id))["instantiatedVnfInfo"]
    assert [link["resourceHandle"]["resourceId"] for link in shown["extVirtualLinkInfo"]] == ["network-2"]
    master = next(vnfc for vnfc in shown["vnfcResourceInfo"] if vnfc["vduId"] == "masterNode")
    ethernet = master["vnfcCpInfo"][0]["cpProtocolInfo"][0]["ipOverEthernet"]
    assert ethernet["ipAddresses"][0]["addresses"] == ["192.168.2.5"]


async def test_what_is_refused_and_how(v1: Caller) -> None:
    await v1.world.add_vim()
    refused = await v1.call("POST", INSTANCES, 404, json={"vnfdId": UNKNOWN})
    assert refused.json()["detail"].startswith("vnfdId")
    await v1.call("POST", INSTANCES, 400, json={})
    await v1.call("POST", INSTANCES, 400, content=b"{", headers={"Content-Type": "application/json"})
    link = {"id": "l", "resourceId": "r", "extCps": [{"cpdId": "c", "cpConfig": [{}]}]}
    anything: dict[str, Any] = {"type": "SCALE_OUT", "aspectId": "workers", "extVirtualLinks": [link]}
    for method, path in (("GET", ""), ("DELETE", ""), ("PATCH", ""), ("POST", "/scale"), ("POST", "/change_ext_conn")):
        more = {} if method in ("GET", "DELETE") else {"json": anything}
        await v1.call(method, f"{INSTANCES}/{UNKNOWN}{path}", 404, **more)
        await v1.call(method, f"{INSTANCES}/no-uuid{path}", 404, **more)
    for method, path in (("GET", ""), ("POST", "/retry"), ("POST", "/rollback"), ("POST", "/fail")):
        await v1.call(method, f"{OP_OCCS}/{UNKNOWN}{path}", 404)
    await v1.call("PUT", INSTANCES, 405)
    await v1.call("GET", f"{V1}/nothing", 404)
    await v1.call("GET", INSTANCES, 406, headers={"Accept": "text/html"})
    await v1.call("GET", INSTANCES, 200, headers={"Accept": "*/*"})

    instance_id = await v1.create()
    one = f"{INSTANCES}/{instance_id}"
    for action in ("terminate", "heal", "scale", "change_ext_conn"):
        await v1.call("POST", f"{one}/{action}", 409, json={**anything, **FORCEFUL})
    await v1.call("POST", f"{one}/instantiate", 400, json={"flavourId": "nobody's"})
    await v1.call("POST", f"{one}/instantiate", 400, json={**SIMPLE, "instantiationLevelId": "nobody's"})
    await v1.run(instance_id, "instantiate", SIMPLE)
    await v1.call("POST", f"{one}/instantiate", 409, json=SIMPLE)
    await v1.call("DELETE", one, 409)
    await v1.call("POST", f"{one}/heal", 400, json={"vnfcInstanceId": [UNKNOWN]})
    await v1.call("POST", f"{one}/scale", 400, json={"type": "SCALE_OUT", "aspectId": "nobody's"})
    await v1.call("POST", f"{one}/scale", 400, json={"type": "SCALE_IN", "aspectId": "workers"})
    await v1.call("POST", f"{one}/scale", 400, json={"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 99})
    both = {**FORCEFUL, "gracefulTerminationTimeout": 5}
    refused = await v1.call("POST", f"{one}/terminate", 400, json=both)
    assert refused.json()["detail"].startswith("gracefulTerminationTimeout")


async def test_an_operation_under_way_holds_its_instance(v1: Caller) -> None:
    instance_id = await v1.instantiated()
    await v1.world.call("PUT", RULES, 200, json=SLOW)
    operation_id = await v1.begin(instance_id, "heal", {})
    one = f"{INSTANCES}/{instance_id}"
    for action, body in (
        ("terminate", FORCEFUL),
        ("heal", {}),
        ("scale", {"type": "SCALE_OUT", "aspectId": "workers"}),
    ):
        assert operation_id in (await v1.call("POST", f"{one}/{action}", 409, json=body)).json()["detail"]
    await v1.call("PATCH", one, 409, json={"vnfInstanceName": "n"})
    links = (await v1.call("GET", f"{OP_OCCS}/{operation_id}", 200)).json()["_links"]
    assert set(links) == {"self", "vnfInstance", "cancel"}

    cancel = f"{OP_OCCS}/{operation_id}/cancel"
    await v1.call("POST", cancel, 400, json={})
    answer = await v1.call("POST", cancel, 202, json={"cancelMode": "FORCEFUL", "nonsense": 1})
    assert v1.begun(answer) == operation_id
    async with asyncio.timeout(4):
        await v1.ended(operation_id, "FAILED_TEMP", "ROLLED_BACK")
    await v1.call("POST", cancel, 409, json={"cancelMode": "GRACEFUL"})


async def test_retry_goes_on(v1: Caller) -> None:
    instance_id, operation_id = await v1.failed()
    operation = (await v1.call("GET", f"{OP_OCCS}/{operation_id}", 200)).json()
    assert "workerNode-1" in operation["error"]["detail"]
    assert "grantId" not in operation
    assert set(operation["_links"]) == {"self", "vnfInstance", "retry", "rollback", "fail"}
    await v1.world.call("DELETE", RULES, 204)
    answer = await v1.call("POST", f"{OP_OCCS}/{operation_id}/retry", 202, headers={"Content-Length": "0"})
    assert v1.begun(answer) == operation_id
    await v1.ended(operation_id)
    assert (await v1.show(instance_id))["instantiationState"] == "INSTANTIATED"
    for decision in ("retry", "rollback", "fail"):
        await v1.call("POST", f"{OP_OCCS}/{operation_id}/{decision}", 409)


async def test_rollback_leaves_nothing(v1: Caller) -> None:
    instance_id, operation_id = await v1.failed()
    assert v1.begun(await v1.call("POST", f"{OP_OCCS}/{operation_id}/rollback", 202)) == operation_id
    await v1.ended(operation_id, "ROLLED_BACK")
    await v1.call("DELETE", f"{INSTANCES}/{instance_id}", 204)


async def test_fail_answers_with_the_operation(v1: Caller) -> None:
    _, operation_id = await v1.failed()
    answer = (await v1.call("POST", f"{OP_OCCS}/{operation_id}/fail", 200)).json()
    assert answer["operationState"] == "FAILED"
    assert answer["_links"]["self"]["href"] == f"{BASE_URL}{OP_OCCS}/{operation_id}"
