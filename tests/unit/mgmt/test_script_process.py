"""A script of a package runs behind walls: what it sees, what it may use, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

from slipway.mgmt.cgroup import Cgroup, make_cgroup, possible_parents
from slipway.mgmt.script_process import Ended, run_script
from slipway.mgmt.walls import Language, Walls, find_tools
from slipway.model.errors import StepError
from tests.script_sandbox import needs_sandbox

CANARY = f"canary-{uuid4().hex}"  # other test processes run scripts, too
NAME = f"Scripts/{CANARY}"
QUICK = Walls(seconds=30)
CUT_OFF = Walls(seconds=30, network=False)

pytestmark = needs_sandbox


async def run(
    code: str,
    walls: Walls = QUICK,
    language: Language = "python",
    stdin: bytes = b"{}",
    limit: Callable[[int], Cgroup | None] = make_cgroup,
) -> Ended:
    async def unpack(directory: Path) -> None:
        (directory / "Scripts").mkdir()
        (directory / NAME).write_text(textwrap.dedent(code))
        (directory / "Scripts" / "beside.py").write_text("WORD = 'from beside'")
        for path in (directory, directory / "Scripts", *(directory / "Scripts").iterdir()):
            path.chmod(0o755)

    return await run_script(NAME, language, lambda package: stdin, unpack, walls, limit)


async def answer(code: str, walls: Walls = QUICK, stdin: bytes = b"{}") -> Any:
    ended = await run(code, walls, stdin=stdin)
    assert ended.fault is None, (ended.fault, ended.stderr)
    return json.loads(ended.stdout)


def processes_with(word: str) -> list[int]:
    """Of this machine, by their command lines."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and word.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where scripts get their directories. Nothing stays: no file, no process, no descriptor."""
    tmp_path_factory.getbasetemp()  # not in there
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", directory)
        files = open_files()
        umask = os.umask(0o077)  # as the server has it
        yield place
        os.umask(umask)
        assert left_in(place) == []
    assert open_files() <= files + 3  # the event loop has its own
    assert processes_with(CANARY) == []


def left_in(place: Path) -> list[Path]:
    return list(place.glob("slipway-script-*"))


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            if true():
                return
            await asyncio.sleep(0.02)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_it_gets_its_stdin_and_its_answer_comes_back() -> None:
    given = json.dumps({"a": "x" * 300_000}).encode()
    said = await answer("import json, sys; print(json.dumps(len(json.load(sys.stdin)['a'])))", stdin=given)
    assert said == 300_000


async def test_it_need_not_read_its_stdin() -> None:
    assert await answer("print('{}')", stdin=b"x" * 1_000_000) == {}


async def test_a_shell_script_runs_too_and_python_finds_modules_beside_it() -> None:
    assert (await run('echo "{\\"in\\": \\"$PWD\\"}"', language="bash")).stdout == b'{"in": "/work"}\n'
    assert await answer("import beside, json; print(json.dumps(beside.WORD))") == "from beside"


async def test_nothing_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_CANARY", "secret")
    with tempfile.TemporaryFile() as file:
        os.set_inheritable(file.fileno(), True)
        said = await answer(
            """
            import json, os
            lines = open("/proc/self/status").read().splitlines()
            status = dict(line.split(":\\t") for line in lines if ":\\t" in line)
            print(json.dumps({
                "environment": sorted(os.environ),
                "more": [n for n in range(3, 1024) if os.path.exists(f"/proc/self/fd/{n}")],
                "cwd": os.getcwd(), "groups": os.getgroups(), "uid": os.getuid(), "umask": status["Umask"],
                "caps": [status[n] for n in ("CapEff", "CapPrm", "CapBnd")], "alone": status["NoNewPrivs"],
            }))
            """
        )
    assert set(said["environment"]) <= {"PATH", "LANG", "HOME", "LC_CTYPE"}
    assert said["more"] == []
    assert (said["cwd"], said["umask"], said["alone"]) == ("/work", "0077", "1")
    assert {int(caps, 16) for caps in said["caps"]} == {0}
    if os.geteuid() == 0:
        assert said["groups"] == []
        assert said["uid"] != 0


