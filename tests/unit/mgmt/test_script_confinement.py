"""How a script is confined, as data: bwrap's arguments, the packet filter, and where a cgroup can be made."""

from __future__ import annotations

import os
import subprocess
import sys
from ipaddress import ip_address, ip_network
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from slipway.mgmt.bubblewrap import Pipes, SandboxedScript, bwrap_arguments
from slipway.mgmt.cgroup import make_cgroup, maker_is_alive, possible_parents, remove, remove_stale_cgroups
from slipway.mgmt.script_limits import fault_from_status
from slipway.mgmt.script_network import DENIED, DENIED_6, FILTER, addresses, resolv_conf
from slipway.outgoing.addresses import METADATA

NAMESPACE = Path("/proc/self/ns/pid").stat().st_ino


def arguments(**changes: Any) -> list[str]:
    script: dict[str, Any] = {
        "command": ["/opt/python/bin/python3", "/package/x.py"],
        "package": Path("/var/tmp/p/package"),
        "python": Path("/opt/python"),
        "user": (65534, 65533),
        "seconds": 10.0,
        "memory_bytes": 1000,
        "etc": {"resolv.conf": Path("/var/tmp/p/resolv.conf")},
    }
    return bwrap_arguments(SandboxedScript(**{**script, **changes}), Pipes(info=7, status=8, wait=19))


def test_all_namespaces_are_its_own_and_it_dies_with_slipway() -> None:
    words = arguments()
    for option in ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"):
        assert option in words
    assert "--share-net" not in words


def test_the_host_is_shown_to_read_and_only_where_it_is_needed() -> None:
    words = arguments()
    binds = [tuple(words[n + 1 : n + 3]) for n, word in enumerate(words) if word in ("--ro-bind", "--ro-bind-try")]
    assert ("/usr", "/usr") in binds
    assert ("/opt/python", "/opt/python") in binds
    assert ("/var/tmp/p/package", "/package") in binds
    assert ("/var/tmp/p/resolv.conf", "/etc/resolv.conf") in binds
    assert not {"--bind", "--bind-try", "--dev-bind", "--dev-bind-try"} & set(words)
    shown = {target for _, target in binds}
    assert not shown & {"/", "/etc", "/root", "/home", "/run", "/var", "/tmp", "/sys"}
    assert words.index("--remount-ro") > max(n for n, word in enumerate(words) if word == "--ro-bind")


def test_modules_of_ours_are_shown_to_read_where_a_script_is_to_have_them() -> None:
    words = arguments(modules=Path("/var/tmp/p/modules"))
    assert words[words.index("/modules") - 2 :][:2] == ["--ro-bind", "/var/tmp/p/modules"]
    assert words.index("/modules") < words.index("--remount-ro")
    assert "/modules" not in arguments()


def test_the_rights_to_become_another_user_are_given_up_with_everything_else() -> None:
    words = arguments()
    begun = words[words.index("--") :]
    assert begun[:4] == ["--", "/bin/bash", "-c", 'exec 19<&-; exec "$@"']
    assert "--reuid=65534" in begun
    assert "--regid=65533" in begun
    assert {"--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--nproc=64:64", "--as=1000:1000"} <= set(begun)
    assert begun[-2:] == ["/opt/python/bin/python3", "/package/x.py"]
    nobody_else = arguments(user=None)
    assert "--cap-add" not in nobody_else
    assert "setpriv" not in nobody_else


def test_a_python_of_the_system_is_shown_once() -> None:
    assert "/usr/local" not in arguments(python=Path("/usr/local"))


def test_the_filter_names_what_is_never_reached() -> None:
    for address in ("127.0.0.0/8", "169.254.0.0/16", "::1", "fd00:ec2::/32"):
        assert address in FILTER
    assert "-6" not in addresses(ipv6=False)


