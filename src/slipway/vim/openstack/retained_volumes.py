"""Volumes that outlive their stack: before Heat deletes it, it is told to leave them (`deletion_policy: Retain`).

The policy stands in the template that makes the volume, the stack's own or a nested one, and Heat itself says how it
has read that: nothing else of a template becomes otherwise. What the policies were is noted in the template (`NOTE`),
so that an operation after a termination that was given up finds it as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from hashlib import sha256
from typing import Any

import msgspec

from slipway.model.errors import VimError, VimFault
from slipway.vim.openstack import heat
from slipway.vim.openstack.answers import ShownVolume
from slipway.vim.openstack.cloud import CINDER, HEAT, Cloud, for_each
from slipway.vim.openstack.heat import RETAINING, Stack, StackResource
from slipway.vim.openstack.hot_template import HEAT_TYPE, VOLUME, resources_of
from slipway.vim.openstack.stack_state import StackState

POLICY, RETAIN = "deletion_policy", "Retain"
NOTE = "slipway:retained"  # a resource of the stack's own template, which stands for nothing
TOP = ""  # in the note: the stack's own template, where files have their names
WITHOUT = "save the data (by backups, for instance) and terminate without retain_data."

Templates = dict[str, dict[str, Any]]  # by the names of files; TOP for the stack's own


def retaining_digest(volumes: Iterable[str]) -> str:
    """What a stack's tag has once these volumes stay: no spec has this digest, so any other change is made."""
    return RETAINING + sha256(",".join(sorted(volumes)).encode()).hexdigest()[:32]


def files_with(volumes: Iterable[StackResource], resources: Iterable[StackResource]) -> dict[str, list[StackResource]]:
    """These volumes by the file whose template has them.

    VimError where a group has a volume as its member: such have no deletion policy of their own.
    """
    types = {one.path: one.type for one in resources}
    found: dict[str, list[StackResource]] = {}
    for volume in volumes:
        inside = types.get(volume.path[:-1], TOP)
        if HEAT_TYPE.fullmatch(inside):
            raise VimError(
                f"Volume {volume.id} can't be retained: resource {'/'.join(volume.path)} is itself the member of an "
                f"{inside}, and Heat gives such no deletion policy.",
                VimFault.PERMANENT,
                cure=f"let the package make it in a nested template; now, {WITHOUT}",
            )
        found.setdefault(inside, []).append(volume)
    return found


def retaining(templates: Templates, names: Mapping[str, Collection[str]]) -> Templates:
    """With the volumes of these names to be left; and, in the stack's own template, a note of what was there."""
    changed = deepcopy(templates)
    note: dict[str, dict[str, Any]] = dict(_note_in(changed[TOP]))
    for file, volumes in names.items():
        resources = resources_of(changed[file])
        for volume in sorted(volumes):
            if volume in resources and not _is_retained(changed[file], volume):
                note[file] = {**note.get(file, {}), volume: resources[volume].get(POLICY)}
                resources[volume][POLICY] = RETAIN
    if note:
        text = msgspec.json.encode(note).decode()  # Heat would take a mapping for one of its functions
        resources_of(changed[TOP])[NOTE] = {"type": "OS::Heat::None", "metadata": {"policies": text}}
    return changed


