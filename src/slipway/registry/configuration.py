"""The files that make a registry serve: its configuration, and the unit that starts it at every boot."""

from __future__ import annotations

import json
from typing import Any

DIRECTORY = "/etc/slipway-registry"
CONFIGURATION, CERTIFICATE, KEY, USERS = (
    f"{DIRECTORY}/{name}" for name in ("config.yml", "server.crt", "server.key", "htpasswd")
)
UNIT = "/etc/systemd/system/slipway-registry.service"
DATA = "/var/lib/slipway-registry"
PROGRAM_USER = "docker-registry"  # as Debian's package has it
CONTAINER = "slipway-registry"


def configuration(port: int, *, tls: bool, login: bool) -> str:
    """JSON, which is YAML. Of one registry the secret for uploads may be any: it makes it itself."""
    http: dict[str, Any] = {
        "addr": f":{port}",
        "relativeurls": True,
        "headers": {"X-Content-Type-Options": ["nosniff"]},
    }
    if tls:
        http["tls"] = {"certificate": CERTIFICATE, "key": KEY, "minimumtls": "tls1.2"}
    document: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "info"},
        "storage": {
            "filesystem": {"rootdirectory": DATA},
            "delete": {"enabled": True},
            # What clients left behind that never came to their end: without this it stays for a week.
            "maintenance": {"uploadpurging": {"enabled": True, "age": "24h", "interval": "1h", "dryrun": False}},
        },
        "http": http,
        "health": {"storagedriver": {"enabled": True, "interval": "10s", "threshold": 3}},
    }
    if login:
        document["auth"] = {"htpasswd": {"realm": "registry", "path": USERS}}
    return json.dumps(document, indent=2) + "\n"


def program_unit(port: int, *, volume: bool) -> str:
    """The distribution's program, without root's rights. `volume`: without it nothing is served."""
    low = "AmbientCapabilities=CAP_NET_BIND_SERVICE\n" if port < 1024 else ""
    return _unit(
        f"User={PROGRAM_USER}\nGroup={PROGRAM_USER}\n{low}NoNewPrivileges=yes\nProtectSystem=strict\n"
        f"ReadWritePaths={DATA}\nPrivateTmp=yes\nProtectHome=yes\n"
        f"ExecStart=/usr/bin/docker-registry serve {CONFIGURATION}\n",
        volume=volume,
    )


def container_unit(engine: str, image: str, *, volume: bool) -> str:
    """`engine`: the path of docker or podman. `image`: its id there, or the name it was pulled by."""
    after = "After=docker.service\nRequires=docker.service\n" if engine.endswith("docker") else ""
    run = (
        f"{engine} run --rm --name {CONTAINER} --network host --volume {DIRECTORY}:{DIRECTORY}:ro "
        f"--volume {DATA}:{DATA} {image} {CONFIGURATION}"
    )
    return _unit(
        f"ExecStartPre=-{engine} rm --force {CONTAINER}\nExecStart={run}\nExecStop=-{engine} stop {CONTAINER}\n",
        after,
        volume=volume,
    )


def _unit(service: str, after: str = "", *, volume: bool) -> str:
    """An empty directory must not be served where the volume should be: that is mounted first, if it is not yet."""
    mounted = f"ExecStartPre=+/bin/sh -c 'mountpoint -q {DATA} || mount {DATA}'\n" if volume else ""
    return (
        "[Unit]\nDescription=Container registry\nWants=network-online.target\nAfter=network-online.target\n"
        f"{after}RequiresMountsFor={DATA}\nStartLimitIntervalSec=0\n"
        f"[Service]\n{mounted}{service}Restart=always\nRestartSec=3\nLimitNOFILE=65536\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
