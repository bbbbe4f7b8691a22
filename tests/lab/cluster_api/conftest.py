"""A real management cluster (lab/cluster-api) for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.cluster_api.management_lab import ManagementLab


@pytest.fixture(scope="module")
def management_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagementLab]:
    """Nothing of it runs yet. The in-memory provider's ports are fixed: there is one at a time on a machine."""
    lab = ManagementLab(tmp_path_factory.mktemp("management-cluster"))
    try:
        yield lab
    finally:
        lab.run("down", "--purge")


@pytest.fixture(scope="module")
def management_cluster(management_lab: ManagementLab) -> str:
    """The kubeconfig of one whose controllers run."""
    return management_lab.kubeconfig("up")
