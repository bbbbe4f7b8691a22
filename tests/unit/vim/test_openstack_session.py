"""Connections of openstacksdk: one token for many operations, renewed when it must be, and errors that help."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.vim import OPENSTACK
from slipway.outgoing.guard import Guard
from slipway.vim.openstack.errors import translated_errors
from slipway.vim.openstack.session import KEPT_SECONDS, OpenStackSessions
from tests.unit.outgoing.guards import answering
from tests.unit.vim.authority import Authority
from tests.unit.vim.keystone_standin import ApplicationCredential, Keystone, a_keystone
from tests.unit.vim.loopback import Asked, Reply, serving

ACCESS = {"username": "demo", "password": "demo-password", "project": "demo", "region": "RegionOne"}


@dataclass
class Heat:
    """Version 1 of it, as far as a stack can be listed and looked up by name."""

    keystone: Keystone
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    broken: Reply | None = None  # answers all requests but those for versions
    padding: dict[str, Any] = field(default_factory=dict)  # of its versions

    def answer(self, asked: Asked) -> Reply:
        if asked.path.rstrip("/") in ("", "/v1"):
            link = {"rel": "self", "href": f"{self.url}/v1/"}
            return Reply(300, {"versions": [{"id": "v1.0", "status": "CURRENT", "links": [link]}], **self.padding})
        self.asked.append(asked)
        if self.keystone._live(asked.headers.get("x-auth-token", "")) is None:
            return Reply(401, {"error": {"message": "Authentication required"}})
        if self.broken:
            return self.broken
        if asked.path.endswith("/stacks/vnf-1"):
            return Reply(302, {}, {"Location": f"{self.url}{asked.path}/11"})
        one = {"id": "11", "stack_name": "vnf-1", "stack_status": "CREATE_COMPLETE", "links": []}
        return Reply(200, {"stacks": [one]} if asked.path.endswith("/stacks") else {"stack": one})


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with a_keystone() as keystone:
        yield keystone


@pytest.fixture
def heat(keystone: Keystone) -> Iterator[Heat]:
    heat = Heat(keystone)
    with serving(heat.answer) as heat.url:
        keystone.endpoints["orchestration"] = f"{heat.url}/v1/{keystone.projects['demo'].id}"
        yield heat


@pytest.fixture
def sessions() -> Iterator[OpenStackSessions]:
    with closing(OpenStackSessions()) as made:
        yield made


@contextmanager
def closing(sessions: OpenStackSessions) -> Iterator[OpenStackSessions]:
    try:
        yield sessions
    finally:
        sessions.close()


def to(keystone: Keystone, **changes: Any) -> VimConnection:
    return VimConnection(OPENSTACK, {"endpoint": keystone.url}, {**ACCESS, **changes}, {})


def logins(keystone: Keystone) -> int:
    return sum(asked.method == "POST" for asked in keystone.asked)


def stacks(sessions: OpenStackSessions, vim: VimConnection) -> list[str]:
    with translated_errors("Listing stacks"):
        return [stack.name for stack in sessions.connect(vim).orchestration.stacks()]


def test_one_token_serves_many_operations(keystone: Keystone, heat: Heat, sessions: OpenStackSessions) -> None:
    for _ in range(3):
        assert stacks(sessions, to(keystone)) == ["vnf-1"]
    assert logins(keystone) == 1
    assert {asked.headers["user-agent"] for asked in heat.asked} == {"slipway"}
    assert len(heat.asked) == 3


MANY, MUCH = [0] * 50_001, "x" * ((1 << 20) + 1)


@pytest.mark.parametrize(("padding", "said"), [(MUCH, "larger than 1048576 bytes"), (MANY, "more than 50000 values")])
def test_logins_and_versions_are_bounded_more_tightly_than_what_a_project_has(
    keystone: Keystone, heat: Heat, sessions: OpenStackSessions, padding: Any, said: str
) -> None:
    heat.broken = Reply(200, {"stacks": [{"id": "11", "stack_name": "large", "padding": padding}]})
    assert stacks(sessions, to(keystone)) == ["large"]
    heat.padding = {"padding": padding}
    keystone.endpoints["orchestration"] = heat.url  # without a version, so that those it has are asked for
    with pytest.raises(VimError, match=said):
        stacks(sessions, to(keystone, interface="internal"))
    keystone.broken = Reply(201, {"token": padding}, {"X-Subject-Token": "t"})
    with pytest.raises(VimError, match=said):
        sessions.inspect(to(keystone))


def test_threads_that_begin_at_once_log_in_once(keystone: Keystone, heat: Heat, sessions: OpenStackSessions) -> None:
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(stacks(sessions, to(keystone)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["vnf-1"]] * 8
    assert logins(keystone) == 1


def test_a_token_that_was_revoked_is_renewed(keystone: Keystone, heat: Heat, sessions: OpenStackSessions) -> None:
    stacks(sessions, to(keystone))
    keystone.revoke(heat.asked[-1].headers["x-auth-token"])
    assert stacks(sessions, to(keystone)) == ["vnf-1"]
    assert logins(keystone) == 2


def test_what_differs_in_a_connection_has_a_token_of_its_own(keystone: Keystone, sessions: OpenStackSessions) -> None:
    keystone.users["demo"].roles["other"] = ["member"]
    first = sessions.connect(to(keystone))
    assert sessions.connect(to(keystone)) is first
    for other in (
        to(keystone, project="other"),
        to(keystone, interface="internal"),
        VimConnection(OPENSTACK, {"endpoint": keystone.url}, ACCESS, {}, project="somebody-else"),
        VimConnection(OPENSTACK, {"endpoint": keystone.url, "skipCertificateVerification": True}, ACCESS, {}),
    ):
        assert sessions.connect(other) is not first
    assert logins(keystone) == 5


def test_connections_are_forgotten_after_a_while(keystone: Keystone) -> None:
    now = 0.0
    with closing(OpenStackSessions(clock=lambda: now)) as sessions:
        first = sessions.connect(to(keystone))
        now = KEPT_SECONDS - 1
        assert sessions.connect(to(keystone)) is first
        now = KEPT_SECONDS + 1
        assert sessions.connect(to(keystone)) is not first
        assert first.session.get_token()  # whoever has it goes on with it


def test_a_stack_is_found_by_its_name(keystone: Keystone, heat: Heat, sessions: OpenStackSessions) -> None:
    """Heat redirects to the id."""
    found = sessions.connect(to(keystone)).orchestration.find_stack("vnf-1")
    assert found is not None
    assert (found.id, found.status) == ("11", "CREATE_COMPLETE")
    assert heat.asked[-1].headers["x-auth-token"] == heat.asked[0].headers["x-auth-token"]


def test_the_interface_and_the_region_of_the_account_are_used(
    keystone: Keystone, heat: Heat, sessions: OpenStackSessions
) -> None:
    keystone.regions = {"north": ("identity",), "south": ("identity", "orchestration")}
    assert stacks(sessions, to(keystone, region="south", interface="internal")) == ["vnf-1"]
    with pytest.raises(VimError, match="internal endpoint for orchestration service in north region not found") as none:
        stacks(sessions, to(keystone, region="north", interface="internal"))
    assert none.value.fault is VimFault.PERMANENT
    assert "accessInfo.region" in none.value.detail


def test_of_several_regions_none_is_chosen_by_chance(
    keystone: Keystone, heat: Heat, sessions: OpenStackSessions
) -> None:
    keystone.regions = {"north": ("identity", "orchestration"), "south": ("identity", "orchestration")}
    anywhere = VimConnection(OPENSTACK, {"endpoint": keystone.url}, {**ACCESS, "region": ""}, {})
    with pytest.raises(VimError, match=r"several regions.*accessInfo.region.*: north, south") as several:
        stacks(sessions, anywhere)
    assert several.value.fault is VimFault.PERMANENT


def test_a_region_without_the_services_that_vnfs_need_is_no_choice(
    keystone: Keystone, heat: Heat, sessions: OpenStackSessions
) -> None:
    keystone.regions = {"north": ("identity", "orchestration"), "south": ("identity",)}
    anywhere = VimConnection(OPENSTACK, {"endpoint": keystone.url}, {**ACCESS, "region": ""}, {})
    assert stacks(sessions, anywhere) == ["vnf-1"]


@pytest.mark.parametrize(
    ("reply", "fault", "words"),
    [
        (Reply(403, {"error": {"message": "No role for this"}}), VimFault.AUTH, "answered 403: No role for this"),
        (Reply(403, {"error": {"message": "Quota exceeded for cores"}}), VimFault.QUOTA, "raise the quota"),
        (
            Reply(403, {"error": {"message": "You are not authorized to use OS::Cinder::VolumeType."}}),
            VimFault.AUTH,
            "have an administrator make it",
        ),
        (Reply(409, {"error": {"message": "Quota exceeded for resources: ['port']"}}), VimFault.QUOTA, "['port']"),
        (Reply(413, {"overLimit": {"message": "VolumeLimitExceeded"}}), VimFault.QUOTA, "VolumeLimitExceeded"),
        (Reply(404, {"error": {"message": "The Stack could not be found"}}), VimFault.PERMANENT, "could not be found"),
        (Reply(409, {"error": {"message": "Stack has an action in progress"}}), VimFault.TEMPORARY, "in progress"),
        (Reply(400, {"error": {"message": "Bad template"}}), VimFault.PERMANENT, "answered 400: Bad template"),
        (Reply(429, {"error": {"message": "Slow down"}}), VimFault.TEMPORARY, "answered 429"),
        (Reply(503, None), VimFault.TEMPORARY, "answered 503"),
    ],
)
def test_what_a_service_refuses_is_explained(
    keystone: Keystone, heat: Heat, sessions: OpenStackSessions, reply: Reply, fault: VimFault, words: str
) -> None:
    heat.broken = reply
    with pytest.raises(VimError) as caught:
        stacks(sessions, to(keystone))
    assert caught.value.detail.startswith("Listing stacks: 127.0.0.1:")
    assert words in caught.value.detail
    assert caught.value.fault is fault


def test_an_application_credential_serves_as_well(keystone: Keystone, heat: Heat, sessions: OpenStackSessions) -> None:
    keystone.credentials.append(one := ApplicationCredential("slipway", "app-secret", "demo", "demo"))
    access = {"applicationCredentialId": one.id, "applicationCredentialSecret": "app-secret"}
    vim = VimConnection(OPENSTACK, {"endpoint": keystone.url}, access, {})
    assert stacks(sessions, vim) == ["vnf-1"]
    keystone.revoke(heat.asked[-1].headers["x-auth-token"])
    assert stacks(sessions, vim) == ["vnf-1"]
    keystone.credentials.clear()
    keystone.revoke(heat.asked[-1].headers["x-auth-token"])
    with pytest.raises(VimError, match="answered 401") as caught:
        stacks(sessions, vim)
    assert caught.value.fault is VimFault.AUTH


def test_services_need_a_certificate_that_is_believed_as_keystone_does(sessions: OpenStackSessions) -> None:
    ours, theirs = Authority("ours"), Authority("theirs")
    with a_keystone(ours.server_context()) as keystone:
        heat = Heat(keystone)
        with serving(heat.answer, theirs.server_context()) as heat.url:
            keystone.endpoints["orchestration"] = f"{heat.url}/v1/{keystone.projects['demo'].id}"
            said = {"endpoint": keystone.url, "ssl_ca_cert": ours.pem}
            with pytest.raises(VimError, match=r"certificate of 127\.0\.0\.1") as caught:
                stacks(sessions, VimConnection(OPENSTACK, said, ACCESS, {}))
            assert not heat.asked
            assert caught.value.fault is VimFault.PERMANENT
            both = {**said, "ssl_ca_cert": ours.pem + theirs.pem}
            assert stacks(sessions, VimConnection(OPENSTACK, both, ACCESS, {})) == ["vnf-1"]
            insecure = {"endpoint": keystone.url, "skipCertificateVerification": True}
            assert stacks(sessions, VimConnection(OPENSTACK, insecure, ACCESS, {})) == ["vnf-1"]


def test_nothing_is_asked_again_behind_our_back(keystone: Keystone, sessions: OpenStackSessions) -> None:
    """openstacksdk would ask Glance five more times, and wait in between."""
    asked: list[str] = []

    def answer(question: Asked) -> Reply:
        asked.append(question.path)
        return Reply(503)

    with serving(answer) as url:
        keystone.endpoints["image"] = f"{url}/v2"
        connection = sessions.connect(to(keystone))
        with pytest.raises(VimError, match="answered 503"), translated_errors("Listing images"):
            list(connection.image.images())
    assert asked.count("/v2/images") == 1


def test_a_service_that_is_down_is_temporary(keystone: Keystone, sessions: OpenStackSessions) -> None:
    with serving(lambda _: Reply()) as gone:
        pass
    keystone.endpoints["orchestration"] = f"{gone}/v1/p1"
    with pytest.raises(VimError) as caught:
        stacks(sessions, to(keystone))
    assert caught.value.fault is VimFault.TEMPORARY
    assert "Cure: " in caught.value.detail


def test_a_request_has_its_time(keystone: Keystone) -> None:
    released = threading.Event()
    heat = Heat(keystone)

    def slow(asked: Asked) -> Reply:
        if asked.path.endswith("/stacks"):
            released.wait()
        return heat.answer(asked)

    with serving(slow) as heat.url, closing(OpenStackSessions(seconds=1)) as sessions:
        keystone.endpoints["orchestration"] = f"{heat.url}/v1/{keystone.projects['demo'].id}"
        with pytest.raises(VimError, match="not answered within 1 s") as caught:
            stacks(sessions, to(keystone))
        released.set()
    assert caught.value.fault is VimFault.TEMPORARY


def test_the_addresses_in_a_catalog_are_checked_as_well(keystone: Keystone) -> None:
    keystone.endpoints["orchestration"] = "http://metadata.example/v1/p1"
    guard = Guard(loopback=True, resolver=answering(metadata_example=["169.254.169.254"]))
    with closing(OpenStackSessions(guard)) as sessions, pytest.raises(VimError, match="link-local") as caught:
        stacks(sessions, to(keystone))
    assert caught.value.fault is VimFault.PERMANENT


def test_a_login_goes_without_the_import_of_openstacksdk() -> None:
    """Its import takes seconds; keystoneauth's a third of one."""
    code = """
import sys
from slipway.model.action import VimConnection
from slipway.model.errors import VimError
from slipway.vim.openstack.session import OpenStackSessions
from tests.unit.vim.keystone_standin import a_keystone
sessions = OpenStackSessions()
assert not {"requests", "keystoneauth1"} & sys.modules.keys()
with a_keystone() as keystone:
    access = {"username": "demo", "password": "demo-password", "project": "demo"}
    sessions.inspect(VimConnection("o", {"endpoint": keystone.url}, access, {}))
try:
    sessions.inspect(VimConnection("o", {"endpoint": "http://127.0.0.1:1"}, access, {}))
except VimError:
    pass
sessions.close()
assert "keystoneauth1" in sys.modules
assert "openstack" not in sys.modules
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_secret_that_a_server_repeats_is_left_out() -> None:
    from keystoneauth1.exceptions import BadRequest

    with pytest.raises(VimError) as caught, translated_errors("Logging in", ["s3cret"]):
        raise BadRequest("s3cret is no password", http_status=400, url="http://k/v3")
    assert caught.value.detail == "Logging in: k answered 400: *** is no password."
