"""Waiting for objects without polling: a list, then a watch from its version, over several kinds at once.

    pods = Selection(await api.discovery.resource("v1", "Pod"), namespace="default", labels="app=web")
    found = await wait_until(api, [pods], look, "3 pods to run", limit=300, keep=lambda pod: pod["status"]["phase"])

`look` is given what is there now, as {ObjectRef: what `keep` made of the object}, and answers an Observation.

What is survived, for as long as the time lasts: watches that end, connections that break or fall silent, a server that
is away or overloaded, and a version that is too old by now (410), after which all is listed again. Memory: what `keep`
keeps, and a page of a list. A 401 is the Api's business (`renew`).
"""

from __future__ import annotations

import asyncio
import time
from collections import ChainMap
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import msgspec

from slipway.kube import errors
from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectApi, ObjectRef, ReportProgress, are_objects, list_metadata
from slipway.kube.pages import PageSize
from slipway.model.errors import StepError
from slipway.model.json_documents import memory_of
from slipway.waiting import Backoff, Observation

T = TypeVar("T")
PAGE = 250  # objects of a list that are in memory whole, at most
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds before a watch is begun again
MOST_SELECTIONS = 100  # each is a connection
BY_NAME = 3  # objects of a kind that are watched each by its name
MOST_OBJECTS = 100_000  # of one selection
MOST_KEPT = 256 << 20  # bytes of memory for what is kept of all of them: a cluster may send anything
DEBOUNCE = 0.05  # seconds in which changes are gathered before they are looked at
REPORT_EVERY = 2.0  # seconds


class ListAndWatch(Protocol):
    """What is asked of an API: `slipway.kube.api.Api` has it."""

    async def get(self, path: str, *, metadata_only: bool = False, **query: str) -> Object: ...

    def watch(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[Object, None]: ...


@dataclass(frozen=True)
class Selection:
    """Objects of one kind: all, those of a namespace, those that selectors match (`app=web`, `metadata.name=web`)."""

    resource: Resource
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False  # all else stays on the server

    @property
    def path(self) -> str:
        return self.resource.collection(self.namespace)

    @property
    def query(self) -> dict[str, str]:
        chosen = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in chosen.items() if value}

    def ref(self, found: Object) -> ObjectRef:
        if not are_objects([found]):
            raise KubeError(f"GET {self.path}: what came back is no object of Kubernetes.")
        metadata = found["metadata"]
        return ObjectRef(self.resource.api_version, self.resource.kind, metadata["name"], metadata.get("namespace"))


async def wait_until(
    api: ListAndWatch,
    selections: Sequence[Selection],
    look: Callable[[Mapping[ObjectRef, T]], Observation],
    what: str,
    limit: float,
    *,
    keep: Callable[[Object], T],
    report: ReportProgress | None = None,
) -> dict[ObjectRef, T]:
    """What was there when `look` said that it is done. StepError: hopeless, or (temporary) the time is over.

    `what` is waited for: "3 pods to run". `report` is told of progress. A KubeError that is not temporary is raised at
    once, for it would come again: 401, 403.
    """
    end, told = time.monotonic() + limit, _Reporter(report)
    last = "nothing was answered yet"
    async with Watch(api, selections, keep) as watch:
        while await watch.changed(end - time.monotonic()):
            if watch.complete:
                seen = look(watch.objects)
                last = seen.condition.rstrip(".")
                if seen.done:
                    return dict(watch.objects)
                if seen.hopeless:
                    raise StepError(f"stopped waiting for {what}: {last}.")
                told(last)
            await asyncio.sleep(min(DEBOUNCE, max(0.0, end - time.monotonic())))
        trouble = f"; {watch.trouble}" if watch.trouble else ""
    raise StepError(
        f"timed out after {limit:g} s waiting for {what} (last condition: {last}{trouble}).", temporary=True
    )


class _Kept(Generic[T]):
    """What is kept of the objects of a selection, and about how many bytes of memory that takes."""

    def __init__(self) -> None:
        self.objects: dict[ObjectRef, T] = {}
        self._sizes: dict[ObjectRef, int] = {}
        self.size = 0

    def put(self, ref: ObjectRef, one: T) -> None:
        self.drop(ref)
        self.objects[ref], self._sizes[ref] = one, memory_of(msgspec.json.encode([ref, one]))
        self.size += self._sizes[ref]

    def drop(self, ref: ObjectRef) -> None:
        self.objects.pop(ref, None)
        self.size -= self._sizes.pop(ref, 0)


