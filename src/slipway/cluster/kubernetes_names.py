"""The syntax that Kubernetes gives to names, labels and taints, so that what breaks it is refused before it is sent."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from slipway.cluster.schema import Refusal, kind_of_value

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

# Set by Kubernetes or by us. A request that sets them would say something about a node that is not true.
OWN_LABELS = ("CIS-node", "kubernetes.io/zone", "topology.kubernetes.io/zone", "kubernetes.io/hostname")
OWN_ROLES = ("node-role.kubernetes.io/control-plane", "node.kubernetes.io/exclude-from-external-load-balancers")

DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")

_KEY_CURE = "write it like example.com/role: letters, digits and - _ . after an optional domain in lower case"
_VALUE_CURE = "write at most 63 letters, digits and - _ ., beginning and ending with a letter or digit"


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str

    @property
    def document(self) -> dict[str, str]:
        """As Kubernetes writes it."""
        return {"key": self.key, **({"value": self.value} if self.value else {}), "effect": self.effect}


def is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    right_prefix = not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix) is not None)
    return right_prefix and _NAME.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    return value == "" or _NAME.fullmatch(value) is not None


def labels(value: Any) -> dict[str, str]:
    """`{"example.com/role": "edge"}`"""
    if not isinstance(value, dict):
        raise Refusal(f"must be an object of labels, not {kind_of_value(value)}", 'write {"example.com/role": "edge"}')
    for key, item in value.items():
        if not isinstance(key, str) or not is_label_key(key):
            raise Refusal(f"{str(key)[:80]!a} is not the key of a label", _KEY_CURE)
        if key in OWN_LABELS or key in OWN_ROLES:
            raise Refusal(f"the label {key} is set by Slipway or Kubernetes", "leave it out")
        if not isinstance(item, str) or not is_label_value(item):
            raise Refusal(f"the label {key} has a value that Kubernetes does not take", _VALUE_CURE)
    return dict(value)


def taints(value: Any) -> tuple[Taint, ...]:
    """A list of `key=value:Effect`, or of objects with key, value and effect."""
    if not isinstance(value, list | tuple):
        raise Refusal(
            f"must be a list of taints, not {kind_of_value(value)}", 'write ["example.com/role=edge:NoSchedule"]'
        )
    made = tuple(_taint(one) for one in value)
    if len({(one.key, one.effect) for one in made}) != len(made):
        raise Refusal("a key is there twice with the same effect", "name each key once for each effect")
    return made


def _taint(one: Any) -> Taint:
    if isinstance(one, str):
        rest, colon, ending = one.rpartition(":")
        words = rest.partition("=")
        one = {"key": words[0], "value": words[2], "effect": ending} if colon else None
    if not isinstance(one, dict) or not set(one) <= {"key", "value", "effect"}:
        raise Refusal("an entry is not a taint", "write it like example.com/role=edge:NoSchedule")
    key, value, effect = one.get("key"), one.get("value", ""), one.get("effect")
    if not isinstance(key, str) or not is_label_key(key):
        raise Refusal("the key of a taint is not one that Kubernetes takes", _KEY_CURE)
    if not isinstance(value, str) or not is_label_value(value):
        raise Refusal(f"the taint {key} has a value that Kubernetes does not take", _VALUE_CURE)
    if not isinstance(effect, str) or effect not in EFFECTS:
        raise Refusal(f"the taint {key} has no effect that Kubernetes knows", f"write one of: {', '.join(EFFECTS)}")
    return Taint(key=key, value=value, effect=effect)
