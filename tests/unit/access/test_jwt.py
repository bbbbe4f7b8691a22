from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from slipway.access import issuer_keys
from slipway.access.identity_provider import read_role_names
from slipway.access.jwt import Claims, Issuer
from slipway.model.access import DEFAULT_PROJECT, Caller, Role
from slipway.model.errors import Unavailable
from slipway.outgoing.guard import Guard
from slipway.settings import Settings
from tests.unit.outgoing.loopback_server import Answer, Asked, LoopbackServer, document, serving

ROLES = read_role_names(Settings().oidc_roles, "oidc_roles")
AUDIENCE = "slipway"
NOW = 1_800_000_000.0

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SMALL = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - what is refused
EC = ec.generate_private_key(ec.SECP256R1())
CURVE = ec.generate_private_key(ec.SECP384R1())
PUBLIC_PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def published(key_id: str, key: Key, **more: str) -> dict[str, Any]:
    algorithm = "RSA" if isinstance(key, rsa.RSAPrivateKey) else "EC"
    kind = jwt.algorithms.RSAAlgorithm if algorithm == "RSA" else jwt.algorithms.ECAlgorithm
    public: Any = key.public_key()
    return {**json.loads(kind.to_jwk(public)), "kid": key_id, "use": "sig", **more}


@dataclass
class Provider:
    """An OpenID provider: discovery and keys, on a real socket."""

    now: float = NOW
    keys: list[Any] = field(default_factory=list)
    calls_itself: str | None = None
    jwks_uri: str | None = None
    status: int = 200
    server: LoopbackServer = field(default_factory=LoopbackServer)

    @property
    def issuer(self) -> str:
        return self.server.url("/realm")

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/realm/.well-known/openid-configuration":
            where = self.jwks_uri or self.server.url("/keys")
            return document({"issuer": self.calls_itself or self.issuer, "jwks_uri": where}, self.status)
        return document({"keys": self.keys}, self.status) if asked.path == "/keys" else Answer(404)

    def token(
        self, key: Key = RSA, algorithm: str = "RS256", key_id: str | None = "rsa", without: str = "", **claims: Any
    ) -> str:
        body = {
            "iss": self.issuer, "aud": AUDIENCE, "sub": "7f", "preferred_username": "ada", "roles": ["operator"],
            "project": "p1", "iat": self.now, "exp": self.now + 300, **claims,
        }  # fmt: skip
        body.pop(without, None)
        return jwt.encode(body, key, algorithm, headers={} if key_id is None else {"kid": key_id})

    @property
    def fetches(self) -> int:
        return sum(asked.path == "/keys" for asked in self.server.asked)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    provider = Provider(keys=[published("rsa", RSA), published("ec", EC), published("small", SMALL)])
    async with serving(provider.answer) as server:
        provider.server = server
        yield provider


@asynccontextmanager
async def asking(provider: Provider, **claims: Any) -> AsyncIterator[Issuer]:
    shape = Claims(ROLES, **claims)
    issuer = Issuer(provider.issuer, AUDIENCE, Guard(loopback=True), shape, clock=lambda: provider.now)
    yield issuer
    await issuer.close()


@pytest.fixture
async def issuer(provider: Provider) -> AsyncIterator[Issuer]:
    async with asking(provider) as issuer:
        yield issuer


@pytest.mark.parametrize(("key", "algorithm", "key_id"), [
    (RSA, "RS256", "rsa"), (RSA, "PS256", "rsa"), (EC, "ES256", "ec"), (EC, "ES256", None),
])  # fmt: skip
async def test_a_token_of_the_issuer_says_who_comes(
    provider: Provider, issuer: Issuer, key: Key, algorithm: str, key_id: str | None
) -> None:
    token = provider.token(key, algorithm, key_id)
    assert await issuer.authenticate(token) == Caller("ada", Role.OPERATOR, "p1")


@pytest.mark.parametrize(("claims", "expected"), [
    ({"roles": ["reader", "admin"]}, Role.ADMIN),
    ({"roles": "reader"}, Role.READER),
    ({"roles": "openid operator"}, Role.OPERATOR),
    ({"roles": []}, None),
    ({"roles": ["boss"]}, None),
    ({"roles": {"admin": True}}, None),
    ({"roles": [["admin"]]}, None),
    ({"roles": True}, None),
    ({"project": ""}, None),
    ({"project": ["p1"]}, None),
    ({"project": "a\nb"}, None),
    ({"project": None}, None),
    ({"preferred_username": "a\nb"}, None),
])  # fmt: skip
async def test_roles_and_project_are_read_strictly(
    provider: Provider, issuer: Issuer, claims: dict[str, Any], expected: Role | None
) -> None:
    caller = await issuer.authenticate(provider.token(**claims))
    assert (caller.role if caller else None) == expected


