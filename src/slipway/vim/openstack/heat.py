"""Heat's stacks and their resources. A stack is found by its name, which is the instance's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from slipway.model.errors import VimError, VimFault
from slipway.vim.openstack.answers import ListedResource, ListedStack, ResourceList, StackList
from slipway.vim.openstack.cloud import HEAT, Cloud

TIMEOUT_MINUTES = 60  # of Heat for one change
NESTED_DEPTH = 5  # Heat's own limit unless its settings say otherwise
MOST_RESOURCES = 5000  # of one stack, with all that is nested in it
TAG = "slipway-"  # before the digest of the spec that the stack was last created or updated with
RETAINING = "retained-"  # before that of volumes that are to outlive the stack, in the place of a spec's

COMPLETE = {f"{action}_COMPLETE" for action in ("CREATE", "UPDATE", "CHECK", "RESUME", "ADOPT")}


def stack_name(instance_id: str) -> str:
    return f"vnf-{instance_id}"


@dataclass(frozen=True)
class Stack:
    """`status` as Heat has it, UPDATE_FAILED for instance. `digest`: of what it was last created or updated with."""

    id: str
    name: str
    status: str
    reason: str
    digest: str | None

    @property
    def path(self) -> str:
        return f"/stacks/{self.name}/{self.id}"

    @property
    def retaining(self) -> bool:
        """Whether a termination that is to retain volumes has told Heat so."""
        return (self.digest or "").startswith(RETAINING)

    @property
    def in_progress(self) -> bool:
        return self.status.endswith("_IN_PROGRESS")

    @property
    def deleted(self) -> bool:
        """Nothing that it had is left, but its name is not free until Heat has removed the trust that it has for it."""
        return self.status == "DELETE_COMPLETE"

    @property
    def complete(self) -> bool:
        """It is what its digest says. One that was rolled back or suspended keeps the tag of what it should be."""
        return self.status in COMPLETE


@dataclass(frozen=True)
class StackResource:
    """`path`: its name and, before it, those of the resources that it is nested in, the outermost first."""

    name: str
    type: str
    id: str  # of what it stands for, in the service that has it; "" as long as there is none
    status: str
    reason: str
    stack: tuple[str, str]  # name and id of the stack that it is in, which may be nested
    path: tuple[str, ...]

    @property
    def failed(self) -> bool:
        return self.status.endswith("_FAILED")

    @property
    def marked(self) -> bool:
        """To be made anew by the next update: it was marked, or a check of the stack found it wrong."""
        return self.status == "CHECK_FAILED"


async def find_stack(cloud: Cloud, name: str) -> Stack | None:
    """None, too, for one that is deleted."""
    stack = await listed_stack(cloud, name)
    return None if stack is None or stack.deleted else stack


async def listed_stack(cloud: Cloud, name: str) -> Stack | None:
    """By a list of one: it costs the same however many stacks there are, and no output is worked out."""
    listed = await cloud.read(HEAT, "/stacks", StackList, query={"name": name})
    stacks = [_stack(one) for one in listed.stacks if one.stack_name == name]
    return min(stacks, key=lambda one: one.deleted, default=None)


def _stack(listed: ListedStack) -> Stack:
    digest = next((tag.removeprefix(TAG) for tag in listed.tags or () if tag.startswith(TAG)), None)
    return Stack(listed.id, listed.stack_name, listed.stack_status, listed.stack_status_reason or "", digest)


async def create(cloud: Cloud, name: str, body: Mapping[str, Any], digest: str, secrets: Sequence[str]) -> None:
    await _create(cloud, "/stacks", name, body, digest, secrets)


async def preview_create(cloud: Cloud, name: str, body: Mapping[str, Any], digest: str, secrets: Sequence[str]) -> None:
    """Nothing is made. VimError for what Heat would refuse at once; that there is a stack of the name is none of it."""
    await _create(cloud, "/stacks/preview", f"{name}-again", body, digest, secrets)


async def _create(
    cloud: Cloud, path: str, name: str, body: Mapping[str, Any], digest: str, secrets: Sequence[str]
) -> None:
    created = {"stack_name": name, "disable_rollback": True, **_with_digest(body, digest)}
    await cloud.call(HEAT, "POST", path, json=created, secrets=secrets)


async def update(cloud: Cloud, stack: Stack, body: Mapping[str, Any], digest: str, secrets: Sequence[str]) -> None:
    await _update(cloud, stack.path, body, digest, secrets)


async def preview_update(
    cloud: Cloud, stack: Stack, body: Mapping[str, Any], digest: str, secrets: Sequence[str]
) -> None:
    """Nothing is changed. VimError for what Heat would refuse at once."""
    await _update(cloud, f"{stack.path}/preview", body, digest, secrets)


async def _update(cloud: Cloud, path: str, body: Mapping[str, Any], digest: str, secrets: Sequence[str]) -> None:
    """PUT: the stack is what the body has and nothing else. PATCH, where the body says which parameters go, keeps all
    others that it has not: hidden ones, which Heat alone knows.
    """
    method = "PATCH" if "clear_parameters" in body else "PUT"
    await cloud.call(HEAT, method, path, json=_with_digest(body, digest), secrets=secrets)


async def delete(cloud: Cloud, stack: Stack) -> None:
    """It may be gone already."""
    await cloud.remove(HEAT, stack.path)


async def mark_unhealthy(cloud: Cloud, resource: StackResource, reason: str) -> None:
    """The next update makes it anew."""
    await _mark(cloud, resource, mark_unhealthy=True, resource_status_reason=reason)


async def mark_healthy(cloud: Cloud, resource: StackResource) -> None:
    """The next update leaves it, if it was marked to be made anew."""
    await _mark(cloud, resource, mark_unhealthy=False)


async def _mark(cloud: Cloud, resource: StackResource, **mark: Any) -> None:
    name, stack_id = resource.stack
    path = f"/stacks/{name}/{stack_id}/resources/{quote(resource.name, safe='')}"
    await cloud.call(HEAT, "PATCH", path, json=mark)


async def resources_of(cloud: Cloud, stack: Stack) -> list[StackResource]:
    """All, those of nested stacks too, by one call."""
    listed = await cloud.read(HEAT, f"{stack.path}/resources", ResourceList, query={"nested_depth": NESTED_DEPTH})
    if len(listed.resources) > MOST_RESOURCES:
        raise VimError(
            f"Stack {stack.name} has {len(listed.resources)} resources; Slipway works with at most {MOST_RESOURCES}.",
            VimFault.PERMANENT,
            cure="have Heat remove what the VNF does not need of them; or delete the stack there, and terminate.",
        )
    return list(_read(listed.resources))


def _with_digest(body: Mapping[str, Any], digest: str) -> dict[str, Any]:
    return {"timeout_mins": TIMEOUT_MINUTES, "tags": f"{TAG}{digest}", **body}


def _read(listed: Sequence[ListedResource]) -> Iterator[StackResource]:
    owners = {one.physical_resource_id: one for one in listed if one.physical_resource_id}

    def path(one: ListedResource, depth: int = 0) -> tuple[str, ...]:
        owner = owners.get(_stack_of(one)[1])
        above = path(owner, depth + 1) if owner is not None and depth < NESTED_DEPTH else ()
        return (*above, one.resource_name)

    for one in listed:
        yield StackResource(
            name=one.resource_name,
            type=one.resource_type,
            id=one.physical_resource_id or "",
            status=one.resource_status,
            reason=one.resource_status_reason or "",
            stack=_stack_of(one),
            path=path(one),
        )


def _stack_of(one: ListedResource) -> tuple[str, str]:
    """Name and id of the stack that holds the resource: the end of the link to it."""
    href = next((link.href for link in one.links if link.rel == "stack"), "")
    parts = href.rstrip("/").split("/")
    return (parts[-2], parts[-1]) if len(parts) > 1 else ("", "")
