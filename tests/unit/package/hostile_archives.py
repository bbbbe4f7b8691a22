"""ZIP files that must be refused, by name, each with the reason that must be given."""

from __future__ import annotations

import stat
import struct
from collections.abc import Callable, Mapping

from tests.unit.package.csars import (
    Raw,
    deflated,
    raw_members,
    raw_zip,
    valid_files,
    with_member,
    zipped,
)

Builder = Callable[[], Mapping[str, bytes] | bytes]
MIB = 1024 * 1024
UTF8 = 0x0800
ANY = b"whatever"


def _named(name: str) -> Builder:
    flags = 0 if name.isascii() else UTF8
    return lambda: with_member(Raw(name.encode(), ANY, flags=flags))


def _twins(one: str, other: str) -> Builder:
    return lambda: raw_zip(
        [*raw_members(valid_files()), Raw(one.encode(), ANY, flags=UTF8), Raw(other.encode(), ANY, flags=UTF8)]
    )


def _special(kind: int) -> Builder:
    return lambda: with_member(Raw(b"Scripts/special", b"/etc/passwd", mode=kind | 0o777))


def _member(member: Raw) -> Builder:
    return lambda: with_member(member)


def _zip64_contradiction() -> bytes:
    data = zipped(valid_files())
    end = data[-22:]
    count, size, offset = struct.unpack("<HLL", end[10:20])
    record_at = len(data) - 22
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count - 1, count - 1, size, offset)
    return data[:-22] + record + struct.pack("<4sLQL", b"PK\x06\x07", 0, record_at, 1) + end


def _directory_at(moved: Callable[[int], int]) -> bytes:
    """Said to be elsewhere than it is."""
    data = zipped(valid_files())
    (offset,) = struct.unpack("<L", data[-6:-2])
    return data[:-6] + struct.pack("<L", moved(offset)) + data[-2:]


def _behind_directory() -> bytes:
    data = zipped(valid_files())
    return data[:-22] + ANY + data[-22:]


def _before_directory() -> bytes:
    data = zipped(valid_files())
    _, offset = struct.unpack("<2L", data[-10:-2])
    return data[:offset] + ANY + data[offset:-6] + struct.pack("<L", offset + len(ANY)) + data[-2:]


def _overlapping() -> bytes:
    members = raw_members(valid_files())
    twin = Raw(b"Scripts/other.sh", members[0].data, offset=0)
    return raw_zip([*members, twin])


