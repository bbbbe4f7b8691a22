"""Guards with name servers and certificates of their own."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

from slipway.outgoing.guard import Guard, Resolver
from slipway.settings import load_settings
from tests.unit.outgoing.certificates import Pair
from tests.unit.outgoing.loopback_server import Answer, Asked

PUBLIC = "203.0.113.7"


def answering(**names: Sequence[str]) -> Resolver:
    """A name server that knows these; dots are written as underscores."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        try:
            return names[host.replace(".", "_")]
        except KeyError:
            raise OSError("Name or service not known") from None

    return resolve


def settings_with(**values: object) -> Guard:
    return Guard.from_settings(load_settings(overrides=values, environment={}))


def ok(asked: Asked) -> Answer:
    return Answer(body=b"here")


def tls_of(pair: Pair, directory: Path, clients: str | None = None) -> ssl.SSLContext:
    file = directory / "server.pem"
    file.write_text(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if clients:
        context.load_verify_locations(cadata=clients)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
