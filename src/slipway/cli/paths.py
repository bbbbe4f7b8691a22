"""Where things are in the HTTP API, and how names and filters are written into addresses."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import quote, urlsplit

PACKAGES = "/vnfpkgm/v1/vnf_packages"
INSTANCES = "/vnflcm/v2/vnf_instances"
OPERATIONS = "/vnflcm/v2/vnf_lcm_op_occs"
PACKAGE_WARNINGS = "/slipway/v1/vnf_packages"
VIMS = "/slipway/v1/vims"
PLANS = "/slipway/v1/plans"
STEPS = "/slipway/v1/operations"
CLUSTERS = "/slipway/v1/clusters"
DRIFT = "/slipway/v1/vnf_instances"
DELIVERIES = "/slipway/v1/subscriptions"
TOKENS = "/slipway/v1/tokens"

# A list of operations leaves out their errors unless it is told what to leave out.
WITH_ERRORS = {"exclude_fields": "operationParams,resourceChanges,changedInfo"}


def item_path(collection: str, name: str, *more: str) -> str:
    """The path of a member; its name may hold anything."""
    return "/".join((collection, *(quote(part, safe="") for part in (name, *more))))


def equals(**wanted: str) -> dict[str, str]:
    """A SOL013 filter as a query: all of these attributes have these values."""
    return {"filter": ";".join(f"(eq,{name},{_quoted(value)})" for name, value in wanted.items())}


def is_local(url: str) -> bool:
    """Whether the address is this machine, however it is called."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _quoted(value: str) -> str:
    if not value or value != value.strip() or set(value) & set(",()';"):
        return "'" + value.replace("'", "''") + "'"
    return value
