"""What holds for every command: it shows an example, explains its options, is documented, and starts fast."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperOption
from typer.testing import CliRunner

from slipway.cli.main import app
from slipway.cli.reference import commands, example, reference, with_reference

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
COMMANDS = dict(commands())
HEAVY = (
    "httpx", "requests", "openstack", "rich", "yaml", "litestar", "uvicorn", "sqlalchemy", "cryptography",
    "slipway.app", "slipway.store",
)  # fmt: skip


def each_command() -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("words", "command"), COMMANDS.items(), ids=COMMANDS)


@each_command()
def test_help_shows_an_example_of_this_very_command(words: str, command: TyperCommand) -> None:
    help_text = CliRunner().invoke(app, [*words.split()[1:], "--help"]).output

    assert "Example:" in help_text
    assert example(command).startswith(words)


@each_command()
def test_the_example_is_a_command_line_that_can_be_parsed(words: str, command: TyperCommand) -> None:
    arguments = shlex.split(example(command))[len(words.split()) :]

    command.make_context(words, arguments, resilient_parsing=False)


@each_command()
def test_every_option_and_argument_says_what_it_is(words: str, command: TyperCommand) -> None:
    silent = [one.name for one in command.params if not getattr(one, "help", None)]

    assert not silent
    assert command.help


@each_command()
def test_every_command_that_asks_the_server_can_print_json(words: str, command: TyperCommand) -> None:
    options = {name for one in command.params if isinstance(one, TyperOption) for name in one.opts}

    assert "--url" not in options or {"-o", "--output", "--token-file", "--data-dir"} <= options


def test_the_reference_in_the_docs_is_up_to_date() -> None:
    page = PAGE.read_text()

    assert page == with_reference(page), "run: python -m slipway.cli.reference docs/cli.md"
    made = reference()
    assert all(f"### `{words}" in made for words in COMMANDS)


def test_options_that_all_commands_share_are_documented() -> None:
    for option in ("--output", "-o ", "--url", "--token-file", "--data-dir", "SLIPWAY_TOKEN"):
        assert option in PAGE.read_text()


def test_commands_in_the_docs_exist() -> None:
    root = typer.main.get_command(app)
    for line in PAGE.read_text().splitlines():
        if line.startswith("$ slipway ") and "--install-completion" not in line:
            words = shlex.split(line.removeprefix("$ ").removesuffix(" &"))
            known = next((name for length in (4, 3, 2) if (name := " ".join(words[:length])) in COMMANDS), "")
            assert known, line
            COMMANDS[known].make_context(known, words[len(known.split()) :])
    assert root.name


def test_help_needs_neither_http_nor_drawing_nor_the_server() -> None:
    script = f"import sys, slipway.cli.main; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"


def test_client_commands_never_load_the_server() -> None:
    server = ("litestar", "uvicorn", "sqlalchemy", "slipway.app", "slipway.store", "slipway.api", "slipway.lcm")
    script = (
        "import sys\nfrom slipway.cli.main import app\n"
        "try: app(['vnf', 'list', '--url', 'http://127.0.0.1:9'])\n"
        f"except SystemExit: print([m for m in {server!r} if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert CliRunner().invoke(app, ["version"]).output.startswith("slipway 0.")
    assert '"version"' in CliRunner().invoke(app, ["version", "-o", "json"]).output