def as_before(template: dict[str, Any], files: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """A stack's template and files, with the policies that the note has."""
    note = _note_in(template)
    if not note:
        return template, dict(files)
    top, restored = deepcopy(template), dict(files)
    del top["resources"][NOTE]
    for file, policies in note.items():
        one = top if file == TOP else _nested(files.get(file, ""))
        for volume in policies.keys() & resources_of(one).keys():
            resource, policy = resources_of(one)[volume], policies[volume]
            resource.pop(POLICY, None)
            if policy is not None:
                resource[POLICY] = policy
        if file != TOP and one:
            restored[file] = msgspec.json.encode(one).decode()
    return top, restored


async def begin_retaining(cloud: Cloud, state: StackState, volumes: Collection[str], secrets: Iterable[str]) -> bool:
    """Whether Heat had to be told; else it knows already. VimError where that could not keep them."""
    stack, there = state.stack, volumes_in(state, volumes)
    _refuse_deleted_by_nova(state, volumes)
    inside = files_with(there, state.resources)
    told = stack.digest == retaining_digest(volumes)
    if not there or (told and stack.complete and not await not_retained(cloud, there)):
        return False
    own = await cloud.read(HEAT, f"{stack.path}/template", dict[str, Any])
    templates = {TOP: own}
    for file, made in inside.items():
        if file != TOP:
            templates[file] = await _common_template(cloud, stack, file, made)
        if missing := sorted({one.name for one in made} - resources_of(templates[file]).keys()):
            what = file or "its own template"
            raise could_not(stack, f"{what} has no resource {missing[0]} any more, and an update would delete that.")
    await _leave_as_it_is(cloud, state, there)
    names = {file: {one.name for one in made} for file, made in inside.items()}
    changed = retaining(templates, names)
    texts = {file: msgspec.json.encode(one).decode() for file, one in changed.items() if file != TOP}
    await update_templates(cloud, stack, changed[TOP], texts, retaining_digest(volumes), secrets)
    return True


def volumes_in(state: StackState, volumes: Collection[str]) -> list[StackResource]:
    """Of these volumes, those that are the stack's."""
    return [one for one in state.of_type(VOLUME) if one.id in volumes]


def holders(state: StackState, volumes: Collection[str]) -> list[str]:
    """Servers that have them attached. They are stopped first, however hasty the termination is: what they have not
    written yet would be lost."""
    return [id_ for id_, server in state.servers.items() if any(one.id in volumes for one in server.volumes)]


async def _leave_as_it_is(cloud: Cloud, state: StackState, volumes: Iterable[StackResource]) -> None:
    """An update makes anew what is marked for it (a nested stack with all that is in it), and a volume that has failed:
    with the policy of before, by which the data would go."""
    failed = [one for one in volumes if one.failed and not one.marked]
    marked = [one for one in state.resources if one.marked]
    await for_each(failed, lambda one: heat.mark_unhealthy(cloud, one, "to be retained, says Slipway"))
    await for_each([*failed, *marked], lambda one: heat.mark_healthy(cloud, one))


async def update_templates(
    cloud: Cloud,
    stack: Stack,
    template: dict[str, Any],
    files: Mapping[str, str],
    digest: str,
    secrets: Iterable[str],
) -> None:
    """All parameters stay, hidden ones too, and all files that are not among these."""
    body = {"template": template, "files": files, "clear_parameters": []}
    await heat.update(cloud, stack, body, digest, list(secrets))


async def not_retained(cloud: Cloud, volumes: Iterable[StackResource]) -> list[StackResource]:
    """Those that Heat would delete, as the stacks' templates are that have them."""
    volumes = list(volumes)
    stacks = list(dict.fromkeys(one.stack for one in volumes))
    templates = dict(zip(stacks, await for_each(stacks, lambda one: _template(cloud, one)), strict=True))
    return [one for one in volumes if not _is_retained(templates[one.stack], one.name)]


async def still_there(cloud: Cloud, volumes: Mapping[str, str]) -> dict[str, str]:
    """Of volumes by id, as names: those that Cinder has."""
    shown = await for_each(volumes, lambda id_: cloud.find(CINDER, f"/volumes/{id_}", ShownVolume))
    return {id_: name for (id_, name), one in zip(volumes.items(), shown, strict=True) if one is not None}


def could_not(stack: Stack, why: VimError | str) -> VimError:
    """Nothing was deleted."""
    fault = why.fault if isinstance(why, VimError) else VimFault.PERMANENT
    return VimError(
        f"The volumes of stack {stack.name} can't be retained, so it is not deleted: {why}",
        fault,
        cure=f"mend that and retry; or fail the operation, {WITHOUT}",
    )


async def _common_template(cloud: Cloud, stack: Stack, file: str, volumes: Iterable[StackResource]) -> dict[str, Any]:
    """That of all nested stacks of a file with these volumes, but for what some may have been told already.

    VimError where an update that failed left them with different ones: either would make others of them anew.
    """
    volumes = list(volumes)
    names = {one.name for one in volumes}
    nested = list(dict.fromkeys(one.stack for one in volumes))
    first, *others = await for_each(nested, lambda one: _template(cloud, one))
    if any(_told(one, names) != _told(first, names) for one in others):
        raise could_not(stack, f"an update that failed has left nested stacks of {file} with different templates.")
    return first


def _told(template: dict[str, Any], volumes: set[str]) -> dict[str, Any]:
    told = deepcopy(template)
    for volume in volumes & resources_of(told).keys():
        resources_of(told)[volume][POLICY] = RETAIN
    return told


async def _template(cloud: Cloud, stack: tuple[str, str]) -> dict[str, Any]:
    name, id_ = stack
    return await cloud.read(HEAT, f"/stacks/{name}/{id_}/template", dict[str, Any])


def _refuse_deleted_by_nova(state: StackState, volumes: Collection[str]) -> None:
    for server in state.servers.values():
        for one in server.volumes:
            if one.id in volumes and one.delete_on_termination:
                raise VimError(
                    f"Volume {one.id} can't be retained: Nova deletes it with its server {server.id} "
                    "(delete_on_termination).",
                    VimFault.PERMANENT,
                    cure=f"openstack server volume set --preserve-on-termination {server.id} {one.id}, then retry.",
                )


def _nested(text: str) -> dict[str, Any]:
    """Of a file that `begin_retaining` gave to Heat; nothing where somebody else has put another in its place."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _is_retained(template: dict[str, Any], volume: str) -> bool:
    policy = resources_of(template).get(volume, {}).get(POLICY)
    return isinstance(policy, str) and policy.lower() == RETAIN.lower()


def _note_in(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    try:
        text = resources_of(template)[NOTE]["metadata"]["policies"]
        return msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except (LookupError, TypeError, msgspec.DecodeError):  # none, or one that is not ours
        return {}
