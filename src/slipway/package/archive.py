"""Reading a CSAR without unpacking it: members are listed once, checked, and streamed on demand within limits."""

from __future__ import annotations

import io
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from slipway.model.errors import PackageError
from slipway.package.file_window import CHUNK, FileWindow
from slipway.package.limits import DEFAULT_LIMITS, PackageLimits
from slipway.package.member_name import check_name, decode_name, folded, shown
from slipway.package.zip_layout import Entry, read_entries

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STORED, DEFLATED = 0, 8
EMPTY_DEFLATED = 2  # bytes that some tools write for a directory
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_UTF8 = 0x0800


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file of the package."""

    name: str
    size: int
    packed: int
    method: int
    crc: int
    data_at: int
    executable: bool


class Archive:
    """A ZIP whose every member has passed the checks. Close it, or use it in a `with`."""

    def __init__(self, source: FileWindow, limits: PackageLimits = DEFAULT_LIMITS) -> None:
        self.source = source
        self.limits = limits
        try:
            self._members = _checked_members(read_entries(source, limits), source, limits)
        except BaseException:
            source.close()
            raise

    @classmethod
    def open(cls, path: Path, limits: PackageLimits = DEFAULT_LIMITS, label: str | None = None) -> Archive:
        return cls(FileWindow.of(path, label), limits)

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.source.close()

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[ArchiveMember]:
        return iter(self._members.values())

    def names(self) -> list[str]:
        return list(self._members)

    def member(self, name: str) -> ArchiveMember:
        try:
            return self._members[name]
        except KeyError:
            raise PackageError(
                "The package has no such file.", file=shown(name), cure="check the path; upper and lower case count."
            ) from None

    def chunks(self, name: str) -> Iterator[bytes]:
        """A member's content, at most 1 MiB at a time; PackageError as soon as it is not what was declared."""
        member = self.member(name)
        pieces = self._stored(member) if member.method == STORED else self._inflated(member)
        total, crc = 0, 0
        for piece in pieces:
            total += len(piece)
            if total > member.size:
                raise _damaged(member, "holds more data than it declares")
            crc = zlib.crc32(piece, crc)
            yield piece
        if total != member.size:
            raise _damaged(member, "holds less data than it declares")
        if crc != member.crc:
            raise _damaged(member, "does not match its ZIP checksum")

    def read(self, name: str, limit: int) -> bytes:
        """A small member as a whole."""
        if self.member(name).size > limit:
            raise PackageError(
                f"The file is larger than the {limit // 1024} KiB that are read of such a file.",
                file=name,
                cure="make it smaller, or split it.",
            )
        return b"".join(self.chunks(name))

    def inner(self, name: str) -> Archive:
        """The archive that is a member of this one (SOL004 option 2)."""
        member = self.member(name)
        if member.method == STORED:
            return Archive(self.source.window(member.data_at, member.size, name), self.limits)
        return Archive(FileWindow.spooled(self.chunks(name), name), self.limits)

    def _stored(self, member: ArchiveMember) -> Iterator[bytes]:
        for at in range(0, member.packed, CHUNK):
            yield self.source.read(member.data_at + at, min(CHUNK, member.packed - at))

    def _inflated(self, member: ArchiveMember) -> Iterator[bytes]:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            for packed in self._stored(member):
                pending = packed
                while pending and not inflater.eof:
                    if piece := inflater.decompress(pending, CHUNK):
                        yield piece
                    pending = inflater.unconsumed_tail
                if inflater.unused_data:
                    raise _damaged(member, "has data behind the end of its compressed stream")
            while not inflater.eof and (piece := inflater.decompress(b"", CHUNK)):
                yield piece
        except zlib.error:
            raise _damaged(member, "can't be inflated") from None
        if not inflater.eof:
            raise _damaged(member, "can't be inflated: its compressed stream breaks off")


class MemberStream(io.RawIOBase):
    """The chunks of a member as a binary file; closing it closes the archive."""

    def __init__(self, chunks: Iterator[bytes], archive: Archive) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._archive = archive

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        view = memoryview(target).cast("B")
        while not self._rest:
            piece = next(self._chunks, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._archive.close()
        super().close()


def _damaged(member: ArchiveMember, what: str) -> PackageError:
    return PackageError(f"The member {what}.", file=member.name, cure="build and upload the package again.")


def _checked_members(
    placed: list[tuple[Entry, int]], source: FileWindow, limits: PackageLimits
) -> dict[str, ArchiveMember]:
    members: dict[str, ArchiveMember] = {}
    seen: dict[str, str] = {}
    if sum(entry.size for entry, _ in placed) > limits.total_bytes:
        raise PackageError(
            f"The package unpacks to more than {limits.total_bytes} bytes.",
            file=source.label,
            cure="leave large images out and name ones the VIM has, or raise the limit.",
        )
    for entry, data_at in placed:
        name = _checked_name(entry)
        _check_duplicate(name, seen)
        if not name.endswith("/"):
            _check_content(name, entry, limits)
            members[name] = ArchiveMember(
                name, entry.size, entry.packed, entry.method, entry.crc, data_at, bool(entry.mode & 0o100)
            )
        elif entry.size or entry.packed > EMPTY_DEFLATED:
            raise PackageError("The directory has content.", file=shown(name), cure="build the package again.")
    _check_files_are_not_directories(members, seen)
    return members


def _checked_name(entry: Entry) -> str:
    name = decode_name(entry.raw_name, utf8=bool(entry.flags & _UTF8))
    check_name(name)
    if entry.unicode_name is not None and entry.unicode_name != entry.raw_name:
        raise PackageError(
            "The member has a second, different name.", file=shown(name), cure="build the ZIP with UTF-8 names."
        )
    return name


def _check_duplicate(name: str, seen: dict[str, str]) -> None:
    key = folded(name.removesuffix("/"))
    if (twin := seen.get(key)) is not None:
        what = "is in the package twice" if twin == name else f"differs from {shown(twin)} by case or spelling only"
        raise PackageError(f"The member {what}.", file=shown(name), cure="keep one of them, or rename it.")
    seen[key] = name


def _check_files_are_not_directories(members: dict[str, ArchiveMember], seen: dict[str, str]) -> None:
    """Sorted with a slash at the end, what lies inside a name comes right after it."""
    ordered = sorted((f"{key}/", name) for key, name in seen.items())
    for (key, name), (next_key, next_name) in pairwise(ordered):
        if name in members and next_key.startswith(key):
            raise PackageError(
                f"The member lies inside {shown(name)}, which is a file.", file=shown(next_name), cure="rename one."
            )


def _check_content(name: str, entry: Entry, limits: PackageLimits) -> None:
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFLNK:
        raise PackageError("The member is a symbolic link.", file=name, cure="put the file itself in the package.")
    if kind not in (0, stat.S_IFREG):
        raise PackageError("The member is a device or other special file.", file=name, cure="leave it out.")
    if entry.flags & _ENCRYPTED:
        raise PackageError("The member is encrypted.", file=name, cure="build the package without a password.")
    if entry.method not in (STORED, DEFLATED):
        raise PackageError(
            f"The member uses compression method {entry.method}.", file=name, cure="use Deflate or no compression."
        )
    if entry.method == STORED and entry.packed != entry.size:
        raise PackageError("The member's sizes contradict each other.", file=name, cure="build the package again.")
    if entry.size > limits.ratio_from and entry.size > limits.ratio * max(1, entry.packed):
        raise PackageError(
            f"The member inflates to more than {limits.ratio} times its packed size.",
            file=name,
            cure="store it without compression.",
        )