async def test_claims_have_the_names_that_the_settings_give(provider: Provider) -> None:
    claims: dict[str, Any] = {"realm_access": {"roles": ["admin"]}, "https://example.net/tenant": "t1"}
    token = provider.token(**claims)
    async with asking(provider, role="realm_access.roles", project="https://example.net/tenant") as issuer:
        assert await issuer.authenticate(token) == Caller("ada", Role.ADMIN, "t1")
    async with asking(provider, project=None) as issuer:
        assert await issuer.authenticate(provider.token(without="project")) == Caller(
            "ada", Role.OPERATOR, DEFAULT_PROJECT
        )
    async with asking(provider, role="roles.more") as issuer:
        assert await issuer.authenticate(token) is None


# Hostile tokens


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def by_hand(header: object, body: object, secret: bytes | None = None) -> str:
    signed = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(body).encode())}"
    signature = b"" if secret is None else hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{encoded(signature)}"


def claims_of(provider: Provider) -> dict[str, Any]:
    body: dict[str, Any] = jwt.decode(provider.token(), options={"verify_signature": False})
    return body


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 7, [], {}, "RS512", "EdDSA"])
async def test_an_unsigned_token_lets_nobody_in(provider: Provider, issuer: Issuer, algorithm: object) -> None:
    assert await issuer.authenticate(by_hand({"alg": algorithm, "kid": "rsa"}, claims_of(provider))) is None
    assert not provider.server.asked  # not even asked about


@pytest.mark.parametrize("secret", [PUBLIC_PEM, PUBLIC_PEM.strip(), b"", b"secret"])
async def test_a_public_key_is_no_shared_secret(provider: Provider, issuer: Issuer, secret: bytes) -> None:
    for key_id in ("rsa", "ec", None):
        assert await issuer.authenticate(by_hand({"alg": "HS256", "kid": key_id}, claims_of(provider), secret)) is None


@pytest.mark.parametrize("claims", [
    {"iss": "https://elsewhere.example"}, {"iss": None}, {"iss": ["x"]},
    {"aud": "another"}, {"aud": []}, {"aud": ["another"]}, {"aud": None}, {"aud": "slipway "}, {"aud": {"slipway": 1}},
    {"exp": NOW - 31}, {"exp": "tomorrow"}, {"exp": None}, {"exp": True}, {"exp": float("inf")}, {"exp": float("nan")},
    {"exp": -1}, {"exp": 10**400},
    {"nbf": NOW + 31}, {"nbf": "now"}, {"nbf": float("nan")},
    {"sub": None}, {"sub": 7}, {"sub": ["7f"]},
], ids=str)  # fmt: skip
async def test_a_token_for_others_or_for_another_time_lets_nobody_in(
    provider: Provider, issuer: Issuer, claims: dict[str, Any]
) -> None:
    body = {**claims_of(provider), **claims}
    token = jwt.PyJWS().encode(json.dumps(body).encode(), RSA, "RS256", headers={"kid": "rsa"})
    assert await issuer.authenticate(token) is None


@pytest.mark.parametrize("name", ["iss", "aud", "exp", "sub", "roles", "project"])
async def test_a_token_that_leaves_something_out_lets_nobody_in(provider: Provider, issuer: Issuer, name: str) -> None:
    assert await issuer.authenticate(provider.token(without=name)) is None


async def test_clocks_may_differ_a_little(provider: Provider, issuer: Issuer) -> None:
    assert await issuer.authenticate(provider.token(exp=NOW - 20, nbf=NOW + 20))
    assert await issuer.authenticate(provider.token(aud=["another", AUDIENCE]))


@pytest.mark.parametrize(("key", "algorithm", "key_id"), [
    (OTHER, "RS256", "rsa"),  # signed by somebody else
    (OTHER, "RS256", None),
    (RSA, "RS256", "ec"),  # by the key of another kind
    (EC, "ES256", "rsa"),
    (SMALL, "RS256", "small"),  # too small to be believed
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
async def test_a_signature_by_another_key_lets_nobody_in(
    provider: Provider, issuer: Issuer, key: Key, algorithm: str, key_id: str | None
) -> None:
    assert await issuer.authenticate(provider.token(key, algorithm, key_id)) is None


@pytest.mark.parametrize("more", [
    {"use": "enc"}, {"alg": "PS256"}, {"alg": "HS256"}, {"kty": "oct"}, {"n": "!"}, {"n": None}, {"d": "AQAB"},
])  # fmt: skip
async def test_a_published_key_is_used_for_what_it_is_for(
    provider: Provider, issuer: Issuer, more: dict[str, Any]
) -> None:
    provider.keys = [{**published("rsa", RSA), **more}, "no key", None, {}]
    assert await issuer.authenticate(provider.token()) is None


@pytest.mark.parametrize("more", [
    {"typ": "logout+jwt"}, {"typ": 7}, {"crit": ["exp"], "exp": 1}, {"crit": ["b64"], "b64": False}, {"kid": 7},
    {"kid": ["rsa"]},
])  # fmt: skip
async def test_strange_headers_let_nobody_in(provider: Provider, issuer: Issuer, more: dict[str, Any]) -> None:
    header = {"alg": "RS256", "kid": "rsa", **more}
    signed = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims_of(provider)).encode())}"
    signature = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).sign(signed.encode(), RSA)
    assert await issuer.authenticate(f"{signed}.{encoded(signature)}") is None


