"""Whether a notification matches the filter of a subscription: every part that is there must match."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from slipway.model.instance import VnfInstance
from slipway.model.operation import Operation
from slipway.model.package import VnfPackage
from slipway.model.subscription import InstanceFilter, LcmFilter, LcmNotice, PackageFilter, PackageNotice, Products

F = TypeVar("F", LcmFilter, PackageFilter)


def matches_lcm(wanted: LcmFilter, notice: LcmNotice, vnf: VnfInstance, operation: Operation | None = None) -> bool:
    if wanted.notification_types and notice not in wanted.notification_types:
        return False
    if not _matches_instance(wanted.vnf_instance_subscription_filter, vnf):
        return False
    if operation is None:
        return True
    kinds = [kind.value for kind in wanted.operation_types]
    if kinds and operation.operation.value not in kinds:
        return False
    return not wanted.operation_states or operation.operation_state in wanted.operation_states


def matches_package(wanted: PackageFilter, notice: PackageNotice, package: VnfPackage) -> bool:
    return (
        (not wanted.notification_types or notice in wanted.notification_types)
        and _one_of(package.vnfd_id, wanted.vnfd_id)
        and _one_of(package.id, wanted.vnf_pkg_id)
        and _one_of(package.operational_state, wanted.operational_state)
        and _one_of(package.usage_state, wanted.usage_state)
        and _matches_products(
            wanted.vnf_products_from_providers,
            package.vnf_provider,
            package.vnf_product_name,
            package.vnf_software_version,
            package.vnfd_version,
        )
    )


def read_filter(document: dict[str, object], kind: type[F]) -> F:
    """As stored; it was validated with the request."""
    return msgspec.convert(document, kind)


def _matches_instance(wanted: InstanceFilter, vnf: VnfInstance) -> bool:
    return (
        _one_of(vnf.vnfd_id, wanted.vnfd_ids)
        and _one_of(vnf.id, wanted.vnf_instance_ids)
        and _one_of(vnf.vnf_instance_name, wanted.vnf_instance_names)
        and _matches_products(
            wanted.vnf_products_from_providers,
            vnf.vnf_provider,
            vnf.vnf_product_name,
            vnf.vnf_software_version,
            vnf.vnfd_version,
        )
    )


def _one_of(value: str | None, wanted: tuple[str, ...] | str) -> bool:
    return not wanted or (value == wanted if isinstance(wanted, str) else value in wanted)


def _matches_products(
    wanted: Iterable[Products], provider: str | None, product: str | None, software: str | None, vnfd: str | None
) -> bool:
    """A level that names nothing below it matches everything below it."""
    providers = tuple(wanted)
    if not providers:
        return True
    for one in providers:
        if one.vnf_provider != provider:
            continue
        if not one.vnf_products:
            return True
        for made in one.vnf_products:
            if made.vnf_product_name != product:
                continue
            if not made.versions:
                return True
            if any(
                version.vnf_software_version == software and _one_of(vnfd, version.vnfd_versions)
                for version in made.versions
            ):
                return True
    return False
