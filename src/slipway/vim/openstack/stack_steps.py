"""From a change to steps: one for the whole stack, or one for each batch of nodes that go out of service together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from msgspec.structs import replace

from slipway.model.grant import ResourceType
from slipway.model.machine import Found, FoundMachine
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.secrets import find_references, reference
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.vim.openstack.desired_stack import DesiredStack, current_stack, desired_stack
from slipway.vim.openstack.hot_template import STACK
from slipway.vim.openstack.package_images import release_step, upload_steps, with_image_names
from slipway.vim.openstack.stack_change import (
    CHANGE_STACK,
    FOLLOWING_CHANGE,
    STEP_TIMEOUT,
    ChangeStack,
    StackMember,
    as_args,
    digest_of,
    following_change,
)
from slipway.vim.openstack.template_reads import refuse_unread
from slipway.vim.openstack.user_data_stack import READ_STEP, USER_DATA_STEP, user_data_of, user_data_steps


def steps_of(change: Change, found: Found) -> Plan:
    if change.after is None:
        return _removal(change, found)
    before = with_image_names(change.before) if change.before else None
    after = with_image_names(change.after)
    return _change(dataclasses.replace(change, before=before, after=after), after, change.after, found)


def _change(change: Change, target: VnfTarget, package: VnfTarget, found: Found) -> Plan:
    """`package`: the target with the names that its VNFD has for images."""
    before = current_stack(change, change.before) if change.before else None
    after = desired_stack(change, target)
    if after.base and not after.user_data and not change.grant_follows:
        refuse_unread(change, after.base)
    found = _of_vdus(change, found, after)
    touched = _touched(before, after, found)
    stack = next((one for one in found.objects if one.kind == STACK), None)
    if not touched and stack is not None and stack.digest == digest_of(after.spec):
        return Plan()
    named = user_data_of(change, target)
    turns = _turns(change, before, after, touched)
    if named and change.renewal.reversible:  # its code says all at once what is new
        turns = [touched]
    used = before.images if before else frozenset[str]()
    plan, last = upload_steps(package, after.images, used), before
    if named:
        parameters = before.spec.parameters if before else {}
        plan = Plan.chain(plan, Plan(user_data_steps(change, target, named, parameters, members_of(change))))
    earlier: tuple[str, ChangeStack] | None = None
    for number, nodes in enumerate(turns, 1):
        here = after if number == len(turns) or last is None else after.updated_for(nodes, last)
        args = _args(change, found, last, here, nodes, first=number == 1)
        args = replace(args, user_data=(READ_STEP, USER_DATA_STEP) if named else None)
        step = _step(change, args, nodes, found, f" ({number}/{len(turns)})" if len(turns) > 1 else "", earlier)
        plan, last, earlier = Plan.chain(plan, Plan.of(step)), here, (step.id, args)
    if named or used <= after.images:  # user data may have left the stack with an image of before
        return plan
    return Plan.chain(plan, release_step(after.images))


def _of_vdus(change: Change, found: Found, after: DesiredStack) -> Found:
    """Without servers of the template's own that are no VNFC: they are the template's affair."""
    vdus = {vdu for target in (change.before, change.after) if target for vdu in target.flavour.vdus}
    known = {machine.id for machine in change.inventory.machines}
    places = {one.name for one in after.members}
    ours = [one for one in found.machines if one.id in known or one.vdu in vdus or one.name in places]
    return replace(found, machines=tuple(ours))


def _turns(
    change: Change, before: DesiredStack | None, after: DesiredStack, touched: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """The batches, and whoever is in none with the last. A template that is new for everybody comes after all of them.

    What replaces members of a group is new for all of them: Heat itself goes through these one by one.
    """
    if not change.batches or before is None:
        return [touched]
    batches = list(change.batches)
    if change.renewal.reversible:
        batches = _merged_by_group(before, after, batches)
    in_batches = [name for batch in batches for name in batch]
    rest = tuple(name for name in touched if name not in in_batches)
    if change.renewal.reversible:
        renewed = after.updated_for(in_batches, before)
        if again := [name for name in in_batches if renewed.definition_of(name) != after.definition_of(name)]:
            return [*batches, (*again, *rest)]
    return [*batches[:-1], (*batches[-1], *rest)]


def _merged_by_group(
    before: DesiredStack, after: DesiredStack, batches: Iterable[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Those of groups whose members are defined otherwise than before."""
    members = [one for one in after.members if one.group]
    group_of = {one.name: (one.top, one.vdu) for one in members if _is_changed(before, after, one.name)}
    turns: dict[object, tuple[str, ...]] = {}
    for batch in batches:
        key = next((group_of[name] for name in batch if name in group_of), batch)
        turns[key] = (*turns.get(key, ()), *batch)
    return list(turns.values())