async def test_keys_that_a_token_brings_along_are_not_looked_at(provider: Provider, issuer: Issuer) -> None:
    own = published("mine", OTHER)
    for brought in ({"jwk": own}, {"jku": provider.server.url("/mine")}, {"x5u": provider.server.url("/mine")}):
        token = jwt.encode(claims_of(provider), OTHER, "RS256", headers={"kid": "mine", **brought})
        assert await issuer.authenticate(token) is None
    assert not any(asked.path == "/mine" for asked in provider.server.asked)


@pytest.mark.parametrize("token", [
    "", ".", "..", "a.b.c", "a.b", "a.b.c.d", "é.é.é", "x" * 20_000, encoded(b"[" * 9000) + ".e30.", "bnVsbA.bnVsbA.",
    encoded(b'{"alg":"RS256"') + ".e30.x", encoded(b"[]") + ".e30.x",
])  # fmt: skip
async def test_what_is_no_token_lets_nobody_in(token: str, provider: Provider, issuer: Issuer) -> None:
    assert await issuer.authenticate(token) is None
    assert not provider.server.asked


async def test_a_changed_token_lets_nobody_in(provider: Provider, issuer: Issuer) -> None:
    header, body, signature = provider.token().split(".")
    raised = encoded(json.dumps({**claims_of(provider), "roles": ["admin"]}).encode())
    assert await issuer.authenticate(f"{header}.{body}.{signature}")
    assert await issuer.authenticate(f"{header}.{raised}.{signature}") is None
    assert await issuer.authenticate(f"{header}.{body}.") is None


# Keys


async def test_keys_are_fetched_once(provider: Provider, issuer: Issuer) -> None:
    for _ in range(5):
        assert await issuer.authenticate(provider.token())
    assert provider.fetches == 1


async def test_a_flood_of_unknown_keys_asks_the_issuer_no_more_often(provider: Provider, issuer: Issuer) -> None:
    for number in range(200):
        assert await issuer.authenticate(provider.token(OTHER, key_id=f"unknown-{number}")) is None
    assert provider.fetches == 1
    provider.now += issuer_keys.BETWEEN + 1
    for number in range(200):
        assert await issuer.authenticate(provider.token(OTHER, key_id=f"unknown-{number}")) is None
    assert provider.fetches == 2
    assert await issuer.authenticate(provider.token())


async def test_a_new_key_is_found_and_a_withdrawn_one_no_longer_believed(provider: Provider, issuer: Issuer) -> None:
    assert await issuer.authenticate(provider.token())
    provider.keys = [published("next", OTHER)]
    provider.now += issuer_keys.BETWEEN + 1
    assert await issuer.authenticate(provider.token(OTHER, key_id="next"))
    assert await issuer.authenticate(provider.token()) is None

    provider.keys = []
    provider.now += issuer_keys.FRESH + 1
    assert await issuer.authenticate(provider.token(OTHER, key_id="next")) is None


async def test_an_issuer_that_is_away_is_no_wrong_token(provider: Provider, issuer: Issuer) -> None:
    provider.status = 503
    for _ in range(3):
        with pytest.raises(Unavailable, match="cannot be checked now"):
            await issuer.authenticate(provider.token())
    assert len(provider.server.asked) == 1
    provider.status = 200
    provider.now += issuer_keys.BETWEEN + 1
    assert await issuer.authenticate(provider.token())


async def test_known_keys_count_for_a_day_while_the_issuer_is_away(provider: Provider, issuer: Issuer) -> None:
    assert await issuer.authenticate(provider.token())
    provider.status = 503
    provider.now += issuer_keys.FRESH + 1
    assert await issuer.authenticate(provider.token())
    provider.now += issuer_keys.OLDEST
    with pytest.raises(Unavailable):
        await issuer.authenticate(provider.token())


@pytest.mark.parametrize("changed", [
    {"calls_itself": "https://elsewhere.example"}, {"jwks_uri": "http://169.254.169.254/keys"}, {"jwks_uri": "file:///x"},
    {"keys": "none"},
])  # fmt: skip
async def test_a_discovery_that_can_not_be_believed_is_told_in_the_log(
    provider: Provider, issuer: Issuer, changed: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in changed.items():
        setattr(provider, name, value)
    with pytest.raises(Unavailable):
        await issuer.authenticate(provider.token())
    assert "cannot be fetched" in caplog.text


async def test_curves_other_than_the_one_that_is_known_are_not_used(provider: Provider, issuer: Issuer) -> None:
    provider.keys = [published("curve", CURVE)]
    assert await issuer.authenticate(provider.token(EC, "ES256", "curve")) is None
