"""What the sandbox decides without an engine: names, seeds, connections, ranges, what a host lacks."""

from __future__ import annotations

import dataclasses
import io
import tarfile
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.model.action import VimConnection
from slipway.model.descriptor import ConnectionPoint, Flavour, Vdu, VirtualLink
from slipway.model.errors import BadRequest, Unprocessable, VimError, VimFault
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.machine import Found, Machine
from slipway.model.target import Change, VnfcMember, VnfTarget
from slipway.model.vim import SANDBOX
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import SandboxDriver, machines, seed
from slipway.vim.sandbox.checks import Host, cgroups, inotify, kernel
from slipway.vim.sandbox.connection import LOCAL, Access
from slipway.vim.sandbox.engine import Engine, _fault
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.keys import login_key, new_key
from slipway.vim.sandbox.labels import bridge_name, engine_name, hostname
from slipway.vim.sandbox.networks import Wire
from slipway.vim.sandbox.paths import SandboxPaths
from slipway.vim.sandbox.specification import Specification

OWN = "ssh-ed25519 AAAA"
INSTANCE = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def driver(tmp_path: Path) -> SandboxDriver:
    return SandboxDriver(tmp_path, sockets=("/run/docker.sock",))


def at(endpoint: object = LOCAL, **access: object) -> VimConnection:
    return VimConnection(SANDBOX, {"endpoint": endpoint}, access, {})


@given(st.text(min_size=1))
def test_every_id_gives_a_name_that_engines_take(id_: str) -> None:
    name = engine_name("machine", id_)
    assert name.isascii()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
    assert len(bridge_name("unix:///socket", id_)) <= 15


@given(st.text())
def test_every_slot_gives_a_host_name(slot: str) -> None:
    name = hostname(slot)
    assert 1 <= len(name) <= 63
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


@pytest.mark.parametrize("endpoint", [LOCAL, "unix:///run/docker.sock"])
def test_endpoints_of_this_machine_are_taken(driver: SandboxDriver, endpoint: str) -> None:
    driver.validate(at(endpoint))


@pytest.mark.parametrize("endpoint", [None, 1, "", "tcp://10.0.0.1:2375", "unix://relative", "http://x", f"{LOCAL} "])
def test_other_endpoints_are_refused_by_name(driver: SandboxDriver, endpoint: object) -> None:
    with pytest.raises(BadRequest, match=r"interfaceInfo\.endpoint"):
        driver.validate(at(endpoint))


@pytest.mark.parametrize(
    "access",
    [
        {"username": "root"},
        {"password": 7},
        {"password": "a\nroot:b"},
        {"authorizedKeys": "ssh-ed25519 AAAA"},
        {"authorizedKeys": ["no key"]},
        {"authorizedKeys": ["ssh-ed25519 AAAA\nssh-ed25519 BBBB"]},
    ],
)
def test_bad_ways_to_log_in_are_refused_without_being_told(driver: SandboxDriver, access: dict[str, object]) -> None:
    with pytest.raises(BadRequest, match="accessInfo") as refused:
        driver.validate(at(**access))
    assert "root:b" not in refused.value.detail


def test_containers_are_refused(driver: SandboxDriver) -> None:
    flavour = Flavour(id="simple", vdus={"web": Vdu(name="web", initial=1, maximum=1, container=True)})
    after = VnfTarget(vnfd_id="vnfd", flavour=flavour, scale={}, counts={"web": 1})
    with pytest.raises(Unprocessable, match="a sandbox holds machines, and web of the VNFD are containers"):
        driver.refuse(Change(instance_id="i", version=1, inventory=Found(), after=after))


@pytest.mark.parametrize(
    ("words", "vnic_type", "reason"),
    [
        ({"metadata": {"a": "b"}}, None, "VDU web: a sandbox tells machines no kvp_data"),
        (
            {"boot_order": ("root",)},
            None,
            "VDU web: a sandbox boots machines from their image, and boot_order",
        ),
        ({}, "direct", "connection point cp: a sandbox has no ports of the vnic_type direct"),
    ],
)
def test_what_machines_of_the_vnfd_would_lack_is_refused(
    driver: SandboxDriver, words: dict[str, Any], vnic_type: str | None, reason: str
) -> None:
    point = ConnectionPoint(name="cp", vdu="web", vnic_type=vnic_type)
    flavour = Flavour(id="simple", vdus={"web": Vdu(name="web", **words)}, connection_points={"cp": point})
    after = VnfTarget(vnfd_id="vnfd", flavour=flavour, scale={}, counts={"web": 1})
    with pytest.raises(Unprocessable, match=reason):
        driver.refuse(Change(instance_id="i", version=1, inventory=Found(), after=after))


