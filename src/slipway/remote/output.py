"""What a command printed: read as it comes, kept within bounds."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

OnLine = Callable[[str], None]

LONGEST_LINE = 8192  # a longer one is given to a callback in pieces
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Tail:
    """The end of a stream, at most `keep` bytes of it, and its lines as they come."""

    def __init__(self, keep: int, on_line: OnLine | None = None) -> None:
        self._keep = keep
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._on_line = on_line
        self._line = b""
        self.lost = 0  # bytes that were not kept

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) >= self._keep:
            gone = len(self._chunks.popleft())
            self._size -= gone
            self.lost += gone
        if self._on_line:
            self._give_lines(self._line + chunk, self._on_line)

    def end(self) -> bytes:
        """All that was kept. A last line without its newline is a line too."""
        if self._on_line and self._line:
            self._on_line(readable(self._line))
            self._line = b""
        kept = b"".join(self._chunks)
        over = max(0, len(kept) - self._keep)
        self.lost += over
        self._chunks, self._size = deque([kept[over:]]), len(kept) - over
        return kept[over:]

    def _give_lines(self, pending: bytes, on_line: OnLine) -> None:
        *lines, self._line = pending.split(b"\n")
        while len(self._line) > LONGEST_LINE:
            lines.append(self._line[:LONGEST_LINE])
            self._line = self._line[LONGEST_LINE:]
        for line in lines:
            on_line(readable(line))


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    exit_code: int  # 128 + number when a signal ended it, as shells count
    stdout: bytes
    stderr: bytes
    signal: str | None = None
    lost: int = 0  # bytes of stdout that came before those kept

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def text(self) -> str:
        """stdout as text, without the last newline."""
        return self.stdout.decode(errors="replace").removesuffix("\n")


def readable(printed: bytes) -> str:
    """Text that is safe to show: no escape sequences, no control or direction-changing characters."""
    return _CONTROL.sub("", printed.decode(errors="replace"))
