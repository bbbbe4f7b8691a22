"""Files on a machine: content goes by stdin and comes by stdout, so it is in no argument list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.model.errors import StepError
from slipway.remote import errors
from slipway.remote.quoting import run_script

if TYPE_CHECKING:
    from slipway.remote.ssh_host import SshHost

NO_SUCH_FILE = 66


async def put(host: SshHost, path: str, content: bytes | str, mode: int, *, sudo: bool) -> None:
    written = content if isinstance(content, bytes) else _encoded(content, path)
    arguments = [_absolute(path), f"{mode:04o}", str(len(written))]
    await host.run(run_script("put", *arguments), stdin=written, sudo=sudo, description=_description("write", path))


async def get(host: SshHost, path: str, *, sudo: bool) -> bytes | None:
    command, most = run_script("get", _absolute(path)), host.limits.file
    result = await host.run(command, sudo=sudo, keep=most, check=False, description=_description("read", path))
    if result.exit_code == NO_SUCH_FILE:
        return None
    if not result.ok:
        raise errors.command_failed(host.target, _description("read", path), result)
    if result.lost:
        raise StepError(f"{path} on {host.target} is larger than {most} bytes.")
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


def _description(doing: str, path: str) -> str:
    return errors.describe_command([doing, path])
