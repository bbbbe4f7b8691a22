"""CNFs to make objects of: a flavour with manifests, and targets and changes of it as `lcm/` would give them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from slipway.model.descriptor import Aspect, Flavour, Vdu
from slipway.model.machine import Found, FoundMachine, FoundObject
from slipway.model.target import Change, PackageFile, VnfTarget
from slipway.vim.kubernetes.wanted import wanted_objects

INSTANCE = "11111111-2222-4333-8444-555555555555"
PATH = "Files/kubernetes/cnf.yaml"
VNFD = "22222222-2222-4333-8444-555555555555"


def workload(kind: str = "Deployment", name: str = "web", image: str = "web:1", more: str = "") -> str:
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: main
        image: {image}
        {more}
"""


def config(name: str = "settings", value: str = "1", kind: str = "ConfigMap") -> str:
    data = "data" if kind == "ConfigMap" else "stringData"
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n{data}: {{key: '{value}'}}\n"


def together(*documents: str) -> str:
    return "---\n".join(documents)


def flavour(vdus: tuple[Vdu, ...] = (Vdu(name="web", initial=2, maximum=5, container=True),)) -> Flavour:
    return Flavour(
        id="simple",
        vdus={one.name: one for one in vdus},
        aspects={"web": Aspect(name="web", max_level=3, deltas={vdus[0].name: (1,)})},
        manifests=(PATH,),
    )


def target(text: str, count: int = 2, of: Flavour | None = None, **parameters: Any) -> VnfTarget:
    content, of = text.encode(), of or flavour()
    paths = parameters.get("lcm-kubernetes-def-files", of.manifests)
    return VnfTarget(
        vnfd_id=VNFD,
        flavour=of,
        scale={"web": count - 2},
        counts=dict.fromkeys(of.vdus, count),
        parameters=parameters,
        files={path: PackageFile(content=content, digest=sha256(content).hexdigest()) for path in paths},
    )


def change(before: VnfTarget | None, after: VnfTarget | None, inventory: Found | None = None, **more: Any) -> Change:
    inventory = inventory if inventory is not None else standing(before) if before else Found()
    return Change(instance_id=INSTANCE, version=1, inventory=inventory, before=before, after=after, **more)


def standing(of: VnfTarget, pods: int = 2) -> Found:
    """What a cluster has once that was made."""
    return Found(
        objects=tuple(
            FoundObject(
                id=one.id,
                kind=one.plan.kind,
                name=one.plan.name,
                namespace="default",
                api_version=one.plan.api_version,
                digest=one.plan.digest,
            )
            for one in wanted_objects(of)
        ),
        machines=tuple(
            FoundMachine(id=f"pod-{at}", name=f"web-{at}", vdu="web", type="Pod", resource_id=f"web-{at}", ready=True)
            for at in range(pods)
        ),
    )
