"""Contradictions in a package that harm nothing: collected while it is read, instead of refusing it."""

from __future__ import annotations

from slipway.model.errors import PackageError
from slipway.model.package import PackageWarning

MOST_WARNINGS = 50
LONGEST_TEXT = 600  # names come from the package


class Warnings:
    """Few and short, whatever the package says: they are stored with it, shown and logged."""

    def __init__(self) -> None:
        self._first: list[PackageWarning] = []
        self._left_out = 0

    def add(self, fault: PackageError) -> None:
        """`fault` is an error that is not raised; it says what is ignored."""
        if len(self._first) == MOST_WARNINGS:
            self._left_out += 1
            return
        file, what, cure = (text[:LONGEST_TEXT] for text in (fault.file or "", fault.what, fault.cure or ""))
        self._first.append(PackageWarning(file=file, line=fault.line, what=what, cure=cure))

    def all(self) -> tuple[PackageWarning, ...]:
        """The first ones, and one that counts the others."""
        if not self._left_out:
            return tuple(self._first)
        more = PackageWarning(
            file=self._first[-1].file, what=f"{self._left_out} more warnings are left out.", cure="correct these first."
        )
        return (*self._first, more)
