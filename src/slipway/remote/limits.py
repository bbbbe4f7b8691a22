"""How long and how much: every wait and every buffer of the remote hands has its bound here."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True)
class Limits:
    """Times in seconds."""

    connect: float = 20.0  # until logged in
    command: float = 120.0  # for a command that is given no limit of its own
    silence: float = 90.0  # without a byte on stdout or stderr
    keep_alive: float = 10.0  # between two questions whether the other side is there; three without an answer: lost
    idle: float = 60.0  # an unused connection is closed after this
    commands_per_host: int = 8  # at once; sshd allows 10 in one connection
    connections: int = 256  # in all
    kept_output: int = 256 * KIB  # of stdout and of stderr each: the end of it
    file: int = 16 * KIB * KIB  # the largest file that `get` reads
    patience: float = 90.0  # a named job is asked after for this long while its machine can't be reached
    watch: float = 15.0  # one question after a named job waits this long for its end
