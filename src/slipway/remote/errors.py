"""What is said when something went wrong on a machine: who, what, how it ended, what it printed last, what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from slipway.model.errors import StepError
from slipway.remote.output import Result, readable
from slipway.remote.target import SshTarget

LINES = 10
LINE = 300  # characters
COMMAND = 200
_SHORTEST_SECRET = 4  # a shorter one would blank out half of any text


class LoginRefused(StepError):
    """The machine is there, and does not know the user, key or password; one that boots may know them later."""


def describe_command(argv: Sequence[str]) -> str:
    """A command for a person: on one line, bounded."""
    return _short(readable(shlex.join(argv).encode(errors="replace")).replace("\n", "\\n"), COMMAND)


def command_failed(target: SshTarget, command: str, result: Result, secret: bytes | None = None) -> StepError:
    how = f"was ended by signal {result.signal}" if result.signal else f"ended with exit code {result.exit_code}"
    return StepError(f"'{command}' on {target} {how}.{_printed(result, secret)}", cure=_cure(result))


def interrupted(target: SshTarget, command: str, how: str, result: Result, secret: bytes | None = None) -> StepError:
    """`how`: "timed out after 300 s", for example."""
    return StepError(f"'{command}' on {target} {how}.{_printed(result, secret)}", temporary=True)


def connection_lost(target: SshTarget, doing: str, error: BaseException | None = None) -> StepError:
    reason = f": {_one_line(str(error))}" if error and str(error) else ""
    return StepError(f"The connection to {target} was lost during '{doing}'{reason}.", temporary=True)


def unreachable(target: SshTarget, error: BaseException) -> StepError:
    reason = _one_line(str(error)) or type(error).__name__
    return StepError(f"{target} can't be reached: {reason}.", temporary=True)


def login_timed_out(target: SshTarget, limit: float) -> StepError:
    return StepError(f"timed out after {limit:g} s waiting for the login to {target}.", temporary=True)


def no_common_algorithm(target: SshTarget, error: BaseException) -> StepError:
    return StepError(
        f"{target} and Slipway share no way to encrypt: {_one_line(str(error))}.",
        cure="let the machine's sshd offer a present-day algorithm (Ed25519, ECDSA or RSA host keys, SHA-2).",
    )


def login_refused(target: SshTarget) -> StepError:
    given = [name for name, value in (("key", target.private_key), ("password", target.password)) if value]
    tried = " and ".join(given) or "nothing"
    return LoginRefused(
        f"{target} refused the login (tried: {tried}).",
        cure="give the user name and the key or password that the machine's image or boot data set.",
    )


def slow_key(target: SshTarget) -> StepError:
    return StepError(
        f"The private key for {target} is encrypted with so many rounds that its passphrase would take too long.",
        cure="give it without a passphrase, or encrypt it with fewer: ssh-keygen -p -a 24.",
    )


def unreadable_key(target: SshTarget) -> StepError:
    return StepError(
        f"The private key for {target} can't be read.",
        cure="give an OpenSSH or PEM private key, and its passphrase if it has one.",
    )


def _printed(result: Result, secret: bytes | None) -> str:
    parts = []
    for name, printed in (("stderr", result.stderr), ("stdout", result.stdout)):
        if lines := _last_lines(printed, secret):
            parts.append(f' Last on {name}: "{lines}".')
    return "".join(parts)


def _last_lines(printed: bytes, secret: bytes | None) -> str:
    text = _hidden(readable(printed), secret)
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    return " | ".join(_short(line, LINE) for line in lines[-LINES:])


def _hidden(text: str, secret: bytes | None) -> str:
    """Without what was given by stdin, in case the command repeats it."""
    words = {line.strip() for line in (secret or b"").decode(errors="replace").splitlines()}
    for word in sorted(words, key=len, reverse=True):
        if len(word) >= _SHORTEST_SECRET:
            text = text.replace(word, "***")
    return text


def _cure(result: Result) -> str | None:
    if result.exit_code == 127:
        return "install the program, or correct its name."
    if re.search(rb"^sudo: ", result.stderr, re.MULTILINE):
        return "log in as root, or let the user run sudo without a password."
    return None


def _one_line(text: str) -> str:
    return _short(readable(text.encode(errors="replace")).replace("\n", " ").rstrip("."), LINE)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
