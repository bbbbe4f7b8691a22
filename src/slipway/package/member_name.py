"""What a member of a package may be called: a plain relative path that means the same on every system."""

from __future__ import annotations

import re
import unicodedata

from slipway.model.errors import PackageError

LONGEST_PATH = 1024
LONGEST_PART = 255
MOST_PARTS = 32

_DRIVE = re.compile(r"[A-Za-z]:")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def decode_name(raw: bytes, *, utf8: bool) -> str:
    """The name as text. Without the UTF-8 flag only ASCII is unambiguous."""
    try:
        return raw.decode("utf-8" if utf8 else "ascii")
    except UnicodeDecodeError:
        fault = "is marked UTF-8, but is not valid UTF-8" if utf8 else "is neither ASCII nor marked UTF-8"
        raise PackageError(
            f"The member's name {fault}.",
            file=shown(raw.decode("latin-1")),
            cure="write the ZIP with UTF-8 names, or rename the file.",
        ) from None


def check_name(name: str) -> None:
    """Refuse whatever could leave the package's own tree or look like something else."""
    if fault := _fault(name):
        raise PackageError(
            f"The member's name {fault}.",
            file=shown(name),
            cure="name files by plain relative paths such as Scripts/install.sh.",
        )


def _fault(name: str) -> str | None:
    if not name or len(name.encode("utf-8", "surrogatepass")) > LONGEST_PATH:
        return f"is empty or longer than {LONGEST_PATH} bytes"
    if any(unicodedata.category(char) in _INVISIBLE for char in name if not char.isascii() or not char.isprintable()):
        return "contains control or invisible characters"
    if "\\" in name:
        return "contains a backslash"
    if name.startswith("/"):
        return "is an absolute path"
    if _DRIVE.match(name):
        return "begins with a drive letter"
    parts = name.removesuffix("/").split("/")
    if ".." in parts:
        return "climbs out of the package ('..')"
    if "" in parts or "." in parts:
        return "contains an empty or '.' part"
    if any(len(part) > LONGEST_PART for part in parts) or len(parts) > MOST_PARTS:
        return f"has a part longer than {LONGEST_PART} characters, or more than {MOST_PARTS} parts"
    return None


def folded(name: str) -> str:
    """Equal for names that some file system takes for one: case and Unicode form set aside."""
    if name.isascii():
        return name.casefold()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def shown(name: str) -> str:
    """An untrusted name, safe to print."""
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in name[:200])
    return text + ("…" if len(name) > 200 else "")