async def test_it_sees_no_files_but_the_systems_and_its_package(tmp_path: Path) -> None:
    secret = tmp_path / "secrets.key"
    secret.write_text("canary")
    secret.chmod(0o644)
    said = await answer(
        f"""
        import json, os, pathlib
        def can(path, how):
            try:
                open(path, how).close()
                return True
            except OSError:
                return False
        print(json.dumps({{
            "top": sorted(os.listdir("/")),
            "secret": can({str(secret)!r}, "r"),
            "writable": [path for path in ("/usr/x", "/package/x", __file__, "/etc/x", "/proc/sys/kernel/x")
                         if can(path, "w")],
            "own": can("/work/x", "w") and can("/tmp/x", "w"),
            "homes": [str(p) for p in pathlib.Path("/root").rglob("*") if p.name.startswith(".ssh")],
            "others": [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 10],
        }}))
        """
    )
    assert not {"home", "var", "run", "sys", "opt", "srv", "mnt"} & set(said["top"])
    assert said["secret"] is False
    assert said["writable"] == []
    assert said["own"] is True
    assert said["homes"] == []
    assert said["others"] == []


async def test_where_root_alone_can_reach_its_directory_it_runs_all_the_same(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has files of others")
    os.chown(place, 12345, 12345)
    os.chmod(place, 0o700)  # noqa: PTH101
    assert await answer("print('{}')") == {}


async def test_it_can_make_no_namespace_of_its_own() -> None:
    ended = await run("import subprocess; subprocess.run(['unshare', '-U', 'true'], check=True)")
    assert ended.fault


async def test_what_it_leaves_running_is_ended_with_it() -> None:
    code = """
        (setsid sh -c 'while :; do sleep 1; done' "$0" >/dev/null 2>&1 &)
        while ! pgrep -f 'while :' >/dev/null; do :; done
        echo '{}'
        """
    ended = await run(code, language="bash")
    assert ended == Ended(None, b"{}\n", b"")
    assert processes_with(CANARY) == []


async def test_killing_its_parent_and_everybody_changes_nothing() -> None:
    said = await answer(
        """
        import json, os, signal
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
            for pid in (os.getppid(), 1):
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        print(json.dumps(os.getppid()))
        """
    )
    assert said == 1


async def test_forking_without_end_stops_at_its_limit_and_leaves_nobody() -> None:
    began = time.monotonic()
    ended = await run(
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """,
        Walls(seconds=2),
    )
    assert ended.fault is not None
    assert "no end after 2 s" in ended.fault.reason
    assert time.monotonic() - began < 15
    assert processes_with(CANARY) == []


async def test_memory_is_limited_for_one_process_and_for_all_together() -> None:
    small = Walls(seconds=30, memory_bytes=128 << 20)
    ended = await run("x = bytearray(400 << 20)", small)
    assert ended.fault is not None
    assert "exit code 1" in ended.fault.reason
    assert b"MemoryError" in ended.stderr
    ended = await run(
        """
        import os, time
        for _ in range(8):
            if os.fork() == 0:
                x = bytearray(os.urandom(1 << 20) * 60)
                time.sleep(60)
        time.sleep(60)
        """,
        small,
    )
    assert ended.fault is not None
    assert "used more than 128 MiB" in ended.fault.reason


HOLDS_FILES = """
import os, time
for number in range(6):
    file = os.memfd_create("x")
    for _ in range(30):
        os.write(file, bytes(1 << 20))
print("held")
"""
FILLS = """
for name in ("/work/x", "/tmp/x", "/dev/shm/x"):
    with open(name, "wb") as file:
        for _ in range(60):
            file.write(bytes(1 << 20))
print("held")
"""
SHARES = """
import mmap, os, time
x = mmap.mmap(-1, 50 << 20)
for place in range(0, len(x), 4096):
    x[place] = 1
if os.fork():
    y = mmap.mmap(-1, 50 << 20)
    for place in range(0, len(y), 4096):
        y[place] = 1
    time.sleep(5)
else:
    z = bytearray(b"x") * (50 << 20)
    time.sleep(5)
print("held")
"""


@pytest.mark.parametrize("code", [HOLDS_FILES, FILLS, SHARES])
async def test_files_in_memory_and_shared_memory_count(code: str) -> None:
    if not any(True for _ in possible_parents()):
        pytest.skip("no cgroup with a memory limit on this machine")
    ended = await run(code, Walls(seconds=30, memory_bytes=128 << 20))
    assert ended.fault is not None, ended.stdout
    assert "used more than 128 MiB of memory" in ended.fault.reason


@pytest.mark.parametrize("code", [HOLDS_FILES, SHARES])
async def test_without_a_cgroup_they_are_counted(code: str) -> None:
    lasting = code.replace("print", "time.sleep(30); print")
    ended = await run(lasting, Walls(seconds=30, memory_bytes=128 << 20), limit=lambda _: None)
    assert ended.fault is not None, ended.stdout
    assert "used more than 128 MiB of memory" in ended.fault.reason


async def test_it_can_fill_no_more_than_its_own_places() -> None:
    said = await answer(
        """
        import json, os
        filled = {}
        for top in ("/work", "/tmp", "/dev/shm", "/dev", "/", "/proc", "/etc", "/package"):
            filled[top] = 0
            try:
                for number in range(4):
                    with open(f"{top}/x{number}", "wb", buffering=0) as file:
                        for _ in range(40):
                            filled[top] += file.write(bytes(1 << 20))
            except OSError:
                pass
            for number in range(4):
                if os.path.exists(f"{top}/x{number}"):
                    os.unlink(f"{top}/x{number}")
        print(json.dumps({top: size >> 20 for top, size in filled.items()}))
        """
    )
    assert said == {"/work": 64, "/tmp": 64, "/dev/shm": 64, "/dev": 0, "/": 0, "/proc": 0, "/etc": 0, "/package": 0}


CONNECTS = """
import json, socket, sys
def tried(family, address, port, device):
    with socket.socket(family) as s:
        s.settimeout(1)
        try:
            if device:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            s.connect((address, port))
            return s.recv(100).decode()
        except OSError as error:
            return type(error).__name__
given = json.load(sys.stdin)
said = {}
for address in given["addresses"]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for device in given["devices"]:
        said[f"{address} {device}"] = tried(family, address, given["port"], device)
print(json.dumps(said))
"""


@contextmanager
def listening(address: str) -> Iterator[int]:
    """A service of the host, on all its addresses or on one; the port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family, dualstack_ipv6=address == "::") as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.sendall(b"reached")

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


async def connected(port: int, addresses: list[str], walls: Walls = QUICK, devices: Any = (None, "tap0")) -> Any:
    given = {"port": port, "addresses": addresses, "devices": devices}
    return await answer(CONNECTS, walls, json.dumps(given).encode())


@pytest.mark.parametrize("listens", ["127.0.0.1", "::1", "::"])
async def test_loopback_of_the_host_is_never_reached(listens: str) -> None:
    translated = ["198.51.100.2", "198.51.100.3", "198.51.100.50", "198.51.100.255", "255.255.255.255"]
    translated_6 = ["fd00::2", "fd00::3", "fd00::50", "::ffff:198.51.100.2"]
    with listening(listens) as port:
        own = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"]  # noqa: S104 - as an attack
        said = await connected(port, [*own, *translated, *translated_6])
    assert [way for way, got in said.items() if got == "reached"] == []


OTHER_HOST = f"""
ip link set lo up
for address in 169.254.169.254 169.254.170.2 100.100.100.200 203.0.113.7; do ip addr add $address/32 dev lo; done
for address in fd00:ec2::254 2001:db8::7; do ip addr add $address/128 dev lo nodad; done
echo nameserver 127.0.0.1 > "$1"
mount --bind "$1" /etc/resolv.conf
exec {sys.executable} -c "$0"
"""
RUNS_ON_IT = """
import asyncio, json, tests.unit.mgmt.test_script_process as here
addresses = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "::ffff:169.254.169.254", "fd00:ec2::254"]
addresses += ["198.51.100.3"]  # which is 127.0.0.1 there, for names only
with here.listening("::") as port:
    print(json.dumps(asyncio.run(here.connected(port, [*addresses, "203.0.113.7", "2001:db8::7"]))))
"""


async def test_metadata_of_clouds_is_never_reached(tmp_path: Path) -> None:
    """On a host whose services listen there: a network namespace, in which the script gets one of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root makes such a host")
    words = ("unshare", "--net", "--mount", "sh", "-ec", OTHER_HOST, RUNS_ON_IT, str(tmp_path / "resolv.conf"))
    host = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    said = json.loads((await host.communicate())[0])
    assert {way.split()[0] for way, got in said.items() if got == "reached"} == {"203.0.113.7", "2001:db8::7"}
    assert said["169.254.169.254 None"] == said["fd00:ec2::254 None"] == "ConnectionRefusedError"  # at once


def address_of_this_machine() -> str | None:
    """None when it has loopback only. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, suppress(OSError):
        s.connect(("203.0.113.1", 9))
        address: str = s.getsockname()[0]
        return address
    return None


async def test_machines_are_reached_where_the_network_is_on_and_nobody_where_it_is_off() -> None:
    address = address_of_this_machine()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    with listening(address) as port:
        assert await connected(port, [address], devices=[None]) == {f"{address} None": "reached"}
        said = await connected(port, [address, "127.0.0.1"], CUT_OFF, devices=[None])
    assert "reached" not in said.values()


@pytest.mark.parametrize("walls", [QUICK, CUT_OFF])
async def test_abstract_sockets_of_the_host_are_not_there(walls: Walls) -> None:
    name = f"\0{CANARY}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        ended = await run(f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})", walls)
    assert ended.fault is not None
    assert b"ConnectionRefusedError" in ended.stderr


