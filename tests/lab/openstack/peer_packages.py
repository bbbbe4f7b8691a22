"""Packages of OpenStack Tacker's repository, with what they leave to whoever builds them: images, types, digests.

TACKER_CHECKOUT names a directory with that repository. Nothing of it is part of this one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import new
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from struct import pack
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from tests.lab.slipway_lab import SlipwayLab

VARIABLE = "TACKER_CHECKOUT"
V2 = "samples/tests/functional/sol_v2_common"
V1 = "samples/tests/etc/samples/etsi/nfv"
CLUSTER_V1 = "samples/mgmt_driver/kubernetes/kubernetes_vnf_package"
CLUSTER_V2 = "samples/mgmt_driver/kubernetes/sol_v2_kubernetes_vnf_package/contents"
UNUSED = (
    "6a3c5f0e-2f5b-4a0c-9f46-1f0a4cb8e3b7"  # in the place of "dummy-id", in whose place additionalParams have another
)
STANDARD = "userdata_standard.py"
COMMON = {V2: "common", V1: "common", f"{V1}/user_data_sample": "user_data_common"}
NAMED = re.compile(r"(?:file|sw_image):\s*['\"]?((?:\.\./)?(?:Files|Scripts)/[^'\"\s]+)")
DIGEST = re.compile(r"(algorithm:\s*['\"]?sha-?(256|512)['\"]?\s+hash:\s*)['\"]?[0-9a-f]+['\"]?", re.IGNORECASE)
# Stands for the image that a builder of a package puts there: Glance looks whether it is what it is said to be.
IMAGE = pack(">4sIQIIQIIQQIIQQQQII", b"QFI\xfb", 3, 0, 0, 16, 1 << 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 104).ljust(
    4096, b"\0"
)


def repository() -> Path:
    """Skips the test where none is named."""
    named = os.environ.get(VARIABLE)
    if not named:
        pytest.skip(f"{VARIABLE} names no directory of OpenStack Tacker's repository")
    return Path(named)


def all_packages(repository: Path) -> Iterator[Path]:
    for meta in sorted(repository.rglob("TOSCA-Metadata/TOSCA.meta")):
        yield meta.parent.parent


def completed(tree: Path, directory: Path, repository: Path) -> Path:
    """A copy with what its makers' scripts add: common parts, scripts from elsewhere, and something for each image."""
    copy = directory / tree.parent.name / tree.name
    shutil.copytree(tree, copy, ignore_dangling_symlinks=True)
    for prefix, common in COMMON.items():
        if str(tree).startswith(str(repository / prefix)):
            for folder in ("Definitions", "Scripts"):
                _add(repository / prefix.rpartition("user_data_sample")[0] / common / folder, copy / folder)
    if tree == repository / CLUSTER_V1:
        _add(tree.parent, copy / "Scripts", "*.sh")
    if str(tree).startswith((str(repository / V2), str(repository / CLUSTER_V2))) and not (copy / "UserData").exists():
        _add(repository / "tacker/sol_refactored/infra_drivers/openstack", copy / "UserData", STANDARD)
    for definition in sorted((copy / "Definitions").rglob("*.yaml")):
        text = definition.read_text()
        for name in NAMED.findall(text):
            _complete(copy / name.removeprefix("../"), repository)
        definition.write_text(DIGEST.sub(lambda found: found[1] + new(f"sha{found[2]}", IMAGE).hexdigest(), text))
    return copy


