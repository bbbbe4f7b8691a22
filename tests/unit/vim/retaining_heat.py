"""A Heat and a Cinder whose stack is to go, and whose volumes are to stay."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from slipway.vim.openstack.answers import decoded
from slipway.vim.openstack.heat import StackResource
from slipway.vim.openstack.hot_template import GROUP, SERVER, VOLUME
from slipway.vim.openstack.stack_change import ChangeStack

T = TypeVar("T")
NAME = "vnf-i"
ROOT, MEMBER = (NAME, "1"), (f"{NAME}-member", "3")
DATA, OWN, FURTHER = "volume-in-group", "volume-at-top", "volume-in-other"
RETAINING = ChangeStack(known=("vnfc-0",), volumes={DATA: "data", OWN: "store"}, retains_data=True)
PLAIN = msgspec.structs.replace(RETAINING, retains_data=False)
THREE = msgspec.structs.replace(RETAINING, volumes={**RETAINING.volumes, FURTHER: "data"})


def top_template() -> dict[str, Any]:
    return {
        "heat_template_version": "2021-04-16",
        "resources": {
            "workers": {"type": GROUP, "properties": {"resource": {"type": "worker.yaml"}}},
            "store": {"type": VOLUME, "properties": {"size": 1}, "deletion_policy": "Snapshot"},
            "root_disk": {"type": VOLUME, "properties": {"size": 1, "image": "debian"}},
        },
    }


def worker_template() -> dict[str, Any]:
    return {
        "heat_template_version": "2021-04-16",
        "resources": {"work": {"type": SERVER}, "data": {"type": VOLUME, "properties": {"size": 1}}},
    }


def resource(path: str, type_: str, id_: str, stack: tuple[str, str] = ROOT) -> StackResource:
    names = tuple(path.split("/"))
    return StackResource(names[-1], type_, id_, "CREATE_COMPLETE", "", stack, names)


RESOURCES = (
    resource("workers", GROUP, "2"),
    resource("workers/abc", "worker.yaml", "3", (f"{NAME}-workers", "2")),
    resource("workers/abc/data", VOLUME, DATA, MEMBER),
    resource("workers/abc/work", SERVER, "server", MEMBER),
    resource("store", VOLUME, OWN),
)


class Stacks:
    """A Heat with the stack and the one nested in its group, and a Cinder. `becomes`: the status after an update."""

    def __init__(self, status: str | None = "CREATE_COMPLETE", becomes: str = "UPDATE_COMPLETE") -> None:
        self.status, self.becomes, self.digest = status, becomes, "spec"
        self.top, self.files = top_template(), {"worker.yaml": "heat_template_version: 2021-04-16\n"}
        self.nested = worker_template()
        self.volumes, self.secrets = {DATA, OWN}, ("vim password",)
        self.on_termination, self.running = False, True
        self.calls: list[str] = []
        self.written = False  # what its server had in memory, when it was deleted
        self.told: list[dict[str, Any]] = []
        self.deaf = False  # whether nested stacks don't follow
        self.failed: dict[str, str] = {}  # statuses of resources that failed, by their ids

    @property
    def did(self) -> list[str]:
        return [call for call in self.calls if not call.startswith(("GET", "POST /servers"))]

    async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
        self.calls.append(f"{method} {path}")
        if path.endswith("/action"):
            self.running = False
        elif "/resources/" in path:
            self._mark(path.rpartition("/")[2], json["mark_unhealthy"])
        elif method == "PATCH":
            self._update(json)
        elif method == "DELETE":
            self._delete()

    async def remove(self, service: str, path: str) -> None:
        await self.call(service, "DELETE", path)

    def _mark(self, name: str, unhealthy: bool) -> None:
        id_ = next(one.id for one in RESOURCES if one.name == name)
        if unhealthy:
            self.failed[id_] = "CHECK_FAILED"
        elif self.failed.get(id_) == "CHECK_FAILED":
            del self.failed[id_]

    def _update(self, body: dict[str, Any]) -> None:
        self.told.append(body)
        anew = {one.path for one in RESOURCES if one.id in self.failed}
        self.volumes -= {one.id for one in RESOURCES if any(one.path[:end] in anew for end in (1, 2, 3))}
        self.top, self.digest, self.status = body["template"], body["tags"].removeprefix("slipway-"), self.becomes
        self.files |= body["files"]
        if not self.deaf and (text := body["files"].get("worker.yaml")):
            self.nested = json.loads(text)

    def _delete(self) -> None:
        self.status, self.written = None, not self.running
        kept = {DATA: self.nested["resources"]["data"], OWN: self.top["resources"]["store"]}
        self.volumes &= {id_ for id_, one in kept.items() if one.get("deletion_policy", "").lower() == "retain"}

    async def read(self, service: str, path: str, kind: type[T], *, query: Any = None) -> T:
        self.calls.append(f"GET {path}")
        return decoded(msgspec.json.encode(self._said(path)), kind, path)

    async def find(self, service: str, path: str, kind: type[T]) -> T | None:
        kind_of, id_ = path.strip("/").split("/")
        if kind_of == "servers":
            attached = {"id": DATA, "delete_on_termination": self.on_termination}
            status = "ACTIVE" if self.running else "SHUTOFF"
            server = {"id": id_, "status": status, "os-extended-volumes:volumes_attached": [attached]}
            return decoded(msgspec.json.encode({"server": server}), kind, path)
        there = {"volume": {"id": id_}} if id_ in self.volumes else None
        return decoded(msgspec.json.encode(there), kind, path) if there else None

    def _said(self, path: str) -> dict[str, Any]:
        if path == "/stacks":
            tags = [f"slipway-{self.digest}"]
            stack = {"id": "1", "stack_name": NAME, "stack_status": self.status, "tags": tags}
            return {"stacks": [stack] if self.status else []}
        if path.endswith("/resources"):
            return {"resources": [self._listed(one) for one in RESOURCES]}
        if path == f"/stacks/{NAME}/1/files":
            return self.files
        if path == f"/stacks/{NAME}/1/template":
            return self.top
        if path == "/stacks/vnf-i-member/3/template":
            return self.nested
        return {"stack": {"parameters": {}}} if path == f"/stacks/{NAME}/1" else {"servers": []}

    def _listed(self, one: StackResource) -> dict[str, Any]:
        failed = {"resource_status": "UPDATE_FAILED", "resource_status_reason": "No valid host"}
        return {
            "resource_name": one.name, "resource_type": one.type, "physical_resource_id": one.id,
            "resource_status": self.failed.get(one.id, one.status),
            "links": [{"rel": "stack", "href": "http://heat/v1/p/stacks/" + "/".join(one.stack)}],
            **(failed if self.status == "UPDATE_FAILED" and one.type == SERVER else {}),
        }  # fmt: skip


class Mixed(Stacks):
    """With one more nested stack of another file, or of the same one, whose volume has the same name."""

    def __init__(self, file: str, template: dict[str, Any], status: str = "CREATE_COMPLETE") -> None:
        super().__init__(status)
        self.file, self.other = file, template

    def _update(self, body: dict[str, Any]) -> None:
        super()._update(body)
        if text := body["files"].get(self.file):
            self.other = json.loads(text)

    def _said(self, path: str) -> dict[str, Any]:
        if path == "/stacks/vnf-i-other/4/template":
            return self.other
        said = super()._said(path)
        if path.endswith("/resources"):
            inside = (f"{NAME}-other", "4")
            further = resource("other", self.file, "4"), resource("other/data", VOLUME, FURTHER, inside)
            said["resources"] = [*map(self._listed, further), *said["resources"]]
        return said