NAMES: dict[str, tuple[Builder, str]] = {
    "path traversal": (_named("../evil"), "climbs out"),
    "path traversal in the middle": (_named("Scripts/../../evil"), "climbs out"),
    "absolute name": (_named("/etc/passwd"), "absolute path"),
    "backslash": (_named("Scripts\\evil"), "backslash"),
    "drive name": (_named("C:evil"), "drive letter"),
    "empty part": (_named("Scripts//evil"), "empty or '.' part"),
    "dot part": (_named("./evil"), "empty or '.' part"),
    "newline in a name": (_named("Scripts/a\nb"), "control or invisible"),
    "NUL in a name": (_named("Scripts/a.sh\0.txt"), "control or invisible"),
    "escape sequence in a name": (_named("Scripts/\x1b[2J"), "control or invisible"),
    "right-to-left override in a name": (_named("Scripts/\u202egpj.sh"), "control or invisible"),
    "overlong name": (_named("a/" * 600), "longer than 1024"),
    "too many parts": (_named("a/" * 40 + "b"), "more than 32 parts"),
    "overlong part": (_named("a" * 300), "longer than 255"),
    "empty name": (_named(""), "is empty"),
    "name in an unknown charset": (_member(Raw(b"Scripts/\xff", ANY)), "neither ASCII nor marked UTF-8"),
    "name that is broken UTF-8": (
        _member(Raw(b"Scripts/\xff", ANY, flags=UTF8)),
        "marked UTF-8, but is not valid UTF-8",
    ),
    "second name": (
        _member(Raw(b"a.txt", ANY, extra=struct.pack("<2HBL", 0x7075, 10, 1, 0) + b"b.txt")),
        "second, different name",
    ),
    "duplicate": (_twins("Scripts/a", "Scripts/a"), "in the package twice"),
    "names that differ by case": (_twins("Scripts/A", "Scripts/a"), "by case or spelling only"),
    "names that differ by Unicode form": (_twins("Scripts/\u00e9", "Scripts/e\u0301"), "by case or spelling only"),
    "names that differ by ligature": (_twins("Scripts/\ufb01le", "Scripts/file"), "by case or spelling only"),
    "file and directory of one name": (_twins("Scripts/a", "Scripts/a/b"), "which is a file"),
}
ARCHIVES: dict[str, tuple[Builder, str]] = {
    "symbolic link": (_special(stat.S_IFLNK), "symbolic link"),
    "character device": (_special(stat.S_IFCHR), "special file"),
    "named pipe": (_special(stat.S_IFIFO), "special file"),
    "encrypted member": (_member(Raw(b"secret", ANY, flags=1)), "encrypted"),
    "unknown compression": (_member(Raw(b"a.lzma", ANY, method=14, size=8, crc=0)), "compression method 14"),
    "compression bomb": (
        lambda: zipped({**valid_files(), "Files/zeros.img": bytes(32 * MIB)}),
        "more than 200 times",
    ),
    "too large in total": (
        lambda: raw_zip(
            raw_members(valid_files()) + [Raw(b"Files/%d" % n, ANY, method=8, size=0xFFFFFFF0, crc=0) for n in range(6)]
        ),
        "unpacks to more than",
    ),
    "too many members": (
        lambda: raw_zip([Raw(b"Files/%d" % number) for number in range(10_001)]),
        "10001 members",
    ),
    "member larger than declared": (
        _member(Raw(b"a", deflated(b"x" * 5000), method=8, size=100, crc=0)),
        "more data than it declares",
    ),
    "member smaller than declared": (
        _member(Raw(b"a", deflated(b"x" * 50), method=8, size=100, crc=0)),
        "less data than it declares",
    ),
    "stored member with two sizes": (_member(Raw(b"a", ANY, size=100, crc=0)), "sizes contradict"),
    "wrong ZIP checksum": (_member(Raw(b"a", ANY, crc=1)), "ZIP checksum"),
    "broken compression": (_member(Raw(b"a", b"\xff\xff\xff", method=8, size=9, crc=0)), "can't be inflated"),
    "compression that breaks off": (
        _member(Raw(b"a", deflated(b"abc" * 500)[:-4], method=8, size=1500, crc=0)),
        "can't be inflated",
    ),
    "data behind the compressed stream": (
        _member(Raw(b"a", deflated(b"abc") + b"hidden", method=8, size=3, crc=0x352441C2)),
        "behind the end",
    ),
    "directory with content": (_member(Raw(b"Files/", b"content")), "directory has content"),
    "overlapping members": (_overlapping, "overlaps another member"),
    "member whose own header has another name": (
        _member(Raw(b"Scripts/a.sh", ANY, local_name=b"Scripts/b.sh")),
        "another name in its own header",
    ),
    "member whose own header has another size": (_member(Raw(b"a", ANY, local_size=9)), "other sizes"),
    "member whose header lies beyond the end": (
        _member(Raw(b"a", ANY, offset=10**9)),
        "said to begin at byte 1000000000, behind all members",
    ),
    "member without a header of its own": (
        lambda: zipped(valid_files()).replace(b"PK\x03\x04", b"PK\x00\x00", 1),
        "has no header where the table of contents says",
    ),
    "table of contents beyond the end": (lambda: _directory_at(lambda offset: offset + 10**6), "beyond the end"),
    "table of contents said to be before its place": (
        lambda: _directory_at(lambda offset: 0),
        "before its first member",
    ),
    "data behind the table of contents": (_behind_directory, "between its table of contents and its end record"),
    "broken row in the table of contents": (
        lambda: zipped(valid_files()).replace(b"PK\x01\x02", b"PK\x00\x00", 1),
        "row 1 of the archive's table of contents is malformed",
    ),
    "members that reach into the table of contents": (
        lambda: raw_zip([*raw_members(valid_files()), Raw(b"z", ANY, packed=60, size=60, crc=0)]),
        "overlaps the table of contents",
    ),
    "data before the table of contents": (_before_directory, "between its last member and its table of contents"),
    "data before the first member": (lambda: ANY + zipped(valid_files()), "data before its first member"),
    "data before the first member, offsets adjusted": (
        lambda: raw_zip(raw_members(valid_files()), prefix=ANY),
        "belongs to no member",
    ),
    "data after the end": (lambda: zipped(valid_files()) + ANY, "data follows its end"),
    "data between members": (_member(Raw(b"a", ANY, before=b"hidden")), "belongs to no member"),
    "part of a multi-disk set": (lambda: raw_zip(raw_members(valid_files()), disk=1), "multi-disk"),
    "member on another disk": (_member(Raw(b"a", ANY, disk=3)), "multi-disk"),
    "second archive in the comment": (
        lambda: raw_zip(raw_members(valid_files()), comment=zipped(valid_files())),
        "more than one end record",
    ),
    "second end record in the comment": (
        lambda: raw_zip(raw_members(valid_files()), comment=b"PK\x05\x06" + bytes(18)),
        "more than one end record",
    ),
    "table of contents shorter than counted": (
        lambda: raw_zip(raw_members(valid_files()), count=9),
        "shorter than it claims",
    ),
    "table of contents longer than counted": (
        lambda: raw_zip(raw_members(valid_files()), count=1),
        "more members than it counts",
    ),
    "contradicting ZIP64 record": (_zip64_contradiction, "contradict each other"),
    "missing ZIP64 sizes": (_member(Raw(b"a", ANY, size=0xFFFFFFFF, crc=0)), "ZIP64 sizes are missing"),
    "malformed extra field": (_member(Raw(b"a", ANY, extra=b"\x01\x00\xff\x00ab")), "extra fields are malformed"),
    "truncated archive": (lambda: zipped(valid_files())[:-30], "breaks off"),
    "front cut off": (lambda: zipped(valid_files())[30:], "beyond the end"),
    "empty file": (lambda: b"", "not a ZIP archive"),
    "text file": (lambda: b"hello\n" * 100, "not a ZIP archive"),
    "empty archive": (lambda: raw_zip([]), "neither TOSCA-Metadata"),
    "CSAR in a ZIP without a signature": (lambda: zipped({"a.csar": zipped(valid_files())}), "0 signature files"),
    "two CSARs in a ZIP": (
        lambda: zipped({"a.csar": zipped(valid_files()), "b.csar": zipped(valid_files()), "a.cms": ANY}),
        "2 CSAR",
    ),
}
