from __future__ import annotations

import pytest

from slipway.cluster.schema import Refusal
from slipway.cluster.versions import SUPPORTED, V1BETA3, V1BETA4, Version, refuse_node, refuse_upgrade, version


def test_versions_are_read_with_and_without_v() -> None:
    assert version("v1.34.4") == version("1.34.4") == Version(1, 34, 4)
    assert (str(version("v1.34.4")), version("1.34.4").tag) == ("1.34.4", "v1.34.4")


@pytest.mark.parametrize(
    "wrong",
    ["", "1", "1.34", "1.34.x", "1.34.4-rc.1", "latest", "1.34.4\n", " 1.34.4", "1.034.4", "1.99.0", "2.34.0", 1.34],
)
def test_other_things_are_no_versions(wrong: object) -> None:
    with pytest.raises(Refusal):
        version(wrong)


def test_versions_know_the_format_of_kubeadm() -> None:
    assert Version(1, 30, 0).needs.kubeadm_api == V1BETA3
    assert Version(1, 31, 0).needs.kubeadm_api == V1BETA4


def test_the_table_has_no_gaps() -> None:
    minors = [minor for _, minor in SUPPORTED]
    assert minors == list(range(minors[0], minors[-1] + 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1.33.13", "1.34.4", None),
        ("1.33.1", "1.33.13", None),
        ("1.33.1", "1.33.1", None),
        ("1.33.13", "1.35.0", "go to a version 1.34 first"),
        ("1.34.4", "1.33.13", "choose 1.34.4 or newer"),
    ],
)
def test_control_planes_go_up_one_minor_version_at_a_time(old: str, new: str, said: str | None) -> None:
    refusal = refuse_upgrade(version(old), version(new))
    assert (refusal.cure if refusal else None) == said


@pytest.mark.parametrize(
    ("control_plane", "kubelet", "said"),
    [
        ("1.34.4", "1.34.0", None),
        ("1.34.0", "1.34.4", None),
        ("1.34.4", "1.31.0", None),
        ("1.34.4", "1.30.0", "give the node at least 1.31"),
        ("1.33.13", "1.34.4", "upgrade the masters first, or give the node an older kubelet"),
    ],
)
def test_kubelets_are_never_newer_and_not_much_older(control_plane: str, kubelet: str, said: str | None) -> None:
    refusal = refuse_node(version(control_plane), version(kubelet))
    assert (refusal.cure if refusal else None) == said