class Watch(Generic[T]):
    """What there is of several selections, kept up to date while it is entered."""

    def __init__(self, api: ListAndWatch, selections: Sequence[Selection], keep: Callable[[Object], T]) -> None:
        if len(selections) > MOST_SELECTIONS:
            raise StepError(f"{len(selections)} kinds of objects can't be watched at once; {MOST_SELECTIONS} can.")
        self._api, self._keep = api, keep
        self._selections = list(dict.fromkeys(selections))
        self._found: dict[Selection, _Kept[T]] = {}
        self._troubles: dict[Selection, str] = {}
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._changed.set()
        self._tasks = [asyncio.create_task(self._follow(selection)) for selection in self._selections]
        for task in self._tasks:
            task.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def objects(self) -> Mapping[ObjectRef, T]:
        """As of now."""
        return ChainMap(*(kept.objects for kept in self._found.values()))

    @property
    def complete(self) -> bool:
        """Every selection was listed at least once."""
        return len(self._found) == len(self._selections)

    @property
    def trouble(self) -> str:
        """Why what is known may be old: the error of a connection that is not back yet."""
        return next(iter(self._troubles.values()), "").rstrip(".")

    async def changed(self, within: float) -> bool:
        """False when nothing did. The error that ended a watch for good is raised here."""
        try:
            async with asyncio.timeout(max(0.0, within)):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        for task in self._tasks:
            if task.done():
                task.result()
        return True

    async def _follow(self, selection: Selection) -> None:
        backoff, version = Backoff(FIRST_PAUSE, LONGEST_PAUSE, jitter=True), ""
        while True:
            try:
                version = version or await self._list(selection)
                query = {**selection.query, "resourceVersion": version}
                stream = self._api.watch(selection.path, metadata_only=selection.metadata_only, **query)
                async with aclosing(stream) as events:
                    async for event in events:
                        version = self._take(selection, event) or version
                        backoff.reset()
            except KubeError as error:
                if error.status == 404:  # its CustomResourceDefinition is gone, and all objects with it
                    self._replace(selection, _Kept())
                elif not error.temporary and error.status != 410:
                    raise
                if error.status is not None:
                    version = ""
                self._troubles[selection] = error.detail
            await backoff.pause()

    async def _list(self, selection: Selection) -> str:
        """The version to watch from. Page by page, so that whole objects are few at a time."""
        found = _Kept[T]()
        size, query = PageSize(PAGE), {**selection.query}
        path, slim = selection.path, selection.metadata_only
        while True:
            page = await size.ask(lambda limit: self._api.get(path, metadata_only=slim, limit=limit, **query))
            items = page.get("items") or []
            if not are_objects(items):
                raise KubeError(f"GET {selection.path}: what came back is no list of Kubernetes.")
            for one in items:
                found.put(selection.ref(one), self._kept(selection, one))
                self._check_size(selection, found)
            metadata = list_metadata(page)
            if not (following := metadata.get("continue")):
                self._replace(selection, found)
                return str(metadata.get("resourceVersion") or "")
            query["continue"] = following

    def _replace(self, selection: Selection, found: _Kept[T]) -> None:
        self._found[selection] = found
        self._troubles.pop(selection, None)
        self._changed.set()

    def _take(self, selection: Selection, event: Object) -> str:
        """The version after it."""
        kind, found = event.get("type"), event.get("object")
        if not isinstance(found, dict):
            raise KubeError(f"GET {selection.path}: an event without an object came back.")
        known = self._found[selection]
        if kind in ("ADDED", "MODIFIED"):
            known.put(selection.ref(found), self._kept(selection, found))
            self._check_size(selection, known)
        elif kind == "DELETED":
            known.drop(selection.ref(found))
        self._troubles.pop(selection, None)
        if kind != "BOOKMARK":
            self._changed.set()
        return str(list_metadata(found).get("resourceVersion") or "")

    def _kept(self, selection: Selection, found: Object) -> T:
        """An item of a list does not say what it is, and one of metadata says something else."""
        what = {"apiVersion": selection.resource.api_version, "kind": selection.resource.kind}
        return self._keep(found | what)

    def _check_size(self, selection: Selection, found: _Kept[T]) -> None:
        if len(found.objects) > MOST_OBJECTS:
            raise errors.too_large(f"GET {selection.path}", f"{MOST_OBJECTS} objects")
        others = sum(kept.size for kept in self._found.values() if kept is not found)
        if found.size + others > MOST_KEPT:
            raise errors.too_large(f"GET {selection.path}", f"what is kept of one cluster, {MOST_KEPT >> 20} MiB")


async def select(
    api: ObjectApi, refs: Iterable[ObjectRef], *, metadata_only: bool = False
) -> tuple[list[Selection], dict[ObjectRef, ObjectRef]]:
    """What to watch for these objects, and how each is called in what is watched: with its namespace, if it has one.

    A few of a kind are watched by name, many together with all others of their namespace; or of all namespaces, where
    there would be too many connections.
    """
    groups: dict[tuple[Resource, str | None], list[str]] = {}
    called: dict[ObjectRef, ObjectRef] = {}
    for ref in refs:
        resource = await api.discovery.resource(ref.api_version, ref.kind)
        namespace = (ref.namespace or "default") if resource.namespaced else None
        called[ref] = ObjectRef(ref.api_version, ref.kind, ref.name, namespace)
        groups.setdefault((resource, namespace), []).append(ref.name)
    found: dict[Selection, None] = {}
    for few, everywhere in ((BY_NAME, False), (0, False), (0, True)):
        found = {}
        for (resource, namespace), wanted in groups.items():
            fields = [f"metadata.name={name}" for name in wanted] if len(wanted) <= few else [""]
            place = None if everywhere else namespace
            found |= dict.fromkeys(Selection(resource, place, "", one, metadata_only) for one in fields)
        if len(found) <= MOST_SELECTIONS:
            break
    return list(found), called


class _Reporter:
    """Progress, when it is another and not too often."""

    def __init__(self, report: ReportProgress | None) -> None:
        self._report, self._last, self._next = report, "", 0.0

    def __call__(self, condition: str) -> None:
        now = time.monotonic()
        if self._report and condition != self._last and now >= self._next:
            self._report(condition)
            self._last, self._next = condition, now + REPORT_EVERY
