from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import select

from slipway.model.access import Role
from slipway.model.errors import Conflict, NotFound
from slipway.store import tables, tokens
from slipway.store.database import Database
from slipway.store.tokens import TokenRecord

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)


def record(name: str, project: str | None = None, role: str = "operator") -> TokenRecord:
    return TokenRecord(id=str(uuid4()), name=name, role=role, project=project, created_at=NOW)


def test_a_token_is_found_by_itself_only(database: Database) -> None:
    made = record("ci", "blue")
    database.write_now(tokens.insert, made, "the-token")
    assert database.read_now(tokens.find, "the-token") == made
    assert tokens.role_of(made) is Role.OPERATOR
    for other in ("The-token", "the-token ", "", made.id, tokens.digest("the-token")):
        assert database.read_now(tokens.find, other) is None


def test_the_database_holds_no_token(database: Database) -> None:
    database.write_now(tokens.insert, record("ci"), "the-very-token")
    rows = database.read_now(lambda connection: connection.execute(select(tables.tokens)).all())
    assert len(rows) == 1
    assert "the-very-token" not in str(rows)
    assert rows[0].digest == tokens.digest("the-very-token")


def test_a_list_has_those_of_a_project_or_all(database: Database) -> None:
    blue, red, everywhere = record("a", "blue"), record("a", "red"), record("b")
    for number, one in enumerate((blue, red, everywhere)):
        database.write_now(tokens.insert, one, f"token-{number}")
    assert database.read_now(tokens.list_all, "blue") == [blue]
    assert {one.id for one in database.read_now(tokens.list_all, None)} == {blue.id, red.id, everywhere.id}


def test_a_name_is_there_once_in_a_project(database: Database) -> None:
    for number, project in enumerate(("blue", "red", None)):
        database.write_now(tokens.insert, record("ci", project), f"token-{number}")
    for project in ("blue", "red", None):
        with pytest.raises(Conflict, match="there is a token 'ci' already"):
            database.write_now(tokens.insert, record("ci", project), "another")


def test_who_has_one_project_removes_only_its_tokens(database: Database) -> None:
    blue, red = record("blue's", "blue"), record("red's", "red")
    database.write_now(tokens.insert, blue, "token-1")
    database.write_now(tokens.insert, red, "token-2")
    for named in (red.id, red.name):
        with pytest.raises(NotFound, match="There is no token"):
            database.write_now(tokens.delete, named, "blue")
    assert database.write_now(tokens.delete, "blue's", "blue") == blue
    assert database.read_now(tokens.find, "token-1") is None
    assert database.read_now(tokens.find, "token-2") == red


def test_a_name_that_several_projects_have_is_not_guessed(database: Database) -> None:
    blue, red = record("ci", "blue"), record("ci", "red")
    named_like_an_id = record(blue.id, "red")
    for number, one in enumerate((blue, red, named_like_an_id)):
        database.write_now(tokens.insert, one, f"token-{number}")
    with pytest.raises(Conflict, match=r"several projects.*id"):
        database.write_now(tokens.delete, "ci", None)
    assert database.write_now(tokens.delete, blue.id, None) == blue
    assert database.write_now(tokens.delete, "ci", None) == red
