"""Cluster API's controllers as pods of a cluster without a registry: their images, and the package made fit for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from slipway.vim.sandbox.image.kubernetes.oci import Image, layer_of, write_archive

# Files of the package, and the programs of lab/cluster-api whose Deployments they have.
PROGRAMS = {
    "core.yaml": "core",
    "bootstrap.yaml": "bootstrap",
    "control-plane.yaml": "controlplane",
    "infrastructure.yaml": "dev",
}
PROVIDER = "infrastructure.yaml"


def adapt(tree: Path) -> dict[str, str]:
    """The package as an operator changes it for such a cluster; the images that its nodes must have, by program."""
    images = {}
    for name, program in PROGRAMS.items():
        file = tree / "Files" / "kubernetes" / name
        objects = list(yaml.load_all(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        (pod,) = (one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment")
        (container,) = pod["containers"]
        images[program] = str(container["image"])
        container["imagePullPolicy"] = "IfNotPresent"  # they come by import, and nothing answers under their names
        container["args"].remove("--leader-elect")  # one of each, which is not to end when a lease is renewed late
        if name == PROVIDER:
            _without_docker(pod, container)
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        file.write_text(yaml.dump_all(objects, Dumper=dumper, sort_keys=False))
    return images


def _without_docker(pod: dict[str, Any], container: dict[str, Any]) -> None:
    """The in-memory backend needs neither Docker's socket nor privileges. Its API servers of workload clusters are at
    the pod's address: on the node's network that is one which others than pods reach, too."""
    del container["securityContext"]["privileged"]
    container["volumeMounts"] = [one for one in container["volumeMounts"] if one["name"] != "dockersock"]
    pod["volumes"] = [one for one in pod["volumes"] if one["name"] != "dockersock"]
    pod["hostNetwork"] = True


def archives(images: dict[str, str], programs: Path, directory: Path) -> Iterator[Path]:
    """For `ctr images import`, one for each program."""
    directory.mkdir()
    for program, name in images.items():
        layer = layer_of(directory / f"{program}.zst", {"manager": programs / program, "tmp": None})
        archive = directory / f"{program}.tar"
        write_archive(archive, [Image(name, [layer], {"Entrypoint": ["/manager"]})])
        yield archive
