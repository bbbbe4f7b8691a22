"""The LCM operation occurrence and its state machine, exactly as SOL003 draws it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from slipway.model.clock import utcnow
from slipway.model.errors import Conflict, ProblemDetails
from slipway.model.instance import ExtVirtualLinkInfo, ResourceHandle


class OperationType(StrEnum):
    INSTANTIATE = "INSTANTIATE"
    SCALE = "SCALE"
    TERMINATE = "TERMINATE"
    HEAL = "HEAL"
    CHANGE_EXT_CONN = "CHANGE_EXT_CONN"
    CHANGE_VNFPKG = "CHANGE_VNFPKG"
    MODIFY_INFO = "MODIFY_INFO"


class State(StrEnum):
    STARTING = "STARTING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED_TEMP = "FAILED_TEMP"
    FAILED = "FAILED"
    ROLLING_BACK = "ROLLING_BACK"
    ROLLED_BACK = "ROLLED_BACK"


# A worker has work to do in these; in FAILED_TEMP a person has.
RUNNING = frozenset({State.STARTING, State.PROCESSING, State.ROLLING_BACK})
ENDED = frozenset({State.COMPLETED, State.FAILED, State.ROLLED_BACK})
# While one operation of an instance is in any of these, no other may begin.
HOLDING = RUNNING | {State.FAILED_TEMP}


class Event(StrEnum):
    GRANTED = "granted"
    REFUSED = "refused"
    SUCCEEDED = "succeeded"
    STEP_FAILED = "failed"
    CANCELLED = "cancelled"
    RETRY = "retry"
    ROLLBACK = "rollback"
    FAIL = "fail"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.STARTING, Event.GRANTED): State.PROCESSING,
    (State.STARTING, Event.REFUSED): State.ROLLED_BACK,
    (State.STARTING, Event.CANCELLED): State.ROLLED_BACK,
    (State.PROCESSING, Event.SUCCEEDED): State.COMPLETED,
    (State.PROCESSING, Event.STEP_FAILED): State.FAILED_TEMP,
    (State.PROCESSING, Event.CANCELLED): State.FAILED_TEMP,
    (State.FAILED_TEMP, Event.RETRY): State.PROCESSING,
    (State.FAILED_TEMP, Event.ROLLBACK): State.ROLLING_BACK,
    (State.FAILED_TEMP, Event.FAIL): State.FAILED,
    (State.ROLLING_BACK, Event.SUCCEEDED): State.ROLLED_BACK,
    (State.ROLLING_BACK, Event.STEP_FAILED): State.FAILED_TEMP,
    (State.ROLLING_BACK, Event.CANCELLED): State.FAILED_TEMP,
}


def after(state: State, event: Event) -> State:
    """The state that follows, or Conflict with what is possible instead."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        allowed = sorted(s.value for s, e in TRANSITIONS if e is event)
        raise Conflict(
            f"The operation is in state {state}; {event} is allowed in these states only: {', '.join(allowed)}."
        ) from None


class CancelMode(StrEnum):
    GRACEFUL = "GRACEFUL"  # running steps end, no new one begins
    FORCEFUL = "FORCEFUL"  # running steps are broken off


class ChangeType(StrEnum):
    ADDED = "ADDED"
    REMOVED = "REMOVED"
    MODIFIED = "MODIFIED"


class AffectedVnfc(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    id: str
    vdu_id: str
    change_type: ChangeType
    compute_resource: ResourceHandle
    affected_vnfc_cp_ids: tuple[str, ...] = ()
    added_storage_resource_ids: tuple[str, ...] = ()
    removed_storage_resource_ids: tuple[str, ...] = ()


class AffectedVirtualLink(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    id: str
    vnf_virtual_link_desc_id: str
    change_type: ChangeType
    network_resource: ResourceHandle


class AffectedVirtualStorage(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    id: str
    virtual_storage_desc_id: str
    change_type: ChangeType
    storage_resource: ResourceHandle


class ResourceChanges(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    affected_vnfcs: tuple[AffectedVnfc, ...] = ()
    affected_virtual_links: tuple[AffectedVirtualLink, ...] = ()
    affected_virtual_storages: tuple[AffectedVirtualStorage, ...] = ()


class Operation(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """VnfLcmOpOcc. Secrets in `operation_params` are references (store/secrets.py), never values.

    `details` are the attributes that the standard leaves out of lists, unless they are asked for.
    """

    details: ClassVar = ("operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity")

    id: str
    vnf_instance_id: str
    operation: OperationType
    operation_state: State
    state_entered_time: datetime
    start_time: datetime
    is_automatic_invocation: bool
    is_cancel_pending: bool
    grant_id: str | None = None  # at the NFVO that granted it
    operation_params: dict[str, Any] = {}
    cancel_mode: CancelMode | None = None
    error: ProblemDetails | None = None
    resource_changes: ResourceChanges | None = None
    changed_info: dict[str, Any] | None = None
    changed_ext_connectivity: tuple[ExtVirtualLinkInfo, ...] = ()
    modifications_triggered_by_vnf_pkg_change: dict[str, Any] | None = None  # instead of it, for CHANGE_VNFPKG


def entered(operation: Operation, state: State) -> Operation:
    """The operation in its new state. Where no worker has work to do, no cancel is pending."""
    now = utcnow()
    if state in RUNNING:
        return replace(operation, operation_state=state, state_entered_time=now)
    return replace(operation, operation_state=state, state_entered_time=now, is_cancel_pending=False, cancel_mode=None)
