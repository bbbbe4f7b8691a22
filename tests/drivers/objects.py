"""A driver of objects in waves, as a Kubernetes VIM is: no machines, pods that name themselves, content with a digest.

For every VDU there is a Deployment in the second wave. In the first one there is a ConfigMap made from the instance's
parameters, and one for each `Files/objects/*.json` of the package. Applying is by name. An undo puts back what was
there, with the content it had.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import BadRequest, Unprocessable, VimError, VimFault
from slipway.model.machine import Found, FoundMachine, FoundObject, Outcome
from slipway.model.plan import Effect, Plan, Step, Verb
from slipway.model.target import Change, VimResource, VnfTarget

VIM_TYPE = "OBJECTS.V_1"
SCHEMA = """
CREATE TABLE IF NOT EXISTS object
    (instance TEXT, kind TEXT, name TEXT, content TEXT, PRIMARY KEY (instance, kind, name));
CREATE TABLE IF NOT EXISTS pod (instance TEXT, uid TEXT PRIMARY KEY, name TEXT, deployment TEXT);
"""


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """`file`: the VNFD id, path and digest that its content is read from; in a step's arguments instead of it."""

    kind: str
    name: str
    content: dict[str, Any] = {}
    wave: int = 0
    file: tuple[str, str, str] | None = None

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def digest(self) -> str:
        return sha256(msgspec.json.encode(self.content, order="sorted")).hexdigest()


class Apply(msgspec.Struct, frozen=True, omit_defaults=True):
    """`before`: the same names as they were; those that were not there are not in it. `pods`: of the record."""

    manifests: tuple[Manifest, ...]
    before: tuple[Manifest, ...] = ()
    pods: tuple[str, ...] = ()


class Remove(msgspec.Struct, frozen=True, omit_defaults=True):
    manifests: tuple[Manifest, ...]  # as they were, so that undo can make them again


class DeletePods(msgspec.Struct, frozen=True):
    pods: tuple[str, ...]


