"""The structure of a ZIP file, read strictly.

Lenient readers disagree on what a crafted ZIP contains. Here every byte must belong to exactly one thing: members from
the first byte on, without gap or overlap, then the table of contents, then the end record. What the table says of a
member must be what the member's own header says.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from slipway.model.errors import PackageError
from slipway.package.file_window import FileWindow
from slipway.package.limits import PackageLimits
from slipway.package.member_name import shown

END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR64 = struct.Struct("<4sLQL")
ENTRY = struct.Struct("<4s4B4H3L5H2L")
LOCAL = struct.Struct("<4s2B4HL2L2H")

_REBUILD = "build the package again with an ordinary ZIP tool, or with `slipway package build`."
_LONGEST_COMMENT = 0xFFFF
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table of contents, as written."""

    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    mode: int
    offset: int
    unicode_name: bytes | None

    @property
    def has_descriptor(self) -> bool:
        return bool(self.flags & 0x08)


@dataclass(frozen=True, slots=True)
class Directory:
    count: int
    offset: int
    size: int


def read_entries(source: FileWindow, limits: PackageLimits) -> list[tuple[Entry, int]]:
    """Every entry with the place where its data begins, in the order of the file."""
    directory = _find_directory(source)
    if directory.count > limits.entries:
        what = f"The archive has {directory.count} members; at most {limits.entries} are read."
        raise _broken(source, what, "put fewer files in the package.")
    if directory.size > limits.directory_bytes:
        raise _broken(source, "The archive's table of contents is too large.")
    entries = _parse_directory(source, directory)
    return _lay_out(source, sorted(entries, key=lambda entry: entry.offset), directory.offset)


def _broken(source: FileWindow, what: str, cure: str = _REBUILD) -> PackageError:
    return PackageError(what, file=source.label, cure=cure)


def _find_directory(source: FileWindow) -> Directory:
    end_at, fields = _find_end(source)
    _, disk, first_disk, count_here, count, size, offset, _ = fields
    if disk not in (0, _FULL16) or first_disk not in (0, _FULL16) or count_here != count:
        raise _broken(source, "The archive is one part of a multi-disk set.", "join the parts into one ZIP file.")
    directory = Directory(count, offset, size)
    if (wide := _find_wide_end(source, end_at)) is not None:
        directory, end_at = wide
        narrow = (count, offset, size)
        exact = (directory.count, directory.offset, directory.size)
        full = (_FULL16, _FULL32, _FULL32)
        if any(a not in (b, top) for a, b, top in zip(narrow, exact, full, strict=True)):
            raise _broken(source, "The archive's two end records contradict each other.")
    if directory.offset + directory.size != end_at:
        raise _misplaced(source, directory, end_at)
    return directory


def _misplaced(source: FileWindow, directory: Directory, end_at: int) -> PackageError:
    if directory.offset + directory.size > end_at:
        return _broken(
            source,
            f"The archive's table of contents is said to be at byte {directory.offset} with {directory.size} bytes,"
            f" which is beyond the end of the archive: a part of the file is missing, or it was changed.",
        )
    really_at = end_at - directory.size
    if source.read(really_at, min(4, directory.size)) == b"PK\x01\x02"[: directory.size]:
        return _broken(source, f"The archive has {really_at - directory.offset} bytes of data before its first member.")
    return _broken(source, "The archive has data between its table of contents and its end record.")


def _find_end(source: FileWindow) -> tuple[int, tuple[bytes, int, int, int, int, int, int, int]]:
    """The end record: the only one whose comment reaches exactly to the end of the file."""
    tail_at = max(0, source.size - END.size - _LONGEST_COMMENT)
    tail = source.read(tail_at, source.size - tail_at)
    found = []
    at = tail.find(b"PK\x05\x06")
    while at != -1:
        if at + END.size <= len(tail):
            fields = END.unpack_from(tail, at)
            if at + END.size + fields[7] == len(tail):
                found.append((tail_at + at, fields))
        at = tail.find(b"PK\x05\x06", at + 1)
    if not found and b"PK\x05\x06" in tail:
        raise _broken(source, "The archive's end record is cut off, or data follows its end.")
    if not found and source.size >= LOCAL.size and source.read(0, 4) == b"PK\x03\x04":
        raise _broken(source, "The archive breaks off: it has no end record.", "upload the whole file again.")
    if not found:
        raise _broken(source, "This is not a ZIP archive.", "upload a CSAR (ZIP) file.")
    if len(found) > 1:
        raise _broken(source, "The archive has more than one end record.")
    return found[0]


def _find_wide_end(source: FileWindow, end_at: int) -> tuple[Directory, int] | None:
    """The ZIP64 end record, where there is one."""
    locator_at = end_at - LOCATOR64.size
    if locator_at < 0 or source.read(locator_at, 4) != b"PK\x06\x07":
        return None
    _, disk, record_at, disks = LOCATOR64.unpack(source.read(locator_at, LOCATOR64.size))
    if disk != 0 or disks > 1:
        raise _broken(source, "The archive is one part of a multi-disk set.", "join the parts into one ZIP file.")
    if record_at + END64.size != locator_at:
        raise _broken(source, "The archive's ZIP64 end record is not where it should be.")
    fields = END64.unpack(source.read(record_at, END64.size))
    signature, length, _, _, disk, first_disk, here, count, size, offset = fields
    if signature != b"PK\x06\x06" or length != END64.size - 12 or disk or first_disk or here != count:
        raise _broken(source, "The archive's ZIP64 end record is malformed.")
    return Directory(count, offset, size), record_at


