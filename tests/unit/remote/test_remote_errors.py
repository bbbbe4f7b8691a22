from __future__ import annotations

from typing import Any

import pytest

from slipway.model.errors import StepError
from slipway.remote import errors
from slipway.remote.output import Result
from slipway.remote.quoting import run_script, script
from slipway.remote.target import SshTarget

TARGET = SshTarget("2001:db8::7", "ubuntu", private_key="key-canary", password="password-canary")


def test_secrets_of_a_target_are_in_none_of_its_texts() -> None:
    assert "canary" not in f"{TARGET} {TARGET!r} {errors.login_refused(TARGET)}"


def test_a_host_is_known_by_address_and_by_port_when_that_is_unusual() -> None:
    assert TARGET.known_as == "2001:db8::7"
    assert SshTarget("10.0.0.1", "root", 2222).known_as == "[10.0.0.1]:2222"


@pytest.mark.parametrize("address", ["", "host name", "10.0.0.256", "-oProxyCommand=x", "example.org"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(StepError, match="not an IPv4 or IPv6 address"):
        SshTarget(address, "root")


def test_an_error_is_bounded_whatever_was_printed() -> None:
    result = Result(1, b"x" * 1_000_000, b"y\n" * 1_000_000)
    detail = errors.command_failed(TARGET, errors.describe_command(["a" * 5000]), result).detail
    assert len(detail) < 2 * errors.LINES * errors.LINE + 1000


def test_what_was_given_by_stdin_is_hidden_line_by_line() -> None:
    result = Result(1, b"", b"token abcdef123 refused, abc too")
    detail = errors.command_failed(TARGET, "join", result, b"abcdef123\nabc\n").detail
    assert "token *** refused, abc too" in detail


def test_a_command_is_told_on_one_line() -> None:
    assert errors.describe_command(["sh", "-c", "a\nb\x1b[2J"]) == r"sh -c 'a\nb'"


@pytest.mark.parametrize("name", ["put", "get", "job_start", "job_run", "job_watch", "job_remove"])
def test_scripts_travel_without_comments_and_get_values_as_arguments(name: str) -> None:
    assert not any(line.lstrip().startswith("#") for line in script(name).splitlines())
    assert run_script(name, "value")[2:] == [script(name), f"slipway-{name}", "value"]


@pytest.mark.parametrize("name", ["password", "private_key", "passphrase"])
def test_a_secret_that_is_not_text_is_told_and_not_shown(name: str) -> None:
    """A request's secrets are put away unseen: a number may be among them."""
    given: dict[str, Any] = {name: 31415926}
    with pytest.raises(
        StepError, match=rf"The {name} for root@10\.0\.0\.5 is not text\. Cure: write it in quotes"
    ) as told:
        SshTarget(address="10.0.0.5", username="root", **given)
    assert "31415926" not in str(told.value)
