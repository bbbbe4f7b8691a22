"""A registry as a VNF, and clusters that pull from it, on simulated hosts."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from slipway.cluster.containerd_config import CONTAINERD
from slipway.cluster.steps.registries import CHECKED
from slipway.model.descriptor import Descriptor, Level
from slipway.model.errors import BadRequest, RequestError, Unprocessable, VimFault
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import (
    ChangeExtConnRequest,
    ChangePackageRequest,
    HealRequest,
    ModifyRequest,
    ScaleRequest,
    ScaleType,
)
from slipway.registry.configuration import CONFIGURATION
from slipway.simulator.cluster.host import find_host
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.cluster_rig import FORCEFUL, ClusterRig, cluster_rig, out
from tests.functional.next_package import NEXT_ID, OTHER_ID, onboard_next
from tests.functional.registry_rig import (
    CONNECTION,
    INSTALLATION,
    LOGIN,
    PASSWORD,
    REGISTRY,
    SECURE,
    SLOT,
    USER,
    a_registry,
    asking,
    connection,
    created,
    docker_archive,
    host_at,
    installation,
    onboard_cluster,
    onboard_registry,
    outputs,
    tar_of,
)
from tests.functional.rig import SIMULATED_VIM, settings_in

VDU = SLOT.removesuffix("-0")
HOSTS = "/etc/containerd/certs.d/{}/hosts.toml"
TOOLS = {"Files/images/tools.tar": docker_archive("registry.example.com/tools/shell:1")}
INSTANTIATE, HEAL, MODIFY = OperationType.INSTANTIATE, OperationType.HEAL, OperationType.MODIFY_INFO


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    async with cluster_rig(settings_in(tmp_path / "data")) as rig:
        await onboard_registry(rig, tmp_path, TOOLS)
        yield rig


@pytest.fixture
async def server(rig: ClusterRig, tmp_path: Path) -> str:
    """Of a registry with HTTPS and a login, whose CA the cluster's package has."""
    _, told = await a_registry(rig, **SECURE)
    await onboard_cluster(rig, tmp_path, {"Files/registries/ca.crt": told["ca"].encode()})
    return str(told["server"])


async def a_cluster(
    rig: ClusterRig, *registries: dict[str, object], state: State = State.COMPLETED, **more: object
) -> str:
    instance_id = await created(rig, OTHER_ID)
    done = await rig.rig.run(INSTANTIATE, instance_id, asking(*registries, **more))
    assert done.operation_state is state, done.error
    return instance_id


async def modified(rig: ClusterRig, instance_id: str, *registries: dict[str, object]) -> Operation:
    request = ModifyRequest(vnf_configurable_properties={CONNECTION: list(registries)})
    return await rig.rig.run(MODIFY, instance_id, request)


async def login_on(rig: ClusterRig, instance_id: str, slot: str, server: str) -> dict[str, str] | None:
    config = tomllib.loads((await host_at(rig, instance_id, slot)).files[CONTAINERD].content.decode())
    registry = config["plugins"]["io.containerd.cri.v1.images"]["registry"]
    found: dict[str, str] | None = registry.get("configs", {}).get(server, {}).get("auth")
    return found


async def test_the_documents_request_gives_http_on_port_5000(rig: ClusterRig, tmp_path: Path) -> None:
    archive = {"image_path": "Files/images/tools.tar"}
    instance_id = await created(rig, NEXT_ID)
    request = installation()
    request.additional_params[INSTALLATION] = {**LOGIN, **archive}
    done = await rig.rig.run(INSTANTIATE, instance_id, request)
    assert done.operation_state is State.COMPLETED, done.error
    told = await outputs(rig, instance_id)
    assert told["url"] == f"http://{told['server']}"
    assert told["server"].endswith(":5000")
    host = await host_at(rig, instance_id, SLOT)
    assert host.serves == 5000
    unit = host.files["/etc/systemd/system/slipway-registry.service"].content.decode()
    assert "podman run" in unit
    assert "WantedBy=multi-user.target" in unit


