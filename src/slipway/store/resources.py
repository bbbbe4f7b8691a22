"""What can be listed: for each resource its type, its order, and which of its attributes are columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import JSON, ColumnElement, Table, Text, case, cast, func, literal, type_coerce

from slipway.model.attributes import Attribute, attributes_of
from slipway.model.instance import VnfInstance
from slipway.model.operation import Operation
from slipway.model.package import UsageState, VnfPackage
from slipway.model.subscription import Subscription
from slipway.model.vim import Vim
from slipway.store.packages import IN_USE
from slipway.store.tables import instances, operations, packages, subscriptions, vims

USAGE_STATE: ColumnElement[str] = case((IN_USE, UsageState.IN_USE.value), else_=UsageState.NOT_IN_USE.value)


class ListedResource(msgspec.Struct, frozen=True):
    """`columns` holds attributes that don't have to be looked up in the document; date-times are seconds there."""

    table: Table
    kind: Any
    moment: ColumnElement[float]  # sorts lists, with the id
    newest_first: bool
    columns: Mapping[str, ColumnElement[Any]]

    @property
    def attributes(self) -> Attribute:
        return attributes_of(self.kind)

    def document(self, dialect: str, without: tuple[str, ...] = ()) -> ColumnElement[str]:
        """The document as JSON text, less some of its top-level attributes: it is not decoded."""
        if without and without == getattr(self.kind, "details", None):
            return cast(self.table.c.summary, Text)
        doc = self.table.c.doc
        if dialect == "postgresql":
            binary: ColumnElement[Any] = type_coerce(doc, JSON)
            if self.table is packages:
                usage = func.jsonb_build_object(literal("usageState", Text), cast(USAGE_STATE, Text))
                binary = binary.op("||", return_type=JSON())(usage)
            for name in without:
                binary = binary.op("-", return_type=JSON())(literal(name, Text))
            return cast(binary, Text)
        text: ColumnElement[str] = type_coerce(doc, Text)
        if self.table is packages:
            text = func.json_set(text, "$.usageState", USAGE_STATE, type_=Text)
        return func.json_remove(text, *(f'$."{name}"' for name in without), type_=Text) if without else text


RESOURCES = {
    resource.table.name: resource
    for resource in (
        ListedResource(
            instances, VnfInstance, instances.c.created_at, False,
            {
                "id": instances.c.id,
                "vnfInstanceName": instances.c.name,
                "vnfdId": instances.c.vnfd_id,
                "instantiationState": instances.c.state,
            },
        ),
        ListedResource(
            operations, Operation, operations.c.started_at, True,
            {
                "id": operations.c.id,
                "vnfInstanceId": operations.c.instance_id,
                "operation": operations.c.operation,
                "operationState": operations.c.state,
                "startTime": operations.c.started_at,
            },
        ),
        ListedResource(
            packages, VnfPackage, packages.c.created_at, False,
            {
                "id": packages.c.id,
                "vnfdId": packages.c.vnfd_id,
                "usageState": USAGE_STATE,
                "createdAt": packages.c.created_at,
            },
        ),
        ListedResource(
            subscriptions, Subscription, subscriptions.c.created_at, False,
            {
                "id": subscriptions.c.id,
                "interface": subscriptions.c.interface,
                "createdAt": subscriptions.c.created_at,
            },
        ),
        ListedResource(
            vims, Vim, vims.c.created_at, False,
            {
                "id": vims.c.id,
                "name": vims.c.name,
                "vimType": vims.c.vim_type,
                "createdAt": vims.c.created_at,
            },
        ),
    )
}  # fmt: skip


def summary(document: VnfInstance | Operation) -> str:
    """What a list shows of a document, kept beside it as text, so that a list takes no document apart."""
    whole = msgspec.to_builtins(document)
    return msgspec.json.encode({name: value for name, value in whole.items() if name not in document.details}).decode()
