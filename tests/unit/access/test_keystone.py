from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

from slipway.access import keystone as module
from slipway.access.identity_provider import read_role_names
from slipway.access.keystone import Keystone, ServiceUser
from slipway.model.access import Caller, Role
from slipway.model.credential_cache import CredentialCache
from slipway.model.errors import SettingsError, Unavailable
from slipway.outgoing.guard import Guard
from slipway.settings import Settings
from tests.unit.access.small_keystone import PASSWORD, SmallKeystone, small_keystone
from tests.unit.outgoing.loopback_server import Answer, serving
from tests.unit.vim.keystone_standin import a_keystone

ROLES = read_role_names(Settings().keystone_roles, "keystone_roles")


@pytest.fixture
async def there() -> AsyncIterator[SmallKeystone]:
    async with small_keystone() as there:
        yield there


@pytest.fixture
async def keystone(there: SmallKeystone) -> AsyncIterator[Keystone]:
    keystone = asking(there)
    yield keystone
    await keystone.close()


def asking(there: SmallKeystone, url: str | None = None, **options: Any) -> Keystone:
    user = ServiceUser("slipway", PASSWORD, "service")
    where = url or there.server.url("/v3")
    return Keystone(where, Guard(loopback=True), user, ROLES, clock=lambda: there.now, **options)


@pytest.mark.parametrize(("theirs", "ours"), [
    (["admin"], Role.ADMIN), (["member"], Role.OPERATOR), (["reader"], Role.READER),
    (["reader", "member"], Role.OPERATOR), (["admin", "something"], Role.ADMIN),
])  # fmt: skip
async def test_roles_of_keystone_are_roles_here(
    there: SmallKeystone, keystone: Keystone, theirs: list[str], ours: Role
) -> None:
    there.issue("good", *theirs, project="p7", user="ada")

    assert await keystone.authenticate("good") == Caller("ada", ours, "p7")


async def test_nobody_is_let_in_without_a_role_a_project_or_time_left(there: SmallKeystone, keystone: Keystone) -> None:
    there.issue("no role")
    there.issue("strange-role", "Admin", "administrator")
    there.issue("unscoped", "admin", project=None)
    there.issue("ended", "admin", life=-1)
    there.tokens["shapeless"] = {"user": "ada", "roles": "admin", "project": 7, "expires_at": "soon"}

    for token in ("no-role", "strange-role", "unscoped", "ended", "shapeless", "unknown"):
        assert await keystone.authenticate(token) is None, token


@pytest.mark.parametrize("token", ["", "two words", "line\r\nX-Auth-Token: own-1", "umlaut-ü", "x" * 20_000])
async def test_what_can_not_be_a_token_is_not_asked_about(token: str, there: SmallKeystone, keystone: Keystone) -> None:
    assert await keystone.authenticate(token) is None
    assert not there.server.asked


@pytest.mark.parametrize("path", ["", "/", "/v3", "/v3/"])
async def test_the_url_may_end_as_people_write_it(path: str, there: SmallKeystone) -> None:
    there.issue("good", "member")
    keystone = asking(there, there.server.url(path))
    assert await keystone.authenticate("good")
    await keystone.close()


async def test_an_answer_is_believed_for_a_short_time(there: SmallKeystone, keystone: Keystone) -> None:
    there.issue("good", "member")
    for _ in range(5):
        assert await keystone.authenticate("good")
        assert await keystone.authenticate("bad") is None
    assert (there.logins, there.lookups) == (1, 2)

    del there.tokens["good"]  # revoked
    there.now += module.CACHE_SECONDS + 1
    assert await keystone.authenticate("good") is None


async def test_no_answer_is_believed_longer_than_the_token_lives(there: SmallKeystone, keystone: Keystone) -> None:
    there.issue("short", "member", life=10)
    assert await keystone.authenticate("short")
    there.now += 11
    assert await keystone.authenticate("short") is None
    assert there.lookups == 2


async def test_what_is_kept_is_no_token_and_bounded() -> None:
    kept: CredentialCache[Caller] = CredentialCache(3, lambda: 0.0)
    for number in range(10):
        kept.keep(f"token-{number}", Caller("ada", Role.READER, "p1"), until=1.0)
    assert len(kept) == 3
    assert kept.get("token-9")
    assert kept.get("token-0") is None
    assert b"token-" not in pickle.dumps(vars(kept)["_kept"])