def _complete(file: Path, repository: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if "images" in file.parts:
        file.write_bytes(IMAGE)
    elif not file.exists() and (known := sorted(repository.rglob(file.name))):
        shutil.copyfile(known[0], file)


def _add(source: Path, target: Path, names: str = "*") -> None:
    for file in sorted(source.glob(names)) if source.is_dir() else ():
        if file.is_file() and not (target / file.name).exists():
            target.mkdir(exist_ok=True)
            shutil.copyfile(file, target / file.name)


def requests(repository: Path) -> Any:
    """The module with the bodies that the functional tests send; all that it imports is a maker of ids."""
    path = repository / "tacker/tests/functional/sol_v2_common/paramgen.py"
    loader = SourceFileLoader("tacker_requests", str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    utilities = ModuleType("oslo_utils")
    vars(utilities)["uuidutils"] = SimpleNamespace(generate_uuid=lambda: str(uuid4()))
    known = sys.modules.get("oslo_utils")
    sys.modules["oslo_utils"] = utilities
    try:
        loader.exec_module(module)
    finally:
        if known is None:
            del sys.modules["oslo_utils"]
        else:
            sys.modules["oslo_utils"] = known
    return module


@dataclass
class Life:
    """Of one package, with the functional tests' own bodies: `vnf` is at Slipway, on whatever OpenStack.

    `networks`, `subnets` and `ports` are ids by the names that the bodies have for them.
    """

    vnf: SlipwayLab
    vim: dict[str, Any]
    bodies: Any
    networks: dict[str, str]
    subnets: dict[str, str]
    ports: dict[str, str] = field(default_factory=dict)

    def run(self, action: str, body: dict[str, Any]) -> None:
        if "vimConnectionInfo" in body:
            body = {**body, "vimConnectionInfo": {"vim1": self.vim}}
        self.vnf.run(action, body)

    def members(self) -> list[str]:
        return sorted(self.vnf.machines())

    def server(self, slot: str) -> str:
        return str(self.vnf.machines()[slot]["computeResource"]["resourceId"])

    def heals(self, slot: str, body: dict[str, Any]) -> None:
        before = {name: self.server(name) for name in self.members()}
        self.run("heal", {**body, "vnfcInstanceId": [self.vnf.machines()[slot]["id"]]})
        assert [name for name in before if self.server(name) != before[name]] == [slot]


def standard_life(life: Life) -> None:
    """Each member a resource of its own, by the peer's StandardUserData."""
    bodies = life.bodies
    life.run("instantiate", bodies.sample3_instantiate(life.networks, life.subnets, ""))
    assert life.members() == ["VDU1-0", "VDU2-0"]
    first = life.server("VDU1-0")
    life.run("scale", bodies.sample3_scale_out())
    assert life.members() == ["VDU1-0", "VDU1-1", "VDU1-2", "VDU2-0"]
    life.run("scale", bodies.sample3_scale_in())
    assert life.members() == ["VDU1-0", "VDU1-1", "VDU2-0"]
    assert life.server("VDU1-0") == first
    life.heals("VDU1-1", bodies.sample3_heal())
    life.run("change_ext_conn", bodies.sample3_change_ext_conn(life.networks))
    life.run("terminate", bodies.sample3_terminate())
    assert life.members() == []


def group_life(life: Life) -> None:
    """Members of an AutoScalingGroup, without user data."""
    bodies = life.bodies
    life.run("instantiate", bodies.instantiate_vnf_min())
    assert life.members() == ["VDU1-0", "VDU2-0"]
    life.run("scale", bodies.scaleout_vnf_min())
    assert life.members() == ["VDU1-0", "VDU1-1", "VDU2-0"]
    life.heals("VDU1-1", bodies.heal_vnf_vnfc_min(""))
    life.run("scale", bodies.scalein_vnf_min())
    assert life.members() == ["VDU1-0", "VDU2-0"]
    life.run("terminate", bodies.terminate_vnf_min())
    assert life.members() == []


def largest_life(life: Life) -> None:
    """Every attribute that a body may have: networks and ports that exist, addresses of both versions, user data."""
    bodies = life.bodies
    asked = bodies.instantiate_vnf_max(life.networks, life.subnets, life.ports, "")
    for port in asked["extVirtualLinks"][0]["extLinkPorts"]:
        port["resourceHandle"]["resourceId"] = port["resourceHandle"]["resourceId"].replace("dummy-id", UNUSED)
    life.run("instantiate", asked)
    assert life.members() == ["VDU1-0", "VDU2-0"]
    life.run("scale", bodies.scaleout_vnf_max())
    assert life.members() == ["VDU1-0", "VDU1-1", "VDU2-0"]
    life.heals("VDU1-1", bodies.heal_vnf_vnfc_max(""))
    life.run("change_ext_conn", bodies.change_ext_conn_max(life.networks, life.subnets, ""))
    life.run("scale", bodies.scalein_vnf_max())
    assert life.members() == ["VDU1-0", "VDU2-0"]
    life.run("heal", bodies.heal_vnf_all_max_with_parameter(True))
    life.run("terminate", bodies.terminate_vnf_max())
    assert life.members() == []


LIVES = {"userdata_standard": standard_life, "basic_lcms_min": group_life}


def printed(document: Path, flavour: str) -> dict[str, Any]:
    """The instantiation that a page of the documentation prints; comments are no part of it."""
    text = document.read_text()
    start = re.search(rf'\{{\s*"flavourId": "{flavour}"', text)
    assert start is not None
    body, _ = json.JSONDecoder().raw_decode(re.sub(r"\s#[^\"\n]*", "", text[start.start() :]))
    return dict(body)
