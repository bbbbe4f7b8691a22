"""What a request for a cluster by kubespray may say: understood as it stands, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.descriptor import Descriptor
from slipway.model.errors import BadRequest, RequestError, Unprocessable
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.operation import OperationType
from slipway.model.requests import (
    ChangeExtConnRequest,
    CreateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.store import instances
from tests.functional.cluster_rig import ClusterRig
from tests.functional.kubespray_rig import (
    BALANCER,
    KUBESPRAY,
    ROOT,
    ansible,
    instantiate,
    kubespray_rig,
    parameters,
    server_of,
)
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import settings_in

INSTANTIATE, SCALE, HEAL = OperationType.INSTANTIATE, OperationType.SCALE, OperationType.HEAL


async def cluster(rig: ClusterRig, **more: Any) -> str:
    instance_id = await rig.rig.create()
    await rig.completed(INSTANTIATE, instance_id, instantiate(**more))
    return instance_id


REFUSED: dict[str, tuple[dict[str, Any], type[RequestError], str]] = {
    "no server": ({"ansible": None}, BadRequest, "ansible: is missing"),
    "no root path": ({"ansible": ansible(kubespray_root_path="")}, BadRequest, "kubespray_root_path: it is missing"),
    "no address": ({"ansible": ansible(ip_address="ansible.example")}, BadRequest, "ip_address: it is not an address"),
    "any address": ({"ansible": ansible(ip_address="224.0.0.1")}, BadRequest, "is the address of no machine"),
    "relative path": ({"ansible": ansible(transferring_inventory_path="inv")}, BadRequest, "is not an absolute path"),
    "a path with an option": ({"ansible": ansible(kubespray_root_path="/opt/a b")}, BadRequest, "not an absolute path"),
    "the root": ({"ansible": ansible(transferring_inventory_path=ROOT)}, BadRequest, "kubespray's own directory"),
    "where runs are": ({"ansible": ansible(transferring_inventory_path="/home/ansible/.slipway")}, BadRequest,
                       "transferring_inventory_path: Slipway's own files are there"),
    "where runs of root are": ({"ansible": ansible(transferring_inventory_path="/var/lib/slipway")}, BadRequest,
                               "transferring_inventory_path: Slipway's own files are there"),
    "an address with a zone": ({"ansible": ansible(ip_address="fd00::5%eth0 -x")}, BadRequest,
                               "ip_address: it has a zone"),
    "no login": ({"ansible": ansible(password=None)}, BadRequest, "neither password nor private_key"),
    "a source": ({"source": {"kind": "packages", "repository": "https://a.example"}, "kubernetes_version": "1.34.4"},
                 Unprocessable, "source: kubespray decides this"),
    "a script": ({"script_path": "Scripts/node.sh"}, Unprocessable, "script_path: kubespray makes the nodes"),
    "a manifest": ({"cni": "cni.yaml"}, Unprocessable, "cni: kubespray has its own manifests"),
    "no balancer": ({"external_lb_param": {**BALANCER, "ssh_cp_name": "nowhere"}}, BadRequest, "externalLB_CP1"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
async def test_what_can_not_be_is_refused_at_the_request(tmp_path: Path, name: str) -> None:
    more, kind, said = REFUSED[name]
    async with kubespray_rig(settings_in(tmp_path), working=False) as rig:
        instance_id = await rig.rig.create()
        with pytest.raises(kind) as refused:
            await rig.rig.slipway.lcm.start_operation(INSTANTIATE, instance_id, instantiate(**more))
        assert said in str(refused.value)


async def test_a_request_for_other_managers_is_understood_as_it_stands(tmp_path: Path) -> None:
    """Aspects that only the template knows, the group of the balancer in place of its connection point, empty paths.

    All but the Ansible server's address and the root path, which are left open there, is as a document prints it.
    """
    login = {"username": "ubuntu", "password": "ubuntu"}
    points = {name: f"{name}Node_CP1" for name in ("master", "worker")}
    nodes: dict[str, Any] = {
        f"{name}_node": {"aspect_id": f"{name}_instance", "ssh_cp_name": point, "nic_cp_name": point, **login}
        for name, point in points.items()
    }
    nodes["master_node"] |= {"pod_cidr": "192.168.3.0/16", "cluster_cidr": "10.199.187.0/24",
                             "cluster_cp_name": points["master"]}  # fmt: skip
    server = ansible(transferring_inventory_path="")
    balancer = {"ssh_cp_name": "externalLB_instance", "ssh_username": "ubuntu", "ssh_password": "ubuntu",
                "script_path": "./Scripts/ExternalLB_installation.sh"}  # fmt: skip
    proxy = {"http_proxy": "http://user1:password1@host1:8080", "https_proxy": "https://user2:password2@host2:8443",
             "no_proxy": "192.168.246.0/24,10.0.0.1", "k8s_node_cidr": "10.10.0.0/24"}  # fmt: skip
    request = instantiate(
        script_path="", vim_name="kubernetes_vim", ansible=server, external_lb_param=balancer, proxy=proxy, **nodes
    )
    async with kubespray_rig(settings_in(tmp_path), working=False) as rig:
        instance_id = await rig.rig.create()
        plan = await rig.rig.slipway.lcm.preview_plan(INSTANTIATE, instance_id, request)
        ids = [step.id for step in plan.steps]
        assert ids[0] == "prepare the Ansible server"
        assert {"cluster.yml", "set up load balancer externalLB-0", "register the cluster as a VIM"} <= {*ids}
        (balanced,) = (step for step in plan.steps if step.id.startswith("set up load balancer"))
        assert balanced.args["balancer"]["script"] == "Scripts/ExternalLB_installation.sh"


async def test_a_scale_can_not_give_other_registries_to_some_nodes(tmp_path: Path) -> None:
    registries = {"private_registry_connection_info": [{"connection_type": 0, "server": "192.168.1.9:5000"}]}
    asked = {"k8s_cluster_installation_param": registries}
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", additional_params=asked)
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        with pytest.raises(BadRequest, match=r"private_registry_connection_info: .* by a modification"):
            await rig.rig.slipway.lcm.start_operation(SCALE, instance_id, request)


@pytest.mark.parametrize("said", ["externalLB_CP1", "externalLB_instance"])
async def test_the_connection_point_of_the_balancer_does_not_move(tmp_path: Path, said: str) -> None:
    link = ExtVirtualLink(id="l", resource_id="net-2", ext_cps=(VnfExtCpData(cpd_id="externalLB_CP1"),))
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig, external_lb_param={**BALANCER, "ssh_cp_name": said})
        with pytest.raises(BadRequest, match="the cluster uses the addresses of 'externalLB_CP1'"):
            await rig.rig.slipway.lcm.start_operation(
                OperationType.CHANGE_EXT_CONN, instance_id, ChangeExtConnRequest(ext_virtual_links=(link,))
            )


async def test_a_single_master_can_not_be_healed_as_a_node(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        with pytest.raises(BadRequest, match="the only master"):
            await rig.rig.run(HEAL, instance_id, await rig.heal(instance_id, "masterNode-0"))


async def test_the_drivers_name_in_packages_for_other_managers_means_ours(tmp_path: Path) -> None:
    named = {"implementation: kubespray": "implementation: mgmt-drivers-kubespray"}
    async with kubespray_rig(settings_in(tmp_path), working=False) as rig:
        await onboard_next(rig.rig, KUBESPRAY, tmp_path / "next", NEXT_ID, words=named)
        instance = await rig.rig.slipway.lcm.create_instance(CreateRequest(vnfd_id=NEXT_ID))
        plan = await rig.rig.slipway.lcm.preview_plan(INSTANTIATE, instance.vnf.id, instantiate())
        assert "cluster.yml" in [step.id for step in plan.steps]


def with_an_aspect_of_masters(descriptor: Descriptor) -> Descriptor:
    flavour = descriptor.flavours["simple"]
    masters = replace(flavour.aspects["workers"], name="masters", deltas={"masterNode": (2,)})
    vdus = {**flavour.vdus, "masterNode": replace(flavour.vdus["masterNode"], maximum=5)}
    scaled = replace(flavour, vdus=vdus, aspects={**flavour.aspects, "masters": masters})
    return replace(descriptor, flavours={**descriptor.flavours, "simple": scaled})


async def test_masters_are_not_scaled_and_the_reason_is_told(tmp_path: Path) -> None:
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="masters")
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        await onboard_next(rig.rig, KUBESPRAY, tmp_path / "next", NEXT_ID, change=with_an_aspect_of_masters)
        instance = await rig.rig.slipway.lcm.create_instance(CreateRequest(vnfd_id=NEXT_ID))
        await rig.completed(INSTANTIATE, instance.vnf.id, instantiate())
        with pytest.raises(BadRequest, match="'masters' scales masters, and kubespray adds and removes them only by"):
            await rig.rig.slipway.lcm.start_operation(SCALE, instance.vnf.id, request)


HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6Yw0T9Ck3S8m2Zz0v0p0mEo0uV2h9v0Q1m3n5b7c9d"
MOVED: dict[str, dict[str, Any]] = {
    "another address": {"ip_address": "192.0.2.66"},
    "another port": {"ssh_port": 2222},
    "another host key": {"host_key": HOST_KEY},
    "with its own login": {"ip_address": "192.0.2.66", "password": "their own"},
}


@pytest.mark.parametrize("name", MOVED)
async def test_stored_secrets_do_not_go_to_another_ansible_server(tmp_path: Path, name: str) -> None:
    """Whoever may scale and not read them would only have to name a server of his own; a termination goes there too."""
    asked = {"k8s_cluster_installation_param": {"ansible": MOVED[name]}}
    scale = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", additional_params=asked)
    terminate = TerminateRequest(termination_type=TerminationType.FORCEFUL, additional_params=asked)
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        for operation, request in ((SCALE, scale), (OperationType.TERMINATE, terminate)):
            with pytest.raises(BadRequest, match=r"ansible: .*give again: .*master_node, worker_node"):
                await rig.rig.slipway.lcm.start_operation(operation, instance_id, request)


WRONG: dict[str, dict[str, Any]] = {
    "transferring_inventory_path: it is not an absolute path": {"ansible": {"transferring_inventory_path": "inv"}},
    f"the inventory of this cluster is in {ROOT}/inventory/slipway-": {
        "ansible": {"transferring_inventory_path": "/home/ansible/inventory"}
    },
    "there is no such parameter": {"ansibel": {}},
    "externalLB_CP1": {"external_lb_param": {**BALANCER, "ssh_cp_name": "nowhere"}},
}


@pytest.mark.parametrize("said", WRONG)
async def test_a_termination_that_would_not_find_the_inventory_is_refused(tmp_path: Path, said: str) -> None:
    """It would end well, and leave all secrets on the server."""
    asked = {"k8s_cluster_installation_param": WRONG[said]}
    terminate = TerminateRequest(termination_type=TerminationType.FORCEFUL, additional_params=asked)
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        with pytest.raises(BadRequest, match=said):
            await rig.rig.slipway.lcm.start_operation(OperationType.TERMINATE, instance_id, terminate)
        await rig.completed(OperationType.TERMINATE, instance_id, replace(terminate, additional_params={}))
        assert server_of(rig).files == {}


async def test_stored_parameters_that_fit_no_more_do_not_keep_a_cluster(tmp_path: Path) -> None:
    """As after another release of Slipway wants something else of them."""
    terminate = TerminateRequest(termination_type=TerminationType.FORCEFUL)
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        database = rig.rig.slipway.database
        instance = await database.read(instances.get, instance_id)
        wrong = parameters(external_lb_param={**BALANCER, "ssh_cp_name": "nowhere"})
        await database.write(instances.update, replace(instance, parameters=wrong))
        await rig.completed(OperationType.TERMINATE, instance_id, terminate)


async def test_with_all_secrets_given_again_the_ansible_server_may_be_another(tmp_path: Path) -> None:
    asked = parameters(ansible=ansible(ip_address="192.0.2.66"))
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", additional_params=asked)
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await cluster(rig)
        await rig.rig.slipway.lcm.start_operation(SCALE, instance_id, request)