async def test_the_own_token_is_renewed_before_it_ends_and_when_it_is_revoked(
    there: SmallKeystone, keystone: Keystone
) -> None:
    for name in ("one", "two", "three"):
        there.issue(name, "member", life=100_000)
    assert await keystone.authenticate("one")
    there.now += there.own_life - 60
    assert await keystone.authenticate("two")
    assert there.logins == 2
    there.own.clear()
    assert await keystone.authenticate("three")
    assert there.logins == 3


async def test_many_at_once_log_in_once(there: SmallKeystone, keystone: Keystone) -> None:
    names = [f"token-{number}" for number in range(50)]
    for name in names:
        there.issue(name, "member")
    assert all(await asyncio.gather(*(keystone.authenticate(name) for name in names)))
    assert there.logins == 1


@pytest.mark.parametrize("status", [500, 502, 503, 403, 429, 302])
async def test_a_keystone_that_does_not_work_is_no_wrong_token(
    status: int, there: SmallKeystone, keystone: Keystone
) -> None:
    there.issue("good", "member")
    there.status = status
    with pytest.raises(Unavailable, match="cannot be checked now") as caught:
        await keystone.authenticate("good")
    assert caught.value.problem.status == 503
    there.status = None
    assert await keystone.authenticate("good")  # nothing bad is remembered


async def test_a_keystone_that_is_away_is_no_wrong_token(
    there: SmallKeystone, caplog: pytest.LogCaptureFixture
) -> None:
    keystone = asking(there, "http://127.0.0.1:1")
    with pytest.raises(Unavailable) as caught:
        await keystone.authenticate("good")
    await keystone.close()
    assert "cannot be reached" in caplog.text
    assert "127.0.0.1" not in caught.value.detail  # for whoever is at the door


async def test_what_is_known_counts_while_keystone_is_away(there: SmallKeystone, keystone: Keystone) -> None:
    there.issue("good", "member")
    assert await keystone.authenticate("good")
    there.status = 503
    assert await keystone.authenticate("good")


async def test_a_wrong_password_of_our_own_is_told_in_the_log_and_not_tried_at_once_again(
    there: SmallKeystone, keystone: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    there.password = "changed"
    for _ in range(5):
        with pytest.raises(Unavailable) as caught:
            await keystone.authenticate("good")
    assert there.logins == 1
    assert "keystone_password_file" in caplog.text
    assert PASSWORD not in caplog.text + caught.value.detail

    there.password = PASSWORD
    there.issue("good", "member")
    there.now += module.RETRY_LOGIN_AFTER + 1
    assert await keystone.authenticate("good")


@pytest.mark.parametrize(
    "body", [b"<html>welcome</html>", b'{"token": {"user": ' + b"[" * 100_000], ids=["html", "deep"]
)
@pytest.mark.parametrize("status", [200, 201])
async def test_what_answers_but_is_no_keystone_is_no_wrong_token(
    status: int, body: bytes, there: SmallKeystone
) -> None:
    """With 201 it lets Slipway log in, and then does not say whose the token is."""
    async with serving(lambda asked: Answer(status, {"X-Subject-Token": "own-1"}, body)) as other:
        keystone = asking(there, other.url())
        with pytest.raises(Unavailable):
            await keystone.authenticate("good")
        await keystone.close()


async def test_a_keystone_that_keeps_its_own_rules_lets_a_service_validate_and_nobody_else() -> None:
    with a_keystone() as full:
        ours = Keystone(full.url, Guard(loopback=True), ServiceUser("slipway", "slipway-password", "service"), ROLES)
        demo, admin = full.issue("demo", "demo"), full.issue("admin", "demo")
        revoked = full.issue("demo", "demo")
        full.revoke(revoked)

        assert await ours.authenticate(demo) == Caller("demo", Role.OPERATOR, full.projects["demo"].id)
        assert await ours.authenticate(admin) == Caller("admin", Role.ADMIN, full.projects["demo"].id)
        for token in (full.issue("demo"), full.issue("slipway", "service"), revoked):
            assert await ours.authenticate(token) is None
        await ours.close()

        member = Keystone(full.url, Guard(loopback=True), ServiceUser("demo", "demo-password", "demo"), ROLES)
        with pytest.raises(Unavailable):
            await member.authenticate(admin)
        await member.close()


@pytest.mark.parametrize("entry", ["member", "member=", "=operator", "member=boss", ""])
def test_a_role_that_is_none_is_named(entry: str) -> None:
    with pytest.raises(SettingsError, match=r"keystone_roles: .* reader, operator, admin"):
        read_role_names([entry], "keystone_roles")
