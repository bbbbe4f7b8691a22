"""Templates of packages in the two forms that packages have, for the contract's VNFD: `base`, and `work` that scales.

Both make the network of the VNF themselves. The next version has one more port and volume for each machine of `work`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from slipway.model.target import PackageFile
from tests.contract.life import FIRST

VERSION = "2021-04-16"


def indexed(vnfd_id: str) -> dict[str, PackageFile]:
    """A resource for each member, made from that of the VDU."""
    return _package(vnfd_id, {"base": _member("base"), "work": _member("work")})


def grouped(vnfd_id: str) -> dict[str, PackageFile]:
    group = {
        "type": "OS::Heat::AutoScalingGroup",
        "depends_on": "subnet",
        "properties": {
            "min_size": 0, "max_size": 5, "desired_capacity": {"get_param": ["nfv", "VDU", "work", "desired_capacity"]},
            "resource": {key: value for key, value in _member("work").items() if key != "depends_on"},
        },
    }  # fmt: skip
    return _package(vnfd_id, {"base": _member("base"), "workers": group})


def _member(vdu: str) -> dict[str, Any]:
    return {
        "type": f"{vdu}.yaml",
        "depends_on": "subnet",
        "properties": {
            "flavor": {"get_param": ["nfv", "VDU", vdu, "computeFlavourId"]},
            "image": {"get_param": ["nfv", "VDU", vdu, "vcImageId"]},
            "network": {"get_resource": "net"},
        },
    }


def _package(vnfd_id: str, members: dict[str, Any]) -> dict[str, PackageFile]:
    net = {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": {"get_resource": "net"}, "cidr": "10.10.0.0/24"},
        },
    }
    more = ["work_more"] if vnfd_id != FIRST else []
    volumes = ["data", "more"] if vnfd_id != FIRST else ["data"]
    files = {
        "top.yaml": {
            "heat_template_version": VERSION,
            "parameters": {"nfv": {"type": "json"}},
            "resources": {**net, **members},
        },
        "nested/base.yaml": _nested("base", ["base_cp"], []),
        "nested/work.yaml": _nested("work", ["work_cp", *more], volumes),
    }
    return {f"BaseHOT/simple/{name}": _file(document) for name, document in files.items()}


def _nested(vdu: str, ports: list[str], volumes: list[str]) -> dict[str, Any]:
    resources: dict[str, Any] = {
        vdu: {
            "type": "OS::Nova::Server",
            "properties": {
                "flavor": {"get_param": "flavor"},
                "image": {"get_param": "image"},
                "networks": [{"port": {"get_resource": port}} for port in ports],
            },
        }
    }
    for port in ports:
        resources[port] = {"type": "OS::Neutron::Port", "properties": {"network": {"get_param": "network"}}}
    for volume in volumes:
        resources[volume] = {"type": "OS::Cinder::Volume", "properties": {"size": 1}}
        resources[f"{volume}_attachment"] = {
            "type": "OS::Cinder::VolumeAttachment",
            "properties": {"instance_uuid": {"get_resource": vdu}, "volume_id": {"get_resource": volume}},
        }
    parameters = {name: {"type": "string"} for name in ("flavor", "image", "network")}
    return {"heat_template_version": VERSION, "parameters": parameters, "resources": resources}


def _file(document: dict[str, Any]) -> PackageFile:
    content = msgspec.yaml.encode(document)
    return PackageFile(content=content, digest=sha256(content).hexdigest())
