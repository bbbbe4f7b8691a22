"""Sizes with units, as TOSCA writes them."""

from __future__ import annotations

_UNITS = {"b": 1} | {
    f"{letter}{kind}": int(base**power)
    for power, letter in enumerate("kmgt", 1)
    for kind, base in (("b", 1000), ("ib", 1024))
}


class MemoryUnit:
    @staticmethod
    def convert_unit_size_to_num(size: str, unit: str | None = None) -> int:
        """`"2 GiB"` in MiB is 2048; what is left of a unit is cut off."""
        match str(size).split():
            case [number, own]:
                return int(float(number) * _bytes(own) / _bytes(unit or "B"))
        raise ValueError(f"{size!r} is no size: a number, a space and a unit")


def _bytes(unit: str) -> int:
    if unit.lower() not in _UNITS:
        raise ValueError(f"{unit!r} is no unit of memory; B, kB, KiB, MB, MiB, GB, GiB, TB and TiB are")
    return _UNITS[unit.lower()]
