"""Logins and connections on a real sshd: who is let in, whom we trust, and what breaks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from slipway.model.errors import StepError
from slipway.remote.connect import SshLimits
from slipway.remote.known_hosts import InMemoryKnownHosts
from slipway.remote.ssh_host import SshHost
from slipway.remote.target import SshTarget
from tests.functional.remote_proxy import proxy_to
from tests.functional.remote_sshd import Sshd, pooled, running_sshd, ssh_host_on, until_there

BLOCK = ["sh", "-c", 'touch "$1"; sleep 30', "sh"]


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with running_sshd(tmp_path / "sshd") as sshd:
        yield sshd


async def test_an_unknown_host_key_is_recorded_once_and_then_must_match(sshd: Sshd) -> None:
    known, target = InMemoryKnownHosts(), sshd.target(host_key=None)
    async with pooled(known=known) as pool:
        await SshHost(pool, target).run(["true"])
    assert known.keys == {f"[127.0.0.1]:{sshd.port}": sshd.host_key}

    sshd.kill()
    sshd.new_host_key()
    sshd.start()
    async with pooled(known=known) as pool:
        with pytest.raises(StepError, match=r"host key of .* has changed.*a heal expects a new key") as caught:
            await SshHost(pool, target).run(["true"])
    assert not caught.value.temporary
    assert known.keys[target.known_as] != sshd.host_key


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 on this machine")
async def test_another_machine_at_the_same_address_has_a_key_of_its_own(sshd: Sshd) -> None:
    """A server made anew keeps its port and address; the VIM tells it from the one before, but not by a host key."""
    async with pooled() as pool:
        await SshHost(pool, sshd.target(host_key=None, machine="server-1")).run(["true"])
        sshd.kill()
        sshd.new_host_key()
        sshd.start()
        await SshHost(pool, sshd.target(host_key=None, machine="server-2")).run(["true"])
        with pytest.raises(StepError, match="has changed"):
            await SshHost(pool, sshd.target(host_key=None, machine="server-1")).run(["true"])


async def test_a_machine_is_reached_by_its_ipv6_address(sshd: Sshd) -> None:
    known = InMemoryKnownHosts()
    async with proxy_to(sshd.port, at="::1") as proxy, pooled(known=known) as pool:
        await SshHost(pool, sshd.target(address="::1", port=proxy.port, host_key=None)).run(["true"])
    assert list(known.keys) == [f"[::1]:{proxy.port}"]


async def test_two_first_contacts_at_once_are_held_to_one_key(sshd: Sshd) -> None:
    """The second to write finds the first one's key standing, and is refused when its own machine shows another."""

    class Slow(InMemoryKnownHosts):
        async def pinned(self, address: str) -> str | None:
            return None  # as both saw it before either wrote

    known = Slow()
    known.keys[sshd.target().known_as] = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    async with pooled(known=known) as pool:
        with pytest.raises(StepError, match="has changed"):
            await SshHost(pool, sshd.target(host_key=None)).run(["true"])


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"])
async def test_a_pinned_key_that_changed_its_kind_is_called_changed(sshd: Sshd, kind: str) -> None:
    pinned = sshd.target()
    sshd.kill()
    sshd.new_host_key(kind)
    sshd.start()
    async with ssh_host_on(pinned) as host:
        with pytest.raises(StepError, match="has changed: expected SHA256:") as caught:
            await host.run(["true"])
    assert not caught.value.temporary
    async with ssh_host_on(sshd.target()) as host:
        await host.run(["true"])


async def test_a_pin_that_is_no_key_is_refused(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target(host_key="nonsense")) as host:
        with pytest.raises(StepError, match=r"pinned for .* can't be read"):
            await host.run(["true"])


async def test_a_wrong_key_is_a_permanent_error_with_a_cure(sshd: Sshd) -> None:
    wrong = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    async with ssh_host_on(sshd.target(private_key=wrong)) as host:
        with pytest.raises(StepError, match=r"refused the login \(tried: key\)\. Cure: ") as caught:
            await host.run(["true"])
    assert not caught.value.temporary


async def test_a_key_that_can_not_be_read_is_not_shown(sshd: Sshd) -> None:
    locked = asyncssh.generate_private_key("ssh-ed25519").export_private_key("pkcs8-pem", "locked").decode()
    for text in ("canary", locked):
        async with ssh_host_on(sshd.target(private_key=text)) as host:
            with pytest.raises(StepError, match=r"private key for .* can't be read") as caught:
                await host.run(["true"])
        assert text not in caught.value.detail


async def test_nobody_there_is_temporary(sshd: Sshd) -> None:
    sshd.kill()
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match="can't be reached") as caught:
            await host.run(["true"])
    assert caught.value.temporary


