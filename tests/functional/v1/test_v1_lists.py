"""Lists in v1: whole instances, pages, filters by the names of v1; and the versions there are."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from slipway.api.application import make_app
from tests.functional.v1.v1_caller import INSTANCES, OP_OCCS, UNKNOWN, V1, Caller
from tests.unit.api.world import BASE_URL, TOKEN

pytestmark = pytest.mark.sqlite_suffices


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


async def test_all_records_are_sent_a_page_at_a_time(v1: Caller) -> None:
    """However many there are, memory holds a page of them."""
    for number in range(7):
        await v1.create(vnfInstanceName=f"n{number}")
    sent = await pieces(v1, "all_records=yes")
    assert [piece.count(b'"vnfInstanceName"') for piece in sent] == [3, 3, 1, 0]
    assert [one["vnfInstanceName"] for one in json.loads(b"".join(sent))] == [f"n{number}" for number in range(7)]
    filtered = await pieces(v1, "all_records=yes&filter=(nin,vnfInstanceName,n0,n1)")
    assert [piece.count(b'"vnfInstanceName"') for piece in filtered] == [3, 2, 0]
    assert json.loads(b"".join(await pieces(v1, "all_records=yes&filter=(eq,vnfInstanceName,x)"))) == []
    for wrong in ("filter=nonsense", "nextpage_opaque_marker=nonsense", "fields=nonsense"):
        await v1.call("GET", f"{INSTANCES}?all_records=yes&{wrong}", 400)


async def pieces(v1: Caller, query: str) -> list[bytes]:
    """The answer to a list, as it is given to the server piece by piece."""
    sent: list[bytes] = []
    answered = asyncio.Event()

    async def receive() -> Any:
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if message["type"] == "http.response.body" and not message.get("more_body"):
            answered.set()

    headers = [(b"host", b"slipway"), (b"x-auth-token", TOKEN.encode())]
    where = {"path": INSTANCES, "raw_path": INSTANCES.encode(), "query_string": query.encode(), "root_path": ""}
    scope: Any = {"type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "headers": headers, **where}
    await make_app(v1.world.services)(scope | {"client": ("127.0.0.1", 1)}, receive, send)
    return [piece for piece in sent if piece]


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