class ObjectsDriver:
    vim_type = VIM_TYPE

    def __init__(self, directory: Path) -> None:
        self._file = directory / "objects.db"
        self.globs: tuple[str, ...] = ("Files/objects/*.json",)
        self.failing = ""  # the object whose making fails once it is there, for good
        self._actions: tuple[Action[Any], ...] = (
            Action("objects.apply", Apply, self._apply, self._undo_apply, timeout=30.0),
            Action("objects.remove", Remove, self._remove, self._undo_remove, timeout=30.0),
            Action("objects.delete_pods", DeletePods, self._delete_pods, timeout=30.0),
        )

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._actions

    def validate(self, connection: VimConnection) -> None:
        if not connection.interface_info.get("endpoint"):
            raise BadRequest("interfaceInfo.endpoint: it is missing.")

    async def check(self, connection: VimConnection) -> str:
        return "objects"

    def refuse(self, change: Change) -> None:
        vdus = change.after.flavour.vdus.values() if change.after else ()
        if machines := [vdu.name for vdu in vdus if not vdu.container]:
            raise Unprocessable(f"A VIM of objects holds no machines, and {', '.join(machines)} are; choose another.")

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        return self.globs

    def resources(self, change: Change) -> tuple[VimResource, ...]:
        return ()

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found) -> Found:
        with self._db() as db:
            return Found(objects=_objects(db, instance_id), machines=_pods(db, instance_id))

    def inventory(self) -> dict[str, Found]:
        """Everything there is, by instance."""
        with self._db() as db:
            instances = [row[0] for row in db.execute("SELECT instance FROM object UNION SELECT instance FROM pod")]
            return {one: Found(objects=_objects(db, one), machines=_pods(db, one)) for one in instances}

    def steps(self, change: Change, found: Found) -> Plan:
        wanted, was = _manifests(change.after), {one.id: one for one in _manifests(change.before)}
        there = {one.id: one for one in found.objects}
        stale = [one for one in wanted if one.id not in there or there[one.id].digest != one.digest]
        gone = [was.get(one.id) or _bare(one) for one in found.objects if one.id not in {two.id for two in wanted}]
        steps, recorded = list[Step](), tuple(machine.id for machine in change.inventory.machines)
        for wave in sorted({one.wave for one in stale}):
            now = tuple(one for one in stale if one.wave == wave)
            before = tuple(was[one.id] for one in now if one.id in there and one.id in was)
            effects = (Effect(Verb.CHANGE if one.id in there else Verb.MAKE, one.kind, one.name) for one in now)
            steps.append(_step(f"apply wave {wave}", "objects.apply", Apply(now, before, recorded), effects, steps))
        if gone:
            effects = (Effect(Verb.REMOVE, one.kind, one.name) for one in gone)
            steps.append(_step("remove objects", "objects.remove", Remove(tuple(gone)), effects, steps))
        pods = {machine.id for machine in found.machines}
        if renewed := tuple(sorted(pods & change.renewal.members)) if change.after else ():
            effects = (Effect(Verb.REMOVE, "Pod", one.name) for one in found.machines if one.id in renewed)
            step = _step("delete pods", "objects.delete_pods", DeletePods(renewed), effects, steps)
            steps.append(msgspec.structs.replace(step, irreversible=True))
        return Plan(tuple(steps))

    async def _apply(self, args: Apply, ctx: StepContext) -> Outcome:
        manifests = await _read(args.manifests, ctx)
        with self._db() as db:
            outcome = _applied(db, manifests, ctx.instance_id, args.pods)
        if self.failing in {one.name for one in args.manifests}:
            raise VimError(f"{self.failing} can't be made.", VimFault.PERMANENT)
        return outcome

    async def _undo_apply(self, args: Apply, ctx: StepContext) -> Outcome:
        before, names = await _read(args.before, ctx), {one.id for one in args.before}
        with self._db() as db:
            made = tuple(one for one in args.manifests if one.id not in names)
            gone, back = _removed(db, made, ctx.instance_id), _applied(db, before, ctx.instance_id)
            return msgspec.structs.replace(back, removed=(*gone.removed, *back.removed))

    async def _remove(self, args: Remove, ctx: StepContext) -> Outcome:
        with self._db() as db:
            return _removed(db, args.manifests, ctx.instance_id)

    async def _undo_remove(self, args: Remove, ctx: StepContext) -> Outcome:
        manifests = await _read(args.manifests, ctx)
        with self._db() as db:
            return _applied(db, manifests, ctx.instance_id)

    async def _delete_pods(self, args: DeletePods, ctx: StepContext) -> Outcome:
        """Others come in their place."""
        with self._db() as db:
            for (name,) in db.execute("SELECT name FROM object WHERE kind = 'Deployment' AND instance = ?",
                                      (ctx.instance_id,)).fetchall():  # fmt: skip
                here = [pod.id for pod in _pods(db, ctx.instance_id) if pod.vdu == name and pod.id in args.pods]
                db.executemany("DELETE FROM pod WHERE uid = ?", [(id_,) for id_ in here])
                _scale(db, ctx.instance_id, name)
            return Outcome(machines=_pods(db, ctx.instance_id), removed=args.pods)

    @contextmanager
    def _db(self) -> Iterator[sqlite3.Connection]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._file, timeout=30, isolation_level=None)
        try:
            db.executescript(SCHEMA)
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        finally:
            db.close()


def _manifests(target: VnfTarget | None) -> list[Manifest]:
    if target is None:
        return []
    settings = Manifest("ConfigMap", "settings", {"data": dict(target.parameters)})
    files = [
        Manifest("ConfigMap", Path(path).stem, msgspec.json.decode(one.content), 0, (target.vnfd_id, path, one.digest))
        for path, one in target.files.items()
    ]
    return [settings, *files, *(Manifest("Deployment", name, {"replicas": target.counts.get(name, 0)}, wave=1)
                        for name in target.flavour.vdus)]  # fmt: skip


def _bare(found: FoundObject) -> Manifest:
    """Nobody knows what was in it: a leftover."""
    return Manifest(found.kind, found.name, {})


def _step(id_: str, action: str, args: Any, effects: Any, steps: list[Step]) -> Step:
    plain = msgspec.json.decode(msgspec.json.encode(args))
    for one in (*plain.get("manifests", ()), *plain.get("before", ())):
        if "file" in one:
            one.pop("content", None)
    return Step(id=id_, action=action, args=plain, effects=tuple(effects), after=(steps[-1].id,) if steps else ())


