from __future__ import annotations

import asyncio
import hmac
import threading
from typing import Any

import pytest
from sqlalchemy import Connection, event, select
from sqlalchemy.engine import URL

from slipway.access.authenticator import CACHE_SECONDS, FIRST, LONGEST, Authenticator
from slipway.model.access import Caller, Role
from slipway.model.errors import Conflict, Forbidden, NotFound, Unavailable
from slipway.store import tables
from slipway.store.database import Database

FIRST_TOKEN = "made-at-the-first-start"
ADMIN_OF_BLUE = Caller("ada", Role.ADMIN, "blue")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Elsewhere:
    """Somebody else who knows tokens."""

    def __init__(self, known: dict[str, Caller | Exception]) -> None:
        self.known = known
        self.asked: list[str] = []
        self.closed = False

    async def authenticate(self, token: str) -> Caller | None:
        self.asked.append(token)
        found = self.known.get(token)
        if isinstance(found, Exception):
            raise found
        return found

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticator(database: Database, clock: Clock) -> Authenticator:
    return Authenticator(FIRST_TOKEN, database, clock=clock)


async def test_the_first_token_may_do_everything_everywhere(authenticator: Authenticator) -> None:
    assert await authenticator.authenticate(FIRST_TOKEN.encode()) == FIRST
    assert (FIRST.role, FIRST.project) == (Role.ADMIN, None)


async def test_whoever_is_not_known_is_nobody(authenticator: Authenticator) -> None:
    made = (await authenticator.add(FIRST, "ci", Role.READER, "blue"))[1]
    wrong = (
        b"",
        FIRST_TOKEN[:-1].encode(),
        FIRST_TOKEN.encode() + b"x",
        made[:-1].encode(),
        b"\xff\xfe",
        b"x" * 100_000,
    )
    for token in wrong:
        assert await authenticator.authenticate(token) is None, token[:40]


async def test_a_token_has_its_role_and_its_project(authenticator: Authenticator, database: Database) -> None:
    record, token = await authenticator.add(FIRST, "ci", Role.OPERATOR, "blue")
    assert await authenticator.authenticate(token.encode()) == Caller("ci", Role.OPERATOR, "blue")
    rows = await database.read(lambda connection: connection.execute(select(tables.tokens)).all())
    assert [row.id for row in rows] == [record.id]
    assert token not in str(rows)
    assert len(token) >= 43  # 32 random bytes
    assert token not in repr(record)


async def test_what_is_removed_is_refused_at_once_here_and_soon_elsewhere(
    authenticator: Authenticator, database: Database, clock: Clock
) -> None:
    another_process = Authenticator(FIRST_TOKEN, database, clock=clock)
    token = (await authenticator.add(FIRST, "ci", Role.OPERATOR, "blue"))[1].encode()
    for here in (authenticator, another_process):
        assert await here.authenticate(token) is not None
    await authenticator.remove(FIRST, "ci")
    assert await authenticator.authenticate(token) is None
    clock.now += CACHE_SECONDS - 0.1
    assert await another_process.authenticate(token) is not None
    clock.now += 0.2
    assert await another_process.authenticate(token) is None
    assert CACHE_SECONDS <= 5


async def test_a_token_removed_while_it_is_looked_up_is_not_kept(postgresql_url: URL) -> None:
    """Found just before it went: that one request may pass, none after it. SQLite answers too soon for this."""
    database = Database(postgresql_url)
    authenticator = Authenticator(FIRST_TOKEN, database)
    token = (await authenticator.add(FIRST, "ci", Role.OPERATOR, "blue"))[1].encode()
    found, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def stop_after_the_look(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "tokens.digest =" in statement:
            loop.call_soon_threadsafe(found.set)
            go_on.wait(10)

    event.listen(database.engine, "after_cursor_execute", stop_after_the_look)
    looking = asyncio.create_task(authenticator.authenticate(token))
    await found.wait()
    await authenticator.remove(FIRST, "ci")
    go_on.set()
    await looking
    event.remove(database.engine, "after_cursor_execute", stop_after_the_look)
    assert await authenticator.authenticate(token) is None
    database.close()


async def test_a_known_token_costs_no_query_for_some_seconds(authenticator: Authenticator, database: Database) -> None:
    token = (await authenticator.add(FIRST, "ci", Role.OPERATOR, "blue"))[1].encode()
    await authenticator.authenticate(token)
    asked: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda c, cursor, statement, *_: asked.append(statement))
    for _ in range(10):
        assert await authenticator.authenticate(token) is not None
    assert asked == []


async def test_the_first_token_is_not_among_those_that_can_be_removed(authenticator: Authenticator) -> None:
    assert await authenticator.all(FIRST) == []
    for name in (FIRST.name, FIRST_TOKEN):
        with pytest.raises(NotFound):
            await authenticator.remove(FIRST, name)
    assert await authenticator.authenticate(FIRST_TOKEN.encode()) == FIRST


