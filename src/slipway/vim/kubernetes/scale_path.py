"""Where objects of a kind have the number that `/scale` sets: its CustomResourceDefinition says it."""

from __future__ import annotations

from typing import Any

from slipway.kube.errors import KubeError
from slipway.model.errors import VimError, VimFault
from slipway.vim.kubernetes.cnf_parameters import MAPPING, REPLICAS_PATH, is_replicas_path
from slipway.vim.kubernetes.object_plan import ObjectPlan
from slipway.vim.kubernetes.pod_references import at, mappings
from slipway.vim.kubernetes.session import Session

DEFINITIONS = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def scale_path(version: dict[str, Any]) -> str | None:
    """Of one of the versions in a definition; None when its objects have no `/scale`."""
    path = at(version, "subresources", "scale").get("specReplicasPath")
    found = path.lstrip(".") if isinstance(path, str) and path.startswith(".") else None
    return found if is_replicas_path(found) else None


async def find_scale_path(session: Session, plan: ObjectPlan) -> str | None:
    """As the cluster has it. None: it has no number, and needs none."""
    resource = await session.api.discovery.resource(plan.api_version, plan.kind)
    path = None
    if "scale" in resource.subresources:
        definitions = await session.api.discovery.resource(*DEFINITIONS)
        try:
            found = await session.api.get(definitions.path(None, f"{resource.plural}.{resource.group}"))
            versions = mappings(at(found, "spec").get("versions"))
            named = plan.api_version.rpartition("/")[2]
            path = next((scale_path(one) for one in versions if one.get("name") == named), None)
        except KubeError as error:
            if error.status not in (403, 404):  # not for us to see; or of an API server beside this one
                raise
            path = REPLICAS_PATH if error.status == 404 else None
    if path is None and plan.scales:
        raise VimError(
            f"{plan} is VDU {plan.vdu}, which an aspect of the VNFD scales, and the cluster does not say where objects "
            "of its kind have their number (there is no /scale, or its definition can't be read).",
            VimFault.PERMANENT,
            cure=f"say it in additionalParams.{MAPPING}.{plan.vdu}.replicas_path, as in spec.size.",
        )
    return path