async def _read(manifests: tuple[Manifest, ...], ctx: StepContext) -> tuple[Manifest, ...]:
    """With their content, where that is in a file of the package."""
    contents = [
        msgspec.json.decode(await ctx.package_file(*one.file)) if one.file else one.content for one in manifests
    ]
    return tuple(
        msgspec.structs.replace(one, content=content) for one, content in zip(manifests, contents, strict=True)
    )


def _applied(
    db: sqlite3.Connection, manifests: tuple[Manifest, ...], instance: str, known: tuple[str, ...] = ()
) -> Outcome:
    before = {*known, *(pod.id for pod in _pods(db, instance))}
    for one in manifests:
        content = msgspec.json.encode(one.content, order="sorted").decode()
        db.execute("INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?)", (instance, one.kind, one.name, content))
        if one.kind == "Deployment":
            _require_settings(db, instance, one.name)
            _scale(db, instance, one.name)
    names = {one.id for one in manifests}
    pods = _pods(db, instance)
    return Outcome(
        objects=tuple(one for one in _objects(db, instance) if one.id in names),
        machines=tuple(pod for pod in pods if f"Deployment/{pod.vdu}" in names),
        removed=tuple(before - {pod.id for pod in pods}),
    )


def _removed(db: sqlite3.Connection, manifests: tuple[Manifest, ...], instance: str) -> Outcome:
    gone = [one.id for one in manifests]
    for one in manifests:
        gone += [pod.id for pod in _pods(db, instance) if one.kind == "Deployment" and pod.vdu == one.name]
        db.execute("DELETE FROM object WHERE instance = ? AND kind = ? AND name = ?", (instance, one.kind, one.name))
        db.execute("DELETE FROM pod WHERE instance = ? AND ? = 'Deployment' AND deployment = ?",
                   (instance, one.kind, one.name))  # fmt: skip
    return Outcome(removed=tuple(gone))


def _require_settings(db: sqlite3.Connection, instance: str, name: str) -> None:
    """Pods would not start without: so there are waves."""
    settings = "SELECT 1 FROM object WHERE instance = ? AND kind = 'ConfigMap' AND name = 'settings'"
    if db.execute(settings, (instance,)).fetchone() is None:
        raise VimError(f"Deployment {name} needs the ConfigMap settings, which is not there.", VimFault.PERMANENT)


def _scale(db: sqlite3.Connection, instance: str, name: str) -> None:
    """As a controller would: the newest pods go first, new ones get names that nobody knew."""
    row = db.execute("SELECT content FROM object WHERE instance = ? AND kind = 'Deployment' AND name = ?",
                     (instance, name)).fetchone()  # fmt: skip
    replicas = msgspec.json.decode(row[0]).get("replicas", 0)
    there = db.execute("SELECT uid FROM pod WHERE instance = ? AND deployment = ? ORDER BY rowid",
                       (instance, name)).fetchall()  # fmt: skip
    db.executemany("DELETE FROM pod WHERE uid = ?", there[replicas:])
    for _ in range(replicas - len(there)):
        uid = str(uuid.uuid4())
        db.execute("INSERT INTO pod VALUES (?, ?, ?, ?)", (instance, uid, f"{name}-{uid[:5]}", name))


def _objects(db: sqlite3.Connection, instance: str) -> tuple[FoundObject, ...]:
    rows = db.execute("SELECT kind, name, content FROM object WHERE instance = ? ORDER BY kind, name", (instance,))
    return tuple(
        FoundObject(id=f"{kind}/{name}", kind=kind, name=name, digest=sha256(content.encode()).hexdigest())
        for kind, name, content in rows.fetchall()
    )


def _pods(db: sqlite3.Connection, instance: str) -> tuple[FoundMachine, ...]:
    rows = db.execute("SELECT uid, name, deployment FROM pod WHERE instance = ? ORDER BY deployment, name", (instance,))
    return tuple(
        FoundMachine(id=uid, name=name, vdu=deployment, type="Pod", resource_id=uid, ready=True)
        for uid, name, deployment in rows.fetchall()
    )
