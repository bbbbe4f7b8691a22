"""An NFVO is asked before each operation, and what it answers is done: on the VIM, in the record, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.model.action import Connection
from slipway.model.clock import utcnow
from slipway.model.errors import VimFault
from slipway.model.instance import ExtVirtualLink, InstantiatedVnfInfo, VnfExtCpData
from slipway.model.machine import FoundMachine
from slipway.model.operation import CancelMode, Operation, OperationType, State
from slipway.model.requests import (
    AnyRequest,
    ChangeExtConnRequest,
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ModifyRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.model.vim import SIMULATED, Vim
from slipway.settings import Settings
from slipway.store import operations, vims
from slipway.vim.simulated.rules import Rule, RuleKind
from tests.databases import setting
from tests.functional.agreement import assert_agreement
from tests.functional.crash_child import work
from tests.functional.lives import forks
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SAMPLE, SIMULATED_VIM, Rig, rig_in, settings_in
from tests.functional.scripted_package import scripted_tree
from tests.functional.small_nfvo import GRANTS, SmallNfvo, a_grant, placed, small_nfvo, yes, yes_there
from tests.script_sandbox import needs_sandbox
from tests.unit.outside.loopback_server import Answer, document

pytestmark = pytest.mark.sqlite_suffices

INSTANTIATE = InstantiateRequest(flavour_id="simple")
OUT = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers")
IN = ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers")
FORCEFUL = TerminateRequest(termination_type=TerminationType.FORCEFUL)
MASTER = [("COMPUTE", "masterNode"), ("LINKPORT", "masterNode_CP1"), ("STORAGE", "masterData")]
WORKER = [("COMPUTE", "workerNode"), ("LINKPORT", "workerNode_CP1")]
NETWORK = [("VL", "clusterNet")]
ALL = sorted([*MASTER, *WORKER, *WORKER, *NETWORK])
COMPUTES = [("COMPUTE", "masterNode"), ("COMPUTE", "workerNode"), ("COMPUTE", "workerNode")]
LISTS = ("addResources", "removeResources", "updateResources")


@pytest.fixture
async def nfvo() -> AsyncIterator[SmallNfvo]:
    async with small_nfvo() as nfvo:
        yield nfvo


@pytest.fixture
def settings(database_url: URL, tmp_path: Path, nfvo: SmallNfvo) -> Settings:
    return settings_for(database_url, tmp_path, nfvo)


def settings_for(database_url: URL, place: Path, nfvo: SmallNfvo, **more: Any) -> Settings:
    usual = {"nfvo_url": nfvo.url, "grant_seconds": 20.0, "lease_seconds": 0.5}
    return settings_in(place / "data", setting(database_url), **{**usual, **more})


@pytest.fixture
async def rig(settings: Settings) -> AsyncIterator[Rig]:
    async with rig_in(settings) as rig:
        yield rig


async def standing(rig: Rig, request: InstantiateRequest = INSTANTIATE) -> str:
    instance_id = await rig.create()
    done = await rig.run(OperationType.INSTANTIATE, instance_id, request)
    assert done.operation_state is State.COMPLETED, done.error
    return instance_id


async def completed(rig: Rig, kind: OperationType, instance_id: str, request: AnyRequest) -> Operation:
    done = await rig.run(kind, instance_id, request)
    assert done.operation_state is State.COMPLETED, done.error
    return done


async def info_of(rig: Rig, instance_id: str) -> InstantiatedVnfInfo:
    info = (await rig.instance(instance_id)).vnf.instantiated_vnf_info
    assert info is not None
    return info


async def machines(rig: Rig, instance_id: str) -> dict[str, FoundMachine]:
    found = (await rig.inventory())[instance_id]
    assert_agreement(await info_of(rig, instance_id), found)
    return {machine.name: machine for machine in found.machines}


async def refused(rig: Rig, request: AnyRequest = INSTANTIATE, kind: OperationType = OperationType.INSTANTIATE) -> str:
    """Why; nothing was made."""
    instance_id = await rig.create()
    operation = await rig.run(kind, instance_id, request)
    assert operation.operation_state is State.ROLLED_BACK
    assert operation.error is not None
    assert await rig.inventory() == {}
    assert (await rig.instance(instance_id)).vnf.instantiated_vnf_info is None
    assert await rig.journal(operation.id) == []
    return operation.error.detail


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


async def test_what_is_asked_for_an_instantiation(rig: Rig, nfvo: SmallNfvo) -> None:
    params = {"size": "big", "password": "canary-of-the-request", "nested": {"api_key": "canary-of-the-request"}}
    instance_id = await rig.create()
    request = InstantiateRequest(flavour_id="ha", instantiation_level_id="default", additional_params=params)
    operation = await completed(rig, OperationType.INSTANTIATE, instance_id, request)
    (asked,) = nfvo.requests
    computes = [one for one in asked["addResources"] if one["type"] == "COMPUTE"]
    masters = [one["id"] for one in computes if one["resourceTemplateId"] == "masterNode"]
    assert nfvo.resources("addResources") == sorted([*MASTER * 3, *WORKER * 2, *NETWORK])
    del asked["addResources"]
    place = "http://127.0.0.1:9890/vnflcm/v2"
    assert asked == {
        "vnfInstanceId": instance_id,
        "vnfLcmOpOccId": operation.id,
        "vnfdId": rig.vnfd_id,
        "flavourId": "ha",
        "instantiationLevelId": "default",
        "operation": "INSTANTIATE",
        "isAutomaticInvocation": False,
        "placementConstraints": [
            {
                "affinityOrAntiAffinity": "ANTI_AFFINITY",
                "scope": "NFVI_NODE",
                "resource": [{"idType": "GRANT", "resourceId": one} for one in masters],
            }
        ],
        "additionalParams": {"size": "big", "nested": {}},
        "_links": {
            "vnfLcmOpOcc": {"href": f"{place}/vnf_lcm_op_occs/{operation.id}"},
            "vnfInstance": {"href": f"{place}/vnf_instances/{instance_id}"},
        },
    }


async def test_what_is_asked_for_scaling(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    before = await machines(rig, instance_id)
    await completed(rig, OperationType.SCALE, instance_id, OUT)
    assert [nfvo.resources(name) for name in LISTS] == [WORKER, [], []]
    (new,) = [one for name, one in (await machines(rig, instance_id)).items() if name not in before]
    assert new.id in {one["id"] for one in nfvo.requests[-1]["addResources"]}
    assert nfvo.requests[-1]["flavourId"] == "simple"
    assert "instantiationLevelId" not in nfvo.requests[-1]

    await completed(rig, OperationType.SCALE, instance_id, IN)
    assert [nfvo.resources(name) for name in LISTS] == [[], WORKER, []]
    gone = next(one for one in nfvo.requests[-1]["removeResources"] if one["type"] == "COMPUTE")
    assert gone == {
        "id": new.id,
        "type": "COMPUTE",
        "resourceTemplateId": "workerNode",
        "resource": {"resourceId": new.resource_id, "vimConnectionId": "vim"},
    }


async def test_what_is_asked_for_healing_and_terminating(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    (vnfc,) = [one for one in (await info_of(rig, instance_id)).vnfc_resource_info if one.vdu_id == "masterNode"]
    one = HealRequest(vnfc_instance_id=(f"masterNode-{vnfc.id}",))
    await completed(rig, OperationType.HEAL, instance_id, one)
    assert [nfvo.resources(name) for name in LISTS] == [[MASTER[0]], [MASTER[0]], []]

    (vnfc,) = [one for one in (await info_of(rig, instance_id)).vnfc_resource_info if one.vdu_id == "masterNode"]
    whole_one = HealRequest(vnfc_instance_id=(f"masterNode-{vnfc.id}",), additional_params={"all": True})
    await completed(rig, OperationType.HEAL, instance_id, whole_one)
    assert [nfvo.resources(name) for name in LISTS] == [MASTER, MASTER, []]

    await completed(rig, OperationType.HEAL, instance_id, HealRequest())
    assert [nfvo.resources(name) for name in LISTS] == [COMPUTES, COMPUTES, []]

    await completed(rig, OperationType.HEAL, instance_id, HealRequest(additional_params={"all": True}))
    assert [nfvo.resources(name) for name in LISTS] == [ALL, ALL, []]

    await completed(rig, OperationType.TERMINATE, instance_id, FORCEFUL)
    assert [nfvo.resources(name) for name in LISTS] == [[], ALL, []]
    assert await rig.inventory() == {}


def on(network: str, link: str = "outside") -> tuple[ExtVirtualLink, ...]:
    return (ExtVirtualLink(id=link, resource_id=network, ext_cps=(VnfExtCpData(cpd_id="workerNode_CP1"),)),)


async def test_what_is_asked_for_a_change_of_connectivity(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig, InstantiateRequest(flavour_id="simple", ext_virtual_links=on("net-1")))
    await completed(
        rig, OperationType.CHANGE_EXT_CONN, instance_id, ChangeExtConnRequest(ext_virtual_links=on("net-2"))
    )
    ports = [("LINKPORT", "workerNode_CP1")] * 2
    assert [nfvo.resources(name) for name in LISTS] == [ports, ports, [("COMPUTE", "workerNode")] * 2]


async def test_what_is_asked_for_another_package_and_that_its_images_are_its_own(
    rig: Rig, nfvo: SmallNfvo, tmp_path: Path
) -> None:
    instance_id = await standing(rig)
    await onboard_next(rig, SAMPLE, tmp_path, NEXT_ID, hooks=())
    nfvo.decide = yes
    await completed(rig, OperationType.CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=NEXT_ID))
    assert (nfvo.requests[-1]["vnfdId"], nfvo.requests[-1]["dstVnfdId"]) == (rig.vnfd_id, NEXT_ID)
    assert [nfvo.resources(name) for name in LISTS] == [[], [], COMPUTES]
    assert {one.image for one in (await machines(rig, instance_id)).values()} == {"image-m", "image-w"}
    await completed(rig, OperationType.HEAL, instance_id, HealRequest())
    assert {one.image for one in (await machines(rig, instance_id)).values()} == {"cluster-node"}
    assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-1"}


async def test_modifying_needs_no_grant_and_a_preview_asks_nobody(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await rig.create()
    await completed(rig, OperationType.MODIFY_INFO, instance_id, ModifyRequest(metadata={"a": 1}))
    plan = await rig.slipway.lcm.preview(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
    assert plan.steps
    assert rig.slipway.lcm.asks_nfvo
    assert nfvo.requests == []


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


def all_in(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())


async def test_an_nfvo_may_send_a_new_vnf_to_another_vim(rig: Rig, nfvo: SmallNfvo) -> None:
    other = Connection(SIMULATED, {"endpoint": "sim://other"}, {}, {})
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


async def test_a_refusal_ends_rolled_back_with_the_words_of_the_nfvo(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = lambda _: document({"title": "No", "status": 403, "detail": "quota of \x1b[31mtenant t"}, 403)
    why = await refused(rig)
    assert why == rf"The NFVO at {nfvo.url}{GRANTS} refused the grant: No: quota of \x1b[31mtenant t"
    assert len(nfvo.requests) == 1


async def test_a_refusal_later_leaves_all_as_it_was(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    before = await rig.instance(instance_id)
    nfvo.decide = lambda _: document({"status": 403, "detail": "not now"}, 403)
    for kind, request in ((OperationType.SCALE, OUT), (OperationType.TERMINATE, FORCEFUL)):
        operation = await rig.run(kind, instance_id, request)
        assert operation.operation_state is State.ROLLED_BACK
    assert await rig.instance(instance_id) == before
    assert len(await machines(rig, instance_id)) == 3


@pytest.mark.parametrize(
    ("status", "cure"),
    [(400, "compare docs/grants.md"), (401, "correct nfvo_auth"), (404, "give nfvo_url"), (200, "compare"), (307, "")],
)
async def test_any_other_answer_is_told_with_a_cure(rig: Rig, nfvo: SmallNfvo, status: int, cure: str) -> None:
    nfvo.decide = lambda _: Answer(status, {"Location": "http://127.0.0.1:1/"}, b"plain words\0")
    why = await refused(rig)
    assert why.startswith(rf"The NFVO at {nfvo.url}{GRANTS} answered {status}: plain words\x00. Cure: {cure}")
    assert len(nfvo.requests) == 1


@pytest.mark.parametrize("relative", [True, False])
async def test_an_nfvo_that_decides_later_is_looked_at_until_it_has(rig: Rig, nfvo: SmallNfvo, relative: bool) -> None:
    place = f"{GRANTS}/g1"

    def look() -> Answer:
        if nfvo.looks == 1:
            return Answer(202)
        return Answer(503) if nfvo.looks == 2 else document(placed(nfvo.requests[-1], "az-late"))

    nfvo.decide = lambda _: Answer(202, {"Location": place if relative else nfvo.url + place})
    nfvo.look = look
    instance_id = await standing(rig)
    assert (len(nfvo.requests), nfvo.looks) == (1, 3)
    assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-late"}


@pytest.mark.parametrize("location", ["", "http://127.0.0.1:1/grant/v1/grants/g1", "http://[", "file:///etc/passwd"])
async def test_nobody_is_led_away_from_the_nfvo(rig: Rig, nfvo: SmallNfvo, location: str) -> None:
    nfvo.decide = lambda _: Answer(202, {"Location": location} if location else {})
    assert "Location" in await refused(rig)


async def test_a_refusal_may_come_late(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = lambda _: Answer(202, {"Location": f"{GRANTS}/g1"})
    nfvo.look = lambda: document({"status": 403, "detail": "thought about it"}, 403)
    assert (await refused(rig)).endswith("refused the grant: thought about it")


async def test_an_nfvo_in_trouble_is_asked_again(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = lambda request: Answer(503) if len(nfvo.requests) < 3 else yes_there(request)
    await standing(rig)
    assert len(nfvo.requests) == 3
    assert nfvo.requests[0] == nfvo.requests[1] == nfvo.requests[2]


async def silent(_: dict[str, Any]) -> Answer:
    await asyncio.sleep(60)
    return Answer(500)


@pytest.mark.parametrize(
    ("decide", "last"),
    [
        (silent, ""),
        (lambda _: document({"detail": "database is down"}, 500), " The last: it answered 500: database is down."),
        (lambda _: Answer(202, {"Location": GRANTS}), " The last: it"),
    ],
    ids=["silent", "broken", "undecided"],
)
async def test_patience_has_an_end(
    decide: Callable[[dict[str, Any]], Any], last: str, database_url: URL, tmp_path: Path, nfvo: SmallNfvo
) -> None:
    nfvo.decide, nfvo.look = decide, lambda: Answer(202)
    async with rig_in(settings_for(database_url, tmp_path, nfvo, grant_seconds=0.6)) as rig:
        why = await refused(rig)
    assert why.startswith(f"The NFVO at {nfvo.url}{GRANTS} gave no grant within 0.6 s.{last}")
    assert "raise grant_seconds" in why


async def test_a_dead_nfvo(database_url: URL, tmp_path: Path) -> None:
    async with small_nfvo() as nfvo:
        settings = settings_for(database_url, tmp_path, nfvo, grant_seconds=0.6)
    async with rig_in(settings) as rig:
        why = await refused(rig)
    assert "The last: it is not reached" in why


@pytest.mark.parametrize("mode", list(CancelMode))
async def test_a_cancelled_operation_does_not_wait_for_the_nfvo(
    database_url: URL, tmp_path: Path, nfvo: SmallNfvo, mode: CancelMode
) -> None:
    heard = asyncio.Event()

    async def hear(request: dict[str, Any]) -> Answer:
        heard.set()
        return await silent(request)

    nfvo.decide = hear
    async with rig_in(settings_for(database_url, tmp_path, nfvo, grant_seconds=3600.0)) as rig:
        begun = await rig.slipway.lcm.begin(OperationType.INSTANTIATE, await rig.create(), INSTANTIATE)
        await heard.wait()
        await rig.slipway.lcm.cancel(begun.id, mode)
        assert (await rig.rest(begun.id)).operation_state is State.ROLLED_BACK
        assert await rig.inventory() == {}


def raw(body: bytes) -> Callable[[dict[str, Any]], Answer]:
    return lambda _: Answer(201, {"Content-Type": "application/json"}, body)


def grant(**more: Any) -> Callable[[dict[str, Any]], Answer]:
    return lambda request: document(a_grant(request, **more), 201)


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Answer]:
    def decide(request: dict[str, Any]) -> Answer:
        document_ = a_grant(request)
        change(document_)
        return document(document_, 201)

    return decide


def infos(zone: str | None = None, vim: str | None = None) -> Callable[[dict[str, Any]], Answer]:
    return changed(
        lambda g: g["addResources"][0].update({k: v for k, v in (("zoneId", zone), ("vimConnectionId", vim)) if v})
    )


BAD = {
    "nothing": (raw(b""), "it is no JSON"),
    "html": (raw(b"<html>granted</html>"), "it is no JSON"),
    "a list": (raw(b"[]"), "Expected `object`"),
    "no id": (changed(lambda g: g.pop("id")), "missing required field `id`"),
    "deep": (raw(b'{"additionalParams":' + b'{"a":' * 100 + b"1" + b"}" * 101), "nested deeper"),
    "very deep": (raw(b"[" * 100_000), "it is no JSON"),
    "zero": (grant(additionalParams={"a": "b\0"}), "zero character"),
    "large number": (grant(additionalParams={"a": 2**70}), "more than 64 bits"),
    "control characters": (grant(id="a\nb"), "id: Expected `str` matching"),
    "long id": (grant(id="a" * 300), "id: Expected `str` of length <= 255"),
    "wrong type": (grant(zones="az-1"), "zones: Expected `array`"),
    "somebody's secret": (grant(additionalParams={"a": {"$secret": "x"}}), "is reserved"),
    "another instance": (grant(vnfInstanceId="x"), "vnfInstanceId: it is for 'x'"),
    "another operation": (grant(vnfLcmOpOccId="x"), "vnfLcmOpOccId: it is for 'x'"),
    "never asked for": (
        changed(lambda g: g["addResources"].append({"resourceDefinitionId": "extra"})),
        "addResources[8]: 'extra' was not asked for",
    ),
    "removal never asked for": (
        grant(removeResources=[{"resourceDefinitionId": "x"}]),
        "removeResources[0]: 'x' was not asked for",
    ),
    "twice": (changed(lambda g: g["addResources"].append(g["addResources"][0])), "is there twice"),
    "in part": (changed(lambda g: g["addResources"].pop()), "addResources: it leaves out"),
    "no such zone": (infos(zone="z9"), "addResources[0].zoneId: its zones have no 'z9'"),
    "no such VIM": (infos(vim="v9"), "it does not describe 'v9'"),
    "unknown VIM": (
        grant(vimConnectionInfo={"v": {"vimId": "nowhere"}}),
        "vimConnectionInfo.v.vimId: ",
    ),
    "two VIMs": (grant(vimConnectionInfo={"v": {"vimId": "a"}, "w": {"vimId": "b"}}), "it names v, w"),
    "no such connection point": (
        grant(extVirtualLinks=[{"id": "l", "resourceId": "n", "extCps": [{"cpdId": "nothing"}]}]),
        "has no connection point 'nothing'",
    ),
}


@pytest.mark.parametrize("name", list(BAD))
async def test_an_answer_that_can_not_be_used(rig: Rig, nfvo: SmallNfvo, name: str) -> None:
    nfvo.decide, words = BAD[name]
    why = await refused(rig)
    assert why.startswith("The NFVO's grant can't be used: ")
    assert words in why
    assert why.endswith("Cure: mend what the NFVO answers, then begin again.")


async def test_an_answer_without_end(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = raw(b" " * (9 << 20))
    assert "larger than 8388608 bytes" in await refused(rig)


async def test_parameters_of_a_grant_turn_no_small_heal_into_a_large_one(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    before = await machines(rig, instance_id)
    nfvo.decide = grant(additionalParams={"all": True})
    operation = await rig.run(OperationType.HEAL, instance_id, HealRequest())
    assert operation.operation_state is State.ROLLED_BACK
    assert operation.error is not None
    assert "would change what the operation was granted to make" in operation.error.detail
    assert await machines(rig, instance_id) == before


async def until_granted(rig: Rig, operation_id: str) -> Operation:
    """Another process writes it: there is nothing to wait for but the database."""
    async with asyncio.timeout(30):
        while True:
            now = await rig.slipway.database.read(operations.get, operation_id)
            if now.grant_id is not None:
                return now
            await asyncio.sleep(0.02)


async def test_killed_between_grant_and_plan_the_grant_counts_and_nobody_is_asked_again(
    settings: Settings, nfvo: SmallNfvo
) -> None:
    async with rig_in(settings, working=False) as rig:
        instance_id = await rig.create()
        begun = await rig.slipway.lcm.begin(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
        # The VIM is looked at before anybody is asked, and again for the plan: there it hangs.
        await rig.slipway.simulated.set_rules(
            SIMULATED_VIM, [Rule(call="find", kind=RuleKind.LATENCY, seconds=60, nth=2)]
        )
        worker = forks.Process(target=work, args=(settings, begun.id))
        worker.start()
        now = await until_granted(rig, begun.id)
        assert now.operation_state is State.STARTING
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        await asyncio.to_thread(worker.join)
        await rig.slipway.simulated.clear(SIMULATED_VIM)
    nfvo.decide = lambda request: document(placed(request, "another-zone"), 201)
    async with rig_in(settings) as rig:
        done = await rig.rest(begun.id)
        assert done.operation_state is State.COMPLETED, done.error
        assert done.grant_id == now.grant_id
        assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-1"}
    assert len(nfvo.requests) == 1


async def test_killed_while_it_asks_it_asks_for_the_same_again(settings: Settings, nfvo: SmallNfvo) -> None:
    heard = asyncio.Event()

    async def hear(request: dict[str, Any]) -> Answer:
        heard.set()
        return await silent(request)

    nfvo.decide = hear
    async with rig_in(settings, working=False) as rig:
        instance_id = await rig.create()
        begun = await rig.slipway.lcm.begin(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
    worker = forks.Process(target=work, args=(settings, begun.id))
    worker.start()
    await asyncio.wait_for(heard.wait(), 30)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    await asyncio.to_thread(worker.join)
    nfvo.decide = yes_there
    async with rig_in(settings) as rig:
        assert (await rig.rest(begun.id)).operation_state is State.COMPLETED
        await machines(rig, instance_id)
    assert nfvo.requests[0] == nfvo.requests[1]


async def test_a_retry_goes_on_with_the_same_grant(rig: Rig, nfvo: SmallNfvo) -> None:
    fault = Rule(call="make_machine", machine="workerNode-1", kind=RuleKind.ERROR, fault=VimFault.QUOTA)
    await rig.slipway.simulated.set_rules(SIMULATED_VIM, [fault])
    instance_id = await rig.create()
    failed = await rig.run(OperationType.INSTANTIATE, instance_id, INSTANTIATE)
    assert failed.operation_state is State.FAILED_TEMP
    await rig.slipway.simulated.clear(SIMULATED_VIM)
    await rig.slipway.lcm.retry(failed.id)
    done = await rig.rest(failed.id)
    assert done.operation_state is State.COMPLETED, done.error
    assert done.grant_id == failed.grant_id
    assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-1"}
    assert len(nfvo.requests) == 1


@pytest.mark.parametrize("how", ["basic", "oauth2"])
async def test_slipway_shows_who_it_is(how: str, database_url: URL, tmp_path: Path, nfvo: SmallNfvo) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary-of-the-login\n")
    secret.chmod(0o600)
    login = {"nfvo_user": "slipway", "nfvo_password_file": secret}
    if how == "oauth2":
        login = {"nfvo_client_id": "c", "nfvo_client_secret_file": secret, "nfvo_token_url": f"{nfvo.url}/token"}
    settings = settings_for(database_url, tmp_path, nfvo, nfvo_auth=how, **login)

    def forgetful(request: dict[str, Any]) -> Answer:
        """Every third request the token is no longer good."""
        return Answer(401) if how == "oauth2" and len(nfvo.requests) == 2 else yes_there(request)

    nfvo.decide = forgetful
    async with rig_in(settings) as rig:
        await standing(rig)
        await standing(rig)
    shown = [headers["authorization"] for headers in nfvo.headers]
    if how == "basic":
        assert shown == ["Basic c2xpcHdheTpjYW5hcnktb2YtdGhlLWxvZ2lu"] * 2
    else:
        assert shown == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


@needs_sandbox
async def test_scripts_of_the_package_are_given_the_grant(database_url: URL, tmp_path: Path, nfvo: SmallNfvo) -> None:
    code = """
import json, sys
given = json.load(sys.stdin)
request, grant = given["grantRequest"], given["grant"]
told = {"asked": request["operation"], "zones": [zone["zoneId"] for zone in grant["zones"]],
        "vims": grant["vimConnectionInfo"], "keeps": len(grant["additionalParams"]["password"])}
print(json.dumps({"vnfInstance": {"metadata": {"told": told}}}))
"""
    tree = scripted_tree(tmp_path, ["instantiate_start"], code)
    vim = {"vim": {"vimId": "simulated", "accessInfo": {"password": "canary-of-the-vim"}}}
    params = {"password": "canary-of-the-nfvo"}
    nfvo.decide = lambda request: document(placed(request, vimConnectionInfo=vim, additionalParams=params), 201)
    async with rig_in(settings_for(database_url, tmp_path, nfvo), hooks=None, sample=tree) as rig:
        instance_id = await standing(rig)
        assert (await rig.instance(instance_id)).vnf.metadata["told"] == {
            "asked": "INSTANTIATE",
            "zones": ["az-1", "elsewhere"],
            "vims": {"vim": {"vimId": "simulated", "accessInfo": {}}},
            "keeps": len("canary-of-the-nfvo"),
        }
        assert "canary" not in json.dumps(nfvo.requests)
