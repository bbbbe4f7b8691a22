"""Readiness rules that a package brings for its custom resources: read, checked and bounded.

    rules = read_rules(document, "Files/readiness.yaml")     # a list, as YAML or JSON was parsed

    - apiVersion: example.com/v1        # or without the version: example.com
      kind: Database
      name: main                        # optional: this one alone
      ready:                            # all of them
        - condition: {type: Ready, status: "True"}
        - field: {path: status.readyReplicas, equals_field: spec.replicas}
      failed:                           # any of them ends the waiting
        - condition: {type: Failed}

docs/readiness.md has the form for users. A rule takes the place of the built-in one for its kind.
"""

from __future__ import annotations

from typing import Any

from slipway.kube.field_path import FieldPath, field_path
from slipway.kube.readiness import Check, Comparison, Condition, Field, Rule
from slipway.model.errors import PackageError

MOST_RULES = 100
MOST_CHECKS = 20
LONGEST = 253  # characters of a name, a kind, a value
# Keys of `field` beside its path, and what they compare.
COMPARISONS: dict[str, Comparison] = {
    "equals": "equals",
    "not_equals": "not_equals",
    "exists": "exists",
    "at_least": "at_least",
    "one_of": "one_of",
    "equals_field": "equals",
    "at_least_field": "at_least",
}


def read_rules(document: Any, file: str) -> tuple[Rule, ...]:
    """PackageError names the rule, by its number and attribute, and what is wrong with it."""
    return tuple(
        _Reader(file, f"rule {number}").rule(one)
        for number, one in enumerate(_Reader(file, "readiness rules").items(document, MOST_RULES), 1)
    )


class _Reader:
    """At one place of the document, which its errors name."""

    def __init__(self, file: str, place: str) -> None:
        self.file, self.place = file, place

    def at(self, place: str) -> _Reader:
        return _Reader(self.file, f"{self.place}, {place}")

    def error(self, what: str, cure: str) -> PackageError:
        return PackageError(f"Readiness rules: {self.place}: {what}.", file=self.file, cure=f"{cure}.")

    def rule(self, value: Any) -> Rule:
        entries = self.map(value, {"apiVersion", "kind", "name", "ready", "failed"})
        api_version = self.text(entries, "apiVersion")
        kind = self.text(entries, "kind")
        group, slash, version = api_version.partition("/")
        if not slash:  # "v1" is the core's, "example.com" a group
            group, version = ("", api_version) if "." not in api_version else (api_version, "")
        name = self.text(entries, "name") if "name" in entries else None
        about = _Reader(self.file, f"{self.place} ({kind}{f' {name}' if name else ''})")
        ready, failed = (about.checks(entries.get(key, []), key) for key in ("ready", "failed"))
        if not ready and not failed:
            raise about.error("it has neither ready nor failed", "say when such an object is ready")
        return Rule(group, kind, ready, failed, version, name)

    def checks(self, value: Any, key: str) -> tuple[Check, ...]:
        listed = self.at(key).items(value, MOST_CHECKS)
        return tuple(self.at(f"{key}[{number}]").check(one) for number, one in enumerate(listed))

    def check(self, value: Any) -> Check:
        entries = self.map(value, {"condition", "field"})
        if len(entries) != 1:
            raise self.error("it must have either condition or field", "make two checks of it, or name one of them")
        if "condition" in entries:
            return self.at("condition").condition(entries["condition"])
        return self.at("field").field(entries["field"])

    def condition(self, value: Any) -> Condition:
        entries = self.map(value, {"type", "status", "reason"})
        status = entries.get("status", "True")
        if isinstance(status, bool):  # in YAML, True without quotes
            status = str(status)
        if status not in ("True", "False", "Unknown"):
            raise self.error("status must be True, False or Unknown", "correct it")
        reason = self.text(entries, "reason") if "reason" in entries else None
        return Condition(self.text(entries, "type"), status, reason)

    def field(self, value: Any) -> Field:
        entries = self.map(value, {"path", *COMPARISONS})
        path = self.path(entries, "path")
        given = [key for key in COMPARISONS if key in entries]
        if len(given) != 1:
            raise self.error(f"it must have one of {', '.join(COMPARISONS)}", "name what the field is compared with")
        (key,) = given
        if key.endswith("_field"):
            return Field(path, COMPARISONS[key], other=self.path(entries, key))
        return Field(path, COMPARISONS[key], self.operand(key, entries[key]))

    def operand(self, key: str, value: Any) -> Any:
        if key == "exists" and not isinstance(value, bool):
            raise self.error("exists must be true or false", "correct it")
        if key == "at_least" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self.error("at_least must be a number", "correct it, or use equals")
        if key == "one_of":
            return tuple(self.operand("equals", one) for one in self.at(key).items(value, MOST_CHECKS))
        if not isinstance(value, str | int | float | bool | None) or (isinstance(value, str) and len(value) > LONGEST):
            raise self.error(f"{key} must be a string (at most {LONGEST} characters), a number, true or false",
                             "compare with one value")  # fmt: skip
        return value

    def path(self, entries: dict[str, Any], key: str) -> FieldPath:
        text = self.text(entries, key)
        try:
            return field_path(text)
        except ValueError as error:
            raise self.error(f"{key} {error}", "give it as status.phase or status.addresses[0].ip") from None

    def map(self, value: Any, known: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error("it is not a mapping", f"give {', '.join(sorted(known))}")
        if unknown := [str(key)[:60] for key in value if key not in known]:
            raise self.error(f"{unknown[0]!r} is not known", f"use {', '.join(sorted(known))}")
        return value

    def items(self, value: Any, most: int) -> list[Any]:
        if not isinstance(value, list):
            raise self.error("it is not a list", "write it as one, with a dash before each entry")
        if len(value) > most:
            raise self.error(f"there are {len(value)} entries; at most {most} are read", "leave some out")
        return value

    def text(self, entries: dict[str, Any], key: str) -> str:
        value = entries.get(key)
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST or not value.isprintable():
            raise self.error(f"{key} must be a string of 1 to {LONGEST} characters", f"give {key}")
        return value
