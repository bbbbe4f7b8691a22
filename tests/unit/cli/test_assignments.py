from __future__ import annotations

import io
from pathlib import Path

import pytest
import typer

from slipway.cli.assignments import assignments, read_document, read_mapping, secrets, string_assignments


def test_values_are_json_where_they_are_json() -> None:
    given = ["a=3", "b=true", "c=[1,2]", "d=null", 'e="3"', "f=plain", "g=x=y", "h="]

    assert assignments(given, "--param") == {
        "a": 3,
        "b": True,
        "c": [1, 2],
        "d": None,
        "e": "3",
        "f": "plain",
        "g": "x=y",
        "h": "",
    }


def test_texts_stay_text() -> None:
    assert string_assignments(["project=007"], "--interface") == {"project": "007"}


@pytest.mark.parametrize("wrong", ["novalue", "=x", ""])
def test_a_value_without_a_name_is_refused(wrong: str) -> None:
    with pytest.raises(typer.BadParameter, match="key=value"):
        assignments([wrong], "--param")


def test_a_secret_comes_from_a_file_without_its_line_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n")

    assert secrets([f"password=@{file}", "user=@@me"], "--access") == ({"password": "s3cret", "user": "@me"}, [])


def test_a_secret_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\nmore\n"))

    assert secrets(["password=-"], "--access") == ({"password": "s3cret"}, [])


def test_a_secret_in_clear_is_named() -> None:
    assert secrets(["password=abc", "user=me"], "--access")[1] == ["password"]


def test_a_document_is_yaml_or_json_and_its_dates_stay_text(tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    file.write_text("day: 2026-01-31\nn: 3\nlist: [a]\n")

    assert read_mapping(file, "--params") == {"day": "2026-01-31", "n": 3, "list": ["a"]}
    file.write_text('{"a": {"b": 1}}')
    assert read_document(file, "--params") == {"a": {"b": 1}}


@pytest.mark.parametrize("content", ["[1]", "text", "", "!!python/object/apply:os.getcwd []", "{", "a: 'b"])
def test_a_document_that_is_no_mapping_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    file.write_text(content)

    with pytest.raises(typer.BadParameter, match=str(file)):
        read_mapping(file, "--params")


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="can't be read"):
        read_document(tmp_path / "none", "--params")
