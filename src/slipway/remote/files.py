"""Files on a machine: content goes by stdin and comes by stdout, so it is in no argument list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.model.errors import StepError
from slipway.remote import failure
from slipway.remote.scripting import run_script

if TYPE_CHECKING:
    from slipway.remote.hands import Hands

NO_SUCH_FILE = 66


async def put(hands: Hands, path: str, content: bytes | str, mode: int, *, sudo: bool) -> None:
    written = content if isinstance(content, bytes) else _encoded(content, path)
    arguments = [_absolute(path), f"{mode:04o}", str(len(written))]
    await hands.run(run_script("put", *arguments), stdin=written, sudo=sudo, told=_told("write", path))


async def get(hands: Hands, path: str, *, sudo: bool) -> bytes | None:
    command, most = run_script("get", _absolute(path)), hands.limits.file
    result = await hands.run(command, sudo=sudo, keep=most, check=False, told=_told("read", path))
    if result.exit_code == NO_SUCH_FILE:
        return None
    if not result.ok:
        raise failure.command_failed(hands.target, _told("read", path), result)
    if result.lost:
        raise StepError(f"{path} on {hands.target} is larger than {most} bytes.")
    return result.stdout


def _absolute(path: str) -> str:
    if not path.startswith("/") or path.endswith("/"):
        raise StepError(f"{path!r} is not the absolute path of a file.")
    return path


def _encoded(content: str, path: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise StepError(f"The content for {path!r} holds a lone surrogate, which is no character.") from None


def _told(doing: str, path: str) -> str:
    return failure.told([doing, path])