async def test_every_node_pulls_by_https_with_a_login_and_new_nodes_too(rig: ClusterRig, server: str) -> None:
    instance_id = await a_cluster(rig, connection(server))
    scaled = await rig.rig.run(OperationType.SCALE, instance_id, out())
    assert scaled.operation_state is State.COMPLETED, scaled.error
    assert "connect registries workerNode-2" in [record.id for record in await rig.rig.journal(scaled.id)]
    for slot in await rig.machines(instance_id):
        host = await host_at(rig, instance_id, slot)
        assert HOSTS.format(server) in host.files
        assert host.files[CONTAINERD].mode == 0o600
        assert await login_on(rig, instance_id, slot, server) == {"username": USER, "password": PASSWORD}
        assert not [path for path in host.files if "registry-check" in path], "what a check needs stays on the node"


async def test_a_healed_node_and_a_healed_cluster_know_their_registries(rig: ClusterRig, server: str) -> None:
    instance_id = await a_cluster(rig, connection(server))
    for request in (await rig.heal(instance_id, "workerNode-1"), HealRequest()):
        healed = await rig.rig.run(HEAL, instance_id, request)
        assert healed.operation_state is State.COMPLETED, healed.error
        assert await login_on(rig, instance_id, "workerNode-1", server)


@pytest.mark.parametrize(
    ("wrong", "trouble"),
    [
        ({"password": "mistyped"}, "(login): it refused the user 'puller'"),
        ({"image": "tools/nothing:1"}, "(image): "),
        ({"connection_type": 0, "certificate_path": None}, "(TLS): the server wants HTTPS"),
        ({"certificate_path": None}, "(TLS): "),
        ({"server": "registry.example.com:5000"}, "(name resolution): "),
    ],
)
async def test_an_error_names_node_registry_and_what_it_was(
    rig: ClusterRig, server: str, wrong: dict[str, object], trouble: str
) -> None:
    registry = {name: value for name, value in (connection(server) | wrong).items() if value is not None}
    instance_id = await created(rig, OTHER_ID)
    failed = await rig.rig.run(INSTANTIATE, instance_id, asking(registry))
    assert failed.operation_state is State.FAILED_TEMP
    assert failed.error is not None
    assert f"can't use the registry {registry['server']} {trouble}" in failed.error.detail
    assert "Node-" in failed.error.detail
    assert PASSWORD not in failed.error.detail
    await rig.rig.slipway.lcm.roll_back(failed.id)
    assert (await rig.rig.rest(failed.id)).operation_state is State.ROLLED_BACK


async def test_a_name_of_hosts_string_is_known_to_the_node(rig: ClusterRig, tmp_path: Path) -> None:
    name = "registry.example.com"
    _, told = await a_registry(rig, **SECURE | {"tls": {"names": [name]}})
    await onboard_cluster(rig, tmp_path, {"Files/registries/ca.crt": told["ca"].encode()})
    address, _, port = told["server"].rpartition(":")
    registry = connection(f"{name}:{port}", hosts_string=f"{address} {name}")
    instance_id = await a_cluster(rig, registry)
    host = await host_at(rig, instance_id, "workerNode-0")
    assert host.files["/etc/hosts"].content.decode() == f"{address} {name}\n"


async def test_registries_come_after_a_script_of_the_package(rig: ClusterRig, tmp_path: Path) -> None:
    _, told = await a_registry(rig, **SECURE)
    files = {"Files/registries/ca.crt": told["ca"].encode(), "Scripts/node.sh": b"#!/bin/sh\n"}
    await onboard_cluster(rig, tmp_path, files)
    instance_id = await created(rig, OTHER_ID)
    request = asking(connection(told["server"]), script_path="Scripts/node.sh")
    done = await rig.rig.run(INSTANTIATE, instance_id, request)
    assert done.operation_state is State.COMPLETED, done.error
    order = {record.id: record.ended_at or 0.0 for record in await rig.rig.journal(done.id)}
    assert order["join workerNode-0"] < order["connect registries workerNode-0"] < order["ready workerNode-0"]
    config = (await host_at(rig, instance_id, "workerNode-0")).files[CONTAINERD].content.decode()
    assert tomllib.loads(config)["plugins"]["io.containerd.grpc.v1.cri"]["registry"]["configs"][told["server"]]


