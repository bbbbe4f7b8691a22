"""Files on a real sshd: whole or not at all, for their owner only, and in no argument list."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from slipway.model.errors import StepError
from slipway.remote.connect import SshLimits
from tests.functional.remote_proxy import proxy_to
from tests.functional.remote_sshd import Sshd, running_sshd, ssh_host_on, until_there
from tests.functional.test_remote_commands import TEXT


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


async def test_a_file_is_written_for_its_owner_only_unless_said_otherwise(sshd: Sshd, tmp_path: Path) -> None:
    async with ssh_host_on(sshd.target()) as host:
        await host.put(str(tmp_path / "secret"), b"\x00\xff bytes")
        await host.put(str(tmp_path / "script"), "naïve text\n", mode=0o755)
        assert await host.get(str(tmp_path / "secret")) == b"\x00\xff bytes"
    assert (tmp_path / "secret").stat().st_mode & 0o7777 == 0o600
    assert (tmp_path / "script").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "script").read_text() == "naïve text\n"
    assert names_in(tmp_path) == {"secret", "script"}


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=TEXT, content=st.binary(max_size=300))
async def test_any_file_name_is_one_file(sshd: Sshd, tmp_path: Path, name: str, content: bytes) -> None:
    assume(name not in ("", ".", "..") and "/" not in name)
    place = tmp_path / uuid4().hex
    place.mkdir()
    path = f"{place}/{name}"
    async with ssh_host_on(sshd.target()) as host:
        await host.put(path, content)
        assert await host.get(path) == content
    assert [os.fsencode(found.name) for found in place.iterdir()] == [name.encode()]


async def test_a_file_that_is_not_there_is_none_and_one_that_is_too_large_an_error(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(2000))
    async with ssh_host_on(sshd.target(), SshLimits(file=1000)) as host:
        assert await host.get(str(tmp_path / "none")) is None
        with pytest.raises(StepError, match="larger than 1000 bytes"):
            await host.get(str(tmp_path / "large"))
        with pytest.raises(StepError, match=r"'read .*Is a directory"):
            await host.get(str(tmp_path))


async def test_a_replaced_file_keeps_its_owner_and_a_reader_sees_the_old_one_to_its_end(
    sshd: Sshd, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    if os.getuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    with path.open() as reader:
        async with ssh_host_on(sshd.target()) as host:
            await host.put(str(path), "new", mode=0o640)
        assert reader.read() == "old"
    after = path.stat()
    assert path.read_text() == "new"
    assert (after.st_uid, after.st_gid, after.st_mode & 0o777) == (before.st_uid, before.st_gid, 0o640)
    assert after.st_ino != before.st_ino


async def test_a_place_that_is_not_there_or_is_a_directory_is_named(sshd: Sshd, tmp_path: Path) -> None:
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match=r"'write /no/such/file' on .*No such file or directory"):
            await host.put("/no/such/file", b"")
        with pytest.raises(StepError, match="is a directory"):
            await host.put(str(tmp_path), b"")
        for path in ("relative", "", "/ends/with/"):
            with pytest.raises(StepError, match="not the absolute path of a file"):
                await host.put(path, b"")


async def test_a_connection_cut_in_the_middle_leaves_the_old_file_and_no_other(sshd: Sshd, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    async with proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host:
        await host.run(["true"])
        proxy.stop_after(200_000)
        putting = asyncio.create_task(host.put(str(path), bytes(1_000_000)))
        await until_more_in(tmp_path, than=1)
        proxy.cut()
        with pytest.raises(StepError, match="was lost during 'write") as caught:
            await putting
        assert caught.value.temporary
        async with asyncio.timeout(10):
            while names_in(tmp_path) != {"file"}:  # noqa: ASYNC110 - the remote side tidies up
                await asyncio.sleep(0.01)
    assert path.read_text() == "old"


async def test_a_secret_is_in_no_argument_list_while_it_is_written_or_read(sshd: Sshd, tmp_path: Path) -> None:
    """Stopped in the middle, so that all that takes part is there to be looked at."""
    canary = f"canary-{uuid4().hex}"
    async with proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host:
        await host.run(["true"])
        proxy.stop_after(200_000)
        putting = asyncio.create_task(host.put(str(tmp_path / "file"), canary * 20_000))
        await until_more_in(tmp_path, than=0)
        seen = process_lists()
        assert "slipway-put" in seen
        assert canary not in seen
        proxy.resume()
        await putting
        (tmp_path / "file").unlink()

        wait = 'read secret; touch "$1/read"; until [ -e "$1/go" ]; do sleep 0.02; done'
        running = asyncio.create_task(
            host.run(["sh", "-c", wait, "slipway-canary", str(tmp_path)], stdin=f"{canary}\n".encode())
        )
        await until_there(tmp_path / "read")
        seen = process_lists()
        (tmp_path / "go").touch()
        await running
    assert "slipway-canary" in seen
    assert canary not in seen


def names_in(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


def process_lists() -> str:
    """Arguments and variables of every process on the machine."""
    files = [path for part in ("cmdline", "environ") for path in Path("/proc").glob(f"[0-9]*/{part}")]
    text = subprocess.run(["cat", *files], capture_output=True, check=False).stdout
    return text.decode(errors="replace")


async def until_more_in(place: Path, than: int) -> None:
    async with asyncio.timeout(10):
        while len(names_in(place)) <= than:  # noqa: ASYNC110 - the remote side makes it
            await asyncio.sleep(0.01)
