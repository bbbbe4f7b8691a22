"""CNFs of charts: a chart in files and as an archive, and targets and changes of it as `lcm/` would give them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from slipway.model.descriptor import Aspect, Flavour, Vdu
from slipway.model.machine import Found, FoundMachine, FoundObject
from slipway.model.target import PackageFile, VnfTarget
from slipway.vim.kubernetes.helm.release_steps import wanted_releases
from tests.unit.vim.kubernetes_targets import INSTANCE, VNFD

PATH = "Files/charts/web"
NUMBERS = {"web": {"replica": "web.replicas"}}
CHART = {"Chart.yaml": b"apiVersion: v2\nname: web\nversion: 1.0.0\n", "values.yaml": b"web: {replicas: 1}\n"}


def archive(files: Mapping[str, bytes], top: str = "web") -> bytes:
    """As `helm package` makes it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def flavour(charts: tuple[str, ...] = (PATH,), manifests: tuple[str, ...] = ()) -> Flavour:
    web = Vdu(name="web", initial=2, maximum=5, container=True)
    return Flavour(
        id="simple",
        vdus={"web": web},
        aspects={"web": Aspect(name="web", max_level=3, deltas={"web": (1,)})},
        charts=charts,
        manifests=manifests,
    )


def helm_target(
    count: int = 2,
    of: Flavour | None = None,
    chart: Mapping[str, bytes] = CHART,
    beside: Mapping[str, bytes] | None = None,
    **given: Any,
) -> VnfTarget:
    """`beside`: other files of the package, by path."""
    given.setdefault("helm_value_names", NUMBERS)
    files = {f"{PATH}/{name}": content for name, content in chart.items()}
    files["Files/charts/web-1.0.0.tgz"] = archive(chart)
    files |= beside or {}
    return VnfTarget(
        vnfd_id=VNFD,
        flavour=of or flavour(),
        scale={"web": count - 2},
        counts={"web": count},
        parameters={name: value for name, value in given.items() if value is not None},
        files={name: PackageFile(content=text, digest=sha256(text).hexdigest()) for name, text in files.items()},
        file_names=frozenset(files),
    )


def releases_of(target: VnfTarget) -> Found:
    """What a cluster has once that was made."""
    made = list[FoundObject]()
    for one in wanted_releases(target, INSTANCE):
        made.append(
            FoundObject(
                id=one.id, kind="HelmRelease", name=one.name, namespace="default", digest=one.digest, fields="3"
            )
        )
        made.append(
            FoundObject(
                id=f"{one.id}/Deployment.apps/{one.name}-web",
                kind="Deployment",
                name=f"{one.name}-web",
                namespace="default",
                api_version="apps/v1",
                vdu="web",
            )
        )
    pods = tuple(
        FoundMachine(id=f"pod-{at}", name=f"web-{at}", vdu="web", type="Pod", resource_id=f"web-{at}", ready=True)
        for at in range(2)
    )
    return Found(objects=tuple(made), machines=pods)
