"""What an NFVO is asked for by way of a driver, and what becomes of packages and links that change."""

from __future__ import annotations

import dataclasses
from fnmatch import fnmatchcase
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.lcm.grant_request import Difference, difference
from slipway.model.grant import ResourceType
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest, ChangeExtConnRequest
from tests.contract.life import FIRST, INSTANTIATE, NEXT, TERMINATE, UPDATE, Life, OnDriver, back, heal, known_ids, out
from tests.contract.plans import hand, in_order


def on(network: str) -> tuple[ExtVirtualLink, ...]:
    return (ExtVirtualLink(id="outside", resource_id=network, ext_cps=(VnfExtCpData(cpd_id="work_cp"),)),)


OF_FIRST, OF_NEXT = (f"image-{FIRST}", f"size-{FIRST}"), (f"image-{NEXT}", f"size-{NEXT}")


ONLY_BASE = {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "base"}]}


class ChangesContract(OnDriver):
    async def test_resources_are_what_the_operation_leaves(self, life: Life) -> None:
        """What an NFVO is asked for: all members, and of the rest what can be known before."""
        operations: tuple[tuple[OperationType, AnyRequest | None], ...] = (
            (OperationType.INSTANTIATE, INSTANTIATE),
            (OperationType.SCALE, out(2)),
            (OperationType.HEAL, None),
            (OperationType.SCALE, back()),
            (OperationType.CHANGE_VNFPKG, UPDATE),
            (OperationType.TERMINATE, TERMINATE),
        )
        for kind, request in operations:
            asked = request or heal(life.vnfcs()[0])
            change = life.change(kind, asked)
            left = life.driver.resources(change)
            assert left == life.driver.resources(change)
            await life.run(kind, asked)
            there = _by_type(await life.found())
            listed = {type_: {one.id for one in left if one.type is type_} for type_ in ResourceType}
            assert listed[ResourceType.COMPUTE] == there[ResourceType.COMPUTE], kind
            for type_, ids in there.items():
                assert listed[type_] <= ids, f"{kind}: {type_}"
            assert {one.of for one in left if one.of} <= listed[ResourceType.COMPUTE]

    async def test_a_grant_for_a_scale_out_adds_only_what_is_new_and_removes_nothing(self, life: Life) -> None:
        await life.instantiated()
        asked = self.difference(life, OperationType.SCALE, out())
        before = _by_type(await life.found())
        await life.run(OperationType.SCALE, out())
        after = _by_type(await life.found())
        added = {one.id for one in asked.add if one.type is ResourceType.COMPUTE}
        assert added == after[ResourceType.COMPUTE] - before[ResourceType.COMPUTE]
        for one in asked.add:
            assert one.id in after[one.type] - before[one.type]
        assert asked.remove == ()
        assert asked.update == ()

    async def test_a_grant_for_a_scale_in_removes_who_leaves_and_nothing_that_stays(self, life: Life) -> None:
        await life.instantiated()
        await life.run(OperationType.SCALE, out())
        asked = self.difference(life, OperationType.SCALE, back())
        before = _by_type(await life.found())
        await life.run(OperationType.SCALE, back())
        after = _by_type(await life.found())
        assert asked.add == ()
        assert {one.id for one in asked.remove} == {id_ for type_ in before for id_ in before[type_] - after[type_]}

    @pytest.mark.parametrize("kind", [OperationType.HEAL, OperationType.CHANGE_VNFPKG])
    async def test_a_grant_for_what_is_made_anew_keeps_what_stays_with_it(
        self, life: Life, kind: OperationType
    ) -> None:
        await life.instantiated()
        request = heal(life.vnfcs()[0]) if kind is OperationType.HEAL else UPDATE
        asked = self.difference(life, kind, request)
        before = _by_type(await life.found())
        await life.run(kind, request)
        after = _by_type(await life.found())
        assert {one.id for one in asked.remove} == {id_ for type_ in before for id_ in before[type_] - after[type_]}
        for one in asked.add:
            assert one.id in after[one.type] - before[one.type]

    def difference(self, life: Life, kind: OperationType, request: AnyRequest) -> Difference:
        return difference(life.situation(kind, request), life.driver.resources(life.change(kind, request)))

    async def test_files_are_named_by_paths_or_globs_from_the_target_alone(self, life: Life) -> None:
        change = life.change(OperationType.INSTANTIATE, INSTANTIATE)
        assert change.after is not None
        globs = life.driver.package_files(change.after)
        assert globs == life.driver.package_files(dataclasses.replace(change.after, files={}))
        assert all(isinstance(glob, str) and glob and not glob.startswith(("/", "../")) for glob in globs)
        if change.after.files:  # a package may lack them
            assert all(any(fnmatchcase(path, glob) for path in change.after.files) for glob in globs)

    async def test_another_package_changes_content_under_the_same_name(self, life: Life) -> None:
        """Machines are other ones in the same places, with the ports and volumes that were there."""
        await life.instantiated()
        before = await life.found()
        plan = await life.plan(OperationType.CHANGE_VNFPKG, UPDATE)
        assert plan.steps
        assert not any(step.irreversible for step in plan.steps)
        await life.run(OperationType.CHANGE_VNFPKG, UPDATE, twice=True)
        after = await life.found()
        assert life.instance.vnf.vnfd_id == NEXT
        assert {one.id for one in after.objects} == {one.id for one in before.objects}
        self.assert_content(before, after)
        if not self.container:
            assert not {one.id for one in after.machines} & {one.id for one in before.machines}
            assert made_from(after) == {"base-0": OF_NEXT, "work-0": OF_NEXT, "work-1": OF_NEXT}
        await life.agreed()
        assert (await life.plan(OperationType.CHANGE_VNFPKG, UPDATE)).steps == ()

    async def test_machines_of_vdus_that_are_not_named_stay_until_they_are_healed(self, life: Life) -> None:
        self.must_have_members()
        await life.instantiated()
        before = {one.name: one.id for one in (await life.found()).machines}
        await life.run(OperationType.CHANGE_VNFPKG, replace(UPDATE, additional_params=ONLY_BASE))
        after = await life.found()
        assert made_from(after) == {"base-0": OF_NEXT, "work-0": OF_FIRST, "work-1": OF_FIRST}
        now = {one.name: one.id for one in after.machines}
        assert {name for name in now if now[name] == before[name]} == {"work-0", "work-1"}
        await life.agreed()
        await life.run(OperationType.HEAL, heal(life.vnfcs()[0]))
        healed = made_from(await life.found())
        assert healed == {
            "base-0": OF_NEXT,
            "work-0": OF_FIRST if self.all_alike else OF_NEXT,
            "work-1": OF_FIRST,
        }
        await life.agreed()

    async def test_a_change_of_package_touches_one_member_after_another(self, life: Life) -> None:
        """All is done to one before anything is done to the next, and the others are there meanwhile."""
        self.must_have_members()
        await life.instantiated()
        plan = await life.plan(OperationType.CHANGE_VNFPKG, UPDATE)
        names = [node for step in in_order(plan) for node in step.nodes]
        assert list(dict.fromkeys(names)) == ["base-0", "work-0", "work-1"]
        context = life.context()
        for step in in_order(plan):
            action, args = hand(life.driver, step)
            context.outcomes[step.id] = await action.run(args, context)
            absent = {*names} - {one.name for one in (await life.found()).machines}
            assert absent <= {*step.nodes}
        life.settle(OperationType.CHANGE_VNFPKG, UPDATE, context)
        await life.agreed()

    def assert_content(self, before: Found, after: Found) -> None:
        if self.container:
            old, new = ({one.id: one.digest for one in found.objects} for found in (before, after))
            assert any(old[id_] != new[id_] for id_ in old)
        else:
            held = {one.name: [port.name for port in one.ports] for one in after.machines}
            assert {name: sorted(ports) for name, ports in held.items()} == {
                "base-0": ["base_cp"],
                "work-0": ["work_cp", "work_more"],
                "work-1": ["work_cp", "work_more"],
            }
            assert {port.id for port in before.ports} < {port.id for port in after.ports}
            assert {volume.id for volume in before.volumes} < {volume.id for volume in after.volumes}

    async def test_a_change_of_package_is_taken_back_wherever_it_stopped(self, life: Life) -> None:
        await life.instantiated()
        before = await life.found()
        steps = len((await life.plan(OperationType.CHANGE_VNFPKG, UPDATE)).steps)
        for stop in self.stops(steps):
            await life.roll_back(OperationType.CHANGE_VNFPKG, UPDATE, stop)
            after = await life.found()
            assert known_ids(after) == known_ids(before), f"stopped after {stop}"
            if not self.container:
                assert made_from(after) == {"base-0": OF_FIRST, "work-0": OF_FIRST, "work-1": OF_FIRST}
                assert self.addresses(after) == self.addresses(before)
            assert life.instance.vnf.vnfd_id == FIRST
            await life.agreed()

    async def test_ports_move_to_another_network_and_nothing_else_changes(
        self, life: Life, outside: tuple[str, str]
    ) -> None:
        self.must_have_ports()
        one, other = outside
        move = ChangeExtConnRequest(ext_virtual_links=on(other))
        await life.run(OperationType.INSTANTIATE, replace(INSTANTIATE, ext_virtual_links=on(one)))
        before = await life.found()
        assert _networks_of(before) == {"work_cp": {one}, "base_cp": {before.networks[0].id}}
        await life.run(OperationType.CHANGE_EXT_CONN, move, twice=True)
        after = await life.found()
        assert _networks_of(after) == {"work_cp": {other}, "base_cp": {before.networks[0].id}}
        for kept in ("machines", "volumes", "networks"):
            assert {one.id for one in getattr(after, kept)} == {one.id for one in getattr(before, kept)}
        assert [port for port in after.ports if port.name == "base_cp"] == [
            port for port in before.ports if port.name == "base_cp"
        ]
        assert len(after.ports) == len(before.ports)
        await life.agreed()
        assert (await life.plan(OperationType.CHANGE_EXT_CONN, move)).steps == ()

    async def test_ports_go_back_to_their_networks_and_addresses_wherever_a_move_stopped(
        self, life: Life, outside: tuple[str, str]
    ) -> None:
        self.must_have_ports()
        one, other = outside
        move = ChangeExtConnRequest(ext_virtual_links=on(other))
        await life.run(OperationType.INSTANTIATE, replace(INSTANTIATE, ext_virtual_links=on(one)))
        before = await life.found()
        plan = await life.plan(OperationType.CHANGE_EXT_CONN, move)
        assert not any(step.irreversible for step in plan.steps)
        for stop in self.stops(len(plan.steps)):
            await life.roll_back(OperationType.CHANGE_EXT_CONN, move, stop)
            assert self.addresses(await life.found()) == self.addresses(before), f"stopped after {stop}"
            await life.agreed()

    def addresses(self, found: Found) -> list[Any]:
        """Whatever ids ports have."""
        return sorted(
            (machine.id, port.name, port.network, port.address, port.mac if self.keeps_macs else None)
            for machine in found.machines
            for port in machine.ports
        )

    def must_have_members(self) -> None:
        if self.container:
            pytest.skip("its VNFCs are pods, which come and go by themselves")

    def must_have_ports(self) -> None:
        if not self.has_ports:
            pytest.skip("its VIM connects no ports to other networks")


def made_from(found: Found) -> dict[str, tuple[str | None, str | None]]:
    return {one.name: (one.image, one.flavour) for one in found.machines}


def _by_type(found: Found) -> dict[ResourceType, set[str]]:
    """As an NFVO counts them: pods come and go without anybody being asked for each."""
    return {
        ResourceType.COMPUTE: {one.id for one in found.machines if one.type != "Pod"},
        ResourceType.LINKPORT: {one.id for one in found.ports},
        ResourceType.STORAGE: {one.id for one in found.volumes},
        ResourceType.VL: {one.id for one in found.networks},
    }


def _networks_of(found: Found) -> dict[str, set[str | None]]:
    return {name: {port.network for port in found.ports if port.name == name} for name in ("work_cp", "base_cp")}
