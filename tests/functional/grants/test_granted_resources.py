"""What an NFVO grants is done: on the VIM, in the record, in later operations and in scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slipway.model.action import VimConnection
from slipway.model.clock import utcnow
from slipway.model.operation import OperationType
from slipway.model.requests import (
    HealRequest,
    InstantiateRequest,
)
from slipway.model.vim import SIMULATED, Vim
from slipway.store import operations, vims
from tests.functional.grants.grant_world import FORCEFUL, INSTANTIATE, OUT, completed, info_of, machines, on, standing
from tests.functional.rig import Rig
from tests.functional.small_nfvo import SmallNfvo, a_grant, placed, yes
from tests.unit.outgoing.loopback_server import Answer, document

pytestmark = pytest.mark.sqlite_suffices


async def test_machines_are_made_where_and_from_what_was_granted(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await rig.create()
    operation = await completed(rig, OperationType.INSTANTIATE, instance_id, INSTANTIATE)
    there = await machines(rig, instance_id)
    assert {(one.zone, one.image, one.flavour) for one in there.values() if one.vdu == "workerNode"} == {
        ("az-1", "image-w", "flavour-w")
    }
    master = there["masterNode-0"]
    assert (master.zone, master.image, master.flavour) == ("az-1", "image-m", "flavour-m")
    info = await info_of(rig, instance_id)
    assert {vnfc.zone_id for vnfc in info.vnfc_resource_info} == {"az-1"}
    assert info.vnfc_resource_info[0].metadata["image"] == "image-m"

    (asked,) = nfvo.requests
    assert {one["id"] for one in asked["addResources"]} == {
        *(one.id for one in there.values()),
        *(port.id for one in there.values() for port in one.ports),
        *(volume.id for one in there.values() for volume in one.volumes),
        *(link.id for link in info.vnf_virtual_link_resource_info),
    }
    kept = await rig.slipway.database.read(operations.grant_of, operation.id)
    assert kept is not None
    assert operation.grant_id == kept.grant.id
    assert nfvo.headers[0]["version"] == "1.4.0"
    assert nfvo.headers[0]["content-type"] == "application/json"
    assert "authorization" not in nfvo.headers[0]


async def test_later_operations_keep_what_was_granted_before(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    nfvo.decide = yes  # without a word of zones, images and sizes
    await completed(rig, OperationType.HEAL, instance_id, HealRequest())
    healed = await machines(rig, instance_id)
    assert {(one.zone, one.image) for one in healed.values()} == {("az-1", "image-m"), ("az-1", "image-w")}
    await completed(rig, OperationType.SCALE, instance_id, OUT)
    new = (await machines(rig, instance_id))["workerNode-2"]
    assert (new.zone, new.image, new.flavour) == (None, "image-w", "flavour-w")


async def test_a_later_grant_is_for_new_machines_only(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)

    def other(request: dict[str, Any]) -> Answer:
        assets = {"softwareImages": [{"vnfdSoftwareImageId": "workerNode", "vimSoftwareImageId": "image-2"}]}
        return document(placed(request, "az-2", vimAssets=assets), 201)

    nfvo.decide = other
    await completed(rig, OperationType.SCALE, instance_id, OUT)
    there = await machines(rig, instance_id)
    assert {name: (one.zone, one.image) for name, one in there.items() if one.vdu == "workerNode"} == {
        "workerNode-0": ("az-1", "image-w"),
        "workerNode-1": ("az-1", "image-w"),
        "workerNode-2": ("az-2", "image-2"),
    }


async def test_links_and_parameters_of_a_grant(rig: Rig, nfvo: SmallNfvo, tmp_path: Path) -> None:
    link = {
        "id": "outside",
        "resourceId": "net-of-the-nfvo",
        "extCps": [{"cpdId": "workerNode_CP1", "cpConfig": {"0": {"unheardOf": 1}}, "unheardOf": {}}],
        "unheardOf": [],
    }
    params = {"colour": "blue", "size": "small", "password": "canary-of-the-nfvo"}
    nfvo.decide = lambda request: document(
        a_grant(request, extVirtualLinks=[link], additionalParams=params, unheardOf={"a": [1]}), 201
    )
    request = InstantiateRequest(
        flavour_id="simple", ext_virtual_links=on("net-1"), additional_params={"size": "large"}
    )
    instance_id = await standing(rig, request)
    ports = [
        port for one in (await machines(rig, instance_id)).values() for port in one.ports if one.vdu != "masterNode"
    ]
    assert {port.network for port in ports} == {"net-of-the-nfvo"}
    (recorded,) = (await info_of(rig, instance_id)).ext_virtual_link_info
    assert recorded.resource_handle.resource_id == "net-of-the-nfvo"
    parameters = (await rig.instance(instance_id)).parameters
    assert (parameters["colour"], parameters["size"]) == ("blue", "large")
    assert set(parameters["password"]) == {"$secret"}
    assert b"canary-of-the-nfvo" not in all_in(tmp_path)


async def test_a_grant_may_give_an_internal_link_its_network(rig: Rig, nfvo: SmallNfvo) -> None:
    link = {"id": "given", "vnfVirtualLinkDescId": "clusterNet", "resourceId": "net-of-the-nfvo", "unheardOf": 1}
    nfvo.decide = lambda request: document(a_grant(request, extManagedVirtualLinks=[link]), 201)
    instance_id = await standing(rig)
    assert ("VL", "clusterNet") in [
        (one["type"], one["resourceTemplateId"]) for one in nfvo.requests[0]["addResources"]
    ]
    there = await machines(rig, instance_id)
    assert {port.network for one in there.values() for port in one.ports} == {"net-of-the-nfvo"}
    info = await info_of(rig, instance_id)
    assert info.vnf_virtual_link_resource_info == ()
    (given,) = info.ext_managed_virtual_link_info
    assert given.network_resource.resource_id == "net-of-the-nfvo"


def all_in(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())


async def test_an_nfvo_may_send_a_new_vnf_to_another_vim(rig: Rig, nfvo: SmallNfvo) -> None:
    other = VimConnection(SIMULATED, {"endpoint": "sim://other"}, {}, {})
    await rig.slipway.simulated.register(other)
    vim = Vim(id="other", name="other", vim_type=SIMULATED, interface_info=other.interface_info, created_at=utcnow())
    await rig.slipway.database.write(vims.insert, vim)

    def there(request: dict[str, Any]) -> Answer:
        grant = a_grant(request, vimConnectionInfo={"v2": {"vimId": "other", "vimType": SIMULATED}})
        for info in grant["addResources"]:
            info["vimConnectionId"] = "v2"
        return document(grant, 201)

    nfvo.decide = there
    instance_id = await standing(rig)
    assert await rig.inventory() == {}
    assert len((await rig.slipway.simulated.inventory(other))[instance_id].machines) == 3
    assert list((await rig.instance(instance_id)).vnf.vim_connection_info) == ["v2"]
    nfvo.decide = yes
    await completed(rig, OperationType.TERMINATE, instance_id, FORCEFUL)
    assert nfvo.requests[-1]["removeResources"][0]["resource"]["vimConnectionId"] == "v2"
    assert await rig.slipway.simulated.inventory(other) == {}
