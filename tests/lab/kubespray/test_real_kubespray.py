"""The real kubespray with an inventory of ours, as far as that goes without machines and without the internet.

KUBESPRAY_CHECKOUT names its directory, whose requirements are installed in its `.venv`, its `venv` or for all users. It
parses the inventory, checks the syntax of its playbooks, lists their hosts and tasks, and validates the variables.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.spec import Node, SshLogin
from slipway.kubespray.group_vars import cluster_variables, login_variables, proxy_variables
from slipway.kubespray.inventory import InventoryHost, as_yaml, hosts_yaml
from slipway.kubespray.steps.server import SCRIPTS
from slipway.remote.quoting import run_script

pytestmark = pytest.mark.group(name="kubespray")
PLAYBOOKS = ("cluster.yml", "scale.yml", "remove-node.yml", "upgrade-cluster.yml", "playbooks/facts.yml")
NETWORKS = ClusterNetworks(pods="10.233.64.0/18", services="10.233.0.0/18", node_prefix=24)
VERIFY = """
- hosts: k8s_cluster
  connection: local
  gather_facts: false
  any_errors_fatal: true
  roles: [kubespray_defaults]
  tasks:
    - ansible.builtin.include_tasks: KUBESPRAY/roles/kubernetes/preinstall/tasks/0040-verify-settings.yml
"""
REMOVED = {"node": "worker-2", "skip_confirmation": True}


@pytest.fixture(scope="module")
def kubespray() -> Path:
    named = os.environ.get("KUBESPRAY_CHECKOUT")
    if not named:
        pytest.skip("KUBESPRAY_CHECKOUT names no directory of kubespray")
    return Path(named)


def host(name: str, number: int, *, master: bool) -> InventoryHost:
    login = SshLogin(username="ubuntu", password="p")
    node = Node(machine=name, slot=name, name=name, master=master, ssh="CP1", nic="CP1", login=login)
    return InventoryHost(node=node, address=f"192.0.2.{number}", ip=f"10.3.0.{number}")


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    hosts = [host(f"master-{n}", n, master=True) for n in (1, 2, 3)]
    hosts += [host(f"worker-{n}", 9 + n, master=False) for n in (1, 2)]
    variables = cluster_variables(
        networks=NETWORKS, version=None, plugin=None, image_repository=None, certificate_names=["192.0.2.200"]
    )
    proxies = proxy_variables("http://user:word@192.0.2.9:3128", "http://192.0.2.9:3129", ["10.0.0.0/8"])
    files = {
        "hosts.yaml": hosts_yaml(hosts),
        "group_vars/all/slipway.yml": as_yaml(variables),
        "group_vars/all/slipway-secrets.yml": as_yaml(proxies),
        **{
            f"host_vars/{one.name}/slipway-secrets.yml": as_yaml(login_variables(password="{{ 1 }}", key_file=None))
            for one in hosts
        },
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "hosts.yaml"


def ansible(kubespray: Path, program: str, *arguments: str | Path) -> str:
    found = f"{kubespray}/.venv/bin:{kubespray}/venv/bin:{os.environ['PATH']}"
    env = {**os.environ, "PATH": found, "ANSIBLE_CACHE_PLUGIN": "memory", "ANSIBLE_NOCOLOR": "1"}
    ended = subprocess.run(
        [program, *arguments], cwd=kubespray, env=env, capture_output=True, text=True, check=False, timeout=900
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


def test_the_inventory_is_parsed_into_kubesprays_groups(kubespray: Path, inventory: Path) -> None:
    found: dict[str, Any] = json.loads(ansible(kubespray, "ansible-inventory", "-i", inventory, "--list"))
    assert found["kube_control_plane"]["hosts"] == found["etcd"]["hosts"] == ["master-1", "master-2", "master-3"]
    assert found["kube_node"]["hosts"] == ["worker-1", "worker-2"]
    assert sorted(found["k8s_cluster"]["children"]) == ["kube_control_plane", "kube_node"]
    hosts = found["_meta"]["hostvars"]
    assert hosts["master-2"]["ip"] == "10.3.0.2"
    assert hosts["worker-1"]["http_proxy"] == "http://user:word@192.0.2.9:3128"


@pytest.mark.parametrize("playbook", PLAYBOOKS)
@pytest.mark.parametrize("how", ["--syntax-check", "--list-hosts", "--list-tasks"])
def test_every_playbook_takes_the_inventory(kubespray: Path, inventory: Path, playbook: str, how: str) -> None:
    more = ["--extra-vars", json.dumps(REMOVED)] if playbook == "remove-node.yml" else []
    printed = ansible(kubespray, "ansible-playbook", "-i", inventory, how, *more, playbook)
    if how == "--list-hosts":
        assert "master-1" in printed or "worker-2" in printed


def test_the_variables_pass_kubesprays_own_validation(kubespray: Path, inventory: Path, tmp_path: Path) -> None:
    play = tmp_path / "validate.yml"
    play.write_text(f"- name: validate\n  ansible.builtin.import_playbook: {kubespray}/playbooks/boilerplate.yml\n")
    printed = ansible(kubespray, "ansible-playbook", "-i", inventory, play)
    assert "failed=0" in printed
    assert "Stop if unsupported options selected" in printed


@pytest.mark.parametrize("known", [True, False])
def test_a_run_for_some_nodes_needs_facts_of_the_others_however_old(
    kubespray: Path, inventory: Path, tmp_path: Path, known: bool
) -> None:
    """kubespray forgets them after a day, and then refuses every --limit: beside a dead node, and for masters alone."""
    play = tmp_path / "verify.yml"
    play.write_text(VERIFY.replace("KUBESPRAY", str(kubespray)))
    (tmp_path / "facts").mkdir()
    if known:
        for name in ("master-1", "master-2", "master-3", "worker-1", "worker-2"):
            cached = tmp_path / "facts" / name
            cached.write_text(json.dumps({"ansible_default_ipv4": {"address": "192.0.2.1"}}))
            os.utime(cached, (0, 0))
    command = run_script(
        "playbook_run", str(kubespray), str(tmp_path), "verify", os.path.relpath(play, kubespray),
        "--limit=kube_control_plane", folder=SCRIPTS,
    )  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert ("not support '--limit' without a populated facts cache" in ended.stdout) is not known, ended.stdout
    assert ("Stop if non systemd OS type" in ended.stdout) is known  # the next task, which only a machine passes
