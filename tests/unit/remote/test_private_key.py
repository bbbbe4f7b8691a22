"""A key says itself how long its passphrase takes. Nobody waits for that."""

from __future__ import annotations

import base64
import time

import asyncssh
import pytest

from slipway.model.errors import StepError
from slipway.remote.connect import SshLimits, connect
from slipway.remote.known_hosts import InMemoryKnownHosts
from slipway.remote.private_key import read_private_key
from slipway.remote.target import SshTarget
from tests.unit.kube.pem import SLOW_KEY


def openssh_with_many_rounds() -> str:
    def text(value: bytes) -> bytes:
        return len(value).to_bytes(4) + value

    options = text(b"s" * 16) + (2000).to_bytes(4)
    raw = b"openssh-key-v1\0" + text(b"aes256-ctr") + text(b"bcrypt") + text(options) + (1).to_bytes(4)
    raw += text(b"public") + text(b"p" * 64)
    lines = ("-----BEGIN OPENSSH PRIVATE KEY-----", base64.b64encode(raw).decode(), "-----END OPENSSH PRIVATE KEY-----")
    return "\n".join(lines)


@pytest.mark.parametrize("key", [SLOW_KEY, SLOW_KEY.replace("BEGIN ", "BEGIN  "), openssh_with_many_rounds()])
async def test_a_key_of_too_many_rounds_is_refused_at_once(key: str) -> None:
    target = SshTarget("127.0.0.1", "root", port=1, private_key=key, passphrase="p")
    began = time.process_time()
    with pytest.raises(StepError, match=r"so many rounds.*Cure: give it without a passphrase"):
        await connect(target, InMemoryKnownHosts(), SshLimits())
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("form", "passphrase"),
    [("openssh", None), ("pkcs8-pem", None), ("pkcs8-pem", "p"), ("pkcs1-pem", None), ("pkcs1-pem", "p")],
)
def test_keys_of_every_form_are_read(form: str, passphrase: str | None) -> None:
    key = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    text = key.export_private_key(form, passphrase=passphrase).decode()
    assert read_private_key(text, passphrase) == key
