"""How many examples Hypothesis tries where its default is not meant: fewer in `make check`."""

from __future__ import annotations

from hypothesis import settings

QUICK = 20  # the profile of `make check`


def examples(many: int) -> int:
    return min(many, QUICK) if settings().max_examples == QUICK else many
