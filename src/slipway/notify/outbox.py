"""Notifications are written in the transaction of the change they tell of: told if and only if it happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from slipway.model.instance import VnfInstance
from slipway.model.operation import Operation
from slipway.model.package import VnfPackage
from slipway.model.subscription import Interface, LcmFilter, LcmNotice, PackageFilter, PackageNotice, Subscription
from slipway.notify.matching import read_filter, wants_lcm, wants_package
from slipway.notify.wording import of_instance, of_operation, of_package
from slipway.store import subscriptions

LCM = (Interface.LCM_V1, Interface.LCM_V2)


def tell_of_operation(connection: Connection, project: str, vnf: VnfInstance, operation: Operation) -> None:
    """It entered the state it is in."""

    def body(subscription: Subscription) -> dict[str, Any] | None:
        wanted = read_filter(subscription.filter, LcmFilter)
        return of_operation(subscription, operation) if wants_lcm(wanted, LcmNotice.OPERATION, vnf, operation) else None

    _tell(connection, project, LCM, body)


def tell_of_instance(connection: Connection, project: str, vnf: VnfInstance, notice: LcmNotice) -> None:
    def body(subscription: Subscription) -> dict[str, Any] | None:
        wanted = read_filter(subscription.filter, LcmFilter)
        return of_instance(subscription, notice, vnf.id) if wants_lcm(wanted, notice, vnf) else None

    _tell(connection, project, LCM, body)


def tell_of_package(
    connection: Connection, package: VnfPackage, notice: PackageNotice, project: str, deleted: bool = False
) -> None:
    def body(subscription: Subscription) -> dict[str, Any] | None:
        wanted = read_filter(subscription.filter, PackageFilter)
        return of_package(subscription, notice, package, deleted) if wants_package(wanted, notice, package) else None

    _tell(connection, project, (Interface.PACKAGES,), body)


def _tell(
    connection: Connection,
    project: str,
    interfaces: tuple[Interface, ...],
    body: Callable[[Subscription], dict[str, Any] | None],
) -> None:
    told = [
        (subscription, content)
        for subscription in subscriptions.of_project(connection, project, interfaces)
        if (content := body(subscription)) is not None
    ]
    if told:
        subscriptions.enqueue(connection, told)
