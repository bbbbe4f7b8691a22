from __future__ import annotations

from typing import Any

from slipway.cli.describe import problems, view
from tests.unit.cli.test_output import drawn
from tests.unit.cli.test_vnf import VNF
from tests.unit.cli.test_vnf_operations import OPERATION, occurrence

ADDRESS = {"ipOverEthernet": {"ipAddresses": [{"type": "IPV4", "addresses": ["10.0.0.5"]}]}}
INFO: dict[str, Any] = {
    "flavourId": "simple",
    "vnfState": "STARTED",
    "scaleStatus": [{"aspectId": "workers", "scaleLevel": 1}],
    "maxScaleLevels": [{"aspectId": "workers", "scaleLevel": 10}],
    "vnfcResourceInfo": [
        {
            "id": "r1",
            "vduId": "masterNode",
            "metadata": {"name": "masterNode-0"},
            "storageResourceIds": ["s1"],
            "vnfcCpInfo": [{"id": "cp", "cpdId": "CP1", "cpProtocolInfo": [ADDRESS]}],
        },
        {"id": "r2", "vduId": "workerNode"},
    ],
    "virtualStorageResourceInfo": [{"id": "s1", "virtualStorageDescId": "masterData"}],
    "vnfcInfo": [
        {"id": "masterNode-r1", "vduId": "masterNode", "vnfcState": "STARTED", "vnfcResourceInfoId": "r1"},
        {"id": "workerNode-r2", "vduId": "workerNode", "vnfcState": "STOPPED", "vnfcResourceInfoId": "r2"},
        {"id": "workerNode-r3", "vduId": "workerNode", "vnfcState": "STARTED", "vnfcResourceInfoId": "r3"},
    ],
}
WHOLE = {
    **VNF,
    "instantiationState": "INSTANTIATED",
    "instantiatedVnfInfo": INFO,
    "vimConnectionInfo": {"vim": {"vimId": "v1", "vimType": "SIM"}},
    "vnfInstanceDescription": "for tests",
}
BROKEN = occurrence("FAILED_TEMP", error={"detail": "workerNode-1: quota exceeded"}, startTime="2026-01-02T03:04:05Z")


def test_problems_name_their_cures() -> None:
    found = dict(problems(WHOLE, [BROKEN, occurrence("COMPLETED", id="x")]))

    assert list(found) == [
        "SCALE is in FAILED_TEMP: workerNode-1: quota exceeded",
        "VNFC workerNode-r2 is STOPPED.",
        "VNFC workerNode-r3 is missing: it has no machine.",
    ]
    assert any(cure.startswith(f"slipway op retry {OPERATION}") for cure in next(iter(found.values())))
    assert found["VNFC workerNode-r2 is STOPPED."] == ["slipway vnf heal mycluster --vnfc workerNode-r2"]


def test_what_is_wrong_stands_on_top() -> None:
    lines = drawn(view(WHOLE, [BROKEN])).splitlines()

    assert "mycluster" in lines[0]
    assert "Problems" in lines[1]
    assert "quota exceeded" in lines[2]


def test_the_page_says_what_the_vnf_is_made_of() -> None:
    page = drawn(view(WHOLE, [BROKEN]))

    for fact in (
        "Product: Slipway Sample [red]cluster 1.0 (VNFD vnfd-1)",
        "State: INSTANTIATED, STARTED",
        "Flavour: simple",
        "Scale: workers at level 1 of 10",
        "VIM: vim v1 (SIM)",
        "masterNode: 1",
        "masterNode-0  10.0.0.5",
        "storage masterData s1",
        "2026-01-02 03:04:05  SCALE  FAILED_TEMP",
    ):
        assert fact in page


def test_a_helm_release_is_named_with_its_revision() -> None:
    release = {"kind": "HelmRelease", "id": "HelmRelease/web", "name": "web-1", "namespace": "prod", "fields": "3"}
    flux = {"kind": "HelmRelease", "id": "a", "name": "other", "api_version": "helm.toolkit.fluxcd.io/v2"}
    page = drawn(view({**WHOLE, "instantiatedVnfInfo": {**INFO, "metadata": {"objects": [release, flux]}}}, []))
    assert "Helm release: prod/web-1, revision 3" in page
    assert "other" not in page


def test_a_vnf_in_good_order_shows_no_problems() -> None:
    page = drawn(view(VNF, []))

    assert "Problems" not in page
    assert "NOT_INSTANTIATED" in page


def test_an_operation_under_way_says_how_to_watch_it() -> None:
    assert f"slipway op wait {OPERATION}" in drawn(view(VNF, [occurrence("PROCESSING")]))


def test_a_cure_is_safe_to_paste_into_a_shell() -> None:
    evil = {**WHOLE, "vnfInstanceName": "x; rm -rf ~"}

    assert ["slipway vnf heal 'x; rm -rf ~' --vnfc workerNode-r2"] in dict(problems(evil, [])).values()