async def test_no_answer_at_connect_is_temporary_and_bounded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        target = SshTarget("127.0.0.1", "root", mute.getsockname()[1], password="any")
        async with ssh_host_on(target, SshLimits(connect=0.3)) as host:
            with pytest.raises(StepError, match=r"timed out after 0\.3 s waiting for the login to") as caught:
                await host.run(["true"])
    assert caught.value.temporary


async def test_commands_share_one_connection_and_wait_beyond_the_bound(sshd: Sshd, tmp_path: Path) -> None:
    async with proxy_to(sshd.port) as proxy, pooled(SshLimits(commands_per_host=3)) as pool:
        host = SshHost(pool, sshd.target(port=proxy.port))
        count = 'mkdir "$1/$$"; ls "$1" | wc -l; sleep 0.05; rmdir "$1/$$"'
        results = await asyncio.gather(*(host.run(["sh", "-c", count, "sh", str(tmp_path)]) for _ in range(20)))
        assert proxy.accepted == 1
        assert max(int(result.text) for result in results) <= 3 + 1  # and the server's own directory


async def test_an_idle_connection_is_closed(sshd: Sshd) -> None:
    async with pooled(SshLimits(idle=0.05)) as pool:
        await SshHost(pool, sshd.target()).run(["true"])
        assert pool.open == 1
        async with asyncio.timeout(5):
            while pool.open:  # noqa: ASYNC110 - a timer of the pool's own
                await asyncio.sleep(0.01)


async def test_connections_in_all_are_bounded_and_nobody_starves(sshd: Sshd) -> None:
    """Three targets, two connections: an idle one makes room, a busy one is waited for."""
    target, most = sshd.target(), 0
    async with proxy_to(sshd.port) as one, proxy_to(sshd.port) as two, proxy_to(sshd.port) as three:
        ports = [one.port, two.port, three.port]
        async with pooled(SshLimits(connections=2)) as pool:

            async def work(port: int, number: int) -> None:
                nonlocal most
                await SshHost(pool, replace(target, port=port)).run(["echo", str(number)])
                most = max(most, pool.open)

            async with asyncio.timeout(20):
                await asyncio.gather(*(work(port, number) for number in range(4) for port in ports))
            assert 1 <= most <= 2


async def test_a_killed_server_is_a_temporary_error_and_the_next_command_connects_anew(
    sshd: Sshd, tmp_path: Path
) -> None:
    async with ssh_host_on(sshd.target()) as host:
        running = asyncio.create_task(host.run([*BLOCK, str(tmp_path / "runs")]))
        await until_there(tmp_path / "runs")
        sshd.kill()
        with pytest.raises(StepError, match=r"connection to .* was lost during 'sh -c") as caught:
            await running
        assert caught.value.temporary
        sshd.start()
        assert (await host.run(["echo", "back"])).text == "back"


async def test_a_cut_connection_is_a_temporary_error(sshd: Sshd, tmp_path: Path) -> None:
    async with proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host:
        running = asyncio.create_task(host.run([*BLOCK, str(tmp_path / "runs")]))
        await until_there(tmp_path / "runs")
        proxy.cut()
        with pytest.raises(StepError, match="was lost") as caught:
            await running
        assert caught.value.temporary
        await host.run(["true"])


async def test_a_hanging_network_is_found_by_keep_alive(sshd: Sshd, tmp_path: Path) -> None:
    limits = SshLimits(keep_alive=0.2)
    async with proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port), limits) as host:
        running = asyncio.create_task(host.run([*BLOCK, str(tmp_path / "runs")]))
        await until_there(tmp_path / "runs")
        proxy.hang()
        async with asyncio.timeout(10):
            with pytest.raises(StepError, match="was lost") as caught:
                await running
        assert caught.value.temporary
        proxy.resume()
        await host.run(["true"])


async def test_a_short_hang_costs_time_only(sshd: Sshd, tmp_path: Path) -> None:
    async with proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host:
        await host.run(["true"])
        proxy.hang()
        running = asyncio.create_task(host.run(["echo", "through"]))
        done, _ = await asyncio.wait([running], timeout=0.3)
        assert not done
        proxy.resume()
        assert (await running).text == "through"


async def test_a_cancelled_command_leaves_the_connection_to_others(sshd: Sshd, tmp_path: Path) -> None:
    async with proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host:
        running = asyncio.create_task(host.run([*BLOCK, str(tmp_path / "runs")]))
        await until_there(tmp_path / "runs")
        running.cancel()
        await asyncio.wait([running])
        await host.run(["true"])
        assert proxy.accepted == 1


async def test_closing_does_not_wait_for_a_network_that_hangs(sshd: Sshd) -> None:
    async with proxy_to(sshd.port) as proxy, asyncio.timeout(10), ssh_host_on(sshd.target(port=proxy.port)) as host:
        await host.run(["true"])
        proxy.hang()
