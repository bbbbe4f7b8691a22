"""The transactional outbox: a notification is stored in the transaction of its change, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from slipway.model.instance import VnfInstance
from slipway.model.operation import Operation
from slipway.model.package import VnfPackage
from slipway.model.subscription import Interface, LcmFilter, LcmNotice, PackageFilter, PackageNotice, Subscription
from slipway.notify.matching import matches_lcm, matches_package, read_filter
from slipway.notify.notifications import instance_notification, operation_notification, package_notification
from slipway.store import subscriptions

LCM = (Interface.LCM_V1, Interface.LCM_V2)


def notify_operation(connection: Connection, project: str, vnf: VnfInstance, operation: Operation) -> None:
    """It has entered the state that it is in."""

    def body(subscription: Subscription) -> dict[str, Any] | None:
        wanted = read_filter(subscription.filter, LcmFilter)
        return (
            operation_notification(subscription, operation)
            if matches_lcm(wanted, LcmNotice.OPERATION, vnf, operation)
            else None
        )

    _enqueue(connection, project, LCM, body)


def notify_instance(connection: Connection, project: str, vnf: VnfInstance, notice: LcmNotice) -> None:
    def body(subscription: Subscription) -> dict[str, Any] | None:
        wanted = read_filter(subscription.filter, LcmFilter)
        return instance_notification(subscription, notice, vnf.id) if matches_lcm(wanted, notice, vnf) else None

    _enqueue(connection, project, LCM, body)


def notify_package(
    connection: Connection, package: VnfPackage, notice: PackageNotice, project: str, deleted: bool = False
) -> None:
    def body(subscription: Subscription) -> dict[str, Any] | None:
        wanted = read_filter(subscription.filter, PackageFilter)
        return (
            package_notification(subscription, notice, package, deleted)
            if matches_package(wanted, notice, package)
            else None
        )

    _enqueue(connection, project, (Interface.PACKAGES,), body)


def _enqueue(
    connection: Connection,
    project: str,
    interfaces: tuple[Interface, ...],
    body: Callable[[Subscription], dict[str, Any] | None],
) -> None:
    notifications = [
        (subscription, content)
        for subscription in subscriptions.of_project(connection, project, interfaces)
        if (content := body(subscription)) is not None
    ]
    if notifications:
        subscriptions.enqueue(connection, notifications)