async def test_a_modification_reaches_all_nodes_and_goes_by_null(rig: ClusterRig, server: str) -> None:
    instance_id = await a_cluster(rig)
    done = await modified(rig, instance_id, connection(server))
    assert done.operation_state is State.COMPLETED, done.error
    for slot in await rig.machines(instance_id):
        assert await login_on(rig, instance_id, slot, server)
    scaled = await rig.rig.run(OperationType.SCALE, instance_id, out())
    assert scaled.operation_state is State.COMPLETED, scaled.error
    assert await login_on(rig, instance_id, "workerNode-2", server)
    gone = await rig.rig.run(MODIFY, instance_id, ModifyRequest(vnf_configurable_properties={CONNECTION: None}))
    assert gone.operation_state is State.COMPLETED, gone.error
    for slot in await rig.machines(instance_id):
        assert await login_on(rig, instance_id, slot, server) is None
        assert HOSTS.format(server) not in (await host_at(rig, instance_id, slot)).files


async def test_a_mistyped_login_reaches_no_node(rig: ClusterRig, server: str) -> None:
    instance_id = await a_cluster(rig, connection(server))
    failed = await modified(rig, instance_id, connection(server, password="mistyped"))
    assert failed.operation_state is State.FAILED_TEMP
    assert failed.error is not None
    assert "(login)" in failed.error.detail
    for slot in await rig.machines(instance_id):
        assert await login_on(rig, instance_id, slot, server) == {"username": USER, "password": PASSWORD}


async def test_a_rollback_of_a_modification_brings_the_old_login_back(rig: ClusterRig, server: str) -> None:
    instance_id = await a_cluster(rig, connection(server))
    await rig.rules(
        Rule(kind=RuleKind.ERROR, call="host", asked="pull", machine="workerNode-1", fault=VimFault.PERMANENT)
    )
    failed = await modified(rig, instance_id)
    assert failed.operation_state is State.COMPLETED  # there is none to pull from
    failed = await modified(rig, instance_id, connection(server, image="tools/shell:1"))
    assert failed.operation_state is State.FAILED_TEMP
    left = (await host_at(rig, instance_id, "workerNode-1")).files
    assert [path for path in left if path.startswith(CHECKED)] == []  # the login's header was there
    await rig.rules()
    await rig.rig.slipway.lcm.roll_back(failed.id)
    assert (await rig.rig.rest(failed.id)).operation_state is State.ROLLED_BACK
    for slot in await rig.machines(instance_id):
        assert await login_on(rig, instance_id, slot, server) is None


async def test_a_registry_that_is_down_is_told_and_a_retry_goes_on(rig: ClusterRig, tmp_path: Path) -> None:
    registry_id, told = await a_registry(rig, **SECURE)
    await onboard_cluster(rig, tmp_path, {"Files/registries/ca.crt": told["ca"].encode()})
    instance_id = await a_cluster(rig, connection(told["server"]))
    down = (await rig.machines(registry_id))[SLOT]
    await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, down)
    failed = await rig.rig.run(OperationType.SCALE, instance_id, out())
    assert failed.operation_state is State.FAILED_TEMP
    assert failed.error is not None
    assert f"workerNode-2 can't use the registry {told['server']} (connection)" in failed.error.detail
    healed = await rig.rig.run(HEAL, registry_id, HealRequest())
    assert healed.operation_state is State.COMPLETED, healed.error
    assert await outputs(rig, registry_id) == told, "the authority and the address are others after a heal"
    await rig.rig.slipway.lcm.retry(failed.id)
    assert (await rig.rig.rest(failed.id)).operation_state is State.COMPLETED


