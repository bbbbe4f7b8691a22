"""Two filters are the same when they let the same through."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.model.subscription import same_filter

SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({}, {"operationTypes": []}),
    ({}, {"vnfInstanceSubscriptionFilter": {}}),
    ({}, {"vnfInstanceSubscriptionFilter": {"vnfdIds": []}}),
    ({"operationTypes": ("HEAL", "SCALE")}, {"operationTypes": ["SCALE", "HEAL", "SCALE"]}),
    ({"vnfdId": "a"}, {"vnfdId": ["a"]}),
    (
        {"vnfInstanceSubscriptionFilter": {"vnfdIds": ["a", "b"], "vnfInstanceNames": ["x"]}},
        {"vnfInstanceSubscriptionFilter": {"vnfInstanceNames": ["x"], "vnfdIds": ["b", "a"]}},
    ),
    (
        {"vnfProductsFromProviders": [{"vnfProvider": "p", "vnfProducts": []}, {"vnfProvider": "q"}]},
        {"vnfProductsFromProviders": [{"vnfProvider": "q"}, {"vnfProvider": "p"}]},
    ),
]
OTHER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"operationTypes": ["HEAL"]}),
    ({"operationTypes": ["HEAL"]}, {"operationTypes": ["HEAL", "SCALE"]}),
    ({"vnfdId": "a"}, {"vnfPkgId": "a"}),
    (
        {"vnfProductsFromProviders": [{"vnfProvider": "p"}]},
        {"vnfProductsFromProviders": [{"vnfProvider": "p", "vnfProducts": [{"vnfProductName": "n"}]}]},
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert same_filter(one, other)
    assert same_filter(other, one)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_not_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert not same_filter(one, other)
    assert not same_filter(other, one)