async def test_it_cannot_change_its_network_or_trace_and_mount() -> None:
    said = await answer(
        """
        import ctypes, json, os, socket, subprocess
        libc = ctypes.CDLL(None, use_errno=True)
        done = {
            "mount": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
            "chroot": libc.chroot(b"/tmp"),
            "setuid": libc.setuid(0),
            "trace process 1": libc.ptrace(16, 1, 0, 0),
            "unshare": libc.unshare(0x10000000),
            "clone": libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0),
        }
        try:
            socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
            done["raw"] = 0
        except OSError:
            done["raw"] = -1
        print(json.dumps(sorted(name for name, code in done.items() if code != -1)))
        """
    )
    assert said == ([] if os.geteuid() == 0 else ["setuid"]) or said == []


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_flood_of_output_ends_it_and_fills_nothing(stream: str) -> None:
    began = time.monotonic()
    ended = await run(
        f"""
        import sys
        piece = "x" * 99 + "\\n"
        for _ in range(10_000_000):
            sys.{stream}.write(piece)
        """
    )
    assert ended.fault is not None
    assert f"on {stream}" in ended.fault.reason
    assert len(ended.stdout) <= 1 << 20
    assert len(ended.stderr) <= 4096
    assert time.monotonic() - began < 20


async def test_closing_its_streams_does_not_free_it_from_its_time() -> None:
    ended = await run("import os, time; [os.close(n) for n in (0, 1, 2)]; time.sleep(600)", Walls(seconds=1))
    assert ended.fault is not None
    assert "no end after 1 s" in ended.fault.reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(7)", "exit code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("open('/work/x', 'wb').write(b'x' * (65 << 20))", "exit code 1"),
        ("1 +", "exit code 1"),
        ("import os; os.kill(os.getpid(), 40)", "signal 40"),
    ],
)
async def test_how_it_ended_is_told(code: str, reason: str) -> None:
    ended = await run(code)
    assert ended.fault is not None
    assert reason in ended.fault.reason