def on_links(links: dict[str, str | None], outside: dict[str, str]) -> Change:
    """Connection points of one VDU, by their internal virtual links, and by outside networks."""
    points = {name: ConnectionPoint(name=name, vdu="web", virtual_link=link) for name, link in links.items()}
    flavour = Flavour(
        id="simple",
        vdus={"web": Vdu(name="web")},
        connection_points=points,
        virtual_links={link: VirtualLink(name=link) for link in links.values() if link},
    )
    given = tuple(
        ExtVirtualLink(id=f"link-{cp}", resource_id=network, ext_cps=(VnfExtCpData(cpd_id=cp),))
        for cp, network in outside.items()
    )
    members = (VnfcMember(id="vnfc", vdu="web", slot=0),)
    after = VnfTarget(vnfd_id="vnfd", flavour=flavour, scale={}, counts={"web": 1}, members=members, links=given)
    return Change(instance_id=INSTANCE, version=1, inventory=Found(), after=after)


@pytest.mark.parametrize(
    ("links", "outside"),
    [
        ({"one": "net", "other": "net"}, {}),
        ({"one": "net", "other": "more"}, {"one": "public", "other": "public"}),
    ],
)
def test_two_ports_of_a_machine_on_one_network_are_refused(
    driver: SandboxDriver, links: dict[str, str | None], outside: dict[str, str]
) -> None:
    with pytest.raises(Unprocessable, match="VDU web: its connection points one and other are on one network"):
        driver.refuse(on_links(links, outside))


@pytest.mark.parametrize("links", [{"one": None}, {"one": None, "other": None}])
def test_a_port_on_no_network_is_refused_once_nobody_may_connect_it(
    driver: SandboxDriver, links: dict[str, str | None]
) -> None:
    change = on_links(links, {})
    with pytest.raises(Unprocessable, match="VDU web: nothing connects its connection point one"):
        driver.refuse(change)
    driver.refuse(dataclasses.replace(change, grant_follows=True))
    driver.refuse(on_links(links, {name: f"net-{name}" for name in links}))


def test_two_ports_of_a_machine_on_two_networks_are_held(driver: SandboxDriver) -> None:
    driver.refuse(on_links({"one": "net", "other": "more"}, {}))
    driver.refuse(on_links({"one": "net", "other": "net"}, {"other": "public"}))


def test_nothing_starts_before_it_is_asked_for(driver: SandboxDriver, tmp_path: Path) -> None:
    assert len(driver.actions) == 9
    driver.close()
    assert list(tmp_path.iterdir()) == []


def test_a_seed_keeps_secrets_from_others_on_the_machine() -> None:
    files = seed.login_files(Access(password="pw"), OWN, "#!/bin/sh\ntrue\n")
    with tarfile.open(fileobj=io.BytesIO(seed.archive({seed.HOST_KEY: b"key", **files}))) as tar:
        modes = {entry.name: entry.mode for entry in tar}
    assert modes == {seed.HOST_KEY: 0o600, seed.KEYS: 0o644, seed.PASSWORDS: 0o600, seed.USER_DATA: 0o755}


def test_cloud_config_brings_keys_password_and_commands() -> None:
    boot = "#cloud-config\nssh_authorized_keys: [ssh-rsa BBBB]\npassword: pw\nruncmd: [[echo, \"it's\"], 'a | b']\n"
    files = seed.login_files(Access(), OWN, boot)
    assert files[seed.KEYS] == b"ssh-ed25519 AAAA\nssh-rsa BBBB\n"
    assert files[seed.PASSWORDS] == b"slipway:pw\n"
    assert files[seed.USER_DATA] == b"#!/bin/sh\n'echo' 'it'\"'\"'s'\na | b\n"


