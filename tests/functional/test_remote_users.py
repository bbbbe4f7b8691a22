"""A user who is not root, on a real sshd: password login, sudo, and jobs at home. Needs root to make the user."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import asyncssh
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.model.errors import StepError
from slipway.remote.target import SshTarget
from tests.functional.remote_sshd import Sshd, running_sshd, ssh_host_on, throw_away_user
from tests.functional.test_remote_commands import TELL, TEXT

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can make a user")
PASSWORD = f"right-{uuid4().hex}"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture(scope="module")
def login(sshd: Sshd) -> Iterator[SshTarget]:
    with throw_away_user(PASSWORD) as name:
        yield sshd.target(username=name, private_key=None, password=PASSWORD)


async def test_a_password_opens_and_a_wrong_one_is_permanent_and_not_shown(sshd: Sshd, login: SshTarget) -> None:
    async with ssh_host_on(login) as host:
        assert (await host.run(["id", "-un"])).text == login.username
    wrong = sshd.target(username=login.username, private_key=None, password="wrong-canary")
    async with ssh_host_on(wrong) as host:
        with pytest.raises(StepError, match=r"refused the login \(tried: password\)\. Cure:") as caught:
            await host.run(["true"])
    assert not caught.value.temporary
    assert "canary" not in caught.value.detail + repr(wrong) + str(wrong)


async def test_a_key_that_is_not_accepted_does_not_keep_the_password_from_being_tried(login: SshTarget) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    async with ssh_host_on(replace(login, private_key=other)) as host:
        await host.run(["true"])


async def test_sudo_gives_roots_rights(login: SshTarget) -> None:
    async with ssh_host_on(login) as host:
        assert (await host.run(["id", "-u"])).text != "0"
        assert (await host.run(["id", "-u"], sudo=True)).text == "0"


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(TEXT, max_size=20), value=TEXT)
async def test_arguments_and_variables_pass_through_sudo(login: SshTarget, words: list[str], value: str) -> None:
    async with ssh_host_on(login) as host:
        argv = [sys.executable, "-S", "-E", "-c", TELL, *words]
        result = await host.run(argv, sudo=True, env={"T_X": value}, stdin=b"\0\x03\x04\r\n")
    given = [[word.encode().hex() for word in words], {"T_X": value.encode().hex()}, b"\0\x03\x04\r\n".hex()]
    assert json.loads(result.stdout) == given


async def test_files_through_sudo_are_roots_and_a_users_own_stays_his(login: SshTarget) -> None:
    home = f"/home/{login.username}"
    async with ssh_host_on(login) as host:
        await host.put(f"{home}/own", "his")
        await host.put(f"{home}/roots", "root's", sudo=True)
        await host.put(f"{home}/own", "still his", sudo=True)
        assert (await host.run(["stat", "-c", "%U %a", f"{home}/roots"])).text == "root 600"
        assert (await host.run(["stat", "-c", "%U %a", f"{home}/own"])).text == f"{login.username} 600"
        assert await host.get(f"{home}/roots", sudo=True) == b"root's"
        with pytest.raises(StepError, match="Permission denied"):
            await host.get(f"{home}/roots")


async def test_jobs_of_a_user_live_at_home_and_with_sudo_at_roots(login: SshTarget) -> None:
    name = f"test-{uuid4().hex}"
    async with ssh_host_on(login) as host:
        assert (await host.run_job(name, ["id", "-u"], limit=20)).text != "0"
        assert (await host.run_job(name, ["id", "-u"], limit=20, sudo=True)).text == "0"
        assert await host.get(f"/home/{login.username}/.slipway/jobs/{name}/end") == b"0 itself\n"
        assert await host.get(f"/var/lib/slipway/jobs/{name}/end", sudo=True) == b"0 itself\n"
        await host.remove_job(name)
        await host.remove_job(name, sudo=True)


async def test_sudo_that_asks_for_a_password_has_a_cure(sshd: Sshd, login: SshTarget) -> None:
    rule = Path("/etc/sudoers.d") / login.username
    allowed = rule.read_text()
    rule.unlink()
    try:
        async with ssh_host_on(login) as host:
            with pytest.raises(StepError, match=r"sudo: .*Cure: log in as root, or let the user run sudo"):
                await host.run(["id"], sudo=True)
    finally:
        rule.write_text(allowed)
