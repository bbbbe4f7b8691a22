from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.model.errors import StepError
from slipway.remote.quoting import LONGEST, command_line, quoted, wrapped
from tests.examples import examples

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.text("'\"\\$`!*~=-; \n")


@settings(max_examples=examples(100))
@given(words=st.lists(TEXT, min_size=1, max_size=50))
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_takes_the_line_apart_again_as_it_was(shell: str, words: list[str]) -> None:
    line = command_line(["printf", "%s\\0", *words])
    printed = subprocess.run([shell, "-c", line], check=True, capture_output=True).stdout
    assert printed == b"".join(word.encode() + b"\0" for word in words)


@given(before=st.text(max_size=5), bad=st.sampled_from(["\0", "\ud800", "\udfff"]), after=st.text(max_size=5))
def test_what_no_argument_can_hold_is_refused(before: str, bad: str, after: str) -> None:
    with pytest.raises(StepError, match=r"NUL character|lone surrogate") as caught:
        command_line(["echo", before + bad + after])
    caught.value.detail.encode()  # and the refusal can be shown


@pytest.mark.parametrize("argv", [[], [""], ["-c", "x"], ["A=b", "x"]])
def test_what_is_no_program_is_refused(argv: list[str]) -> None:
    with pytest.raises(StepError, match="can't be the name of a program"):
        command_line(argv)


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "A;x", "é", "A\n"])
def test_what_is_no_variable_is_refused(name: str) -> None:
    with pytest.raises(StepError, match="name of an environment variable"):
        command_line(["true"], env={name: "x"})


def test_a_line_longer_than_a_machine_takes_is_refused() -> None:
    with pytest.raises(StepError, match="by stdin or in a file"):
        command_line(["echo", "x" * LONGEST])


def test_rights_variables_and_limit_stand_before_the_program() -> None:
    assert wrapped(["a", "b c"], sudo=True, env={"X": "1 2"}, limit=5) == (
        ["sudo", "-n", "--", "env", "X=1 2", "timeout", "--kill-after=5", "6.000", "a", "b c"]
    )
    assert command_line(["a", "b c"]) == "exec 'a' 'b c'"


@given(TEXT)
def test_a_quoted_word_is_one_word_in_single_quotes(word: str) -> None:
    line = quoted(word)
    assert line[0] == line[-1] == "'"
    assert json.dumps(line.replace("'\\''", "'")[1:-1]) == json.dumps(word)