def _parse_directory(source: FileWindow, directory: Directory) -> list[Entry]:
    data = source.read(directory.offset, directory.size)
    entries, at = [], 0
    for number in range(1, directory.count + 1):
        if at + ENTRY.size > len(data):
            raise _broken(source, "The archive's table of contents is shorter than it claims.")
        if data[at : at + 4] != b"PK\x01\x02":
            raise _broken(source, f"The row {number} of the archive's table of contents is malformed.")
        fields = ENTRY.unpack_from(data, at)
        name_at = at + ENTRY.size
        extra_at = name_at + fields[12]
        comment_at = extra_at + fields[13]
        at = comment_at + fields[14]
        if at > len(data):
            raise _broken(source, "The archive's table of contents is shorter than it claims.")
        entries.append(_entry(source, fields, data[name_at:extra_at], data[extra_at:comment_at]))
    if at != len(data):
        raise _broken(source, "The archive's table of contents has more members than it counts.")
    return entries


def _entry(source: FileWindow, fields: tuple[int, ...], name: bytes, extra: bytes) -> Entry:
    flags, method, crc, packed, size = fields[5], fields[6], fields[9], fields[10], fields[11]
    disk, attributes, offset = fields[15], fields[17], fields[18]
    extras = _extras(source, extra)
    wide = extras.get(0x0001, b"")
    size, wide = _widened(source, size, wide)
    packed, wide = _widened(source, packed, wide)
    offset, wide = _widened(source, offset, wide)
    if disk not in (0, _FULL16):
        raise _broken(source, "A member lies on another disk of a multi-disk set.", "join the parts into one ZIP file.")
    unicode_name = extras[0x7075][5:] if 0x7075 in extras else None
    return Entry(name, flags, method, crc, packed, size, attributes >> 16, offset, unicode_name)


def _extras(source: FileWindow, data: bytes) -> dict[int, bytes]:
    """Extra fields by number. Trailing bytes too short for a field are what some tools pad with."""
    fields: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        number, length = struct.unpack_from("<2H", data, at)
        at += 4 + length
        if at > len(data) or number in fields:
            raise _broken(source, "A member's extra fields are malformed.")
        fields[number] = data[at - length : at]
    return fields


def _widened(source: FileWindow, value: int, wide: bytes) -> tuple[int, bytes]:
    """The 64-bit value that stands for a full 32-bit one, and what remains of the ZIP64 field."""
    if value != _FULL32:
        return value, wide
    if len(wide) < 8:
        raise _broken(source, "A member's ZIP64 sizes are missing.")
    return int.from_bytes(wide[:8], "little"), wide[8:]


def _lay_out(source: FileWindow, entries: list[Entry], end: int) -> list[tuple[Entry, int]]:
    """Walk the members from the first byte to the table of contents: each begins where the one before ended."""
    placed, cursor = [], 0
    ends = [*(entry.offset for entry in entries[1:]), end]
    for entry, next_at in zip(entries, ends, strict=False):
        if entry.offset < cursor:
            raise _misfit(entry, "overlaps another member")
        if entry.offset >= end:
            raise _misfit(entry, f"is said to begin at byte {entry.offset}, behind all members")
        if entry.offset > cursor:
            raise _misfit(entry, "is preceded by data that belongs to no member")
        data_at = _check_local_header(source, entry)
        cursor = data_at + entry.packed
        if entry.has_descriptor:
            cursor += _descriptor_length(source, entry, cursor, next_at)
        placed.append((entry, data_at))
    if cursor > end:
        raise _misfit(entries[-1], "overlaps the table of contents")
    if cursor < end:
        raise _broken(source, "The archive has data between its last member and its table of contents.")
    return placed


def _check_local_header(source: FileWindow, entry: Entry) -> int:
    """Where the data begins, after checking that the header there agrees with the table of contents."""
    fields = LOCAL.unpack(source.read(entry.offset, LOCAL.size))
    signature, _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = fields
    if signature != b"PK\x03\x04":
        raise _misfit(entry, "has no header where the table of contents says")
    rest = source.read(entry.offset + LOCAL.size, name_length + extra_length)
    if rest[:name_length] != entry.raw_name:
        raise _misfit(entry, "has another name in its own header than in the table of contents")
    if flags != entry.flags or method != entry.method:
        raise _misfit(entry, "is packed another way than the table of contents says")
    wide = _extras(source, rest[name_length:]).get(0x0001, b"")
    if size == _FULL32 or packed == _FULL32:
        size, wide = _widened(source, size, wide)
        packed, wide = _widened(source, packed, wide)
    exact = (crc, packed, size) == (entry.crc, entry.packed, entry.size)
    if not exact and not (entry.has_descriptor and (crc, packed, size) == (0, 0, 0)):
        raise _misfit(entry, "has other sizes or checksum in its own header than in the table of contents")
    return entry.offset + LOCAL.size + len(rest)


def _descriptor_length(source: FileWindow, entry: Entry, at: int, next_at: int) -> int:
    """Length of the record that streaming writers put behind the data: four shapes are in use."""
    length = next_at - at
    shapes = {12: "<3L", 16: "<4L", 20: "<L2Q", 24: "<2L2Q"}
    if length in shapes:
        values = struct.unpack(shapes[length], source.read(at, length))
        signed = (0x08074B50,) if length in (16, 24) else ()
        if values == (*signed, entry.crc, entry.packed, entry.size):
            return length
    raise _misfit(entry, "is followed by data that belongs to no member, or overlaps the next one")


def _misfit(entry: Entry, what: str) -> PackageError:
    return PackageError(f"The member {what}.", file=shown(entry.raw_name.decode("utf-8", "replace")), cure=_REBUILD)
