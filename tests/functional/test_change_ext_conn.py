"""A VNF's connection points move to other networks: the VIM's ports, the record and the operation tell the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy.engine import URL

from slipway.model.errors import BadRequest, Conflict, VimFault
from slipway.model.instance import ExtVirtualLink, InstantiatedVnfInfo
from slipway.model.machine import FoundPort
from slipway.model.operation import ChangeType, Operation, OperationType, State
from slipway.model.requests import ChangeExtConnRequest, HealRequest, InstantiateRequest, ScaleRequest, ScaleType
from slipway.vim.fault_rules import Rule, RuleKind
from tests.databases import setting
from tests.functional.agreement import assert_agreement
from tests.functional.rig import SIMULATED_VIM, Rig, rig_in, settings_in
from tests.functional.test_change_package import AuthMiddleware

pytestmark = pytest.mark.sqlite_suffices

KIND = OperationType.CHANGE_EXT_CONN
FIRST, SECOND = "workerNode-0", "workerNode-1"


def link(id_: str, network: str, *fixed: str, point: str = "workerNode_CP1") -> ExtVirtualLink:
    def config(address: str) -> dict[str, Any]:
        ips = [{"type": "IPV4", "fixedAddresses": [address]}]
        return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": ips}}]}

    configs = {str(at): config(address) for at, address in enumerate(fixed)}
    data = {"id": id_, "resourceId": network, "extCps": [{"cpdId": point, "cpConfig": configs}]}
    return msgspec.convert(data, ExtVirtualLink)


def to(*links: ExtVirtualLink) -> ChangeExtConnRequest:
    return ChangeExtConnRequest(ext_virtual_links=links)


@pytest.fixture
def gate() -> AuthMiddleware:
    return AuthMiddleware()


@pytest.fixture
async def rig(database_url: URL, tmp_path: Path, gate: AuthMiddleware) -> AsyncIterator[Rig]:
    hooks = ["change_external_connectivity_start=gate", "change_external_connectivity_end=gate"]
    async with rig_in(settings_in(tmp_path / "data", setting(database_url)), management=[gate], hooks=hooks) as rig:
        yield rig


async def standing(rig: Rig) -> str:
    instance_id = await rig.create()
    request = InstantiateRequest(flavour_id="simple", ext_virtual_links=(link("l1", "net-1"),))
    operation = await rig.run(OperationType.INSTANTIATE, instance_id, request)
    assert operation.operation_state is State.COMPLETED, operation.error
    return instance_id


async def info_of(rig: Rig, instance_id: str) -> InstantiatedVnfInfo:
    info = (await rig.instance(instance_id)).vnf.instantiated_vnf_info
    assert info is not None
    return info


async def agreed(rig: Rig, instance_id: str) -> dict[str, FoundPort]:
    """The one port of each machine, on which record and VIM agree."""
    info, found = await info_of(rig, instance_id), (await rig.inventory())[instance_id]
    assert_agreement(info, found)
    cps = {cp.id: cp for vnfc in info.vnfc_resource_info for cp in vnfc.vnfc_cp_info}
    for port in found.ports:
        ethernet = cps[port.id].cp_protocol_info[0].ip_over_ethernet
        assert ethernet is not None
        assert (ethernet.mac_address, ethernet.ip_addresses[0].addresses) == (port.mac, (port.address,))
        assert cps[port.id].metadata == {"resourceId": port.resource_id, "network": port.network}
    assert {cp.associated_vnfc_cp_id for cp in info.ext_cp_info} == {
        port.id for port in found.ports if port.name == "workerNode_CP1"
    }
    return {machine.name: machine.ports[0] for machine in found.machines}


async def fails_on(rig: Rig, slot: str, call: str = "make_machine") -> None:
    fault = Rule(call=call, machine=slot, kind=RuleKind.ERROR, fault=VimFault.QUOTA, message="no ports left")
    await rig.slipway.simulated.set_rules(SIMULATED_VIM, [fault])


async def half_done(rig: Rig, instance_id: str) -> Operation:
    """The second worker gets no new port."""
    await fails_on(rig, SECOND)
    operation = await rig.run(KIND, instance_id, to(link("l2", "net-2")))
    assert operation.operation_state is State.FAILED_TEMP
    assert operation.error is not None
    assert "no ports left" in operation.error.detail
    assert operation.changed_ext_connectivity == ()
    await rig.slipway.simulated.clear(SIMULATED_VIM)
    return operation


async def test_ports_move_and_all_else_stays(rig: Rig, gate: AuthMiddleware) -> None:
    instance_id = await standing(rig)
    before, machines = await agreed(rig, instance_id), (await rig.inventory())[instance_id].machines
    operation = await rig.run(KIND, instance_id, to(link("l2", "net-2", "10.2.0.5", "10.2.0.6")))
    assert operation.operation_state is State.COMPLETED, operation.error
    assert gate.heard == ["change_external_connectivity_start", "change_external_connectivity_end"]

    after = await agreed(rig, instance_id)
    assert [(after[slot].network, after[slot].address) for slot in (FIRST, SECOND)] == [
        ("net-2", "10.2.0.5"),
        ("net-2", "10.2.0.6"),
    ]
    assert {before[slot].id for slot in (FIRST, SECOND)}.isdisjoint({after[slot].id for slot in (FIRST, SECOND)})
    assert after["masterNode-0"] == before["masterNode-0"]
    now = (await rig.inventory())[instance_id].machines
    assert [machine.resource_id for machine in now] == [machine.resource_id for machine in machines]

    links = (await info_of(rig, instance_id)).ext_virtual_link_info
    assert [(one.id, one.resource_handle.resource_id) for one in links] == [("l2", "net-2")]
    assert operation.changed_ext_connectivity == links
    assert operation.resource_changes is not None
    affected = operation.resource_changes.affected_vnfcs
    assert [(one.vdu_id, one.change_type) for one in affected] == [("workerNode", ChangeType.MODIFIED)] * 2
    assert [one.affected_vnfc_cp_ids for one in affected] == [(after[FIRST].id,), (after[SECOND].id,)]


async def test_addresses_may_be_exchanged_and_what_is_so_already_is_not_touched(rig: Rig) -> None:
    instance_id = await standing(rig)
    assert (await rig.run(KIND, instance_id, to(link("l1", "net-1", "10.1.0.5", "10.1.0.6")))).operation_state
    placed = await agreed(rig, instance_id)
    operation = await rig.run(KIND, instance_id, to(link("l1", "net-1", "10.1.0.6", "10.1.0.5")))
    assert operation.operation_state is State.COMPLETED, operation.error
    after = await agreed(rig, instance_id)
    assert (after[FIRST].address, after[SECOND].address) == (placed[SECOND].address, placed[FIRST].address)
    again = await rig.run(KIND, instance_id, to(link("l1", "net-1", "10.1.0.6", "10.1.0.5")))
    assert again.operation_state is State.COMPLETED
    assert (again.changed_ext_connectivity, again.resource_changes) == ((), None)
    assert await agreed(rig, instance_id) == after


async def test_later_operations_go_on_with_the_new_networks(rig: Rig) -> None:
    instance_id = await standing(rig)
    await rig.run(KIND, instance_id, to(link("l2", "net-2")))
    moved = await agreed(rig, instance_id)
    out = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers")
    for kind, request in ((OperationType.HEAL, HealRequest()), (OperationType.SCALE, out)):
        assert (await rig.run(kind, instance_id, request)).operation_state is State.COMPLETED
    after = await agreed(rig, instance_id)
    assert after["workerNode-2"].network == "net-2"
    assert {slot: after[slot] for slot in moved} == moved


async def test_after_a_fault_of_the_vim_a_retry_goes_on(rig: Rig) -> None:
    instance_id = await standing(rig)
    operation = await half_done(rig, instance_id)
    await rig.slipway.lcm.retry(operation.id)
    ended = await rig.rest(operation.id)
    assert ended.operation_state is State.COMPLETED, ended.error
    after = await agreed(rig, instance_id)
    assert {after[slot].network for slot in (FIRST, SECOND)} == {"net-2"}
    assert [one.id for one in ended.changed_ext_connectivity] == ["l2"]


async def test_a_rollback_gives_the_old_ports_back(rig: Rig) -> None:
    instance_id = await standing(rig)
    before, links = await agreed(rig, instance_id), (await info_of(rig, instance_id)).ext_virtual_link_info
    operation = await half_done(rig, instance_id)
    await rig.slipway.lcm.roll_back(operation.id)
    ended = await rig.rest(operation.id)
    assert ended.operation_state is State.ROLLED_BACK, ended.error
    assert ended.changed_ext_connectivity == ()
    after = await agreed(rig, instance_id)
    for slot, port in before.items():
        assert msgspec.structs.replace(after[slot], resource_id=port.resource_id) == port
    assert (await info_of(rig, instance_id)).ext_virtual_link_info == links
    assert (await rig.run(KIND, instance_id, to(link("l2", "net-2")))).operation_state is State.COMPLETED
    assert {port.network for port in (await agreed(rig, instance_id)).values()} > {"net-2"}


async def test_a_rollback_after_the_vims_work_takes_that_back_too(rig: Rig, gate: AuthMiddleware) -> None:
    instance_id = await standing(rig)
    before = await agreed(rig, instance_id)
    await fails_on(rig, FIRST, call="unplug")
    operation = await rig.run(KIND, instance_id, to(link("l2", "net-2")))
    await rig.slipway.simulated.clear(SIMULATED_VIM)
    gate.shut = True
    await rig.slipway.lcm.retry(operation.id)
    assert (await rig.rest(operation.id)).operation_state is State.FAILED_TEMP
    assert {port.network for port in (await agreed_with_vim(rig, instance_id)).values()} > {"net-2"}
    await rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    after = await agreed(rig, instance_id)
    assert {slot: (port.id, port.network, port.address) for slot, port in after.items()} == {
        slot: (port.id, port.network, port.address) for slot, port in before.items()
    }


async def agreed_with_vim(rig: Rig, instance_id: str) -> dict[str, FoundPort]:
    """Until an operation has ended, only the VIM knows."""
    return {machine.name: machine.ports[0] for machine in (await rig.inventory())[instance_id].machines}


@pytest.mark.parametrize("network", ["net-1", "net-2"])
async def test_given_up_half_way_the_next_change_brings_all_to_one_network(rig: Rig, network: str) -> None:
    """The first worker has moved, the second has no port at all: the record says so, and both are brought along."""
    instance_id = await standing(rig)
    operation = await half_done(rig, instance_id)
    assert (await rig.slipway.lcm.fail(operation.id)).operation_state is State.FAILED
    info = await info_of(rig, instance_id)
    assert_agreement(info, (await rig.inventory())[instance_id])
    assert [len(vnfc.vnfc_cp_info) for vnfc in info.vnfc_resource_info] == [1, 1, 0]
    ended = await rig.run(KIND, instance_id, to(link("l3", network)))
    assert ended.operation_state is State.COMPLETED, ended.error
    after = await agreed(rig, instance_id)
    assert {after[slot].network for slot in (FIRST, SECOND)} == {network}


async def test_what_cant_be_is_refused_and_nothing_is_begun(rig: Rig) -> None:
    instance_id = await rig.create()
    with pytest.raises(Conflict, match="not instantiated"):
        await rig.slipway.lcm.start_operation(KIND, instance_id, to(link("l2", "net-2")))
    instance_id = await standing(rig)
    for ask in (rig.slipway.lcm.start_operation, rig.slipway.lcm.preview_plan):
        with pytest.raises(BadRequest, match="no connection point 'nobody'"):
            await ask(KIND, instance_id, to(link("l2", "net-2", point="nobody")))
    preview = await rig.slipway.lcm.preview_plan(KIND, instance_id, to(link("l2", "net-2")))
    assert [step.nodes for step in preview.steps] == [(), (FIRST,), (SECOND,), (FIRST,), (SECOND,), ()]
