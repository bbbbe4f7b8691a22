"""All limits of what a package may hold."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True)
class PackageLimits:
    entries: int = 10_000
    directory_bytes: int = 16 * MIB  # the ZIP's table of contents
    total_bytes: int = 20 * GIB  # all members together, after inflating
    ratio: int = 200  # inflated to packed size ...
    ratio_from: int = 10 * MIB  # ... of members larger than this
    text_bytes: int = 4 * MIB  # one YAML, meta or manifest file
    signature_bytes: int = 64 * KIB  # one CMS or certificate file
    signatures: int = 256  # of single files
    vnfd_files: int = 100
    vnfd_bytes: int = 8 * MIB  # all VNFD files together
    yaml_nodes: int = 200_000  # in all VNFD files together, aliases counted as often as they are used
    yaml_depth: int = 64


DEFAULT_LIMITS = PackageLimits()