async def test_a_heal_keeps_what_is_on_the_volume(rig: ClusterRig, server: str, tmp_path: Path) -> None:
    (registry_id,) = await rig.rig.inventory()
    before = (await rig.machines(registry_id))[SLOT]
    healed = await rig.rig.run(HEAL, registry_id, HealRequest(vnfc_instance_id=(before,)))
    assert healed.operation_state is State.COMPLETED, healed.error
    assert (await rig.machines(registry_id))[SLOT] != before
    await a_cluster(rig, connection(server))
    ended = await rig.rig.run(OperationType.TERMINATE, registry_id, FORCEFUL)
    assert ended.operation_state is State.COMPLETED, ended.error
    assert registry_id not in await rig.rig.inventory()


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (b"no archive at all", "tar can't read it"),
        (tar_of({"readme": b""}), "neither manifest.json"),
        (docker_archive("a:1", {"manifest.json": b"[{]"}), "not as they should be"),
        (
            docker_archive("a:1", {"manifest.json": b'[{"Config": "../../etc/shadow", "Layers": []}]'}),
            "there is no file",
        ),
        (docker_archive("A bad name"), "is no name of an image"),
        (docker_archive("a:1", {"config.json": json.dumps({"rootfs": {"diff_ids": []}}).encode()}), "1 layers"),
    ],
)
async def test_a_broken_archive_is_told(tmp_path: Path, archive: bytes, why: str) -> None:
    async with cluster_rig(settings_in(tmp_path / "data")) as rig:
        await onboard_registry(rig, tmp_path, {"Files/images/broken.tar": archive})
        failed = await rig.rig.run(INSTANTIATE, await created(rig, NEXT_ID), installation())
        assert failed.operation_state is State.FAILED_TEMP
        assert failed.error is not None
        assert "Files/images/broken.tar of the package is no archive of images" in failed.error.detail
        assert why in failed.error.detail


async def test_a_push_that_fails_leaves_neither_archive_nor_login(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data")) as rig:
        await onboard_registry(rig, tmp_path, {"Files/images/tools.tar": docker_archive("tools/shell:1")})
        await rig.rules(Rule(kind=RuleKind.ERROR, call="host", asked="push_blob", fault=VimFault.PERMANENT))
        instance_id = await created(rig, NEXT_ID)
        failed = await rig.rig.run(INSTANTIATE, instance_id, installation())
        assert failed.operation_state is State.FAILED_TEMP
        (machine,) = (await rig.rig.inventory())[instance_id].machines
        host = rig.connector.simulation.look(SIMULATED_VIM, lambda db, _: find_host(db, machine.id))
        assert CONFIGURATION in host.files
        assert [path for path in host.files if path.startswith("/var/lib/slipway/files/")] == []


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"image_path": "Files/none.tar", "source": "image"}, "image_path"),
        ({"data_volume": "other"}, "data_volume"),
        ({"ssh_cp_name": "CP9"}, "ssh_cp_name"),
        ({"port_no": 70000}, "port_no"),
        ({"users": [{"username": "a:b", "password": "x"}]}, "users[0].username"),
        ({"users": [{"username": "a\nb:c", "password": "x"}]}, "users[0].username"),
        ({"users": [{"username": "#admin", "password": "x"}]}, "users[0].username"),
        ({"users": [{"username": " admin", "password": "x"}]}, "users[0].username"),
        ({"tls": {"names": ["a\nb"]}}, "tls.names"),
        ({"tls": {"certificate_path": "Files/images/tools.tar"}}, "tls.private_key"),
        ({"image": "docker.io/library/registry:2 --privileged", "source": "image"}, "image"),
        ({"prot_no": 1}, "prot_no"),
    ],
)
async def test_what_does_not_fit_is_refused_at_the_request(
    rig: ClusterRig, more: dict[str, object], named: str
) -> None:
    with pytest.raises(RequestError) as caught:
        await rig.rig.slipway.lcm.start_operation(INSTANTIATE, await created(rig, NEXT_ID), installation(**more))
    assert f"additionalParams.{INSTALLATION}." in caught.value.detail
    assert named in caught.value.detail


