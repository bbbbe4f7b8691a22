"""Which errors of a database are outages: only for those a caller is asked to repeat the request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError

from slipway.api.problems import problem_of


def statement_without_table(connection: Connection) -> None:
    connection.execute(text("SELECT * FROM nowhere"))


def expression_too_deep(connection: Connection) -> None:
    connection.execute(text("SELECT " + " OR ".join(["1 = 0"] * 2000)))


def database_gone(connection: Connection) -> None:
    with create_engine("sqlite:////nowhere/at/all").connect():
        pass


@pytest.mark.parametrize(
    ("go_wrong", "status"), [(statement_without_table, 500), (expression_too_deep, 500), (database_gone, 503)]
)
def test_only_an_outage_of_the_database_is_one(
    go_wrong: Callable[[Connection], None], status: int, tmp_path: Path
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/x.db")
    with engine.connect() as connection, pytest.raises(OperationalError) as wrong:
        go_wrong(connection)
    problem, headers = problem_of(wrong.value, "/x", "GET")
    assert problem.status == status
    assert ("Retry-After" in headers) == (status == 503)
