"""Registries that the nodes pull images from: `private_registry_connection_info`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from slipway.cluster.reading import Parameters, Refusal
from slipway.cluster.values import Secret, hosts_line, package_path, secret, server, text, whole

HTTP, HTTPS = 0, 1


class RegistryParameters(Parameters, frozen=True, kw_only=True):
    """`connection_type` is 0 for HTTP and 1 for HTTPS, as number or text."""

    connection_type: Annotated[int, whole(HTTP, HTTPS)]
    server: Annotated[str, server]
    username: Annotated[str | None, text] = None
    password: Annotated[Secret | None, secret] = None
    certificate_path: Annotated[str | None, package_path] = None
    hosts_string: Annotated[str | None, hosts_line] = None

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if ("username" in given) != ("password" in given):
            missing = "password" if "username" in given else "username"
            yield missing, Refusal("it is missing beside the other half of the login", "give both or neither")
        if "certificate_path" in given and given["connection_type"] == HTTP:
            cure = "set connection_type to 1 or leave the certificate out"
            yield "certificate_path", Refusal("HTTP has no certificate", cure)
