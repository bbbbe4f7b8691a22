from __future__ import annotations

import pytest

from slipway.cluster.checks import check_files, named_files
from slipway.cluster.parameters import NAME, PATH, ClusterParameters, read_parameters
from slipway.model.errors import BadRequest
from tests.unit.cluster.documents import FULL, PACKAGES, V2, with_value


def read(document: object) -> ClusterParameters:
    return read_parameters({NAME: document})


def test_all_files_of_the_package_are_known() -> None:
    assert dict(named_files(read(FULL))) == {
        "script_path": "Scripts/install_k8s_cluster.sh",
        "helm.path": "Files/helm.tar.gz",
        "source.files[1].path": "Files/kubelet",
        "source.files[2].path": "Files/kubectl",
        "private_registry_connection_info[1].certificate_path": "Files/registries/ca.crt",
        **{
            f"pv_registration_params[{n}].pv_manifest_file_path": f"Files/kubernetes/nfs-pv{n + 1}.yaml"
            for n in range(3)
        },
    }
    assert dict(named_files(read(PACKAGES))) == {
        "cni": "Files/kubernetes/calico.yaml",
        "helm_installation_script_path": "Scripts/install_helm.sh",
        "source.signing_key_path": "Files/repository.asc",
    }


def test_files_that_are_there_are_fine() -> None:
    check_files(read(V2), ["Scripts/install_k8s_cluster.sh"])
    check_files(read(with_value(V2, ("script_path",), "")), [])


def test_every_missing_file_is_told() -> None:
    with pytest.raises(BadRequest) as caught:
        check_files(read(PACKAGES), ["Files/repository.asc"])
    assert caught.value.detail.startswith(f"{PATH}.cni: the package has no file Files/kubernetes/calico.yaml; name one")
    assert f"(2) {PATH}.helm_installation_script_path: " in caught.value.detail
