"""What is used of the answers of Heat, Nova, Neutron, Cinder and Glance; whatever else is in them is left out.

An answer that is not as these say is refused as a whole, before anything is done or recorded because of it. Texts that
get into records are as long as those services themselves allow, and have no control characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from msgspec import Meta, field

from slipway.model.errors import VimError, VimFault
from slipway.model.json_documents import split_validation_error
from slipway.outgoing.responses import server_message

SHOWN = 100  # characters of an answer that is no JSON
CURE = "see what answers at the address that Keystone's catalog has for this service, and whether it is the service."

T = TypeVar("T")
Item = TypeVar("Item", bound="Identified", covariant=True)

Text = Annotated[str, Meta(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
Id = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*\Z")]


def decoded(content: bytes, kind: type[T], answered: str, secrets: Iterable[str] = ()) -> T:
    """VimError when it is something else. `answered`: who did and to what: "GET /stacks: heat:8004 answered 200"."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        place, why = split_validation_error(error)
        named = f"{place}: {why}" if place else why
        raise VimError(f"{answered}, but not as this API does: {named}.", VimFault.TEMPORARY, cure=CURE) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = server_message(content.decode(errors="replace"), secrets, most=SHOWN)
        shown = f"begins with {text!r}" if text else "is empty"
        raise VimError(f"{answered} with what is no JSON: it {shown}.", VimFault.TEMPORARY, cure=CURE) from None


class ApiResponse(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Identified(Protocol):
    @property
    def id(self) -> str: ...


class Page(Protocol[Item]):
    """Of a list: what is on it, and whether there is another one."""

    @property
    def items(self) -> tuple[Item, ...]: ...

    @property
    def more(self) -> bool: ...


class Link(ApiResponse, frozen=True, kw_only=True):
    rel: str = ""
    href: str = ""


def _leads_on(links: Iterable[Link]) -> bool:
    return any(link.rel == "next" for link in links)


# Heat


class ListedStack(ApiResponse, frozen=True, kw_only=True):
    id: Id
    stack_name: Text
    stack_status: Text
    stack_status_reason: str | None = None
    tags: tuple[Text, ...] | None = None


class StackList(ApiResponse, frozen=True, kw_only=True):
    stacks: tuple[ListedStack, ...]


class ListedResource(ApiResponse, frozen=True, kw_only=True):
    resource_name: Id
    resource_type: Text
    resource_status: Text
    resource_status_reason: str | None = None
    physical_resource_id: Text | None = None
    links: tuple[Link, ...] = ()


class ResourceList(ApiResponse, frozen=True, kw_only=True):
    resources: tuple[ListedResource, ...]


class StackParameters(ApiResponse, frozen=True, kw_only=True):
    parameters: dict[str, Any]


class ShownStack(ApiResponse, frozen=True, kw_only=True):
    stack: StackParameters


# Nova


class AttachedVolume(ApiResponse, frozen=True, kw_only=True):
    id: Id
    delete_on_termination: bool = False


class Server(ApiResponse, frozen=True, kw_only=True):
    id: Id
    status: Text = ""
    tags: tuple[Text, ...] = ()
    own_host: Text | None = field(name="OS-EXT-SRV-ATTR:host", default=None)  # administrators are told
    host_id: Text | None = field(name="hostId", default=None)
    volumes: tuple[AttachedVolume, ...] = field(name="os-extended-volumes:volumes_attached", default=())


class ShownServer(ApiResponse, frozen=True, kw_only=True):
    server: Server


class Servers(ApiResponse, frozen=True, kw_only=True):
    items: tuple[Server, ...] = field(name="servers")
    links: tuple[Link, ...] = field(name="servers_links", default=())

    @property
    def more(self) -> bool:
        return _leads_on(self.links)


class ServerGroup(ApiResponse, frozen=True, kw_only=True):
    policies: tuple[Text, ...] = ()
    members: tuple[Id, ...] = ()

    @property
    def strictly_apart(self) -> bool:
        """No two of its servers are on one host, whatever else that means."""
        return "anti-affinity" in self.policies


class ShownServerGroup(ApiResponse, frozen=True, kw_only=True):
    server_group: ServerGroup


# Neutron


class FixedIp(ApiResponse, frozen=True, kw_only=True):
    ip_address: Text | None = None
    subnet_id: Text | None = None


class Port(ApiResponse, frozen=True, kw_only=True):
    id: Id
    device_id: Text | None = None
    mac_address: Text | None = None
    network_id: Text | None = None
    fixed_ips: tuple[FixedIp, ...] | None = None


class Ports(ApiResponse, frozen=True, kw_only=True):
    items: tuple[Port, ...] = field(name="ports")
    links: tuple[Link, ...] = field(name="ports_links", default=())

    @property
    def more(self) -> bool:
        return _leads_on(self.links)


class FloatingIp(ApiResponse, frozen=True, kw_only=True):
    id: Id
    floating_ip_address: Text
    port_id: Text | None = None


class FloatingIps(ApiResponse, frozen=True, kw_only=True):
    items: tuple[FloatingIp, ...] = field(name="floatingips")
    links: tuple[Link, ...] = field(name="floatingips_links", default=())

    @property
    def more(self) -> bool:
        return _leads_on(self.links)


# Cinder


class Volume(ApiResponse, frozen=True, kw_only=True):
    id: Id


class ShownVolume(ApiResponse, frozen=True, kw_only=True):
    volume: Volume


# Glance


class ShownImage(ApiResponse, frozen=True, kw_only=True):
    id: Id
    status: Text
    name: Text | None = None
    size: int | None = None
    disk_format: Text | None = None
    container_format: Text | None = None
    created_at: Text | None = None
    tags: frozenset[Text] = frozenset()


class Images(ApiResponse, frozen=True, kw_only=True):
    items: tuple[ShownImage, ...] = field(name="images")
    next: str | None = None

    @property
    def more(self) -> bool:
        return self.next is not None