def members_of(change: Change) -> tuple[VimResource, ...]:
    """Ports, volumes and networks get their ids from Heat: only members are known before."""
    members = change.after.members if change.after else ()
    return tuple(VimResource(id=one.id, type=ResourceType.COMPUTE, template=one.vdu) for one in members)


def _removal(change: Change, found: Found) -> Plan:
    """Images, whatever package is known: an operation that failed may have uploaded some of another."""
    if found == Found() and not change.retained:
        return release_step()
    names = tuple(sorted(machine.name for machine in found.machines))
    parameters = dict(change.before.parameters) if change.before else {}
    args = ChangeStack(
        stopped=tuple(machine.resource_id for machine in found.machines) if change.grace_seconds else (),
        grace_seconds=change.grace_seconds,
        known=_known_ids(change, found),
        secrets=tuple(reference(one) for one in dict.fromkeys(find_references(parameters))),
        volumes={volume.id: volume.name for volume in change.data_volumes},
        retains_data=change.retains_data,
    )
    step = Step(
        id="remove stack",
        action=CHANGE_STACK,
        args=as_args(args),
        nodes=names,
        effects=(*(Effect(Verb.REMOVE, "machine", name) for name in names), Effect(Verb.REMOVE, "stack", "of the VNF")),
        timeout=STEP_TIMEOUT + change.grace_seconds,
        irreversible=True,
    )
    return Plan.chain(Plan.of(step), release_step())


def _touched(before: DesiredStack | None, after: DesiredStack, found: Found) -> tuple[str, ...]:
    """Members that come, go, are made anew, or are to be otherwise."""
    there = {machine.name: machine.id for machine in found.machines}
    wanted = {one.name: one.id for one in after.members}
    other = {name for name in {*there, *wanted} if there.get(name) != wanted.get(name)}
    changed = {name for name in wanted if before and _is_changed(before, after, name)}
    return tuple(sorted(other | changed))


def _args(
    change: Change,
    found: Found,
    before: DesiredStack | None,
    after: DesiredStack,
    nodes: tuple[str, ...],
    *,
    first: bool,
) -> ChangeStack:
    there = {machine.name: machine for machine in found.machines}
    wanted = {one.name: one for one in after.members}
    staying = {one.id for one in after.members}
    done = _names_of_both(before.members if before else (), after.members)  # made anew by an earlier step
    going = [there[name] for name in nodes if name in there and name not in done and there[name].id not in staying]
    renewed = tuple(
        sorted(one.resource_id for one in going if one.name in wanted and _is_marked(change, before, after, one.name))
    )
    leaving = [one for one in going if one.name not in wanted]
    stack = next((one.id for one in found.objects if one.kind == STACK), "")
    everything = change.renewal.everything and bool(renewed)
    again = everything or (not stack and bool(renewed))  # where somebody deleted the stack, nothing is left to keep
    whole = again and first and len(renewed) == len(there) == len(wanted)
    return ChangeStack(
        before=before.spec if before else None,
        after=after.spec,
        former=_placed(before, there) if before else (),
        members=_placed(after, there),
        renewed=() if whole else renewed,
        held=_held(going) if everything and not whole else (),
        leaving=tuple(sorted(one.resource_id for one in leaving)),
        stopped=tuple(sorted(one.resource_id for one in leaving)) if change.grace_seconds else (),
        grace_seconds=change.grace_seconds,
        pinned=_pinned(before, [there[name] for name in nodes if name in there]) if change.reconnects else {},
        known=_known_ids(change, found),
        recreated=stack if whole else None,
        reason=change.renewal.cause,
    )


