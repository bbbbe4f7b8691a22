"""The bodies of notifications, in the version of the subscription. Links are paths here; delivery.py makes them URLs.

Version 1 has no verbosity; all else is the same in both, as the standard has it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.model.operation import RUNNING, Operation
from slipway.model.package import VnfPackage
from slipway.model.secrets import redact
from slipway.model.subscription import Interface, LcmNotice, PackageNotice, Subscription, Verbosity

PACKAGES = "/vnfpkgm/v1/vnf_packages"
DETAILS = ("affectedVnfcs", "affectedVirtualLinks", "affectedVirtualStorages")
CHANGES = ("changedInfo", "changedExtConnectivity", "modificationsTriggeredByVnfPkgChange")


def operation_notification(subscription: Subscription, operation: Operation) -> dict[str, Any]:
    whole = redact(msgspec.to_builtins(operation))
    body: dict[str, Any] = {
        "notificationType": LcmNotice.OPERATION.value,
        "notificationStatus": "START" if operation.operation_state in RUNNING else "RESULT",
        "operationState": operation.operation_state.value,
        "vnfInstanceId": operation.vnf_instance_id,
        "operation": operation.operation.value,
        "isAutomaticInvocation": operation.is_automatic_invocation,
        "vnfLcmOpOccId": operation.id,
    }
    if subscription.interface is Interface.LCM_V2:
        body["verbosity"] = subscription.verbosity.value
    if operation.operation_state not in RUNNING:
        if "error" in whole:
            body["error"] = whole["error"]
        if subscription.verbosity is Verbosity.FULL:
            changes = whole.get("resourceChanges") or {}
            body |= {name: changes[name] for name in DETAILS if name in changes}
            body |= {name: whole[name] for name in CHANGES if name in whole}
    links = {
        "vnfInstance": f"/{subscription.interface}/vnf_instances/{operation.vnf_instance_id}",
        "vnfLcmOpOcc": f"/{subscription.interface}/vnf_lcm_op_occs/{operation.id}",
    }
    return body | _links(subscription, links)


def instance_notification(subscription: Subscription, notice: LcmNotice, instance_id: str) -> dict[str, Any]:
    body = {"notificationType": notice.value, "vnfInstanceId": instance_id}
    links = {"vnfInstance": f"/{subscription.interface}/vnf_instances/{instance_id}"}
    return body | _links(subscription, links)


def package_notification(
    subscription: Subscription, notice: PackageNotice, package: VnfPackage, deleted: bool = False
) -> dict[str, Any]:
    body: dict[str, Any] = {"notificationType": notice.value, "vnfPkgId": package.id, "vnfdId": package.vnfd_id}
    if notice is PackageNotice.CHANGED:
        body["changeType"] = "PKG_DELETE" if deleted else "OP_STATE_CHANGE"
        if not deleted:
            body["operationalState"] = package.operational_state.value
    return body | _links(subscription, {"vnfPackage": f"{PACKAGES}/{package.id}"})


def _links(subscription: Subscription, links: dict[str, str]) -> dict[str, Any]:
    own = {"subscription": f"/{subscription.interface}/subscriptions/{subscription.id}"}
    return {"_links": {name: {"href": path} for name, path in (links | own).items()}}
