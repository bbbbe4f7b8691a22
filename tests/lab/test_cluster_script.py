"""A real cluster made by a script of the package, with Helm on its master."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from functools import cache
from pathlib import Path

import pytest

from tests.functional.next_package import NEXT_ID, next_package
from tests.lab.cluster_lab import ONE_WORKER, PARAMETERS, SAMPLE, ClusterLab, parameters

SCRIPT = Path(__file__).parents[2] / "samples" / "cluster-openstack" / "Scripts" / "node.sh"
FAILS = b'#!/bin/sh\necho "token: $6 and all of it: $*"\necho "I was given $*" >&2\nexit 1\n'
HELM = b"#!/bin/sh\necho v3.19.0\n"


pytestmark = pytest.mark.group(name="sources")


@pytest.fixture
def scripted(tmp_path: Path, lab: ClusterLab) -> ClusterLab:
    """With a package that brings scripts of its own."""
    tree = next_package(SAMPLE, tmp_path, NEXT_ID, words=ONE_WORKER)
    (tree / "Scripts").mkdir()
    (tree / "Scripts" / "node.sh").write_bytes(SCRIPT.read_bytes())
    (tree / "Scripts" / "fails.sh").write_bytes(FAILS)
    (tree / "Scripts" / "does_nothing.sh").write_bytes(b"#!/bin/sh\n")
    (tree / "Files").mkdir(exist_ok=True)
    (tree / "Files" / "helm.tar.gz").write_bytes(helm_archive())
    lab.vnfd = lab.onboard(tree)
    return lab


def test_a_cluster_by_the_packages_own_script(scripted: ClusterLab) -> None:
    lab = scripted
    lab.create()
    helm = {"path": "Files/helm.tar.gz", "sha256": hashlib.sha256(helm_archive()).hexdigest(), "version": "3.19.0"}
    asked = parameters(script_path="Scripts/node.sh", helm=helm)
    del asked[PARAMETERS]["image_repository"]  # whatever images the script brings
    operation = lab.run("instantiate", {"flavourId": "simple", "additionalParams": asked}, within=900)
    assert "prepare masterNode-0" in lab.steps(operation["id"])
    assert "set up the pods' network" not in lab.steps(operation["id"])
    assert lab.nodes() == {"masternode-0": True, "workernode-0": True}
    assert lab.inside("masterNode-0", "/usr/local/bin/helm").strip() == "v3.19.0"
    for slot in lab.machines():
        assert lab.inside(slot, "ls", "/var/lib/slipway/script") == ""
        printed = lab.inside(slot, "cat", "/var/lib/slipway/jobs/node-script/stdout")
        assert not SECRETS.search(printed), "a secret stays on the machine"

    for script, why in (
        ("fails.sh", "Scripts/fails.sh failed"),
        ("does_nothing.sh", "ended well on workerNode-1, but"),
    ):
        more = {PARAMETERS: {"script_path": f"Scripts/{script}"}}
        failed = lab.run("scale", lab.scale("SCALE_OUT", additionalParams=more), "FAILED_TEMP")
        assert why in failed["error"]["detail"]
        assert not SECRETS.search(failed["error"]["detail"])
        lab.decide(failed["id"], "rollback", "ROLLED_BACK")
    lab.run("scale", lab.scale("SCALE_OUT"))
    assert lab.nodes() == {"masternode-0": True, "workernode-0": True, "workernode-1": True}
    lab.run("terminate", {"terminationType": "FORCEFUL"})


SECRETS = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\b[0-9a-f]{64}\b")


@cache
def helm_archive() -> bytes:
    """As Helm's own are: the program in a directory."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("linux-amd64/helm")
        entry.size, entry.mode = len(HELM), 0o755
        tar.addfile(entry, io.BytesIO(HELM))
    return packed.getvalue()
