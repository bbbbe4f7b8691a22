"""The lifecycle interface in v1: a whole life, what is refused and how, and the same things as v2 sees."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.api.application import make_app
from slipway.package.build import build_package
from slipway.store.database import Database
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.rig import SAMPLE
from tests.unit.api.world import BASE_URL, LCM, PACKAGES, TOKEN, World, a_world

V1 = "/vnflcm/v1"
INSTANCES = f"{V1}/vnf_instances"
OP_OCCS = f"{V1}/vnf_lcm_op_occs"
RULES = "/slipway/v1/vims/sim/rules"
BROKEN = [{"kind": "error", "call": "make_machine", "machine": "workerNode-1", "fault": "permanent", "message": "no"}]
SLOW = [{"kind": "latency", "call": "make_machine", "seconds": 5}]
SIMPLE = {"flavourId": "simple"}
FORCEFUL = {"terminationType": "FORCEFUL"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass
class Caller:
    """Someone who speaks v1 only, and sends no Version header. `world` looks at the same things through v2."""

    world: World
    client: httpx.AsyncClient

    async def call(self, method: str, path: str, status: int, **more: Any) -> httpx.Response:
        """As `World.call`, and no answer of v1 bears a version."""
        answer = await World(self.world.services, self.client, self.world.driver, self.world.directory).call(
            method, path, status, **more
        )
        assert "version" not in answer.headers
        return answer

    async def create(self, **more: Any) -> str:
        known = (await self.world.call("GET", PACKAGES, 200)).json()
        package = known[0] if known else await self.world.onboard()
        answer = await self.call("POST", INSTANCES, 201, json={"vnfdId": package["vnfdId"], **more})
        assert answer.headers["location"] == f"{BASE_URL}{INSTANCES}/{answer.json()['id']}"
        return str(answer.json()["id"])

    async def begin(self, instance_id: str, action: str, body: dict[str, Any]) -> str:
        return self.begun(await self.call("POST", f"{INSTANCES}/{instance_id}/{action}", 202, json=body))

    def begun(self, answer: httpx.Response) -> str:
        assert answer.content == b""
        where, _, operation_id = answer.headers["location"].rpartition("/")
        assert where == f"{BASE_URL}{OP_OCCS}"
        return operation_id

    async def ended(self, operation_id: str, *states: str) -> dict[str, Any]:
        await self.world.ended(operation_id, *states)
        shown: dict[str, Any] = (await self.call("GET", f"{OP_OCCS}/{operation_id}", 200)).json()
        return shown

    async def run(
        self, instance_id: str, action: str, body: dict[str, Any], state: str = "COMPLETED"
    ) -> dict[str, Any]:
        return await self.ended(await self.begin(instance_id, action, body), state)

    async def patch(self, instance_id: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self.call("PATCH", f"{INSTANCES}/{instance_id}", 202, json=body)
        return await self.ended(self.begun(answer))

    async def show(self, instance_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.call("GET", f"{INSTANCES}/{instance_id}", 200)).json()
        return shown

    async def instantiated(self, **more: Any) -> str:
        await self.world.add_vim()
        instance_id = await self.create()
        await self.run(instance_id, "instantiate", {**SIMPLE, **more})
        return instance_id

    async def failed(self) -> tuple[str, str]:
        """An instantiation in FAILED_TEMP."""
        await self.world.add_vim()
        instance_id = await self.create()
        await self.world.call("PUT", RULES, 200, json=BROKEN)
        return instance_id, (await self.run(instance_id, "instantiate", SIMPLE, "FAILED_TEMP"))["id"]


@pytest.fixture
async def v1(database: Database, tmp_path: Path) -> AsyncIterator[Caller]:
    async with a_world(database, tmp_path, page_size=3) as world:
        app: Any = make_app(world.services)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers={"X-Auth-Token": TOKEN}) as client:
            yield Caller(world, client)


def resources(shown: dict[str, Any]) -> list[str]:
    return [vnfc["id"] for vnfc in shown["instantiatedVnfInfo"]["vnfcResourceInfo"]]


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


async def test_lists_have_whole_instances_page_by_page_or_all_at_once(v1: Caller) -> None:
    instance_id = await v1.instantiated()
    for number in range(6):
        await v1.create(vnfInstanceName=f"n{number}", metadata={"number": number})
    first = await v1.call("GET", INSTANCES, 200)
    assert first.json()[0] == await v1.show(instance_id)
    seen, path = 0, INSTANCES
    while path:
        answer = await v1.call("GET", path, 200)
        seen += len(answer.json())
        link = answer.headers.get("link", "")
        assert link == "" or link.startswith(f"<{BASE_URL}{INSTANCES}?nextpage_opaque_marker=")
        path = link.partition(">")[0].removeprefix(f"<{BASE_URL}")
    assert seen == 7
    everything = await v1.call("GET", f"{INSTANCES}?all_records=yes", 200)
    assert len(everything.json()) == 7
    assert "link" not in everything.headers
    for wrong in ("all_records=no", "page=2", "nextpage_opaque_marker=nonsense", "exclude-fields=nonsense"):
        await v1.call("GET", f"{INSTANCES}?{wrong}", 400)


async def test_lists_are_filtered_by_the_names_of_v1(v1: Caller) -> None:
    instance_id = await v1.instantiated()
    other = await v1.create(vnfInstanceName="other")
    package = (await v1.show(other))["vnfPkgId"]

    async def found(text: str) -> list[str]:
        return [one["id"] for one in (await v1.call("GET", INSTANCES, 200, params={"filter": text})).json()]

    assert await found("(eq,vnfInstanceName,other)") == [other]
    assert await found("(eq,instantiationState,INSTANTIATED)") == [instance_id]
    assert await found(f"(eq,vnfPkgId,{package})") == [instance_id, other]
    assert await found(f"(nin,vnfPkgId,{package},{UNKNOWN})") == []
    assert await found(f"(eq,vnfPkgId,{UNKNOWN})") == []
    assert await found("(eq,vimConnectionInfo/id,vim)") == [instance_id]
    assert await found("(eq,vimConnectionInfo/vimType,SLIPWAY.SIMULATED.V_1)") == [instance_id]
    assert await found("(eq,instantiatedVnfInfo/instantiationLevelId,default)") == [instance_id]
    for wrong in ("(cont,vnfPkgId,a)", "(eq,taskState,x)", "nonsense", "(eq,vimConnectionInfo/accessInfo/password,x)"):
        await v1.call("GET", INSTANCES, 400, params={"filter": wrong})


async def test_operations_are_listed_without_their_details_unless_asked(v1: Caller) -> None:
    instance_id = await v1.instantiated(vimConnectionInfo=[{"id": "a", "vimId": "sim"}])
    await v1.run(instance_id, "heal", {})
    listed = (await v1.call("GET", OP_OCCS, 200)).json()
    assert [one["operation"] for one in listed] == ["HEAL", "INSTANTIATE"]
    assert not {"operationParams", "resourceChanges"} & set(listed[0])
    assert listed[0]["_links"]["vnfInstance"]["href"] == f"{BASE_URL}{INSTANCES}/{instance_id}"
    query = {"filter": "(eq,operation,INSTANTIATE)", "fields": "operationParams"}
    chosen = (await v1.call("GET", OP_OCCS, 200, params=query)).json()
    assert [one["operationParams"]["vimConnectionInfo"] for one in chosen] == [[{"id": "a", "vimId": "sim"}]]
    without = (await v1.call("GET", OP_OCCS, 200, params={"exclude-fields": "operationParams"})).json()
    assert all("operationParams" not in one for one in without)
    assert any("resourceChanges" in one for one in without)


async def test_the_versions_there_are(v1: Caller) -> None:
    one = (await v1.call("GET", f"{V1}/api_versions", 200, headers={"Version": "2.0.0"})).json()
    assert one == {"uriPrefix": V1, "apiVersions": [{"version": "1.3.0", "isDeprecated": False}]}
    both = (await v1.client.get("/vnflcm/api_versions")).json()
    assert [version["version"] for version in both["apiVersions"]] == ["1.3.0", "2.0.0"]
