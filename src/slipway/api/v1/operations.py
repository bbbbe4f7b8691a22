"""LCM operation occurrences in v1."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.response.base import ASGIResponse
from sqlalchemy import Connection

from slipway.api.links import Links, linked
from slipway.api.request_body import Body
from slipway.api.responses import json_response
from slipway.api.services import Services
from slipway.api.v1 import documents
from slipway.api.v1.listing import Documents, TranslatedListing
from slipway.api.v1.requests import CancelVnfLcmOperationRequest
from slipway.api.v2.operations import OperationRoutes
from slipway.model.operation import Operation
from slipway.store import tables

_decode = msgspec.json.Decoder().decode


class OperationRoutesV1(OperationRoutes):
    cancellation: Body[Any] = Body(CancelVnfLcmOperationRequest)

    def __init__(self, services: Services, links: Links) -> None:
        super().__init__(services, links)
        self._list = TranslatedListing(
            services.database,
            services.page_size,
            tables.operations,
            links.operations,
            links.operation,
            Operation.details,
            translate=_translated,
        )

    def _whole(self, document: bytes) -> ASGIResponse:
        body = msgspec.json.encode(documents.operation(_decode(document)))
        return json_response(linked(body, self._links.operation(document)))


def _translated(connection: Connection, found: Documents) -> Documents:
    return [documents.operation(one) for one in found]
