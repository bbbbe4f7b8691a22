from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.model.errors import BadRequest
from slipway.model.secrets import (
    find_references,
    find_secrets,
    is_reference,
    masked,
    redact,
    reference,
    refuse_references,
    replace_references,
    replace_secrets,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["password", "accessInfo"]), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "name",
    ["password", "Passwd", "ssh_password", "sshPassword", "ssh-password", "client_secret", "clientSecret", "token",
     "bearer_token", "privateKey", "ssh_private_key", "kubeconfig", "certificate_key", "sslKey", "passphrase",
     "API-KEY", "secretKey", "aws_secret_key", "secrets", "tokens", "passwords", "password_1", "token2", "passwords-3",
     "pass", "db_pass", "dbPass", "pw", "root_pw", "pwd", "adminPwd", "passcode", "authorization", "Authorization",
     "credentials", "certificate_private_key_pem", "private_keys", "tlsKey1"],
)  # fmt: skip
def test_a_secret_is_known_by_its_name_however_it_is_spelled(name: str) -> None:
    assert find_secrets({"additionalParams": {"nodes": [{name: "x"}]}}) == (("additionalParams", "nodes", 0, name),)


@pytest.mark.parametrize(
    "name",
    ["username", "key_name", "passwords_file", "token_url", "ssl_ca_cert", "secret_paths", "oidc_token_url",
     "password_policy", "ssh_cp_name", "bypass", "compass", "lowpass", "passed", "pwm", "authorization_mode",
     "public_key", "public_key_pem", "1", "s", ""],
)  # fmt: skip
def test_other_names_are_left_alone(name: str) -> None:
    assert find_secrets({"additionalParams": {name: "x"}}) == ()


def test_in_access_info_all_but_the_known_harmless_keys_are_secret() -> None:
    access = {"username": "u", "projectDomain": "d", "client_id": "c", "unheard_of": "x", "password": "y"}
    found = find_secrets({"vimConnectionInfo": {"vim1": {"accessInfo": access, "vimType": "t"}}})
    assert [path[-1] for path in found] == ["unheard_of", "password"]


def test_a_setting_adds_names_whole_or_by_their_end() -> None:
    document = {"pin": "1", "shopping": "2", "door_pin": "3"}
    assert find_secrets(document, ["pin"]) == (("pin",),)
    assert find_secrets({"pin_1": "1", "pins": "2", "pinned": "3"}, ["pin"]) == (("pin_1",), ("pins",))
    assert find_secrets(document, ["*pin"]) == (("pin",), ("door_pin",))


def test_a_secret_that_is_not_text_goes_as_a_whole() -> None:
    hidden = replace_secrets({"token": {"a": [1]}, "password": 7}, lambda path, value: "hidden")
    assert hidden == {"token": "hidden", "password": "hidden"}


def test_flags_absent_values_and_references_stay() -> None:
    document = {"create_admin_token": True, "password": None, "token": reference("1")}
    assert replace_secrets(document, lambda path, value: "hidden") == document


@pytest.mark.parametrize("place", ["additionalParams", "metadata", "userDefinedData", "extensions"])
@pytest.mark.parametrize(
    "url", ["postgres://u:pw@h/db", "HTTPS://u:p%40@h", "amqp://:pw@h", "jdbc:mysql://u:a@b@h", " redis://u:pw@[::1]:1"]
)
def test_a_url_with_a_password_is_a_secret_under_any_name(place: str, url: str) -> None:
    assert find_secrets({place: {"a": {"b": url}, "c": ["x", url]}}) == ((place, "a", "b"), (place, "c", 1))


@pytest.mark.parametrize(
    "text",
    ["https://h:8443/p", "https://user@h/p", "https://h/a:b@c", "https://h?x=a:b@c", "u:pw@h", "see http://a and b:c@d",
     "http://[::1]:80/", "a" * 100 + "://u:pw@h"],
)  # fmt: skip
def test_other_text_is_left_alone(text: str) -> None:
    assert find_secrets({"metadata": {"a": text}}) == ()


def test_an_attribute_that_is_text_stays_text() -> None:
    assert find_secrets({"vnfInstanceName": "https://u:pw@h", "metadata": {}}) == ()


def test_redaction_leaves_references_out_of_mappings_and_lists() -> None:
    document = {"a": reference("1"), "b": [reference("2"), 3], "c": {"d": reference("3")}}
    assert redact(document) == {"b": [3], "c": {}}


@given(JSON)
def test_redaction_returns_the_same_object_when_there_is_nothing_to_hide(document: Any) -> None:
    assert redact(document) is document


@pytest.mark.parametrize(
    ("body", "place"),
    [({"$secret": "1"}, "The body"), ({"a": {"$secret": 3}}, "a"), ({"a": [{"b": {"$secret": "1", "c": 2}}]}, "a/0/b")],
)
def test_a_request_that_names_a_stored_secret_is_refused(body: Any, place: str) -> None:
    with pytest.raises(BadRequest, match=f"^{place}: "):
        refuse_references(body)


@given(JSON)
def test_hiding_and_revealing_gives_the_document_back(document: Any) -> None:
    kept: dict[str, Any] = {}

    def keep(path: tuple[str | int, ...], value: Any) -> dict[str, str]:
        kept[str(len(kept))] = value
        return reference(str(len(kept) - 1))

    hidden = replace_secrets(document, keep)
    assert sorted(find_references(hidden)) == sorted(kept)
    assert find_secrets(hidden) == ()
    assert replace_references(hidden, kept.__getitem__) == document


def test_only_a_mapping_of_exactly_one_reference_is_one() -> None:
    assert is_reference({"$secret": "1"})
    assert not is_reference({"$secret": "1", "other": 2})
    assert not is_reference({"$secret": 1})
    assert not is_reference("$secret")


def on_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    "write", [str, repr, json.dumps, lambda text: json.dumps(text, ensure_ascii=False), on_one_line]
)
def test_a_secret_is_masked_however_it_was_written(write: Callable[[str], str]) -> None:
    key = '-----BEGIN KEY-----\nit\'s "hidden" \\ für alle\n-----END KEY-----\n'
    said = masked(f"Not valid: {write(key)}", ["idd", key])
    assert said.replace("'", "").replace('"', "") == "Not valid: ***"
