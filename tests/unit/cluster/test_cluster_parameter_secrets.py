from __future__ import annotations

from typing import Any

import pytest

from slipway.cluster.parameters import NAME, ClusterParameters, parameters_now, read_parameters
from slipway.model.errors import BadRequest
from slipway.model.secrets import find_references, reference, replace_secrets
from tests.unit.cluster.documents import EVERYTHING, FULL, SEEDS, V2, Place, paths, with_value, written


def read(document: Any) -> ClusterParameters:
    return read_parameters({NAME: document})


@pytest.mark.parametrize("document", [*SEEDS.values(), *EVERYTHING.values()])
def test_secrets_may_be_references_wherever_they_are_stored_as_such(document: dict[str, Any]) -> None:
    stored = replace_secrets(document, lambda path, value: reference("id-of-a-secret"))
    assert list(find_references(stored))
    made = read(stored)
    assert made.master_node.password is not None
    assert made.master_node.password.document == {"$secret": "id-of-a-secret"}
    assert made.master_node.password.opened({"id-of-a-secret": "hunter2"}.__getitem__) == "hunter2"


def test_every_secret_parameter_has_a_name_under_which_it_is_stored_encrypted() -> None:
    """A password that arrives in clear because nobody knows its name as a secret would be kept in clear."""
    stored = replace_secrets(FULL, lambda path, value: reference("x"))
    hidden = {written(place) for place in paths(FULL) if isinstance(_at(stored, place), dict)}
    names = ("password", "private_key", "passphrase")
    assert {written(place) for place in paths(FULL) if str(place[-1]).endswith(names)} <= hidden


def test_secrets_are_never_printed() -> None:
    canary = "hunter2-canary"
    document = with_value(FULL, ("master_node", "password"), canary)
    document = with_value(document, ("proxy", "http_proxy"), f"http://user:{canary}@proxy.example.com:3128")
    made = read(document)
    assert canary not in f"{made!r} {made}"
    for place in paths(FULL):
        if place[-1] in ("labels", "taints"):
            continue
        with pytest.raises(BadRequest) as caught:
            read(with_value(FULL, place, canary + "\x00"))
        assert canary not in caught.value.detail


def test_later_requests_say_only_what_is_new() -> None:
    stored = {NAME: replace_secrets(V2, lambda path, value: reference("old"))}
    assert parameters_now(stored, {}) == read(stored[NAME])
    short = parameters_now(stored, {"worker_node_username": "admin", "worker_node_password": reference("new")})
    assert short.worker_node.username == "admin"
    assert short.worker_node.password is not None
    assert short.worker_node.password.document == reference("new")
    assert short.master_node == read(stored[NAME]).master_node
    over = parameters_now(stored, {NAME: {"drain": {"timeout": 5}, "worker_node": {"password": "clear"}}})
    assert over.drain.timeout == 5
    assert over.worker_node.username == "ubuntu"
    assert over.worker_node.password is not None
    assert over.worker_node.password.document == "clear"


def test_new_credentials_that_can_not_be_are_refused_by_their_own_name() -> None:
    with pytest.raises(BadRequest, match=r"^additionalParams\.worker_node_username: it is not a user name; write"):
        parameters_now({NAME: V2}, {"worker_node_username": "a b"})


def test_proxies_may_be_stored_as_secrets() -> None:
    stored = replace_secrets(FULL, lambda path, value: reference("x"), ["http_proxy", "https_proxy"])
    proxy = read(stored).proxy.https_proxy
    assert proxy is not None
    assert proxy.document == reference("x")


def test_a_stored_secret_that_is_no_text_is_refused_when_it_is_opened() -> None:
    password = read(with_value(V2, ("master_node", "password"), reference("x"))).master_node.password
    assert password is not None
    with pytest.raises(TypeError, match="not text"):
        password.opened({"x": 5}.__getitem__)


def test_later_requests_may_repeat_everything() -> None:
    assert parameters_now({}, {NAME: V2}) == read(V2)
    assert parameters_now({NAME: V2}, {NAME: V2}) == read(V2)
    with pytest.raises(BadRequest, match="must be an object"):
        parameters_now({NAME: V2}, {NAME: []})


def _at(document: Any, place: Place) -> Any:
    for part in place:
        document = document[part] if not (isinstance(document, dict) and "$secret" in document) else document
    return document
