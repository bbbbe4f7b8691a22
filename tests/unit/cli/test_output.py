from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from slipway.cli.errors import CliError, Refused
from slipway.cli.output import Format, Output, as_json, as_yaml, clean, facts, table
from slipway.model.errors import PackageError

EVIL = "a\x1b[31mred\x1b]0;title\x07\x9b2J\nb\u202ec"


def drawn(view: object) -> str:
    console = Console(width=200, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


@given(st.text())
def test_cleaned_text_is_one_printable_line(raw: str) -> None:
    assert clean(raw).isprintable()


@given(st.text())
def test_json_is_the_same_document_without_a_character_that_a_terminal_obeys(raw: str) -> None:
    printed = as_json({"name": raw}, indent=None)

    assert json.loads(printed) == {"name": raw}
    assert not any("\x7f" <= char <= "\x9f" or char < " " for char in printed)


def test_yaml_escapes_what_a_terminal_obeys() -> None:
    assert "\x1b" not in as_yaml({"name": EVIL})
    assert "\x9b" not in as_yaml({"name": EVIL})


def test_a_table_shows_data_as_text_never_as_markup_or_escapes() -> None:
    shown = drawn(table({"ID": "", "NAME": ""}, [("[bold]1[/bold]", EVIL), (":smile:", None)]))

    assert "[bold]1[/bold]" in shown
    assert ":smile:" in shown
    assert "\x1b" not in shown
    assert "\x9b" not in shown


def test_an_empty_table_says_so() -> None:
    assert drawn(table({"ID": ""}, [])).strip() == "None."


def test_facts_leave_out_what_says_nothing_but_keep_zero() -> None:
    shown = drawn(facts([("A", None), ("B", ""), ("C", {}), ("D", 0), ("E", {"x": 1})]))

    assert shown.split() == ["D", "0", "E", '{"x":', "1}"]


def test_an_error_is_one_line_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    Output(Format.TABLE).error(CliError("first\nsecond"))

    assert capsys.readouterr().err == "Error: first second\n"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Refused({"status": 409, "title": "Conflict", "detail": "No."}), {"status": 409, "title": "Conflict"}),
        (CliError("No."), {"title": "CliError"}),
        (PackageError("No."), {"status": 422, "title": "Package refused"}),
    ],
)
def test_an_error_is_a_problem_for_programs(
    error: CliError, expected: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    Output(Format.JSON).error(error)

    assert json.loads(capsys.readouterr().err) == {**expected, "detail": "No."}


def test_what_is_piped_is_not_cut_to_a_terminal_width(capsys: pytest.CaptureFixture[str]) -> None:
    Output(Format.TABLE).show(None, lambda: table({"ID": "", "NAME": ""}, [("1", "x" * 500)]))

    assert "x" * 500 in capsys.readouterr().out
