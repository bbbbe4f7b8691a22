"""Lives of clusters by kubespray, on simulated machines and a simulated Ansible server."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from slipway.load_balancer.records import BalancerRecords
from slipway.model.errors import VimFault
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import ChangePackageRequest, HealRequest, TerminateRequest, TerminationType
from slipway.simulator.cluster.host import find_host
from slipway.vim.fault_rules import Rule, RuleKind
from slipway.vim_registry.names import vim_id_of
from tests.functional.cluster_rig import FORCEFUL, PASSWORD, ClusterRig, back, out
from tests.functional.kubespray_rig import (
    ADDRESS,
    BALANCER,
    KUBESPRAY,
    ansible,
    instantiate,
    inventory_of,
    kubespray_rig,
    parameters,
    server_of,
)
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SIMULATED_VIM, settings_in

INSTANTIATE, SCALE, HEAL, TERMINATE = (
    OperationType.INSTANTIATE, OperationType.SCALE, OperationType.HEAL, OperationType.TERMINATE,
)  # fmt: skip

GRACEFUL = TerminateRequest(termination_type=TerminationType.GRACEFUL)


async def cluster(rig: ClusterRig, masters: int = 1, **more: Any) -> str:
    instance_id = await rig.rig.create()
    await rig.completed(INSTANTIATE, instance_id, instantiate(masters, **more))
    return instance_id


def hosts(rig: ClusterRig, instance_id: str) -> dict[str, Any]:
    return dict(yaml.safe_load(server_of(rig).files[f"{inventory_of(instance_id)}/hosts.yaml"].content)["all"])


async def steps(rig: ClusterRig, operation: Operation) -> list[str]:
    return [record.id for record in await rig.rig.journal(operation.id)]


@pytest.mark.parametrize("masters", [1, 3])
async def test_a_whole_life_leaves_nothing_on_the_ansible_server(tmp_path: Path, masters: int) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, masters)
        await rig.check(instance_id)
        assert len(hosts(rig, instance_id)["children"]["etcd"]["hosts"]) == masters
        await rig.completed(SCALE, instance_id, out(2))
        await rig.check(instance_id)
        assert len(hosts(rig, instance_id)["children"]["kube_node"]["hosts"]) == 4
        await rig.completed(SCALE, instance_id, back(2))
        await rig.check(instance_id)
        assert len(hosts(rig, instance_id)["children"]["kube_node"]["hosts"]) == 2
        await rig.completed(TERMINATE, instance_id, GRACEFUL)
        await rig.check(instance_id)
        assert server_of(rig).files == {}
        assert server_of(rig).jobs == {}


async def test_the_inventory_holds_no_secret_and_every_file_with_one_is_for_its_user_alone(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, proxy={"http_proxy": "http://me:hush@10.0.0.9:3128"})
        files = server_of(rig).files
        assert all(file.mode == 0o600 for file in files.values())
        inventory = inventory_of(instance_id)
        open_ = b"".join(files[f"{inventory}/{name}"].content for name in ("hosts.yaml", "group_vars/all/slipway.yml"))
        assert PASSWORD.encode() not in open_
        assert b"hush" not in open_
        assert not any(PASSWORD in job.command for job in server_of(rig).jobs.values())
        secrets = yaml.safe_load(files[f"{inventory}/group_vars/all/slipway-secrets.yml"].content)
        assert secrets["http_proxy"] == "http://me:hush@10.0.0.9:3128"
        assert "https_proxy" not in secrets


async def test_a_worker_that_is_dead_is_healed(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, (await rig.machines(instance_id))["workerNode-1"])
        healed = await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "workerNode-1"))
        await rig.check(instance_id)
        assert "scale.yml for workerNode-1" in await steps(rig, healed)


@pytest.mark.parametrize("dead", [True, False])
async def test_the_first_of_several_masters_is_healed(tmp_path: Path, dead: bool) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, 3)
        before = hosts(rig, instance_id)["children"]["kube_control_plane"]["hosts"]
        machine = (await rig.machines(instance_id))["masterNode-0"]
        if dead:
            await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machine)
        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "masterNode-0"))
        await rig.check(instance_id)
        after = hosts(rig, instance_id)["children"]["kube_control_plane"]["hosts"]
        assert list(after)[-1] == next(iter(before))
        await rig.completed(SCALE, instance_id, out())
        await rig.check(instance_id)


async def test_masters_and_workers_are_healed_one_batch_after_another(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, 3)
        chosen = await rig.heal(instance_id, "masterNode-1", "masterNode-2", "workerNode-0", "workerNode-1")
        await rig.completed(HEAL, instance_id, chosen)
        await rig.check(instance_id)


async def test_a_whole_heal_builds_the_cluster_anew(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        (before,) = rig.seen()
        await rig.completed(HEAL, instance_id, HealRequest())
        await rig.check(instance_id)
        (after,) = rig.seen()
        assert before.cluster
        assert after.cluster
        assert before.cluster.ca != after.cluster.ca


async def test_another_version_of_kubernetes_comes_by_upgrade_cluster(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, kubernetes_version="1.33.13")
        await onboard_next(rig.rig, KUBESPRAY, tmp_path / "next", NEXT_ID)
        named = {"k8s_cluster_installation_param": {"kubernetes_version": "1.34.4"}}
        request = ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=named)
        changed = await rig.completed(OperationType.CHANGE_VNFPKG, instance_id, request)
        assert "upgrade-cluster.yml" in await steps(rig, changed)
        await rig.check(instance_id)
        (seen,) = rig.seen()
        assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in seen.nodes.values()} == {"v1.34.4"}


async def test_a_scale_out_that_fails_is_rolled_back_in_the_inventory_too(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        before = hosts(rig, instance_id)
        await rig.rules(Rule(kind=RuleKind.ERROR, call="host", asked="playbook_run", fault=VimFault.PERMANENT))
        failed, detail = await rig.failed(SCALE, instance_id, out())
        assert "facts.yml failed." in detail
        assert f"{inventory_of(instance_id)}/runs/" in detail
        await rig.rules()
        await rig.rig.slipway.lcm.roll_back(failed.id)
        rolled = await rig.rig.rest(failed.id)
        assert rolled.operation_state is State.ROLLED_BACK, rolled.error
        assert hosts(rig, instance_id) == before
        await rig.check(instance_id)


async def test_what_ansible_says_of_a_host_is_what_the_error_says(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        request = await rig.heal(instance_id, "workerNode-1")
        rule = Rule(kind=RuleKind.ERROR, call="host", asked="playbook_run", fault=VimFault.PERMANENT, times=1)
        await rig.rules(rule)
        failed, _ = await rig.failed(HEAL, instance_id, request)
        await rig.rules()
        await rig.rig.slipway.lcm.retry(failed.id)
        assert (await rig.rig.rest(failed.id)).operation_state is State.COMPLETED
        await rig.check(instance_id)


async def test_no_secret_of_the_inventory_is_in_what_a_failed_run_says(tmp_path: Path) -> None:
    registry = {"connection_type": 1, "server": "registry.example.com", "username": "nodes", "password": "Le-mon?Tree"}
    basic = base64.b64encode(b"nodes:Le-mon?Tree").decode()
    proxy = {"http_proxy": "http://nodes:gr%40pe-vine@192.0.2.3:3128"}
    told = f"item={{'Authorization': 'Basic {basic}'}} Le-mon?Tree {proxy['http_proxy']} gr@pe-vine {PASSWORD} told"
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        rule = Rule(kind=RuleKind.ERROR, call="host", asked="playbook_run", fault=VimFault.PERMANENT, message=told)
        await rig.rules(rule)
        request = instantiate(private_registry_connection_info=[registry], proxy=proxy)
        _, detail = await rig.failed(INSTANTIATE, instance_id, request)
        assert "told" in detail
        assert [one for one in ("Le-mon", basic, "gr%40pe", "gr@pe", PASSWORD) if one in detail] == []


async def test_a_rolled_back_instantiation_leaves_nothing_on_the_server(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        await rig.rules(Rule(kind=RuleKind.ERROR, call="host", asked="playbook_run", fault=VimFault.PERMANENT))
        failed, _ = await rig.failed(INSTANTIATE, instance_id, instantiate())
        await rig.rig.slipway.lcm.roll_back(failed.id)
        assert (await rig.rig.rest(failed.id)).operation_state is State.ROLLED_BACK
        await rig.check(instance_id)
        assert server_of(rig).files == {}


async def test_a_root_path_without_kubespray_is_told_before_any_machine_is_made(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(ansible=ansible(kubespray_root_path="/srv/nothing"))
        _, detail = await rig.failed(INSTANTIATE, instance_id, request)
        assert f"The Ansible server {ADDRESS} has no /srv/nothing" in detail
        assert await rig.rig.inventory() == {}


@pytest.mark.parametrize(
    ("fault", "said"), [(VimFault.TEMPORARY, "can't be reached"), (VimFault.AUTH, "refused the login")]
)
async def test_a_server_that_lets_nobody_in_is_told_before_any_machine_is_made_and_rolled_back(
    tmp_path: Path, fault: VimFault, said: str
) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        await rig.rules(Rule(kind=RuleKind.ERROR, call="host", machine="ansible-server", fault=fault))
        failed, detail = await rig.failed(INSTANTIATE, instance_id, instantiate())
        assert said in detail
        assert f"ansible@{ADDRESS}" in detail
        assert await rig.rig.inventory() == {}
        await rig.rig.slipway.lcm.roll_back(failed.id)  # it never let anybody in, so nothing of ours is there
        assert (await rig.rig.rest(failed.id)).operation_state is State.ROLLED_BACK


async def test_a_server_that_holds_secrets_is_cleaned_before_a_rollback_ends(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        await rig.rules(Rule(kind=RuleKind.ERROR, call="host", asked="playbook_run", fault=VimFault.PERMANENT))
        failed, _ = await rig.failed(INSTANTIATE, instance_id, instantiate())
        await rig.rules(Rule(kind=RuleKind.ERROR, call="host", machine="ansible-server", fault=VimFault.AUTH))
        await rig.rig.slipway.lcm.roll_back(failed.id)
        assert (await rig.rig.rest(failed.id)).operation_state is State.FAILED_TEMP
        assert server_of(rig).files != {}
        await rig.rules()
        await rig.rig.slipway.lcm.roll_back(failed.id)
        assert (await rig.rig.rest(failed.id)).operation_state is State.ROLLED_BACK
        assert server_of(rig).files == {}


async def test_two_instances_do_not_share_a_directory(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        shared = ansible(transferring_inventory_path="/home/ansible/inventory")
        first = await cluster(rig, ansible=shared)
        before = server_of(rig).files
        second = await rig.rig.create()
        _, detail = await rig.failed(INSTANTIATE, second, instantiate(ansible=shared, vim_name="other"))
        assert (
            f"/home/ansible/inventory on the Ansible server {ADDRESS} is the inventory of the VNF instance {first}"
            in detail
        )
        below = ansible(transferring_inventory_path="/home/ansible/inventory/second")
        third = await rig.rig.create()
        _, detail = await rig.failed(INSTANTIATE, third, instantiate(ansible=below, vim_name="third"))
        assert "it is within /home/ansible/inventory, which is another VNF's inventory" in detail
        assert server_of(rig).files == before


async def test_a_terminate_that_can_not_reach_the_server_waits_for_it_unless_it_is_forceful(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        await rig.rules(Rule(kind=RuleKind.ERROR, call="host", machine="ansible-server", fault=VimFault.AUTH))
        failed, detail = await rig.failed(TERMINATE, instance_id, GRACEFUL)
        assert "terminate forcefully" in detail
        await rig.rig.slipway.lcm.fail(failed.id)
        await rig.completed(TERMINATE, instance_id, FORCEFUL)


async def test_the_cluster_is_registered_at_its_first_master_with_its_ca(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        vim = (await rig.rig.instance(instance_id)).vnf.vim_connection_info["kubernetes"]
        assert vim.vim_id == vim_id_of(instance_id)
        assert vim.interface_info["endpoint"].endswith(":6443")


def haproxy(rig: ClusterRig, machine: str) -> str:
    """Its configuration on the balancer."""

    def look(db: Any, _: Any) -> str:
        return find_host(db, machine).files["/etc/haproxy/haproxy.cfg"].content.decode()

    return rig.connector.simulation.look(SIMULATED_VIM, look)


async def routed(rig: ClusterRig, instance_id: str) -> set[str]:
    """Addresses that the balancer has routes to: workers among them, though nothing is exposed yet."""
    record = await BalancerRecords(rig.rig.slipway.database).get(instance_id)
    assert record
    return {server.address for server in record.routes.servers}


async def addresses(rig: ClusterRig) -> dict[str, dict[str, str | None]]:
    """Of every machine, by connection point."""
    (found,) = (await rig.rig.inventory()).values()
    return {machine.name: {port.name: port.address for port in machine.ports} for machine in found.machines}


async def test_a_cluster_behind_a_balancer_is_registered_there_and_its_routes_follow_its_nodes(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, 3, external_lb_param=BALANCER)
        await rig.check(instance_id)
        balancer = (await rig.machines(instance_id))["externalLB-0"]
        outside = (await addresses(rig))["externalLB-0"]["externalLB_CP1"]
        vim = (await rig.rig.instance(instance_id)).vnf.vim_connection_info["kubernetes"]
        assert vim.interface_info["endpoint"] == f"https://{outside}:8383"
        variables = server_of(rig).files[f"{inventory_of(instance_id)}/group_vars/all/slipway.yml"].content
        assert outside in yaml.safe_load(variables)["supplementary_addresses_in_ssl_keys"]

        scaled = await rig.completed(SCALE, instance_id, out())
        order = await steps(rig, scaled)
        assert order.index("ready workerNode-2") < order.index("add routes to workerNode-2")
        new = (await addresses(rig))["workerNode-2"]["workerNode_CP1"]
        assert new in await routed(rig, instance_id)

        scaled = await rig.completed(SCALE, instance_id, back())
        plan = {record.id: record for record in await rig.rig.journal(scaled.id)}
        assert plan["drain workerNode-2"].after == ("remove routes to workerNode-2",)
        assert "drain workerNode-2" in plan["remove-node.yml for workerNode-2"].after
        assert new not in await routed(rig, instance_id)

        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "masterNode-0", "workerNode-1"))
        await rig.check(instance_id)
        healed = (await addresses(rig))["masterNode-0"]["masterNode_CP1"]
        assert str(healed) in haproxy(rig, balancer)
        assert len(await routed(rig, instance_id)) == 5

        await rig.completed(TERMINATE, instance_id, GRACEFUL)
        await rig.check(instance_id)
        assert server_of(rig).files == {}


async def test_a_balancer_that_is_healed_is_known_to_certificates_and_to_the_vim(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, external_lb_param=BALANCER)
        before = (await rig.machines(instance_id))["externalLB-0"]
        await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, before)
        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "externalLB-0"))
        await rig.check(instance_id)
        after = (await rig.machines(instance_id))["externalLB-0"]
        assert after != before
        outside = (await addresses(rig))["externalLB-0"]["externalLB_CP1"]
        vim = (await rig.rig.instance(instance_id)).vnf.vim_connection_info["kubernetes"]
        assert vim.interface_info["endpoint"] == f"https://{outside}:8383"
        variables = server_of(rig).files[f"{inventory_of(instance_id)}/group_vars/all/slipway.yml"].content
        assert outside in yaml.safe_load(variables)["supplementary_addresses_in_ssl_keys"]
        assert "8383" in haproxy(rig, after)


async def test_a_whole_heal_sets_the_balancer_up_again(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, external_lb_param=BALANCER)
        await rig.completed(HEAL, instance_id, HealRequest())
        await rig.check(instance_id)
        assert "8383" in haproxy(rig, (await rig.machines(instance_id))["externalLB-0"])


async def test_a_server_that_one_request_names_keeps_nothing(tmp_path: Path) -> None:
    """What scale and heal say is not kept: the next operation is on the instance's own server again."""
    other = "192.0.2.11"
    moved = parameters(ansible=ansible(ip_address=other))
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        for request in (out(), back()):
            scaled = await rig.completed(SCALE, instance_id, replace(request, additional_params=moved))
            assert "clean the former Ansible server" in await steps(rig, scaled)
            await rig.check(instance_id)
            assert [(server_of(rig, one).files, server_of(rig, one).jobs) for one in (ADDRESS, other)] == [({}, {})] * 2
        await rig.completed(SCALE, instance_id, out())
        assert server_of(rig).files != {}
        await rig.completed(TERMINATE, instance_id, replace(GRACEFUL, additional_params=moved))
        assert server_of(rig).files == {}


async def test_a_server_at_another_port_is_another_server(tmp_path: Path) -> None:
    """As behind an address that leads to several of them."""
    moved = replace(out(), additional_params=parameters(ansible=ansible(ssh_port=2222)))
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        scaled = await steps(rig, await rig.completed(SCALE, instance_id, moved))
        assert {"clean the former Ansible server", "clean the Ansible server"} <= {*scaled}


async def test_a_server_that_is_replaced_by_another_keeps_nothing(tmp_path: Path) -> None:
    other = "192.0.2.11"
    named = parameters(kubernetes_version="1.34.4", ansible=ansible(ip_address=other))
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, kubernetes_version="1.33.13")
        await onboard_next(rig.rig, KUBESPRAY, tmp_path / "next", NEXT_ID)
        request = ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=named)
        await rig.completed(OperationType.CHANGE_VNFPKG, instance_id, request)
        assert server_of(rig).files == {}
        assert server_of(rig, other).files != {}
        await rig.completed(TERMINATE, instance_id, GRACEFUL)
        assert server_of(rig, other).files == {}