@pytest.mark.parametrize("password", ["ü" * 37, "one\nroot:x"])
async def test_a_password_that_no_file_of_users_holds_is_told_before_anything_is_installed(
    rig: ClusterRig, password: str
) -> None:
    asked = installation(users=[{"username": "a", "password": password}])
    failed = await rig.rig.run(INSTANTIATE, await created(rig, NEXT_ID), asked)
    assert failed.operation_state is State.FAILED_TEMP
    assert failed.error is not None
    assert "install registry" in failed.error.detail
    assert f"{INSTALLATION}.users[0].password" in failed.error.detail
    assert password not in failed.error.detail


async def test_a_change_of_package_is_refused_for_it_would_leave_a_bare_machine(
    rig: ClusterRig, tmp_path: Path
) -> None:
    instance_id, _ = await a_registry(rig)
    await onboard_next(rig.rig, REGISTRY, tmp_path / "third", OTHER_ID, image="2.0")
    with pytest.raises(Unprocessable, match="package of a registry"):
        await rig.rig.slipway.lcm.start_operation(
            OperationType.CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=OTHER_ID)
        )


async def test_the_connection_point_that_it_is_known_by_does_not_move(rig: ClusterRig) -> None:
    instance_id, _ = await a_registry(rig)
    link = ExtVirtualLink(id="l", resource_id="net-2", ext_cps=(VnfExtCpData(cpd_id="CP1"),))
    with pytest.raises(BadRequest, match=rf"the registry uses the addresses of 'CP1' .*{INSTALLATION}.ssh_cp_name"):
        await rig.rig.slipway.lcm.start_operation(
            OperationType.CHANGE_EXT_CONN, instance_id, ChangeExtConnRequest(ext_virtual_links=(link,))
        )


async def test_a_heal_goes_by_the_level_that_the_registry_was_made_at(tmp_path: Path) -> None:
    levels = {"one": Level(name="one", counts={VDU: 1}), "two": Level(name="two", counts={VDU: 2})}

    def with_levels(descriptor: Descriptor) -> Descriptor:
        simple = replace(descriptor.flavours["simple"], levels=levels, default_level="two")
        return replace(descriptor, flavours={"simple": simple})

    async with cluster_rig(settings_in(tmp_path / "data")) as rig:
        await onboard_next(rig.rig, REGISTRY, tmp_path / "next", NEXT_ID, change=with_levels)
        instance_id = await created(rig, NEXT_ID)
        with pytest.raises(BadRequest, match="there would be 2 machines"):
            await rig.rig.run(INSTANTIATE, instance_id, installation())
        done = await rig.rig.run(INSTANTIATE, instance_id, replace(installation(), instantiation_level_id="one"))
        assert done.operation_state is State.COMPLETED, done.error
        healed = await rig.rig.run(HEAL, instance_id, HealRequest())
        assert healed.operation_state is State.COMPLETED, healed.error


async def test_a_scale_can_not_give_other_registries_to_some_nodes(rig: ClusterRig, server: str) -> None:
    instance_id = await a_cluster(rig)
    asked = {"k8s_cluster_installation_param": {CONNECTION: [connection(server)]}}
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", additional_params=asked)
    with pytest.raises(BadRequest, match="by a modification"):
        await rig.rig.slipway.lcm.start_operation(OperationType.SCALE, instance_id, request)


@pytest.mark.parametrize(
    "wrong",
    [
        {"server": "http://a"},
        {"server": 'a"b'},
        {"username": "a\nb"},
        {"certificate_path": "Files/none.crt"},
        {"hosts_string": "10.0.0.1 a\n10.0.0.2 b"},
        {"image": "tools/shell:1 --help"},
    ],
)
async def test_a_modification_with_a_bad_value_is_refused(rig: ClusterRig, server: str, wrong: dict[str, str]) -> None:
    instance_id = await a_cluster(rig)
    request = ModifyRequest(vnf_configurable_properties={CONNECTION: [connection(server) | wrong]})
    with pytest.raises(BadRequest, match=rf"vnfConfigurableProperties.{CONNECTION}\[0\].{next(iter(wrong))}"):
        await rig.rig.slipway.lcm.start_operation(MODIFY, instance_id, request)
