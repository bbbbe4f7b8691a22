"""The peer's words for credentials, and ours."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slipway.api.legacy_credentials import access_of, access_patch, auth_cred_of, interface_of, vim_project_of
from slipway.api.legacy_vims import Registration, VimChange, patch_of, to_legacy, translated
from slipway.model.errors import BadRequest
from slipway.model.vim import KUBERNETES, OPENSTACK, SIMULATED, Vim

CRED = {"username": "demo", "password": "p", "user_domain_name": "Default", "cert_verify": "False"}
PROJECT = {"name": "demo", "project_domain_name": "Default"}
SECRET = {"$secret": "1"}


def vim(vim_type: str, access: dict[str, Any], **interface: Any) -> Vim:
    return Vim(
        id="1", name="v", vim_type=vim_type, interface_info=interface, access_info=access, created_at=datetime.now(UTC)
    )


def test_an_openstack_is_translated_both_ways() -> None:
    access = access_of(OPENSTACK, CRED, PROJECT)
    assert access == {
        "username": "demo", "password": "p", "userDomain": "Default", "project": "demo", "projectDomain": "Default"
    }  # fmt: skip
    assert interface_of(CRED) == {"skipCertificateVerification": True}
    back = vim(OPENSTACK, {**access, "password": SECRET}, **interface_of(CRED))
    assert auth_cred_of(back) == {**CRED, "password": "***"}
    assert vim_project_of(back) == PROJECT


@pytest.mark.parametrize(
    "cred",
    [
        {"bearer_token": "t", "ssl_ca_cert": "PEM"},
        {"username": "u", "password": "p"},
        {"oidc_token_url": "https://o/token", "username": "u", "password": "p", "client_id": "c", "client_secret": "s"},
    ],
)
def test_a_cluster_is_translated_both_ways(cred: dict[str, str]) -> None:
    access = access_of(KUBERNETES, cred, {"name": "default"})
    back = vim(KUBERNETES, access, **interface_of(cred))
    assert auth_cred_of(back) == cred
    assert vim_project_of(back) == {"name": "default"}
    assert access["namespace"] == "default"


def test_what_a_client_does_not_know_is_not_taken_for_a_value() -> None:
    assert access_of(OPENSTACK, {"username": "u", "user_id": "", "password": "***"}, {"id": None, "name": "p"}) == {
        "username": "u", "project": "p"
    }  # fmt: skip
    assert interface_of({"cert_verify": "True", "ssl_ca_cert": ""}) == {"skipCertificateVerification": False}
    with pytest.raises(BadRequest, match=r"auth_cred\.cert_verify"):
        interface_of({"cert_verify": "maybe"})


def test_a_ca_that_is_none_as_the_peers_documentation_writes_it_is_absent() -> None:
    """In a YAML file `None` is a text. A password may be that text."""
    cred = {"bearer_token": "None", "ssl_ca_cert": "None"}
    assert interface_of(cred) == {}
    assert access_of(KUBERNETES, cred, {"name": "default"}) == {"bearer_token": "None", "namespace": "default"}


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ({"bearer_token": "t"}, {"client_certificate", "client_key", "oidc_token_url", "client_id", "client_secret",
                                 "username", "password"}),
        ({"username": "u", "password": "p"}, {"bearer_token", "client_certificate", "client_key", "oidc_token_url",
                                              "client_id", "client_secret"}),
        ({"oidc_token_url": "o", "password": "p"}, {"bearer_token", "client_certificate", "client_key"}),
        ({"password": "new"}, set()),
        ({"namespace": "n"}, set()),
    ],
)  # fmt: skip
def test_another_way_to_log_in_ends_the_one_before(given: dict[str, str], gone: set[str]) -> None:
    patch = access_patch(KUBERNETES, given)
    assert {key for key, value in patch.items() if value is None} == gone
    assert {key: value for key, value in patch.items() if value is not None} == given


@pytest.mark.parametrize(
    ("kind", "url", "endpoint"),
    [
        ("openstack", "http://k:5000", "http://k:5000/v3"),
        ("openstack", "http://k/identity/v3/", "http://k/identity/v3"),
        ("kubernetes", "https://k:6443/", "https://k:6443"),
    ],
)
def test_the_address_of_keystone_gets_its_version(kind: str, url: str, endpoint: str) -> None:
    given = Registration(name="v", type=kind, auth_url=url, auth_cred=CRED, vim_project=PROJECT)
    assert translated(given).interface_info["endpoint"] == endpoint


def test_a_change_names_only_what_changes() -> None:
    old = vim(SIMULATED, {})
    assert patch_of(old, VimChange(name="new")) == {"name": "new"}
    assert patch_of(old, VimChange(description="", is_default=False)) == {"description": None, "isDefault": False}


def test_every_vim_can_be_shown() -> None:
    shown = to_legacy(vim("ELSE.V_1", {"key": SECRET}, endpoint="else://where"))
    assert (shown["type"], shown["auth_cred"], shown["status"]) == ("ELSE.V_1", {"key": "***"}, "ACTIVE")
    assert to_legacy(vim(SIMULATED, {}, endpoint="sim://one"))["type"] == "simulated"
