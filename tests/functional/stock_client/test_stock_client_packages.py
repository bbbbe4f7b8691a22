"""Every `openstack vnf package` command of the stock client: what it prints, and what it does."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.functional.package_server import PASSWORD, USER, PackageServer
from tests.functional.stock_client.stock_program import Stock
from tests.functional.stock_client.stock_world import PACKAGES, Slipway
from tests.unit.package.csars import SCRIPT, VNFD_TEXT, valid_files, written

pytestmark = pytest.mark.sqlite_suffices

NOBODY = "00000000-0000-4000-8000-000000000000"


def test_packages(stock: Stock, slipway: Slipway, tmp_path: Path) -> None:
    csar = written(valid_files(), tmp_path)
    created = stock.json("vnf package create", "--user-data", "a=b", "--user-data", "c=d")
    package_id = created["ID"]
    where = f"{PACKAGES}/{package_id}"
    assert created["Onboarding State"] == "CREATED"
    assert slipway.get(where)["userDefinedData"] == {"a": "b", "c": "d"}

    assert "accepted" in stock.says("vnf package upload", package_id, "--path", str(csar))
    slipway.onboarded(package_id)
    shown = stock.json("vnf package show", package_id)
    assert (shown["Onboarding State"], shown["Operational State"]) == ("ONBOARDED", "ENABLED")
    assert (shown["VNF Product Name"], shown["VNF Provider"], shown["VNFD Version"]) == ("Sample", "Company", "1.10")
    assert [artifact["artifactPath"] for artifact in shown["Additional Artifacts"]] == [SCRIPT]

    only = ("--filter", f"(eq,id,{package_id})")
    assert package_id in {one["Id"] for one in stock.json("vnf package list")}
    (whole,) = stock.json("vnf package list", *only, "--all_fields")
    assert (whole["Vnf Provider"], whole["User Defined Data"]) == ("Company", {"a": "b", "c": "d"})
    assert whole["Checksum"] == shown["Checksum"]
    (some,) = stock.json("vnf package list", *only, "--fields", "checksum,additionalArtifacts/artifactPath")
    assert some["Checksum"] == shown["Checksum"]
    assert some["Additional Artifacts"][0]["artifactPath"] == SCRIPT
    (without,) = stock.json("vnf package list", *only, "--exclude_fields", "checksum,additionalArtifacts")
    assert without["User Defined Data"] == {"a": "b", "c": "d"}
    assert "Checksum" not in without
    (least,) = stock.json("vnf package list", *only, "--exclude_default")
    assert least["Vnf Product Name"] == "Sample"
    assert stock.json("vnf package list", "--filter", f"(eq,id,{NOBODY})") == []

    stock.says("vnf package download", package_id, "--file", "back.csar")
    assert (stock.directory / "back.csar").read_bytes() == csar.read_bytes()
    stock.says("vnf package download", package_id, "--vnfd", "--file", "vnfd.zip")
    assert "Definitions/vnfd.yaml" in zipfile.ZipFile(stock.directory / "vnfd.zip").namelist()
    stock.says("vnf package download", package_id, "--vnfd", "--type", "both", "--file", "either")
    assert (stock.directory / "either").read_text() == VNFD_TEXT
    assert stock.says("vnf package download", package_id, "--vnfd", "--type", "text/plain").strip() == VNFD_TEXT.strip()
    stock.says("vnf package artifact download", package_id, SCRIPT, "--file", "install.sh")
    assert (stock.directory / "install.sh").read_bytes() == valid_files()[SCRIPT]

    assert "ENABLED" in stock.refused("vnf package delete", package_id)
    changed = stock.json("vnf package update", package_id, "--operational-state", "DISABLED", "--user-data", "a=z")
    assert changed == {"Operational State": "DISABLED", "User Defined Data": {"a": "z"}}
    assert slipway.get(where)["userDefinedData"] == {"a": "z", "c": "d"}
    assert "deleted successfully" in stock.says("vnf package delete", package_id)
    assert slipway.client.get(where).status_code == 404


def test_a_package_is_fetched_from_a_url(stock: Stock, slipway: Slipway, tmp_path: Path) -> None:
    csar = written(valid_files(VNFD_TEXT.replace("b1bb0ce7", "c1bb0ce7")), tmp_path)
    package_id = stock.json("vnf package create")["ID"]
    with PackageServer(csar.read_bytes()).running() as server:
        login = ("--user-name", USER, "--password", PASSWORD)
        assert "accepted" in stock.says("vnf package upload", package_id, "--url", server.url("/private"), *login)
        slipway.onboarded(package_id)
    assert slipway.get(f"{PACKAGES}/{package_id}")["vnfdId"].startswith("c1bb0ce7")
