"""The service of a registry."""

from __future__ import annotations

import json

from slipway.registry.configuration import DATA, configuration, container_unit, program_unit


def test_a_volume_that_is_not_mounted_is_mounted_before_anything_is_served() -> None:
    """After a power failure an empty directory would look like a registry without images."""
    for unit in (program_unit(5000, volume=True), container_unit("/usr/bin/podman", "abc", volume=True)):
        lines = unit.splitlines()
        mounted = next(at for at, line in enumerate(lines) if f"mount {DATA}" in line)
        assert mounted < next(at for at, line in enumerate(lines) if line.startswith("ExecStart="))
    assert "mount -" not in program_unit(5000, volume=False)


def test_it_starts_at_every_boot_and_again_when_it_ends() -> None:
    unit = program_unit(443, volume=False)
    assert {"WantedBy=multi-user.target", "Restart=always", "User=docker-registry"} <= set(unit.splitlines())
    assert "CAP_NET_BIND_SERVICE" in unit
    assert "CAP_NET_BIND_SERVICE" not in program_unit(5000, volume=False)


def test_what_was_asked_for_is_in_the_configuration() -> None:
    plain, secure = (json.loads(configuration(5000, tls=one, login=one)) for one in (False, True))
    assert plain["http"]["addr"] == ":5000"
    assert "tls" not in plain["http"]
    assert "auth" not in plain
    assert secure["http"]["tls"]["minimumtls"] == "tls1.2"
    assert "htpasswd" in secure["auth"]
