"""Private keys that users gave. How long a passphrase takes is what the key itself says, so that is bounded."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import asyncssh
from asyncssh.asn1 import ASN1DecodeError, der_decode
from asyncssh.packet import PacketDecodeError, SSHPacket

MOST_ROUNDS = 1_000_000  # of PKCS#8; `openssl pkcs8` takes 2048 unless told
MOST_BCRYPT_ROUNDS = 1000  # of OpenSSH, some ten milliseconds each; `ssh-keygen` takes 24 unless told
LARGEST_PARAMETER = 64  # the length of the key that comes out of it
_OPENSSH = b"openssh-key-v1\0"
_BEGIN = r"-----BEGIN\s+(ENCRYPTED|OPENSSH)\s+PRIVATE KEY-----"
_BLOCK = re.compile(_BEGIN + r"([^-]*)-----END")


class TooManyRounds(ValueError):
    pass


def read_private_key(text: str, passphrase: str | None) -> asyncssh.SSHKey:
    """TooManyRounds before any of them; asyncssh's own errors otherwise. It takes seconds at worst: not for a loop."""
    blocks = _BLOCK.findall(text)
    if len(blocks) != len(re.findall(_BEGIN, text)):  # there is more in it than base64, which asyncssh might skip
        raise asyncssh.KeyImportError("Invalid private key")
    for kind, content in blocks:
        try:
            data = base64.b64decode("".join(content.split()), validate=True)
            _check_openssh(data) if kind == "OPENSSH" else _check_pkcs8(data)
        except (binascii.Error, ValueError, ASN1DecodeError, PacketDecodeError, RecursionError) as error:
            if isinstance(error, TooManyRounds):
                raise
            raise asyncssh.KeyImportError("Invalid private key") from None
    return asyncssh.import_private_key(text, passphrase)


def _check_pkcs8(data: bytes) -> None:
    document: Any = der_decode(data)
    *others, rounds = sorted(_integers(document[0] if isinstance(document, tuple) and document else ())) or [0]
    if rounds > MOST_ROUNDS or any(other > LARGEST_PARAMETER for other in others):
        raise TooManyRounds


def _integers(value: Any) -> list[int]:
    if isinstance(value, int):
        return [value]
    return [found for item in value for found in _integers(item)] if isinstance(value, tuple) else []


def _check_openssh(data: bytes) -> None:
    packet = SSHPacket(data.removeprefix(_OPENSSH))
    _cipher, kdf, options = packet.get_string(), packet.get_string(), packet.get_string()
    if kdf == b"bcrypt":
        inner = SSHPacket(options)
        inner.get_string()
        if inner.get_uint32() > MOST_BCRYPT_ROUNDS:
            raise TooManyRounds