async def test_broken_off_by_a_cancel_it_is_gone_when_the_cancel_is_through() -> None:
    running = asyncio.create_task(run("import time; time.sleep(600)"))
    await until(lambda: bool(processes_with(CANARY)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert processes_with(CANARY) == []


async def test_a_user_that_does_not_exist_or_is_root_is_refused() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else")
    with pytest.raises(StepError, match="no user 'no-such-user'"):
        await run("print('{}')", Walls(user="no-such-user"))
    with pytest.raises(StepError, match="never run as root"):
        await run("print('{}')", Walls(user="root"))


DIES = f"""
import asyncio, os, sys
from pathlib import Path
from slipway.mgmt.script_process import run_script
from slipway.mgmt.walls import Walls
async def unpack(directory):
    (directory / "{CANARY}.py").write_text("import time; time.sleep(600)")
    for path in (directory, directory / "{CANARY}.py"):
        path.chmod(0o755)
asyncio.run(run_script("{CANARY}.py", "python", lambda package: b"", unpack, Walls()))
"""


def cgroups_of(pid: int) -> list[Path]:
    return [path for parent in possible_parents() for path in parent.glob(f"slipway-script-*-{pid}-*")]


def runs(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_when_slipway_is_killed_its_scripts_die_and_the_next_one_takes_away_what_is_left(place: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(place)}
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, env=environment)
    await until(lambda: len(children_of(server.pid)) == 2 and len(processes_with(CANARY)) == 4)  # itself, bwrap twice
    started = children_of(server.pid)  # bwrap and slirp4netns
    server.kill()
    await server.wait()
    await until(lambda: not processes_with(CANARY) and not any(map(runs, started)))
    assert len(left_in(place)) == 1
    await answer("print('{}')")
    assert left_in(place) == []
    assert cgroups_of(server.pid) == []


READS_DESCRIPTORS = f"""
import os, sys, uvloop
from pathlib import Path
from slipway.mgmt.script_process import run_script
from slipway.mgmt.walls import Walls
async def unpack(directory):
    (directory / "{CANARY}.sh").write_text("ls /proc/self/fd; cat <&200")
    for path in (directory, directory / "{CANARY}.sh"):
        path.chmod(0o755)
print(uvloop.run(run_script("{CANARY}.sh", "bash", lambda package: b"", unpack, Walls())))
"""


async def test_what_slipway_was_started_with_does_not_reach_it(tmp_path: Path) -> None:
    """By the loop that the server uses."""
    secret = tmp_path / "secret"
    secret.write_text("canary of the starter")
    with secret.open() as file:
        os.dup2(file.fileno(), 200)
        try:
            server = await asyncio.create_subprocess_exec(
                sys.executable, "-c", READS_DESCRIPTORS, stdout=asyncio.subprocess.PIPE, pass_fds=(200,)
            )
            said = (await server.communicate())[0].decode()
        finally:
            os.close(200)
    assert "canary of the starter" not in said
    assert r"stdout=b'0\n1\n2\n3\n'" in said  # 3 is the directory that ls reads


def test_what_is_missing_is_named_with_its_package(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="need bwrap, nsenter, slirp4netns, nft, ip") as raised:
        find_tools(Walls(), path=str(tmp_path))
    assert "apt install bubblewrap util-linux slirp4netns nftables iproute2" in str(raised.value)
    assert "script_network = false" in str(raised.value)
    with pytest.raises(StepError, match="need bwrap, nsenter, not"):
        find_tools(CUT_OFF, path=str(tmp_path))
