"""Where things are in the API. A name from outside stays one segment of a path, whatever it is made of."""

from __future__ import annotations

from urllib.parse import quote

from slipway.model.errors import StepError

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"


def node(name: str) -> str:
    return f"{NODES}/{segment(name)}"


def pods(namespace: str) -> str:
    return namespaced("/api/v1", namespace, "pods")


def pod(namespace: str, name: str, subresource: str | None = None) -> str:
    return namespaced("/api/v1", namespace, "pods", name, subresource)


def namespaced(group: str, namespace: str, plural: str, name: str | None = None, subresource: str | None = None) -> str:
    """`group` with its version: "/api/v1", "/apis/apps/v1"."""
    segments = ["namespaces", namespace, plural, *(part for part in (name, subresource) if part is not None)]
    return "/".join([group, *(segment(part) for part in segments)])


def group(api_version: str) -> str:
    """ "v1" is the core's, all others have a group."""
    name, slash, version = api_version.partition("/")
    return f"/apis/{segment(name)}/{segment(version)}" if slash else f"/api/{segment(name)}"


def segment(name: str) -> str:
    """Roles are named "system:node" and the like."""
    try:
        quoted = quote(name, safe=":")
    except UnicodeEncodeError:  # a lone surrogate, which is no character
        quoted = ""
    if quoted in ("", ".", ".."):
        raise StepError(f"{name!r} is not the name of anything in Kubernetes.")
    return quoted