def test_names_are_looked_up_by_way_of_the_host() -> None:
    hosts = "# by hand\nnameserver 127.0.0.53\nsearch example.com\noptions edns0\n"
    assert resolv_conf(hosts) == "nameserver 198.51.100.3\nsearch example.com\noptions edns0\n"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"exit-code": 0}, None),
        ({"exit-code": 3}, "ended with exit code 3"),
        ({"exit-code": 137}, "was ended by SIGKILL"),
        ({"exit-code": 255}, "ended with exit code 255"),
        ({"child-pid": 5}, "was not run, for it can't be kept apart on this host (bwrap: no user namespaces)"),
    ],
)
def test_what_bwrap_tells_is_understood(told: dict[str, int], reason: str | None) -> None:
    fault = fault_from_status(told, b"words\nbwrap: no user namespaces\n")
    assert (fault and fault.reason) == reason


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def test_version_1_has_it_below_our_own(tmp_path: Path) -> None:
    root = tree(tmp_path, {"unified/cgroup.subtree_control": ""})
    own = "8:pids:/\n4:memory:/services/slipway\n0::/\n"
    assert list(possible_parents(root, own)) == [root / "memory/services/slipway"]


def test_version_2_has_it_below_the_nearest_that_gives_memory_to_its_children(tmp_path: Path) -> None:
    files = {
        "cgroup.subtree_control": "cpu memory pids",
        "system.slice/cgroup.subtree_control": "memory pids",
        "system.slice/slipway.service/cgroup.subtree_control": "",
    }
    root = tree(tmp_path, files)
    assert list(possible_parents(root, "0::/system.slice/slipway.service\n")) == [root / "system.slice", root]
    assert list(possible_parents(tmp_path / "none", "0::/\n")) == []


def test_where_none_can_be_made_there_is_none(tmp_path: Path) -> None:
    assert make_cgroup(1 << 20, lambda: iter([tmp_path / "missing"])) is None


def test_what_a_dead_slipway_left_is_ended_and_removed() -> None:
    """A process in a cgroup of a Slipway that no longer runs, on the real ones of this machine."""
    made = make_cgroup(64 << 20)
    if made is None:
        pytest.skip("no cgroup can be made on this machine")
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead = made.path.with_name(f"slipway-script-{NAMESPACE}-{int(ended.stdout)}-x")
    dead.mkdir()
    with subprocess.Popen(["sleep", "600"]) as left:
        (dead / "cgroup.procs").write_text(str(left.pid))
        remove_stale_cgroups()
        assert left.wait(timeout=10) != 0
    assert not dead.exists()
    assert made.path.exists()  # ours lives
    assert str(os.getpid()) in made.path.name
    made.remove()
    assert not made.path.exists()


def test_processes_of_other_namespaces_and_of_others_are_left_alone(tmp_path: Path) -> None:
    """0 would be our own process group. Whom we may not end, we leave."""
    (tmp_path / "cgroup.procs").write_text("0\n4000001\n0\n4000002\n")
    ended: list[int] = []

    def kill(pid: int, signal: int) -> None:
        ended.append(pid)
        raise PermissionError

    remove(tmp_path, kill)
    assert set(ended) == {4000001, 4000002}
    assert tmp_path.exists()


def test_what_another_pid_namespace_made_is_not_judged() -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead = int(ended.stdout)
    assert maker_is_alive(f"slipway-script-{NAMESPACE}-{os.getpid()}-x")
    assert not maker_is_alive(f"slipway-script-{NAMESPACE}-{dead}-x")
    assert maker_is_alive(f"slipway-script-{NAMESPACE + 1}-{dead}-x")
    assert maker_is_alive(f"slipway-script-{dead}-x")


METADATA_BEHIND_NAT64 = ("64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110", "64:ff9b::6464:64c8", "64:ff9b::c000:c0")


@pytest.mark.parametrize(
    "address", [*map(str, sorted(METADATA, key=int)), "169.254.169.254", *METADATA_BEHIND_NAT64, "64:ff9b:1::a9fe:a9fe"]
)
def test_a_script_reaches_no_metadata_of_a_cloud(address: str) -> None:
    denied = DENIED_6 if ":" in address else DENIED
    assert any(ip_address(address) in ip_network(network) for network in denied)
    assert all(network in FILTER for network in denied)


@pytest.mark.parametrize("denied", [DENIED, DENIED_6])
def test_no_denied_network_lies_in_another_which_nft_refuses(denied: tuple[str, ...]) -> None:
    assert not [pair for pair in combinations(map(ip_network, denied), 2) if pair[0].overlaps(pair[1])]