@pytest.mark.parametrize("project", ["red", None])
async def test_an_admin_of_a_project_gives_tokens_for_that_one_only(
    authenticator: Authenticator, project: str | None
) -> None:
    with pytest.raises(Forbidden, match=r"project.*'blue' only"):
        await authenticator.add(ADMIN_OF_BLUE, "friend", Role.READER, project)
    record, _ = await authenticator.add(ADMIN_OF_BLUE, "friend", Role.ADMIN, "blue")
    assert await authenticator.all(ADMIN_OF_BLUE) == [record]


async def test_an_admin_of_a_project_sees_and_removes_its_tokens_only(authenticator: Authenticator) -> None:
    red, token = await authenticator.add(FIRST, "red's", Role.READER, "red")
    everywhere, _ = await authenticator.add(FIRST, "everywhere", Role.ADMIN, None)
    assert await authenticator.all(ADMIN_OF_BLUE) == []
    for one in (red, everywhere):
        for named in (one.id, one.name):
            with pytest.raises(NotFound):
                await authenticator.remove(ADMIN_OF_BLUE, named)
    assert await authenticator.authenticate(token.encode()) is not None


async def test_names_are_taken_once(authenticator: Authenticator) -> None:
    await authenticator.add(FIRST, "ci", Role.READER, "blue")
    await authenticator.add(FIRST, "ci", Role.READER, "red")
    await authenticator.add(FIRST, "ci", Role.READER, None)
    with pytest.raises(Conflict, match="name"):
        await authenticator.add(ADMIN_OF_BLUE, "ci", Role.READER, "blue")


async def test_others_are_asked_in_turn_and_only_about_what_is_not_ours(database: Database) -> None:
    ada, bob = Caller("ada", Role.READER, "blue"), Caller("bob", Role.ADMIN, "red")
    one, two = Elsewhere({"a": ada}), Elsewhere({"a": bob, "b": bob, "c": Unavailable("Keystone does not answer.")})
    authenticator = Authenticator(FIRST_TOKEN, database, (one, two))
    token = (await authenticator.add(FIRST, "ci", Role.READER, None))[1]
    assert await authenticator.authenticate(b"a") == ada
    assert await authenticator.authenticate(b"b") == bob
    for ours in (token, FIRST_TOKEN):
        assert await authenticator.authenticate(ours.encode()) is not None
    assert await authenticator.authenticate(b"x" * (LONGEST + 1)) is None
    with pytest.raises(Unavailable):
        await authenticator.authenticate(b"c")
    assert one.asked == ["a", "b", "c"]
    assert two.asked == ["b", "c"]
    await authenticator.close()
    assert one.closed
    assert two.closed


async def test_a_project_that_the_database_cant_hold_is_none(database: Database) -> None:
    elsewhere = Elsewhere({"a": Caller("ada", Role.ADMIN, "p" * 64), "b": Caller("bob", Role.ADMIN, "p" * 65)})
    authenticator = Authenticator(FIRST_TOKEN, database, (elsewhere,))
    assert await authenticator.authenticate(b"a") is not None
    assert await authenticator.authenticate(b"b") is None


async def test_the_first_token_is_compared_without_telling_by_time(
    authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes as long for a near miss as for any other; others are looked up by their digest."""
    compared: list[bytes] = []
    real = hmac.compare_digest

    def noted(given: bytes, first: bytes) -> bool:
        compared.append(given)
        return real(given, first)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    assert await authenticator.authenticate(FIRST_TOKEN.encode()) == FIRST
    assert await authenticator.authenticate(FIRST_TOKEN[:-1].encode() + b"x") is None
    assert len(compared) == 2


async def test_only_digests_reach_the_database(authenticator: Authenticator, database: Database) -> None:
    sent: list[Any] = []
    event.listen(database.engine, "before_cursor_execute", lambda c, cursor, s, parameters, *_: sent.append(parameters))
    token = (await authenticator.add(FIRST, "ci", Role.READER, None))[1]
    await authenticator.authenticate(token.encode())
    await authenticator.authenticate(b"a-guess-of-somebody")
    assert sent
    assert token not in str(sent)
    assert "a-guess-of-somebody" not in str(sent)


def tokens_of(connection: Connection) -> int:
    return len(connection.execute(select(tables.tokens)).all())


async def test_a_refused_name_leaves_nothing(authenticator: Authenticator, database: Database) -> None:
    await authenticator.add(FIRST, "ci", Role.READER, None)
    with pytest.raises(Conflict):
        await authenticator.add(FIRST, "ci", Role.ADMIN, None)
    assert await database.read(tokens_of) == 1