def _held(machines: Iterable[FoundMachine]) -> tuple[str, ...]:
    """Ports and volumes, as the record has them where the server is gone. Ports that existed before stay."""
    ports = {port.resource_id for machine in machines for port in machine.ports if not port.existing}
    return tuple(sorted(ports | {volume.resource_id for machine in machines for volume in machine.volumes}))


def _known_ids(change: Change, found: Found) -> tuple[str, ...]:
    """Of record and stack, since somebody else may have removed some; ports that existed before are nobody's to go."""
    machines = (*found.machines, *change.inventory.machines)
    existing = {port.id for machine in machines for port in machine.ports if port.existing}
    return tuple(sorted((found.ids | change.inventory.ids) - existing))


def _names_of_both(before: Iterable[StackMember], after: Iterable[StackMember]) -> set[str]:
    ids = {one.id for one in before}
    return {one.name for one in after if one.id in ids}


def _is_marked(change: Change, before: DesiredStack | None, after: DesiredStack, name: str) -> bool:
    """Whether it must be marked for Heat to replace it. Changed members of a group are replaced without that."""
    member = next(one for one in after.members if one.name == name)
    if not change.renewal.reversible or not member.group or before is None:
        return True
    return not _is_changed(before, after, name)


def _is_changed(before: DesiredStack, after: DesiredStack, name: str) -> bool:
    was = {one.name for one in before.members}
    return name in was and bool(before.definition_of(name) != after.definition_of(name))


def _placed(stack: DesiredStack, there: dict[str, FoundMachine]) -> tuple[StackMember, ...]:
    """With the servers that stand, and the ports of those whose places are taken."""

    def placed(member: StackMember) -> StackMember:
        old = there.get(member.name)
        if old is None:
            return member
        server = old.resource_id if old.id == member.id else None
        return replace(member, server=server, ports=tuple(port.id for port in old.ports))

    return tuple(placed(member) for member in stack.members)


def _pinned(before: DesiredStack | None, touched: Iterable[FoundMachine]) -> dict[str, tuple[str, ...]]:
    """Addresses that ports have and that nobody asked for: when they are made again by undo, they get them back."""
    if before is None or before.spec.template is None:
        return {}
    return {
        f"{machine.name}:{port.name}": tuple(address.ip for address in port.addresses if address.ip)
        for machine in touched
        for port in machine.ports
        if port.address and f"{machine.name}:{port.name}" in before.spec.template["resources"]
    }


def _step(
    change: Change,
    args: ChangeStack,
    nodes: tuple[str, ...],
    found: Found,
    turn: str,
    earlier: tuple[str, ChangeStack] | None,
) -> Step:
    """`earlier`: the step before it, if it is one of several, and what that changes."""
    there = {machine.name: machine.id for machine in found.machines}
    wanted = {one.name: one.id for one in args.members}
    done = _names_of_both(args.former, args.members)
    gone = [name for name in nodes if name in there and name not in done and there[name] != wanted.get(name)]
    new = [name for name in nodes if name in wanted and name not in done and there.get(name) != wanted[name]]
    changed = [name for name in nodes if name not in gone and name not in new]
    following = following_change(*earlier, args) if earlier else None
    return Step(
        id=f"{'change' if args.before else 'make'} stack{turn}",
        action=FOLLOWING_CHANGE if following else CHANGE_STACK,
        args=as_args(following or args),
        nodes=nodes,
        effects=(
            *(Effect(Verb.REMOVE, "machine", name) for name in gone),
            *(Effect(Verb.CHANGE, "machine", name) for name in changed),
            *(Effect(Verb.MAKE, "machine", name) for name in new),
        ),
        timeout=STEP_TIMEOUT + args.grace_seconds,
        irreversible=any(not _comes_back(change, there[name]) for name in gone),
    )


def _comes_back(change: Change, machine_id: str) -> bool:
    return change.renewal.reversible and machine_id in change.renewal.members
