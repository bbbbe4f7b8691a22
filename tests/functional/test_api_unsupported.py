"""Attributes of requests that nothing is done about are refused by their names: 422 in v2, 400 in v1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL

from slipway.store.database import Database
from tests.unit.api.world import LCM, World, a_world

V1 = "/vnflcm/v1"
MANAGED = {"id": "m", "vnfVirtualLinkDescId": "internalVL", "resourceId": "net-9"}
CONFIG = "extVirtualLinks[0].extCps[0].cpConfig"
PORT = {"id": "p", "resourceHandle": {"resourceId": "r"}}
FIXED = [{"type": "IPV4", "fixedAddresses": ["10.0.0.5"]}]


Asked = tuple[str, str, dict[str, Any]]  # of which instance, which operation, with what else in its body


@pytest.fixture
async def world(sqlite_url: URL, tmp_path: Path) -> AsyncIterator[World]:
    database = Database(sqlite_url)
    async with a_world(database, tmp_path) as world:
        yield world
    database.close()


def link(version: str, config: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    configs: Any = [config or {}] if version == V1 else {"a": config or {}}
    cp = {"cpdId": "workerNode_CP1", "cpConfig": configs}
    return {"extVirtualLinks": [{"id": "outside", "resourceId": "net-2", "extCps": [cp], **more}]}


def asked(*addresses: dict[str, Any], **more: Any) -> dict[str, Any]:
    ethernet = {"ipAddresses": list(addresses)} if addresses else {"macAddress": "02:00:00:00:00:01"}
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}], **more}


def links(version: str) -> list[tuple[dict[str, Any], str]]:
    """Links, and the attribute of each that is refused."""
    config = CONFIG
    one = {"type": "IPV4", "numDynamicAddresses": 1}
    return [
        (link(version, asked(one | {"numDynamicAddresses": 2})), f"{config}.{{}}.numDynamicAddresses"),
        (link(version, asked(*FIXED, one)), f"{config}.{{}}.numDynamicAddresses"),
        (link(version, asked(one | {"numDynamicAddresses": 17, "subnetId": "s"})), f"{config}.{{}}.ipAddresses"),
        (
            link(
                version, asked({"type": "IPV4", "addressRange": {"minAddress": "10.0.0.5", "maxAddress": "10.0.0.9"}})
            ),
            f"{config}.{{}}.addressRange",
        ),
        (
            link(version, {"cpProtocolData": [*asked()["cpProtocolData"], *asked()["cpProtocolData"]]}),
            f"{config}.{{}}.cpProtocolData",
        ),
    ]


@pytest.mark.parametrize("version", [V1, LCM])
async def test_what_does_nothing_is_refused_by_name(world: World, version: str) -> None:
    status, key = (400, "000") if version == V1 else (422, "a")
    standing = await world.instantiated()
    vnfd = (await world.show(standing))["vnfdId"]
    new = await world.create(vnfd)
    instantiate: Asked = (new, "instantiate", {"flavourId": "simple"})
    connect: Asked = (standing, "change_ext_conn", {})
    cases = [
        (*operation, body, path.format(key)) for operation in (instantiate, connect) for body, path in links(version)
    ]
    if version == LCM:
        cases += [
            (*instantiate, link(version, {"parentCpConfigId": "a"}), f"{CONFIG}.a.parentCpConfigId"),
            (standing, "heal", {}, {"healScript": "http://example.com/heal.sh"}, "healScript"),
            (*instantiate, {"extManagedVirtualLinks": [MANAGED | {"vnfLinkPort": [{"vnfLinkPortId": "p"}]}]},
             "extManagedVirtualLinks[0].vnfLinkPort"),
        ]  # fmt: skip
    for instance_id, action, needed, body, path in cases:
        where = f"{version}/vnf_instances/{instance_id}/{action}"
        refused = await world.call("POST", where, status, json=needed | body)
        assert refused.json()["detail"].startswith(f"{path}: "), (path, refused.json()["detail"])
    operations = (await world.call("GET", f"{LCM}/vnf_lcm_op_occs", 200)).json()
    assert [one["operation"] for one in operations] == ["INSTANTIATE"]


@pytest.mark.parametrize("version", [V1, LCM])
async def test_a_port_that_exists_is_refused_where_the_vim_makes_ports(world: World, version: str) -> None:
    status = 400 if version == V1 else 422
    standing = await world.instantiated()
    new = await world.create((await world.show(standing))["vnfdId"])
    body = link(version, {"linkPortId": "p"}, extLinkPorts=[PORT])
    for instance_id, action, needed in (
        (new, "instantiate", {"flavourId": "simple"}),
        (standing, "change_ext_conn", {}),
    ):
        where = f"{version}/vnf_instances/{instance_id}/{action}"
        refused = await world.call("POST", where, status, json=needed | body)
        assert refused.json()["detail"] == (
            "extVirtualLinks: linkPortId p of the connection point workerNode_CP1: a simulated VIM makes ports, and "
            "uses none that exists; leave it out."
        )


@pytest.mark.parametrize("version", [V1, LCM])
async def test_empty_ones_pass(world: World, version: str) -> None:
    new = await world.create((await world.show(await world.instantiated()))["vnfdId"])
    body = {"flavourId": "simple", "extManagedVirtualLinks": [], **link(version, asked(*FIXED), extLinkPorts=[])}
    await world.call("POST", f"{version}/vnf_instances/{new}/instantiate", 202, json=body)


async def test_a_parent_that_is_nowhere_is_kept_as_it_was_given(world: World) -> None:
    new = await world.create((await world.show(await world.instantiated()))["vnfdId"])
    body = {"flavourId": "simple", **link(LCM, {**asked(*FIXED), "parentCpConfigId": "nothing"}, extLinkPorts=[PORT])}
    begun = await world.call("POST", f"{LCM}/vnf_instances/{new}/instantiate", 202, json=body)
    await world.ended(begun.headers["Location"].rpartition("/")[2])
    (recorded,) = (await world.show(new))["instantiatedVnfInfo"]["extVirtualLinkInfo"]
    assert recorded["extLinkPorts"] == [PORT]
    assert recorded["currentVnfExtCpData"][0]["cpConfig"]["a"]["parentCpConfigId"] == "nothing"


@pytest.mark.parametrize("version", [V1, LCM])
async def test_a_port_that_is_nowhere_is_refused(world: World, version: str) -> None:
    new = await world.create((await world.show(await world.instantiated()))["vnfdId"])
    body = {"flavourId": "simple", **link(version, {**asked(*FIXED), "linkPortId": "nothing"}, extLinkPorts=[PORT])}
    refused = await world.call("POST", f"{version}/vnf_instances/{new}/instantiate", 400, json=body)
    assert "has no port 'nothing' in its extLinkPorts; it has: p." in refused.json()["detail"]


@pytest.mark.parametrize("version", [V1, LCM])
async def test_a_link_is_on_the_vim_of_the_vnf(world: World, version: str) -> None:
    status = 400 if version == V1 else 422
    standing = await world.instantiated()
    shown = await world.show(standing)
    vim_id = shown["vimConnectionInfo"]["vim"]["vimId"]
    new = await world.create(shown["vnfdId"])
    cases: list[Asked] = [(new, "instantiate", {"flavourId": "simple"}), (standing, "change_ext_conn", {})]
    if version == LCM:
        cases.append((standing, "change_vnfpkg", {"vnfdId": shown["vnfdId"]}))
    for instance_id, action, needed in cases:
        where = f"{version}/vnf_instances/{instance_id}/{action}"
        body = needed | link(version, asked(*FIXED), vimConnectionId="no-such-key")
        if action == "change_vnfpkg":  # moves nothing
            body["extVirtualLinks"][0]["extCps"] = []
        detail = (await world.call("POST", where, status, json=body)).json()["detail"]
        assert detail.startswith("extVirtualLinks[0].vimConnectionId: 'no-such-key'"), detail
        assert f"vim or {vim_id}" in detail
    preview = {"vnfInstanceId": new, "operation": "INSTANTIATE", "request": {
        "flavourId": "simple", **link(LCM, asked(*FIXED), vimConnectionId="no-such-key")}}  # fmt: skip
    await world.call("POST", "/slipway/v1/plans", 422, json=preview)
    body = link(version, asked(*FIXED), vimConnectionId=vim_id)
    begun = await world.call(
        "POST", f"{version}/vnf_instances/{new}/instantiate", 202, json={"flavourId": "simple", **body}
    )
    await world.ended(begun.headers["Location"].rpartition("/")[2])
    info = (await world.show(new))["instantiatedVnfInfo"]
    assert info["extVirtualLinkInfo"][0]["resourceHandle"]["vimConnectionId"] == "vim"
