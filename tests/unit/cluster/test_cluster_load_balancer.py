from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from slipway.cluster.kubernetes_names import DNS_LABEL
from slipway.cluster.load_balancer import Backend, VirtualAddress, haproxy_config, keepalived_config

MASTERS = [Backend(name=f"master-{n}", address=f"10.10.0.{n + 5}") for n in range(3)]
SIX = [Backend(name=f"master-{n}", address=f"fd00::{n + 5}") for n in range(3)]
VIP = VirtualAddress(address="10.10.0.100", prefix=24, router_id=77)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def keepalived(own: str = "master-1", interface: str = "eth0", password: str = "abcd1234") -> str:  # noqa: S107
    return keepalived_config(VIP, MASTERS, own, interface, password)


def test_haproxy_knows_every_master() -> None:
    told = lines(haproxy_config(MASTERS))
    assert [line for line in told if line.startswith("server ")] == [
        "server master-0 10.10.0.5:6443",
        "server master-1 10.10.0.6:6443",
        "server master-2 10.10.0.7:6443",
    ]
    assert "bind *:16443" in told
    assert not any(word in haproxy_config(MASTERS) for word in ("stats", "password", "auth"))


def test_haproxy_speaks_ipv6() -> None:
    told = lines(haproxy_config(SIX))
    assert "bind [::]:16443 v4v6" in told
    assert "server master-2 [fd00::7]:6443" in told


def test_keepalived_names_its_peers_one_by_one() -> None:
    told = lines(keepalived())
    assert "unicast_src_ip 10.10.0.6" in told
    start = told.index("unicast_peer {")
    assert told[start + 1 : start + 4] == ["10.10.0.5", "10.10.0.7", "}"]
    assert "10.10.0.100/24" in told
    assert {"virtual_router_id 77", "interface eth0", "auth_pass abcd1234", "nopreempt"} <= set(told)


def test_masters_have_different_priorities() -> None:
    told = {next(line for line in lines(keepalived(one.name)) if line.startswith("priority")) for one in MASTERS}
    assert told == {"priority 250", "priority 249", "priority 248"}


def test_vrrp_of_ipv6_has_no_password() -> None:
    told = keepalived_config(VirtualAddress(address="fd00::100", router_id=1), SIX, "master-0", "eth0", "abcd1234")
    assert "fd00::100/128" in lines(told)
    assert "abcd1234" not in told


def test_braces_are_balanced() -> None:
    assert keepalived().count("{") == keepalived().count("}")


@pytest.mark.parametrize("router", [0, 256, -1])
def test_numbers_out_of_range_are_refused(router: int) -> None:
    with pytest.raises(ValueError, match="not within"):
        keepalived_config(replace(VIP, router_id=router), MASTERS, "master-0", "eth0", "abcd1234")


@pytest.mark.parametrize("password", ["", "short", "abcd1234\n", "abcd 123", "abcd12345", "abcd123}"])
def test_passwords_are_eight_letters_or_digits_and_never_repeated_in_the_error(password: str) -> None:
    with pytest.raises(ValueError, match="a VRRP password has 8 letters or digits"):
        keepalived(password=password)


SHAPE = re.compile(r"[A-Za-z0-9.:\[\]-]+")
NAMES = st.from_regex(DNS_LABEL) | st.text()
FOUR = st.ip_addresses(v=4).map(str) | st.text()
INTERFACES = st.from_regex(r"\A[a-z]{1,8}[0-9]{1,3}\s?\Z") | st.text()
PASSWORDS = st.from_regex(r"\A[a-z0-9]{8}\s?\Z") | st.text()


@given(NAMES, st.ip_addresses().map(str) | st.text())
@example("a\n    server evil 6.6.6.6:6443", "10.0.0.1")
@example("a", "10.0.0.1:6443\nlisten stats")
@example("a", "fe80::1%eth0\n")
def test_no_value_can_add_a_line_to_haproxy(name: str, address: str) -> None:
    usual = haproxy_config(MASTERS)
    try:
        told = haproxy_config([*MASTERS[:2], Backend(name=name, address=address)])
    except ValueError:
        return
    assert len(told.split("\n")) == len(usual.split("\n"))
    *_, last = lines(told)
    assert len(last.split(" ")) == 3
    assert all(SHAPE.fullmatch(word) for word in last.split(" "))


@given(FOUR, FOUR, INTERFACES, PASSWORDS)
@example("10.0.0.1/24 dev eth0", "10.0.0.1", "eth0", "abcd1234")
@example("10.0.0.1", "10.0.0.2", "eth0\n}", "abcd1234")
@example("10.0.0.1", "10.0.0.2", "eth0", "abcd1234\n}")
@example("10.0.0.1", "10.0.0.2", "eth0", "abcd1234")
def test_no_value_can_add_a_line_to_keepalived(vip: str, address: str, interface: str, password: str) -> None:
    masters = [MASTERS[0], Backend(name="b", address=address), MASTERS[2]]
    usual = lines(keepalived("master-0"))
    try:
        told = keepalived_config(replace(VIP, address=vip), masters, "b", interface, password)
    except ValueError:
        return
    if ipaddress.ip_address(vip).version == 4:
        assert len(lines(told)) == len(usual)
    assert all(re.fullmatch(r"[ -~]*", line) for line in told.split("\n"))
    assert told.count("{") == told.count("}") <= "\n".join(usual).count("{")
