"""Plans: before they run, and step by step while they do and afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from sqlalchemy import Connection

from slipway.api.request_body import Body
from slipway.api.response_schema import json_of
from slipway.api.responses import json_response, to_redacted_json
from slipway.api.routing import GET, POST, AnyRequest, must_be_own, route
from slipway.api.services import Services
from slipway.engine import operation_control
from slipway.lcm.operations import OPERATIONS
from slipway.model.journal import StepRecord
from slipway.model.operation import Operation, OperationType, State
from slipway.model.plan import Effect, Verb
from slipway.model.requests import Name, Request
from slipway.store import operations, tables


class PlanRequest(Request, frozen=True, kw_only=True):
    """`request` is the body that the operation itself would get."""

    vnf_instance_id: Name
    operation: OperationType
    request: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))


class StepView(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    action: str
    nodes: tuple[str, ...]
    after: tuple[str, ...]
    effects: tuple[Effect, ...]


class ProgressView(StepView, rename="camel", kw_only=True):
    state: str
    attempt: int
    started_at: datetime | None
    ended_at: datetime | None
    duration_seconds: float | None
    error: str | None
    progress: str | None


class PlanView(msgspec.Struct, rename="camel", kw_only=True):
    """`make`, `change` and `remove` say what all steps together do to the world."""

    vnf_instance_id: str
    operation: OperationType
    steps: tuple[StepView, ...]
    make: tuple[str, ...]
    change: tuple[str, ...]
    remove: tuple[str, ...]
    note: str | msgspec.UnsetType = msgspec.UNSET


class StepsView(msgspec.Struct, rename="camel", kw_only=True):
    operation_id: str
    operation_state: State
    steps: tuple[ProgressView, ...]


NOT_ASKED = "The NFVO was not asked. It may refuse the operation, or say where and from what machines are made."
_plan = Body(PlanRequest)
_requests = {kind: Body(rules.request) for kind, rules in OPERATIONS.items()}


class PlanRoutes:
    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._lcm = services.lcm

    def routes(self) -> list[HTTPRouteHandler]:
        plan, steps = {200: json_of(PlanView)}, {200: json_of(StepsView)}
        return [
            route(POST, "/slipway/v1/plans", self.preview, request_body=_plan, responses=plan, errors=(404, 502)),
            route(GET, "/slipway/v1/operations/{id:str}/steps", self.steps, table=tables.operations, responses=steps),
        ]

    async def preview(self, request: AnyRequest) -> ASGIResponse:
        body = await _plan.read(request)
        await must_be_own(request, tables.instances, body.vnf_instance_id)
        wanted = _requests[body.operation].decode(bytes(body.request), attribute="request")
        plan = await self._lcm.preview_plan(body.operation, body.vnf_instance_id, wanted)
        effects = {verb: _named(verb, (effect for step in plan.steps for effect in step.effects)) for verb in Verb}
        view = PlanView(
            vnf_instance_id=body.vnf_instance_id,
            operation=body.operation,
            steps=tuple(
                StepView(id=step.id, action=step.action, nodes=step.nodes, after=step.after, effects=step.effects)
                for step in plan.steps
            ),
            make=effects[Verb.MAKE],
            change=effects[Verb.CHANGE],
            remove=effects[Verb.REMOVE],
            note=NOT_ASKED if self._lcm.asks_nfvo else msgspec.UNSET,
        )
        return json_response(to_redacted_json(view))

    async def steps(self, request: AnyRequest) -> ASGIResponse:
        operation, records = await self._database.read(_progress, request.path_params["id"])
        view = StepsView(
            operation_id=operation.id,
            operation_state=operation.operation_state,
            steps=tuple(_view(record) for record in records),
        )
        return json_response(to_redacted_json(view))


def _progress(connection: Connection, operation_id: str) -> tuple[Operation, list[StepRecord]]:
    return operations.get(connection, operation_id), operation_control.progress(connection, operation_id)


def _named(verb: Verb, effects: Iterable[Effect]) -> tuple[str, ...]:
    return tuple(f"{effect.kind} {effect.name}" for effect in effects if effect.verb is verb)


def _view(record: StepRecord) -> ProgressView:
    took = None
    if record.started_at is not None and record.ended_at is not None:
        took = round(record.ended_at - record.started_at, 6)
    return ProgressView(
        id=record.id,
        action=record.action,
        nodes=record.nodes,
        after=record.after,
        effects=record.effects,
        state=record.state.value,
        attempt=record.attempt,
        started_at=_time(record.started_at),
        ended_at=_time(record.ended_at),
        duration_seconds=took,
        error=record.error,
        progress=record.progress,
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
