"""What the steps of a Kubernetes VIM are told."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.kube.interface import ObjectRef
from slipway.model.machine import FoundObject
from slipway.vim.kubernetes.object_plan import FileObjects, ObjectPlan, PlanStruct

APPLY, WAIT, REMOVE = "kubernetes.apply", "kubernetes.wait_ready", "kubernetes.remove"
DELETE_PODS, SWEEP = "kubernetes.delete_pods", "kubernetes.sweep"
CHECK_UNUSED = "kubernetes.check_unused"


class Placed(PlanStruct, frozen=True, kw_only=True):
    """An object as the record or the plan names it. `vdu`: what its pods are VNFCs of. `home`: as an ObjectPlan's."""

    id: str
    api_version: str
    kind: str
    name: str
    namespace: str | None = None
    home: str | None = None
    vdu: str | None = None
    expires: bool = False  # it goes by itself once it has ended

    @staticmethod
    def planned(plan: ObjectPlan) -> Placed:
        return Placed(
            id=plan.id,
            api_version=plan.api_version,
            kind=plan.kind,
            name=plan.name,
            namespace=plan.namespace,
            home=plan.home,
            vdu=plan.vdu,
            expires=plan.expires,
        )

    @staticmethod
    def found(one: FoundObject) -> Placed:
        return Placed(
            id=one.id,
            api_version=one.api_version or "v1",
            kind=one.kind,
            name=one.name,
            namespace=one.namespace,
            vdu=one.vdu,
            expires=one.expires,
        )

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.api_version, self.kind, self.name, self.namespace)


class Apply(PlanStruct, frozen=True, kw_only=True):
    """`before`: the same objects as they were; those that were not there are not in it. `pods`: those known, by VDU."""

    files: tuple[FileObjects, ...]
    before: tuple[FileObjects, ...] = ()
    rules: tuple[FileObjects, ...] = ()  # files with readiness rules of `before`, for the way back
    namespace: str | None = None
    force: bool = False  # also fields that others have set
    pods: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    @property
    def objects(self) -> tuple[ObjectPlan, ...]:
        return tuple(one for file in self.files for one in file.objects)

    @property
    def former(self) -> tuple[ObjectPlan, ...]:
        return tuple(one for file in self.before for one in file.objects)


class WaitReady(PlanStruct, frozen=True, kw_only=True):
    """`vdus`: the objects whose pods are noted once all are ready. `pods`: those known, by VDU; they may be gone."""

    objects: tuple[Placed, ...]
    vdus: tuple[Placed, ...] = ()
    rules: tuple[FileObjects, ...] = ()
    namespace: str | None = None
    pods: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Remove(PlanStruct, frozen=True, kw_only=True):
    """`before`: what undo makes again. `pods`: ids that leave the record. `grace_seconds`: of pods; None: their own."""

    objects: tuple[Placed, ...]
    before: tuple[FileObjects, ...] = ()
    rules: tuple[FileObjects, ...] = ()  # files with readiness rules of `before`
    namespace: str | None = None
    pods: tuple[str, ...] = ()
    grace_seconds: int | None = None


class DeletePods(PlanStruct, frozen=True, kw_only=True):
    """Pods whose controllers make others; `again`: those that have none, and are made from their manifests."""

    pods: tuple[str, ...]
    vdus: tuple[Placed, ...]
    again: tuple[FileObjects, ...] = ()
    rules: tuple[FileObjects, ...] = ()
    namespace: str | None = None


class CheckUnused(PlanStruct, frozen=True, kw_only=True):
    """Namespaces and definitions that are to be removed: what others have in them would go with them."""

    objects: tuple[Placed, ...]


class Sweep(PlanStruct, frozen=True, kw_only=True):
    """Whatever else has the instance's label, of any kind: an operation that failed may have left it unrecorded."""

    namespaces: tuple[str, ...] = ()


def as_args(args: PlanStruct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(args)
    return plain
