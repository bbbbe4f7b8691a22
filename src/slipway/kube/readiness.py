"""Whether an object is ready: pure, and by rules that are data (`readiness_rules.py` reads those of a package).

    match readiness(found, rules):
        case Ready(): ...
        case Waiting(reason): ...      # soon, perhaps
        case Failed(reason): ...       # waiting longer is of no use
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipway.kube.interface import Object


@dataclass(frozen=True)
class Ready:
    pass


@dataclass(frozen=True)
class Waiting:
    reason: str


@dataclass(frozen=True)
class Failed:
    reason: str


Readiness = Ready | Waiting | Failed


@dataclass(frozen=True)
class Rule:
    ...


def readiness(found: Object, rules: Sequence[Rule] = ()) -> Readiness:
    """By the first rule that is about this object; else by the table of built-in kinds; else by its conditions."""
    ...


def read_rules(document: Any, file: str) -> tuple[Rule, ...]:
    """PackageError names the rule and what is wrong with it."""
    ...
