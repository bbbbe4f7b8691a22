"""Which certificates are believed: those of the system's authorities, of the CA given with a VIM, or all."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any

from slipway.model.errors import BadRequest
from slipway.outgoing.tls import RefusedPem, check_pem

CA = "ssl_ca_cert"
SKIP_ALL = "skipCertificateVerification"
SKIP_NAME = "skipCertificateHostnameCheck"

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")


def authorities(interface_info: Mapping[str, Any]) -> str | None:
    """The CA given with a VIM as clean PEM; None when there is none. BadRequest when it is not a certificate."""
    given = interface_info.get(CA)
    if given is None or given == "":
        return None
    if isinstance(given, str):
        try:
            check_pem(given)
        except RefusedPem as error:
            raise BadRequest(f"interfaceInfo.{CA}: it {error}.") from None
    blocks = _BLOCK.findall(given) if isinstance(given, str) else []
    found = "".join(_wrapped("".join(block.split())) for block in blocks)
    try:
        if not found:
            raise ValueError
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=found)
    except (ssl.SSLError, ValueError):
        raise BadRequest(f"interfaceInfo.{CA}: it holds no certificate that can be read; give the CA as PEM.") from None
    return found


def flag(interface_info: Mapping[str, Any], name: str) -> bool:
    """A truth value, also as text: command lines and the peer's files have no other."""
    given = interface_info.get(name, False)
    known = {"true": True, "false": False}
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.lower() in known:
        return known[given.lower()]
    raise BadRequest(f"interfaceInfo.{name}: it is true or false.")


def context(interface_info: Mapping[str, Any]) -> ssl.SSLContext:
    """For HTTPS to an address of this VIM. A CA that was given counts beside the system's."""
    made = ssl.create_default_context()
    if ca := authorities(interface_info):
        made.load_verify_locations(cadata=ca)
    if flag(interface_info, SKIP_ALL):
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    elif flag(interface_info, SKIP_NAME):
        made.check_hostname = False
    return made


def _wrapped(base64: str) -> str:
    """PEM whose lines were joined by blanks on the way is PEM again."""
    lines = "\n".join(base64[start : start + 64] for start in range(0, len(base64), 64))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"
