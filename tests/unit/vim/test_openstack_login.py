"""What an OpenStack VIM has to say, and what a login to it says."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, VimError, VimFault
from slipway.model.vim import OPENSTACK
from slipway.outgoing.guard import Guard
from slipway.vim.openstack.account import account_of, keystone_url
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.trust import authorities
from tests.unit.vim.authority import Authority
from tests.unit.vim.keystone_standin import ApplicationCredential, Keystone, a_keystone
from tests.unit.vim.loopback import Reply

ACCESS = {
    "username": "demo",
    "password": "demo-password",
    "project": "demo",
    "userDomain": "Default",
    "projectDomain": "Default",
}
driver = OpenStackDriver()


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with a_keystone() as keystone:
        yield keystone


def to(url: str, access: dict[str, Any] | None = None, **interface: Any) -> VimConnection:
    return VimConnection(OPENSTACK, {"endpoint": url, **interface}, ACCESS if access is None else access, {})


async def fails(connection: VimConnection) -> VimError:
    with pytest.raises(VimError) as caught:
        await driver.check(connection)
    assert "demo-password" not in caught.value.detail
    return caught.value


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://k:5000", "http://k:5000/v3"),
        ("http://k:5000/", "http://k:5000/v3"),
        ("https://k/identity", "https://k/identity/v3"),
        ("https://k/identity/v3/", "https://k/identity/v3"),
    ],
)
def test_the_address_of_keystone_ends_in_its_version(given: str, used: str) -> None:
    assert keystone_url(given) == used


@pytest.mark.parametrize(
    "given", [None, 7, "", "k:5000", "ftp://k", "http://", "http://a:b@k", "http://k:x", "http://k/?a"]
)
def test_what_is_no_address_is_refused(given: object) -> None:
    with pytest.raises(BadRequest, match=r"^interfaceInfo\.endpoint: .*https://host:5000/v3"):
        keystone_url(given)


@pytest.mark.parametrize(
    ("access", "field"),
    [
        ({}, "password"),
        ({**ACCESS, "username": None}, "username"),
        ({**ACCESS, "project": ""}, "project"),
        ({**ACCESS, "password": 7}, "password"),
        ({**ACCESS, "interface": "secret-door"}, "interface"),
        ({"applicationCredentialSecret": "s"}, "applicationCredentialId"),
        ({"applicationCredentialSecret": "s", "applicationCredentialName": "n"}, "username"),
    ],
)
def test_what_is_missing_for_a_login_is_named(access: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest, match=rf"^accessInfo\.{field}: "):
        driver.validate(to("http://k", access))


@pytest.mark.parametrize(
    ("interface", "field"),
    [
        ({"ssl_ca_cert": "no PEM"}, "ssl_ca_cert"),
        ({"skipCertificateVerification": "perhaps"}, "skipCertificateVerification"),
        ({"skipCertificateHostnameCheck": 7}, "skipCertificateHostnameCheck"),
    ],
)
def test_what_can_not_be_said_of_certificates_is_named(interface: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest, match=rf"^interfaceInfo\.{field}: "):
        driver.validate(to("http://k", **interface))


def test_domains_may_be_given_by_name_by_id_or_not_at_all() -> None:
    plain = {"username": "u", "password": "p", "project": "a"}
    unsaid = account_of(to("http://k", plain))
    assert unsaid.credential == {"username": "u", "user_domain_id": "default", "password": "p"}
    assert unsaid.scope == {"project_name": "a", "project_domain_id": "default"}
    said = account_of(to("http://k", {**plain, "userDomain": "Here", "projectDomainId": "d1"}))
    assert said.credential == {"username": "u", "user_domain_name": "Here", "password": "p"}
    assert said.scope == {"project_name": "a", "project_domain_id": "d1"}


async def test_a_check_says_what_is_there(keystone: Keystone) -> None:
    said = await driver.check(to(keystone.url.removesuffix("/v3"), {**ACCESS, "region": "RegionOne"}))
    assert said == (
        f"Keystone v3 at {keystone.url}, as user demo of domain Default in project demo: "
        "region RegionOne has compute, identity, image, network, orchestration."
    )
    assert keystone.asked[0].document["auth"]["identity"]["methods"] == ["password"]


async def test_every_check_logs_in_anew(keystone: Keystone) -> None:
    """A token that is kept would hide that the password was changed since."""
    await driver.check(to(keystone.url))
    keystone.users["demo"].password = "another"
    assert "does not let user demo of domain Default in" in (await fails(to(keystone.url))).detail


async def test_a_check_says_what_is_missing_for_vnfs(keystone: Keystone) -> None:
    keystone.regions = {"north": ("compute", "identity"), "south": ("identity",)}
    seen = await driver.inspect(to(keystone.url))
    assert seen.regions == ("north", "south")
    assert "region north has compute, identity, but no network (Neutron), no image (Glance), no orch" in seen.detail
    assert seen.detail.endswith("Choose one by accessInfo.region.")


async def test_user_and_project_may_be_given_by_their_ids(keystone: Keystone) -> None:
    access = {
        "userId": keystone.users["demo"].id,
        "password": "demo-password",
        "projectId": keystone.projects["demo"].id,
    }
    assert "region RegionOne has compute" in await driver.check(to(keystone.url, access))


@pytest.mark.parametrize("by", ["id", "name"])
async def test_an_application_credential_logs_in(keystone: Keystone, by: str) -> None:
    keystone.credentials.append(one := ApplicationCredential("slipway", "app-secret", "demo", "demo"))
    named = {
        "id": {"applicationCredentialId": one.id},
        "name": {"applicationCredentialName": "slipway", "username": "demo"},
    }
    access = {**named[by], "applicationCredentialSecret": "app-secret"}
    assert "region RegionOne has compute" in await driver.check(to(keystone.url, access))
    error = await fails(to(keystone.url, {**access, "applicationCredentialSecret": "wrong-secret"}))
    assert (error.fault, "wrong-secret" in error.detail) == (VimFault.AUTH, False)


async def test_the_project_of_an_application_credential_is_the_one_that_is_named(keystone: Keystone) -> None:
    keystone.credentials.append(one := ApplicationCredential("slipway", "app-secret", "demo", "demo"))
    access = {"applicationCredentialId": one.id, "applicationCredentialSecret": "app-secret"}
    assert "in project demo: region" in await driver.check(to(keystone.url, {**access, "project": "demo"}))
    right = {**access, "projectId": keystone.projects["demo"].id}
    assert "region RegionOne has compute" in await driver.check(to(keystone.url, right))
    for wrong in ({"project": "other"}, {"projectId": keystone.projects["other"].id}):
        error = await fails(to(keystone.url, {**access, **wrong}))
        assert error.fault is VimFault.AUTH
        assert "the application credential is one of project 'demo'" in error.detail
        assert f"accessInfo.{next(iter(wrong))}" in error.detail


async def test_a_wrong_password_and_a_wrong_project_are_told_apart(keystone: Keystone) -> None:
    password = await fails(to(keystone.url, {**ACCESS, "password": "wrong"}))
    assert password.fault is VimFault.AUTH
    assert "does not let user demo of domain Default in: 401" in password.detail
    project = await fails(to(keystone.url, {**ACCESS, "project": "other"}))
    assert project.fault is VimFault.AUTH
    assert "no access to project 'other'" in project.detail
    assert "accessInfo.project must be one of: demo" in project.detail


@pytest.mark.parametrize(
    "listed", [b'{"projects":' + b"[" * 100_000, b"<html>", [], {"projects": 5}, {"projects": [5]}, {"projects": [{}]}]
)
async def test_a_wrong_project_is_told_as_such_whatever_else_keystone_says(
    keystone: Keystone, monkeypatch: pytest.MonkeyPatch, listed: Any
) -> None:
    monkeypatch.setattr(keystone, "_own_projects", lambda asked: Reply(200, listed))
    error = await fails(to(keystone.url, {**ACCESS, "project": "other"}))
    assert (error.fault, "does not let user demo" in error.detail) == (VimFault.AUTH, True)


async def test_a_wrong_region_is_answered_with_those_there_are(keystone: Keystone) -> None:
    error = await fails(to(keystone.url, {**ACCESS, "region": "Atlantis"}))
    assert error.fault is VimFault.PERMANENT
    assert "no region 'Atlantis'. Cure: accessInfo.region must be one of: RegionOne" in error.detail


@pytest.mark.parametrize(
    ("reply", "fault", "words"),
    [
        (Reply(404, {"detail": "Not Found"}), VimFault.PERMANENT, "There is no Keystone v3 at"),
        (Reply(302, None, {"Location": "https://elsewhere/v3"}), VimFault.PERMANENT, "302, with https://elsewhere/v3"),
        (Reply(201, {"token": {}}), VimFault.PERMANENT, "its answer holds no token"),
        (Reply(200, ["hello"]), VimFault.PERMANENT, "the answer was 200"),
        (Reply(403, {"error": {"message": "locked"}}), VimFault.AUTH, "403: locked"),
        (Reply(400, {"error": {"message": "demo-password is bad"}}), VimFault.PERMANENT, "400: *** is bad"),
        (Reply(503, {}), VimFault.TEMPORARY, "answered 503"),
    ],
)
async def test_answers_that_are_no_login_are_explained(
    keystone: Keystone, reply: Reply, fault: VimFault, words: str
) -> None:
    keystone.broken = reply
    error = await fails(to(keystone.url))
    assert error.fault is fault
    assert words in error.detail


async def test_an_address_where_nobody_listens_is_temporary() -> None:
    with a_keystone() as gone:
        pass
    error = await fails(to(gone.url))
    assert error.fault is VimFault.TEMPORARY
    assert f"POST {gone.url}/auth/tokens" in error.detail
    assert "Cure: " in error.detail


async def test_the_guard_is_asked_before_anybody_else(keystone: Keystone) -> None:
    with pytest.raises(VimError, match="loopback") as caught:
        await OpenStackDriver(Guard()).check(to(keystone.url))
    assert caught.value.fault is VimFault.PERMANENT
    assert not keystone.asked


async def test_only_a_certificate_of_the_given_ca_is_believed() -> None:
    ours = Authority()
    with a_keystone(ours.server_context()) as keystone:
        for ca in (None, Authority().pem):
            error = await fails(to(keystone.url, ssl_ca_cert=ca))
            assert error.fault is VimFault.PERMANENT
            assert "certificate of 127.0.0.1" in error.detail
            assert "interfaceInfo.ssl_ca_cert" in error.detail
        assert "region" in await driver.check(to(keystone.url, ssl_ca_cert=ours.pem))
        flattened = " ".join(ours.pem.split("\n"))
        assert "region" in await driver.check(to(keystone.url, ssl_ca_cert=flattened))
        assert "region" in await driver.check(to(keystone.url, skipCertificateVerification="True"))


async def test_a_name_that_the_certificate_does_not_have_may_be_passed_over() -> None:
    ours = Authority()
    with a_keystone(ours.server_context("keystone.example")) as keystone:
        assert (await fails(to(keystone.url, ssl_ca_cert=ours.pem))).fault is VimFault.PERMANENT
        passed = to(keystone.url, ssl_ca_cert=ours.pem, skipCertificateHostnameCheck=True)
        assert "region" in await driver.check(passed)


async def test_https_to_a_server_without_it_has_a_cure(keystone: Keystone) -> None:
    error = await fails(to(keystone.url.replace("http:", "https:")))
    assert error.fault is VimFault.PERMANENT
    assert "write http://" in error.detail


def test_a_flattened_ca_is_still_a_ca() -> None:
    pem = Authority().pem
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    read = authorities({"ssl_ca_cert": f"  {' '.join(pem.split())}  {pem}"})
    assert read is not None
    context.load_verify_locations(cadata=read)
    assert read.count("BEGIN") == 2


async def test_the_regions_that_are_kept_are_bounded(keystone: Keystone) -> None:
    keystone.regions = {f"region{number:04}": ("compute",) for number in range(300)}
    assert len((await driver.inspect(to(keystone.url))).regions) == 100
