"""Runs of a real ansible-playbook on a real server by SSH: followed, found again, explained, stopped."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from slipway.cluster.connectors import SshConnector
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.spec import ClusterSpec, Node, Server, SshLogin
from slipway.cluster.steps.dependencies import Dependencies
from slipway.kubespray.arguments import AnsibleServer, PrepareServer, RunPlaybook
from slipway.kubespray.steps.playbook import run_playbook
from slipway.kubespray.steps.server import (
    PREPARE,
    ansible_host,
    prepare_server,
    run,
    runs_prefix,
    undo_prepare_server,
)
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from tests.functional.remote_sshd import ME, OWN_KEY, Sshd, running_sshd, until_there

pytestmark = [pytest.mark.slow, pytest.mark.sqlite_suffices]
STAND_IN = Path(__file__).parents[2] / "lab" / "kubespray-stand-in"
UNUSED: Any = None
NETWORKS = ClusterNetworks(pods="10.233.64.0/18", services="10.233.0.0/18", node_prefix=24)
NODE = Node(machine="m", slot="workerNode-0", name="localhost", master=False, ssh="CP", nic="CP",
            login=SshLogin(username="root"))  # fmt: skip
BEGUN_SECONDS = 120  # Ansible on a machine that is busy
HEAD = "- hosts: all\n  gather_facts: false\n  become: false\n  tasks:\n"


class Context:
    """A step's context, as far as a run asks for it."""

    def __init__(self) -> None:
        self.operation_id, self.instance_id = str(uuid4()), str(uuid4())
        self.said: list[str] = []
        self.cancelled = False
        self.prepared: Outcome | None = None

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    def outcome(self, step_id: str) -> Outcome | None:
        return self.prepared if step_id == PREPARE else None

    def progress(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """kubespray's stand-in, with an Ansible of its own that stays in the cache between runs of the tests."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "slipway" / "kubespray-stand-in"
    subprocess.run([STAND_IN / "install", cache], check=True, capture_output=True, timeout=600)
    place = tmp_path_factory.mktemp("kubespray")
    for name in cache.iterdir():
        (place / name.name).symlink_to(name)
    return place


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


class Place:
    def __init__(self, root: Path, sshd: Sshd, directory: Path) -> None:
        self.directory, self.context = directory, Context()
        self.deps = Dependencies(SshConnector(), UNUSED, UNUSED)
        login = SshLogin(username=ME, port=sshd.port, private_key=OWN_KEY.export_private_key().decode())
        server = Server(address="127.0.0.1", login=login, host_key=sshd.host_key)
        self.ansible = AnsibleServer(
            server=server, root=str(root), inventory=str(directory), instance=self.context.instance_id
        )
        self.prepare_args = PrepareServer(ansible=self.ansible, claims=True)

    def playbook(self, tasks: str, seconds: int = 120, name: str = "cluster.yml") -> RunPlaybook:
        """In place of kubespray's, on this host without SSH."""
        (self.directory / "hosts.yaml").write_text(
            "all:\n  hosts:\n    localhost: {ansible_connection: local, ansible_python_interpreter: /usr/bin/python3}\n"
        )
        callback = self.directory / "callback"
        callback.mkdir(exist_ok=True)
        source = Path(__file__).parents[2] / "src" / "slipway" / "kubespray" / "callback" / "slipway_events.py"
        (callback / "slipway_events.py").write_text(source.read_text())
        play = self.directory / "own.yml"
        play.write_text(HEAD + tasks)
        cluster = ClusterSpec(instance=self.context.instance_id, masters=(), networks=NETWORKS)
        relative = os.path.relpath(play, self.ansible.root)
        return RunPlaybook(
            ansible=self.ansible, playbook=relative, run=name, cluster=cluster, nodes=(NODE,), seconds=seconds
        )

    async def run(self, args: RunPlaybook) -> None:
        await run_playbook(self.deps, args, self.context)  # type: ignore[arg-type]

    async def runs(self) -> list[str]:
        host = await ansible_host(self.deps, self.ansible, self.context)  # type: ignore[arg-type]
        return (await run(host, "runs_list", runs_prefix(self.ansible.instance))).text.splitlines()


@asynccontextmanager
async def a_place(root: Path, sshd: Sshd, directory: Path) -> AsyncIterator[Place]:
    place = Place(root, sshd, directory)
    try:
        await prepare_server(place.deps, place.prepare_args, place.context)  # type: ignore[arg-type]
        yield place
    finally:
        await undo_prepare_server(place.deps, place.prepare_args, place.context)  # type: ignore[arg-type]
        await place.deps.connector.close()  # type: ignore[attr-defined]
    assert not directory.exists()  # noqa: ASYNC240 - once, and quick


async def test_a_run_is_followed_and_leaves_nothing_behind(root: Path, sshd: Sshd, tmp_path: Path) -> None:
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        task = "    - {name: a long task, ansible.builtin.command: sleep 8, changed_when: true}\n"
        await place.run(place.playbook(f"    - {{name: first, ansible.builtin.debug: {{msg: x}}}}\n{task}"))
        assert any("a long task" in said and "ok=1" in said for said in place.context.said)
        assert len(await place.runs()) == 1
        log = next((tmp_path / "inventory" / "runs").glob("*.log"))
        assert log.stat().st_mode & 0o077 == 0


async def test_a_failed_task_is_told_as_ansible_reported_it(root: Path, sshd: Sshd, tmp_path: Path) -> None:
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        block = (
            "    - block:\n        - {name: tried, ansible.builtin.fail: {msg: not this}}\n"
            "      rescue:\n        - {name: mended, ansible.builtin.debug: {msg: ok}}\n"
        )
        fails = "    - {name: get kubeadm, ansible.builtin.shell: 'echo no route to host >&2; exit 7'}\n"
        with pytest.raises(StepError) as error:
            await place.run(place.playbook(block + fails))
        assert "workerNode-0 (localhost) failed in task 'get kubeadm'" in error.value.detail
        assert "no route to host" in error.value.detail
        assert "not this" not in error.value.detail
        assert not error.value.temporary
        assert await place.runs() == []
        await place.run(place.playbook(block))


MUCH = """#!/bin/sh
[ "$*" != --version ] || { echo 'ansible-playbook [core 2.18.3]'; exit 0; }
exec >"$SLIPWAY_EVENTS"
yes '{"event": "ok", "host": "localhost", "changed": false}' | head -n 400000
echo '{"event": "failed", "host": "localhost", "task": "get kubeadm", "message": "no route to host"}'
echo '{"event": "stats", "hosts": {"localhost": {"failures": 1}}}'
exit 2
"""


@pytest.fixture
def reporting_much(root: Path, tmp_path: Path) -> Path:
    own = tmp_path / "kubespray"
    program = own / ".venv" / "bin" / "ansible-playbook"
    program.parent.mkdir(parents=True)
    program.write_text(MUCH)
    program.chmod(0o755)
    for name in root.iterdir():
        if name.name not in (".venv", "venv"):
            (own / name.name).symlink_to(name)
    return own


async def test_a_failure_is_told_however_much_the_run_reported(
    reporting_much: Path, sshd: Sshd, tmp_path: Path
) -> None:
    async with a_place(reporting_much, sshd, tmp_path / "inventory") as place:
        with pytest.raises(StepError, match="failed in task 'get kubeadm': no route to host"):
            await place.run(place.playbook("    - debug:\n"))


async def test_a_run_is_found_again_and_not_started_twice(root: Path, sshd: Sshd, tmp_path: Path) -> None:
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        mark = tmp_path / "mark"
        tasks = f"    - {{name: count, ansible.builtin.shell: 'echo x >>{mark}; sleep 6'}}\n"
        args = place.playbook(tasks)
        first = asyncio.create_task(place.run(args))
        await until_there(mark, BEGUN_SECONDS)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert len(await place.runs()) == 1
        await place.run(args)
        assert mark.read_text() == "x\n"


async def test_a_run_whose_command_has_changed_since_is_stopped_before_the_next(
    root: Path, sshd: Sshd, tmp_path: Path
) -> None:
    """As after a crash of Slipway, when a node has lost its power meanwhile: two playbooks at once break a cluster."""
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        mark, go = tmp_path / "mark", tmp_path / "go"
        begun = f"echo begun >>{mark}; touch {mark}-$(wc -l <{mark})"
        shell = f"{begun}; while [ ! -e {go} ]; do sleep 0.1; done; echo ended >>{mark}"
        args = place.playbook(f"    - {{name: count, ansible.builtin.shell: '{shell}'}}\n")
        first = asyncio.create_task(place.run(args))
        await until_there(tmp_path / "mark-1", BEGUN_SECONDS)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        second = asyncio.create_task(place.run(replace(args, variables={"another": 1})))
        await until_there(tmp_path / "mark-2", BEGUN_SECONDS)
        go.touch()
        await second
        assert mark.read_text() == "begun\nbegun\nended\n"
        await place.run(replace(args, variables={"another": 1}))
        assert mark.read_text() == "begun\nbegun\nended\n"


async def test_a_cancel_by_a_person_stops_the_run(root: Path, sshd: Sshd, tmp_path: Path) -> None:
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        mark, go, late = tmp_path / "mark", tmp_path / "go", tmp_path / "late"
        shell = f"touch {mark}; while [ ! -e {go} ]; do sleep 0.1; done; touch {late}"
        tasks = f"    - {{name: wait, ansible.builtin.shell: '{shell}'}}\n"
        running = asyncio.create_task(place.run(place.playbook(tasks)))
        await until_there(mark, BEGUN_SECONDS)
        place.context.cancelled = True
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await place.runs() == []
        go.touch()
        await asyncio.sleep(1)
        assert not late.exists()


async def test_a_playbook_that_hangs_is_killed_and_told_where_it_was(root: Path, sshd: Sshd, tmp_path: Path) -> None:
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        tasks = "    - {name: hangs, ansible.builtin.command: sleep 600}\n"
        with pytest.raises(StepError) as error:
            await place.run(place.playbook(tasks, seconds=15))
        assert "timed out after 15 s" in error.value.detail
        assert "hangs" in error.value.detail
        assert not error.value.temporary


async def test_a_playbook_that_can_not_be_read_is_told_in_ansibles_words(
    root: Path, sshd: Sshd, tmp_path: Path
) -> None:
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        with pytest.raises(StepError, match="no module/action detected in task"):
            await place.run(place.playbook("    - {name: nothing}\n"))


async def test_a_directory_of_somebody_else_is_left_alone(root: Path, sshd: Sshd, tmp_path: Path) -> None:
    directory = tmp_path / "inventory"
    directory.mkdir()
    (directory / "hosts.ini").write_text("[all]\n")
    place = Place(root, sshd, directory)
    with pytest.raises(StepError, match="holds something else"):
        await prepare_server(place.deps, place.prepare_args, place.context)  # type: ignore[arg-type]
    await undo_prepare_server(place.deps, place.prepare_args, place.context)  # type: ignore[arg-type]
    await place.deps.connector.close()  # type: ignore[attr-defined]
    assert [file.name for file in directory.iterdir()] == ["hosts.ini"]


async def test_a_node_is_reached_however_long_the_inventorys_path_is(root: Path, sshd: Sshd, tmp_path: Path) -> None:
    """SSH keeps connections open at a socket, whose path the kernel limits to 107 bytes."""
    directory = tmp_path / ("a-directory-with-a-long-name" * 3)
    sockets = Path.home() / ".slipway" / f"ssh-{sha256(str(directory).encode()).hexdigest()[:12]}"
    async with a_place(root, sshd, directory) as place:
        args = place.playbook("    - {name: there, ansible.builtin.raw: 'true'}\n")
        (directory / "known_hosts").write_text(f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n")
        key = directory / "key"
        key.write_bytes(OWN_KEY.export_private_key())
        key.chmod(0o600)
        login = f"ansible_port: {sshd.port}, ansible_user: {ME}, ansible_ssh_private_key_file: {key}"
        (directory / "hosts.yaml").write_text(
            f"all:\n  hosts:\n    localhost: {{ansible_host: 127.0.0.1, ansible_connection: ssh, {login}}}\n"
        )
        await place.run(args)
        assert sockets.is_dir()
    assert not sockets.exists()


async def test_the_host_key_of_the_first_contact_is_kept_beyond_slipways_memory(
    root: Path, sshd: Sshd, tmp_path: Path
) -> None:
    async with a_place(root, sshd, tmp_path / "inventory") as place:
        server = replace(place.ansible.server, host_key=None)
        args = PrepareServer(ansible=replace(place.ansible, server=server))
        place.context.prepared = await prepare_server(place.deps, args, place.context)  # type: ignore[arg-type]
        restarted = Dependencies(SshConnector(), UNUSED, UNUSED)
        with running_sshd(tmp_path / "other") as other:
            login = replace(server.login, port=other.port)
            elsewhere = replace(place.ansible, server=replace(server, login=login))
            host = await ansible_host(restarted, elsewhere, place.context)  # type: ignore[arg-type]
            with pytest.raises(StepError, match="host key"):
                await run(host, "runs_list", "any")
        await restarted.connector.close()  # type: ignore[attr-defined]
