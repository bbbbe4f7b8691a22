"""An OpenStack that makes stacks on paper: of a template, its files and parameters as Heat gets them it has the
resources, servers and ports that would be, and tells what the template reads and nothing sets.

with a_paper_cloud() as cloud:
    cloud.vim                          # as a request registers it
    cloud.unset                        # reads of parameters that led to nothing
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import yaml

from slipway.model.vim import OPENSTACK
from slipway.vim.openstack.hot_template import GROUP, PORT, SERVER
from tests.unit.vim.glance_standin import Glance, a_glance
from tests.unit.vim.keystone_standin import Keystone, a_keystone
from tests.unit.vim.loopback import Asked, Reply, serving
from tests.unit.vim.openstack_standin import ACCESS, OpenStack

Path = tuple[str, ...]


@dataclass
class Made:
    """A resource: what it stands for, and the stack that it is in."""

    id: str
    type: str
    stack: tuple[str, str]
    properties: dict[str, Any] = field(default_factory=dict)
    marked: bool = False


@dataclass
class PaperStack:
    name: str
    id: str = field(default_factory=lambda: str(uuid4()))
    status: str = "CREATE_COMPLETE"
    told: dict[str, Any] = field(default_factory=dict)
    made: dict[Path, Made] = field(default_factory=dict)


@dataclass
class PaperCloud(OpenStack):
    stacks: dict[str, PaperStack] = field(default_factory=dict)
    glance: Glance | None = None
    unset: set[str] = field(default_factory=set)
    tags: dict[str, list[str]] = field(default_factory=dict)  # of servers

    @property
    def vim(self) -> dict[str, Any]:
        return {"vimType": OPENSTACK, "interfaceInfo": {"endpoint": self.keystone.url}, "accessInfo": dict(ACCESS)}

    def answer(self, asked: Asked) -> Reply:
        service, _, path = asked.path.strip("/").partition("/")
        path = path.partition("/")[2] if service in ("heat", "nova") else path.removeprefix("v2.0/")
        if not path or asked.path.rstrip("/") == "/neutron":
            return Reply(200, self.versions(asked.path.rstrip("/")))
        return {"heat": self._heat, "nova": self._nova, "neutron": self._neutron}[service](asked, path.split("/"))

    def _heat(self, asked: Asked, parts: list[str]) -> Reply:
        if asked.path.endswith("/preview"):
            return Reply(200, {})
        if len(parts) == 1:
            return self._create(asked) if asked.method == "POST" else self._listed(asked.query["name"])
        stack = next((one for one in self.stacks.values() if parts[1:3] in ([one.name, one.id], *_nested(one))), None)
        if stack is None:
            return Reply(404, {"error": {"message": "not found"}})
        if asked.method == "DELETE":
            del self.stacks[stack.name]
            return Reply(204)
        if len(parts) == 3 and asked.method in ("PUT", "PATCH"):
            before = stack.told if asked.method == "PATCH" else {}
            stack.told, stack.status = _merged(before, asked.document), "UPDATE_COMPLETE"
            self._make(stack)
            return Reply(202)
        if asked.method == "PATCH":
            inside = next(
                path for path, one in stack.made.items() if [*one.stack] == parts[1:3] and path[-1] == parts[4]
            )
            stack.made[inside].marked = asked.document["mark_unhealthy"]
            return Reply(200, b"")
        told = stack.told
        shown = {
            "resources": {"resources": [_resource(stack, path) for path in stack.made]},
            "template": told["template"],
            "files": told.get("files", {}),
        }
        if len(parts) > 3:
            return Reply(200, shown[parts[3]])
        texts = {name: json.dumps(one) if isinstance(one, dict) else one for name, one in told["parameters"].items()}
        return Reply(200, {"stack": {"parameters": texts}})

    def _create(self, asked: Asked) -> Reply:
        stack = PaperStack(asked.document["stack_name"], told=asked.document)
        self._make(stack)
        self.stacks[stack.name] = stack
        return Reply(201, {"stack": {"id": stack.id}})

    def _listed(self, name: str) -> Reply:
        found = [self.stacks[name]] if name in self.stacks else []
        shown = [
            {"id": one.id, "stack_name": one.name, "stack_status": one.status, "tags": [one.told["tags"]]}
            for one in found
        ]
        return Reply(200, {"stacks": shown})

    def _make(self, stack: PaperStack) -> None:
        before, stack.made = stack.made, {}
        self._resources(stack, before, stack.told["template"], stack.told["parameters"], (), (stack.name, stack.id))

    def _resources(
        self,
        stack: PaperStack,
        before: dict[Path, Made],
        template: dict[str, Any],
        parameters: dict[str, Any],
        place: Path,
        inside: tuple[str, str],
    ) -> None:
        own = template["resources"]
        ids = {name: _kept(before, (*place, name)) for name in own}
        for name, one in own.items():
            properties = self._resolved(one.get("properties", {}), parameters, ids)
            self._resource(stack, before, one["type"], properties, (*place, name), ids[name], inside)

    def _resource(
        self,
        stack: PaperStack,
        before: dict[Path, Made],
        type_: str,
        properties: dict[str, Any],
        path: Path,
        id_: str,
        inside: tuple[str, str],
    ) -> None:
        stack.made[path] = Made(id_, type_, inside, properties)
        nested = f"{inside[0]}-{path[-1]}", id_
        if type_ == GROUP:
            there = [one[-1] for one, made in before.items() if one[:-1] == path and not made.marked]
            count = int(properties["desired_capacity"])
            for name in [*there, *(f"m{uuid4().hex[:6]}" for _ in range(count))][:count]:
                member = properties["resource"]
                own = (*path, name)
                self._resource(stack, before, member["type"], member["properties"], own, _kept(before, own), nested)
        elif text := stack.told.get("files", {}).get(type_):
            self._resources(stack, before, yaml.safe_load(text), properties, path, nested)

    def _resolved(self, value: Any, parameters: dict[str, Any], ids: dict[str, str]) -> Any:
        if isinstance(value, list):
            return [self._resolved(one, parameters, ids) for one in value]
        if not isinstance(value, dict):
            return value
        if list(value) == ["get_resource"]:
            return ids[value["get_resource"]]
        if list(value) == ["get_param"]:
            return self._read(value["get_param"], parameters)
        return {key: self._resolved(one, parameters, ids) for key, one in value.items()}

    def _read(self, argument: Any, parameters: dict[str, Any]) -> Any:
        found: Any = parameters
        for key in argument if isinstance(argument, list) else [argument]:
            if str(key).startswith("OS::"):
                return key  # Heat's own
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (KeyError, IndexError, TypeError):
                self.unset.add(".".join(map(str, argument)) if isinstance(argument, list) else argument)
                return ""
        return found

    def _servers(self) -> dict[str, Made]:
        return {one.id: one for stack in self.stacks.values() for one in stack.made.values() if one.type == SERVER}

    def _nova(self, asked: Asked, parts: list[str]) -> Reply:
        if parts[0] == "os-server-groups":
            return Reply(200, {"server_group": {"policies": ["affinity"], "members": []}})
        servers = self._servers()
        if parts[-1] == "detail":
            listed = [self._server(one) for one in servers if asked.query["tags"] in self.tags.get(one, ())]
            return Reply(200, {"servers": listed})
        if parts[1] not in servers:
            return Reply(404, {"itemNotFound": {"message": "not found"}})
        if asked.method == "PUT":
            self.tags.setdefault(parts[1], []).append(parts[3])
        return Reply(200, {"server": self._server(parts[1])}) if asked.method == "GET" else Reply(204)

    def _server(self, id_: str) -> dict[str, Any]:
        return {"id": id_, "status": "ACTIVE", "tags": self.tags.get(id_, [])}

    def _neutron(self, asked: Asked, parts: list[str]) -> Reply:
        on = {
            port["port"]: server
            for server, one in self._servers().items()
            for port in one.properties.get("networks", ())
        }
        ports = [
            {"id": one.id, "device_id": on.get(one.id, ""), "network_id": one.properties.get("network")}
            for stack in self.stacks.values()
            for one in stack.made.values()
            if one.type == PORT
        ]
        return Reply(200, {"ports": ports} if parts[-1] == "ports" else {parts[-1]: []})


def _nested(stack: PaperStack) -> list[list[str]]:
    return [[*one.stack] for one in stack.made.values()]


def _merged(before: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    both = {name: {**before.get(name, {}), **told.get(name, {})} for name in ("files", "parameters")}
    return {**before, **told, **both}


def _kept(before: dict[Path, Made], path: Path) -> str:
    """Heat makes anew what was marked, and leaves all else."""
    there = before.get(path)
    return str(uuid4()) if there is None or there.marked else there.id


def _resource(stack: PaperStack, path: Path) -> dict[str, Any]:
    one = stack.made[path]
    return {
        "resource_name": path[-1],
        "resource_type": one.type,
        "physical_resource_id": one.id,
        "resource_status": "CHECK_FAILED" if one.marked else "CREATE_COMPLETE",
        "links": [{"rel": "stack", "href": f"http://heat/v1/p/stacks/{one.stack[0]}/{one.stack[1]}"}],
    }


@contextmanager
def a_paper_cloud() -> Iterator[PaperCloud]:
    with a_keystone() as keystone, a_glance(keystone) as glance:
        cloud = PaperCloud(keystone, glance=glance)
        with serving(cloud.answer) as cloud.url:
            _publish(keystone, cloud.url)
            yield cloud


def _publish(keystone: Keystone, url: str) -> None:
    keystone.endpoints |= {
        "orchestration": f"{url}/heat/v1",
        "compute": f"{url}/nova/v2.1",
        "network": f"{url}/neutron",
    }
