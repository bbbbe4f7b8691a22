"""What an Ansible server must have, and what is said when it has not."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.cluster.spec import Server, SshLogin
from slipway.kubespray.arguments import AnsibleServer, PrepareServer
from slipway.kubespray.server import ServerFacts, check_server, read_facts
from slipway.kubespray.steps.server import SCRIPTS
from slipway.model.errors import StepError
from slipway.remote.quoting import run_script

INSTANCE = "11111111-2222-4333-8444-555555555555"
SERVER = Server(address="192.0.2.10", login=SshLogin(username="ansible"))
ANSIBLE = AnsibleServer(server=SERVER, root="/opt/kubespray", inventory="/inv", instance=INSTANCE)
WANTED = PrepareServer(ansible=ANSIBLE, passwords=True)
GOOD = ServerFacts(
    root=True, ansible="2.18.6", sshpass=True, kubespray="2.32.0", minimal="2.18.0", maximal="2.19.0", inventory=None
)


def test_facts_are_read_from_what_the_script_prints() -> None:
    printed = "ansible 2.18.6\nsshpass there\nkubespray 2.32.0\nminimal 2.18.0\nmaximal 2.19.0\n"
    assert read_facts(printed.splitlines()) == GOOD
    assert read_facts(["root absent"]).root is False
    assert read_facts(["missing scale.yml", "missing galaxy.yml"]).missing == ("scale.yml", "galaxy.yml")


def test_what_a_server_prints_is_plain_text_of_some_length() -> None:
    facts = read_facts(["ansible 2.18.6\x1b]0;owned\x07", f"inventory {'x' * 100_000}\x1b[2J"])
    assert facts.ansible == "2.18.6]0;owned"
    assert set(facts.inventory or "") == {"x"}
    assert len(facts.inventory or "") < 350


def test_a_server_that_has_all_is_taken() -> None:
    check_server(GOOD, WANTED)
    check_server(replace(GOOD, inventory=INSTANCE), WANTED)
    check_server(replace(GOOD, sshpass=False), PrepareServer(ansible=ANSIBLE, passwords=False))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (replace(GOOD, root=False), "has no /opt/kubespray."),
        (replace(GOOD, missing=("scale.yml",)), "has in /opt/kubespray no scale.yml."),
        (replace(GOOD, ansible=None, broken="No module named ansible"), "can't run ansible-playbook: No module named"),
        (replace(GOOD, ansible="2.16.3"), "has Ansible 2.16.3, and kubespray 2.32.0 wants 2.18.0 up to"),
        (replace(GOOD, ansible="2.19.0"), "has Ansible 2.19.0"),
        (replace(GOOD, kubespray="2.16.0"), "has kubespray 2.16.0 in /opt/kubespray."),
        (replace(GOOD, kubespray=None), "has kubespray of no known version"),
        (replace(GOOD, sshpass=False), "has no sshpass"),
        (replace(GOOD, inventory="foreign"), "/inv on the Ansible server 192.0.2.10 holds something else"),
        (replace(GOOD, inventory="another"), "is the inventory of the VNF instance another"),
    ],
)
def test_what_is_missing_is_named_with_a_cure(facts: ServerFacts, said: str) -> None:
    with pytest.raises(StepError) as error:
        check_server(facts, WANTED)
    assert said in error.value.detail
    assert " Cure: " in error.value.detail
    assert not error.value.temporary


def test_keys_that_a_killed_write_left_go_with_the_next_one(tmp_path: Path) -> None:
    inventory, packed = tmp_path / "inventory", io.BytesIO()
    left = inventory / ".new.0123456789" / "keys"
    left.mkdir(parents=True)
    (left / "kube_node").write_text("a private key")
    (inventory / ".slipway").write_text(f"{INSTANCE}\n")
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("hosts.yaml"))
    command = run_script("inventory_write", str(inventory), INSTANCE, folder=SCRIPTS)
    subprocess.run(command, input=packed.getvalue(), check=True, timeout=60)
    assert sorted(path.name for path in inventory.iterdir()) == [".slipway", "hosts.yaml"]


def claim(directory: Path, instance: str) -> int:
    command = run_script("inventory_claim", str(directory), instance, folder=SCRIPTS)
    return subprocess.run(command, check=False, timeout=60, capture_output=True).returncode


def test_a_directory_below_that_of_another_vnf_is_not_taken(tmp_path: Path) -> None:
    """It would go when the other one is terminated."""
    assert claim(tmp_path / "clusters", "first") == 0
    assert claim(tmp_path / "clusters" / "more" / "second", "second") == 1
    assert sorted(path.name for path in (tmp_path / "clusters").iterdir()) == [".slipway", "runs"]
    assert claim(tmp_path / "clusters", "first") == 0
    assert claim(tmp_path / "clusters-2", "second") == 0


def test_a_directory_that_was_moved_and_left_as_a_link_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    """The link alone went, and every secret stayed."""
    inventory, moved = tmp_path / "inventory", tmp_path / "larger disk"
    assert claim(inventory, "ours") == 0
    (inventory / "keys").mkdir()
    inventory.rename(moved)
    inventory.symlink_to(moved)
    command = run_script("inventory_remove", str(inventory), "ours", folder=SCRIPTS)
    subprocess.run(command, check=True, timeout=20)
    assert list(tmp_path.iterdir()) == []


def test_a_home_where_slipway_keeps_its_runs_may_hold_inventories(tmp_path: Path) -> None:
    (tmp_path / ".slipway" / "jobs").mkdir(parents=True)
    assert claim(tmp_path / "kubespray" / "inventory" / "first", "first") == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_that_another_user_made_in_its_name_is_not_taken(tmp_path: Path) -> None:
    """Whoever owns it can put files of their own in place of ours."""
    directory = tmp_path / "inventory"
    assert claim(directory, INSTANCE) == 0
    os.chown(directory, 65534, 65534)
    assert claim(directory, INSTANCE) == 65
    command = run_script("inventory_write", str(directory), INSTANCE, folder=SCRIPTS)
    assert subprocess.run(command, check=False, input=b"", timeout=60, capture_output=True).returncode == 65
    printed = subprocess.run(
        run_script("ansible_server", str(tmp_path), str(directory), folder=SCRIPTS), check=True, capture_output=True
    ).stdout
    assert b"inventory foreign\n" in printed
