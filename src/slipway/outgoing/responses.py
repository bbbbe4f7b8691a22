"""What other servers answer: bodies of a bounded size, and their error messages in a form that can be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from slipway.model.errors import OutgoingRequestError
from slipway.model.secrets import masked

if TYPE_CHECKING:
    import httpx

LONGEST = 1 << 16  # characters of a message that are looked at
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


async def read_limited(response: httpx.Response, limit: int) -> bytes:
    """The body of a streamed response. OutgoingRequestError when it is too large or compressed."""
    host = response.request.url.host
    if (encoding := response.headers.get("Content-Encoding", "identity").strip().lower()) not in ("", "identity"):
        raise OutgoingRequestError(f"{host} sent a response compressed as {encoding[:20]!r}, which was not accepted.")
    taken = bytearray()
    async for chunk in response.aiter_raw():
        taken += chunk
        if len(taken) > limit:
            raise OutgoingRequestError(f"The response of {host} is larger than {limit} bytes.")
    return bytes(taken)


def server_message(text: object, secrets: Iterable[str] = (), *, most: int = 300) -> str:
    """A server's message on one line, of at most `most` characters, without a full stop and without the secrets."""
    line = masked(text, secrets) if isinstance(text, str) else ""
    line = _CONTROL.sub(" ", line[:LONGEST]).strip().rstrip(".")
    return line if len(line) <= most else line[: most - 1] + "…"
