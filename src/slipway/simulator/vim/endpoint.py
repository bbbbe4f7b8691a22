"""Where a simulated VIM's file is: `sim://name` is a file in the driver's directory, and nowhere else.

Names are a project's own: what two projects call the same are two VIMs.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest

_NAME = re.compile(r"sim://([a-z0-9-]{1,64})")


def endpoint(connection: VimConnection) -> str:
    """The endpoint as text, or BadRequest when it isn't one."""
    value = connection.interface_info.get("endpoint")
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadRequest(
            f"interfaceInfo.endpoint: {value!r} is not a simulated VIM; write sim://name (a-z, 0-9 and -, at most 64)."
        )
    return value


def file_of(connection: VimConnection, directory: Path) -> Path:
    """The file behind an endpoint. No I/O."""
    name = endpoint(connection).removeprefix("sim://")
    if connection.project != DEFAULT_PROJECT:
        name += f"@{sha256(connection.project.encode()).hexdigest()[:16]}"  # a project may be called anything
    return directory / f"{name}.db"
