"""A machine's container in one form, and as each engine wants it told.

Podman's Docker-like API drops the rule that lets a machine use loop devices, so Podman gets its own form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STOP = "SIGRTMIN+3"  # systemd: shut down in order
STOP_NUMBER = 37
LOOP_MAJOR = 7


@dataclass(frozen=True)
class Endpoint:
    network: str
    address: str
    mac: str


@dataclass(frozen=True)
class Specification:
    name: str
    image: str
    hostname: str
    command: str
    labels: dict[str, str]
    environment: dict[str, str]
    capabilities: tuple[str, ...]
    devices: tuple[str, ...]
    own_disks: tuple[str, ...]  # directories that lie on the engine's disk and not in the container's layers
    endpoints: tuple[Endpoint, ...]


def docker_host(spec: Specification) -> dict[str, Any]:
    return {
        "cap_add": list(spec.capabilities),
        "security_opt": ["seccomp=unconfined", "apparmor=unconfined"],
        "device_cgroup_rules": [f"b {LOOP_MAJOR}:* rwm"],
        "devices": list(spec.devices),
        "network_mode": spec.endpoints[0].network if spec.endpoints else "none",
    }


def docker_container(spec: Specification) -> dict[str, Any]:
    return {
        "name": spec.name,
        "hostname": spec.hostname,
        "command": spec.command,
        "stop_signal": STOP,
        "labels": spec.labels,
        "volumes": list(spec.own_disks),
        "environment": spec.environment,
    }


def podman_form(spec: Specification) -> dict[str, Any]:
    """What Podman's own API takes, as one document."""
    return {
        "name": spec.name,
        "image": spec.image,
        "hostname": spec.hostname,
        "command": [spec.command],
        "systemd": "always",
        "stop_signal": STOP_NUMBER,
        "stop_timeout": 0,  # when it is removed by force; Podman would wait 10 s for a node that shuts down in order
        "labels": spec.labels,
        "env": spec.environment,
        "cap_add": list(spec.capabilities),
        "seccomp_profile_path": "unconfined",
        "apparmor_profile": "unconfined",
        "unmask": ["ALL"],
        "devices": [{"path": device} for device in spec.devices],
        "device_cgroup_rule": [{"allow": True, "type": "b", "major": LOOP_MAJOR, "access": "rwm"}],
        "volumes": [{"Dest": directory} for directory in spec.own_disks],
        "netns": {"nsmode": "bridge" if spec.endpoints else "none"},
        "networks": {
            end.network: {"static_ips": [end.address], "static_mac": end.mac, "interface_name": f"eth{place}"}
            for place, end in enumerate(spec.endpoints)
        },
    }