@pytest.mark.parametrize(
    "boot",
    ["hello", "#cloud-config\n[", "#cloud-config\n- a", "#cloud-config\nbootcmd: []", "#cloud-config\nruncmd: 1"],
)
def test_boot_data_that_would_be_ignored_is_refused(boot: str) -> None:
    with pytest.raises(VimError, match="boot data") as refused:
        seed.login_files(Access(), OWN, boot)
    assert refused.value.fault is VimFault.PERMANENT


class MakingEngine(Engine):
    """Keeps what it is told to make."""

    def __init__(self) -> None:
        self.made: list[Specification] = []

    def create_container(self, spec: Specification) -> None:
        self.made.append(spec)

    def put(self, name: str, archive: bytes) -> None:
        pass


@pytest.mark.parametrize(("image", "flavour"), [("router-2", "large"), (None, None)])
def test_a_machine_says_what_it_was_made_from(image: str | None, flavour: str | None) -> None:
    """What an operation makes again as it was is made from that, whatever the VNFD says by now."""
    engine, maker = MakingEngine(), Maker("vnf", "operation")
    machine = Machine(id="vnfc", name="node-0", vdu="node", image=image, flavour=flavour)
    machines.make(engine, machine, "localhost/slipway/machine", maker, machines.Parts([], [], {}), {})
    container = {"Id": "c1", "State": {"Status": "running"}, "Config": {"Labels": engine.made[0].labels}}
    found = machines.found_machine(container, [])
    assert (found.image, found.flavour) == (image, flavour)


def test_an_isolated_network_keeps_places_in_its_range() -> None:
    wire = Wire("n", IPv4Network("10.10.0.0/24"), IPv4Network("100.64.3.0/24"))
    assert wire.isolated
    assert wire.for_engine("10.10.0.5") == "100.64.3.5"
    plain = Wire("n", IPv4Network("10.10.0.0/24"), IPv4Network("10.10.0.0/24"))
    assert (plain.isolated, plain.for_engine("10.10.0.5")) == (False, "10.10.0.5")


def test_the_login_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "id"
    first = login_key(path)
    assert login_key(path) == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert new_key().public.startswith("ssh-ed25519 ")
    assert new_key().public != new_key().public


@pytest.mark.parametrize(
    ("status", "said", "fault"),
    [
        (403, "no", VimFault.AUTH),
        (500, "write /x: no space left on device", VimFault.QUOTA),
        (500, "requested ip address 10.0.0.1 is already allocated", VimFault.PERMANENT),
        (400, "what?", VimFault.PERMANENT),
        (409, "conflict", VimFault.TEMPORARY),
        (500, "internal", VimFault.TEMPORARY),
    ],
)
def test_what_an_engine_says_has_its_class(status: int, said: str, fault: VimFault) -> None:
    assert _fault(status, said) is fault


def test_an_engine_that_is_there_comes_before_one_of_our_own(tmp_path: Path) -> None:
    paths = SandboxPaths(tmp_path, tmp_path)
    assert Engines(paths, {"DOCKER_HOST": "unix:///named"}, ()).url(LOCAL) == "unix:///named"
    assert Engines(paths, {}, (tmp_path / "absent",)).url(LOCAL) == f"unix://{paths.socket}"
    with pytest.raises(VimError, match="no engine at"):
        Engines(paths, {}, ()).url("unix:///nowhere")


def test_what_a_host_lacks_comes_with_its_cure(tmp_path: Path) -> None:
    host = Host(tmp_path, is_root=True)
    bare = [cgroups(host), inotify(host), *list(kernel(host))[:2]]
    assert [one.fine for one in bare] == [False] * 4
    assert all(one.cure for one in bare)
    _write(tmp_path, "sys/fs/cgroup/unified/cgroup.procs", "")
    _write(tmp_path, "proc/sys/fs/inotify/max_user_instances", "8192\n")
    _write(tmp_path, "proc/filesystems", "nodev\toverlay\n")
    _write(tmp_path, "dev/loop-control", "")
    full = [cgroups(host), inotify(host), *list(kernel(host))[:2]]
    assert [(one.fine, one.cure) for one in full] == [(True, "")] * 4


def _write(root: Path, path: str, content: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)
