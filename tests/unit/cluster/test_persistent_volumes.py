"""Persistent volumes in a package's manifests: read, given their server's address, or refused by file and name."""

from __future__ import annotations

import pytest
import yaml

from slipway.cluster.parameters import NAME, ClusterParameters, read_parameters
from slipway.cluster.persistent_volumes import MOST, VolumeManifest, persistent_volumes
from slipway.model.errors import PackageError
from slipway.model.target import PackageFile
from tests.unit.cluster.documents import VOLUMES

PARAMETERS = read_parameters({NAME: VOLUMES})
FIRST, SECOND, THIRD = (f"Files/kubernetes/nfs-pv{number}.yaml" for number in (1, 2, 3))


def manifest(number: int, **spec: object) -> str:
    nfs = {"path": f"/volume/nfs/pv{number}", "server": "10.0.0.1", "readOnly": False}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv{number}"},
                           "spec": {"capacity": {"storage": "1Gi"}, "nfs": nfs, **spec}})  # fmt: skip


def read(*texts: str, parameters: ClusterParameters = PARAMETERS) -> tuple[VolumeManifest, ...]:
    paths = (FIRST, SECOND, THIRD)
    given = [*texts, *(manifest(number) for number in range(len(texts) + 1, 4))]
    files = {path: PackageFile(content=text.encode(), digest="") for path, text in zip(paths, given, strict=True)}
    return persistent_volumes(parameters, files)


def refused(*texts: str) -> PackageError:
    with pytest.raises(PackageError) as caught:
        read(*texts)
    assert FIRST in str(caught.value) or caught.value.detail
    return caught.value


def test_the_servers_address_is_put_in_and_all_else_stays() -> None:
    first, *_ = read()
    assert (first.name, first.point) == ("pv1", "storage_server_CP")
    made = first.served_by("10.10.0.9")
    assert made["spec"]["nfs"] == {"path": "/volume/nfs/pv1", "server": "10.10.0.9", "readOnly": False}
    assert made["spec"]["capacity"] == {"storage": "1Gi"}
    assert first.manifest["spec"]["nfs"]["server"] == "10.0.0.1"


def test_a_file_may_hold_several() -> None:
    both = f"{manifest(1)}---\n{manifest(1).replace('pv1', 'pv4').replace('/nfs/pv4', '/nfs/pv1')}"
    assert [volume.name for volume in read(both)] == ["pv1", "pv4", "pv2", "pv3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (manifest(1).replace("name: pv1", "labels: {}"), "no metadata.name"),
        (manifest(1).replace("name: pv1", "generateName: pv-"), "another object at each retry"),
        (manifest(1).replace("name: pv1", "name: PV_1"), "that is no name in Kubernetes"),
        (manifest(1).replace("name: pv1", "name: pv1\n  namespace: default"), "in no namespace"),
        (
            manifest(1).replace("name: pv1", "name: pv1\n  finalizers: [sea.test/kept]"),
            "with metadata.finalizers others",
        ),
        (manifest(1, claimRef=["data"]), "spec.claimRef is no object"),
        (manifest(1, nfs=None), "it is not NFS: spec.nfs is missing"),
        (manifest(1, nfs={"path": "/etc"}), "nothing that the storage server exports"),
        (manifest(1, nfs={"path": "/volume/nfs/pv1/../../../etc"}), "nothing that the storage server exports"),
        (manifest(1, nfs={"path": ["/volume/nfs/pv1"]}), "nothing that the storage server exports"),
        (manifest(1, hostPath={"path": "/etc"}), "spec.hostPath"),
        (manifest(1, local={"path": "/"}, csi={}), "spec.csi, spec.local"),
        (manifest(1, claimRef={"namespace": "default", "name": "data", "uid": "a-1"}), "spec.claimRef.uid"),
        (manifest(1).replace("PersistentVolume", "ClusterRoleBinding"), "it is no PersistentVolume of v1"),
        (manifest(1).replace("apiVersion: v1", "apiVersion: evil/v1"), "it is no PersistentVolume of v1"),
        (manifest(1).replace("name: pv1", "name: pv1\n  labels: {slipway.io/instance: x}"), "which Slipway sets"),
        (manifest(2), "there is another one of that name"),
        ("", "no persistent volume"),
        ("a: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: [*b, *b, *b]\n", "has no apiVersion"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    error = refused(text)
    assert said in error.detail


def test_a_bomb_of_aliases_is_not_unpacked() -> None:
    layers = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    error = refused(f"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n{layers}")
    assert "values" in error.detail


def test_there_may_not_be_too_many() -> None:
    one = manifest(1)
    many = "---\n".join(one.replace("name: pv1", f"name: pv-{number}") for number in range(MOST))
    with pytest.raises(PackageError, match="at most"):
        read(many)
