"""The inventory of a cluster as kubespray reads it: hosts in groups, as YAML made from data. Pure.

No secret is in it: those are in files of their own beside it, for the user alone (steps/inventory.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from slipway.cluster.naming import etcd_member_name
from slipway.cluster.spec import Node
from slipway.model.errors import StepError

MASTERS, WORKERS = "kube_control_plane", "kube_node"


class InventoryHost(msgspec.Struct, frozen=True, kw_only=True):
    """A node and its addresses: `address` is the one that Ansible logs in at, `ip` that of the cluster's traffic."""

    node: Node
    address: str
    ip: str
    host_key: str | None = None

    @property
    def name(self) -> str:
        return self.node.name


def hosts_document(hosts: Sequence[InventoryHost]) -> dict[str, Any]:
    """Masters in the order given, for the first of them is special to kubespray: it must stand already.

    A master that is to have no taint is a worker as well: so kubespray leaves it open for pods.
    """
    masters, workers = group(hosts, master=True), group(hosts, master=False)
    return {
        "all": {
            "hosts": {host.name: _variables(host) for host in hosts},
            "children": {
                MASTERS: {"hosts": _names(masters)},
                WORKERS: {"hosts": _names([*workers, *(host for host in masters if host.node.taints == ())])},
                "etcd": {"hosts": _names(masters)},
                "k8s_cluster": {"children": {MASTERS: {}, WORKERS: {}}},
                "calico_rr": {"hosts": {}},
            },
        }
    }


def check_hosts(hosts: Sequence[InventoryHost]) -> None:
    """StepError where two nodes have one address: playbooks would do to the one what is meant for the other."""
    at: dict[str, str] = {}
    for host in hosts:
        for place in (host.ip, f"{host.address} port {host.node.login.port}"):
            if (other := at.setdefault(place, host.node.slot)) != host.node.slot:
                raise StepError(
                    f"{other} and {host.node.slot} have the same address, {place}.",
                    cure="look at the addresses that the VIM gave them, and at ssh_cp_name and nic_cp_name.",
                )


def hosts_yaml(hosts: Sequence[InventoryHost]) -> str:
    return "# Made by Slipway for each operation: what is changed here is lost.\n" + as_yaml(hosts_document(hosts))


def known_hosts(hosts: Sequence[InventoryHost]) -> str:
    """For OpenSSH on the Ansible server: the keys that the machines showed to Slipway."""
    return "".join(f"{_place(host)} {host.host_key}\n" for host in hosts if host.host_key)


def group(hosts: Sequence[InventoryHost], *, master: bool) -> list[InventoryHost]:
    return [host for host in hosts if host.node.master is master]


def as_yaml(document: Any) -> str:
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=2**16))


class _Dumper(yaml.SafeDumper):
    """Text that Ansible might take for a template, as a password may look like one, is marked as none.

    Braces are not the only marks: text that begins with "#jinja2:" chooses its own. So all but plain text is marked.
    """

    def represent_text(self, text: str) -> yaml.ScalarNode:
        if not _PLAIN.fullmatch(text):
            return self.represent_scalar("!unsafe", text, style="'")
        return self.represent_str(text)


_PLAIN = re.compile(r"[A-Za-z0-9 ._:/@=,+-]*")
_Dumper.add_representer(str, _Dumper.represent_text)


def _variables(host: InventoryHost) -> dict[str, Any]:
    node = host.node
    found: dict[str, Any] = {
        "ansible_host": host.address,
        "ansible_port": node.login.port,
        "ansible_user": node.login.username,
        "ip": host.ip,
        "access_ip": host.ip,
    }
    if node.master:
        found["etcd_member_name"] = etcd_member_name(node.name)
    if node.taints:
        found["node_taints"] = [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    return found


def _names(hosts: Sequence[InventoryHost]) -> dict[str, dict[str, Any]]:
    return {host.name: {} for host in hosts}


def _place(host: InventoryHost) -> str:
    """As OpenSSH looks a host up."""
    port = host.node.login.port
    return host.address if port == 22 else f"[{host.address}]:{port}"
