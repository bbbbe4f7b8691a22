"""What simulated hosts refuse, as kubeadm and etcd do: otherwise a wrong order of steps would pass on them."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from slipway.cluster.naming import node_name
from slipway.cluster.steps.machine import line
from slipway.kube import paths
from slipway.kube.bootstrap import ca_hash, make_token
from slipway.model.errors import StepError
from slipway.model.operation import OperationType
from slipway.remote.output import Result
from slipway.remote.target import SshTarget
from slipway.simulator.cluster.cluster import Cluster, save_cluster
from slipway.simulator.cluster.ssh_host import SimulatedSshHost
from slipway.vim.fault_rules import FaultTarget as Slot
from tests.functional.cluster_rig import VIP, ClusterRig, cluster_rig, out
from tests.functional.rig import SIMULATED_VIM, settings_in

CONFIG = "/etc/kubernetes/slipway.yaml"
KEY = "0123456789abcdef" * 4


class Three:
    """Three masters, and a worker that wants to be the fourth."""

    def __init__(self, rig: ClusterRig, instance_id: str, machines: dict[str, str]) -> None:
        self.rig, self.instance_id, self.machines = rig, instance_id, machines

    @property
    def cluster(self) -> Cluster:
        (seen,) = self.rig.seen()
        assert seen.cluster is not None
        return seen.cluster

    def host(self, slot: str) -> SimulatedSshHost:
        target = SshTarget("10.11.0.77", "root")
        vdu = slot.partition("-")[0]
        return SimulatedSshHost(
            self.rig.connector.simulation, SIMULATED_VIM, self.machines[slot], Slot(slot, vdu), target
        )

    async def lose_power(self, slot: str) -> None:
        await self.rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, self.machines[slot])

    async def etcd(self, call: str, **body: Any) -> Result:
        command = line("etcd", f"cluster/member/{call}", json.dumps(body))
        return await self.host("masterNode-0").run(command, check=False)

    def member(self, slot: str) -> str:
        return next(member.id for member in self.cluster.members if member.machine == self.machines[slot])

    async def upload(self, key: str = KEY) -> None:
        master = self.host("masterNode-0")
        await master.put("/upload.yaml", json.dumps({"kind": "InitConfiguration", "certificateKey": key}))
        await master.run(line("upload_certificates", "/upload.yaml"))

    async def token(self, lifetime: timedelta = timedelta(hours=1)) -> str:
        return await make_token(await self.rig.api(self.instance_id), lifetime)

    async def join(self, token: str, name: str = "newcomer", key: str = KEY) -> str:
        """As a master, from workerNode-0: what is on stderr; empty when it is in."""
        host, address = self.host("workerNode-0"), "10.11.0.200"
        ticket = {"apiServerEndpoint": f"{VIP}:16443", "token": token, "caCertHashes": [ca_hash(self.cluster.ca)]}
        document = {
            "kind": "JoinConfiguration",
            "discovery": {"bootstrapToken": ticket},
            "nodeRegistration": {"name": name, "kubeletExtraArgs": {"node-ip": address}},
            "controlPlane": {"localAPIEndpoint": {"advertiseAddress": address}, "certificateKey": key},
        }
        await host.put(CONFIG, json.dumps(document))
        return (await host.run(line("join", CONFIG), check=False)).stderr.decode()


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Three]:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster(3)
        yield Three(rig, instance_id, await rig.machines(instance_id))


async def test_etcd_lets_a_member_go_only_while_the_others_are_a_majority(three: Three) -> None:
    await three.lose_power("masterNode-2")
    refused = await three.etcd("remove", ID=three.member("masterNode-1"))
    assert (refused.exit_code, b"unhealthy cluster" in refused.stdout) == (22, True)
    assert (await three.etcd("remove", ID=three.member("masterNode-2"))).ok
    assert len(three.cluster.members) == 2
    await three.lose_power("masterNode-1")
    assert b"request timed out" in (await three.etcd("list")).stdout
    refused = await three.etcd("remove", ID=three.member("masterNode-1"))
    assert (refused.exit_code, b"request timed out" in refused.stdout) == (22, True)


async def test_a_cluster_without_a_quorum_answers_nobody(three: Three) -> None:
    token = await three.token()
    await three.lose_power("masterNode-1")
    await three.lose_power("masterNode-2")
    api = await three.rig.api(three.instance_id)
    with pytest.raises(StepError, match="etcdserver: request timed out") as caught:
        await api.get(paths.NODES)
    assert caught.value.temporary
    assert "failed to request the cluster-info ConfigMap" in await three.join(token)


async def test_a_master_joins_with_the_certificates_key_only(three: Three) -> None:
    token = await three.token()
    await three.upload("another key")
    assert "message authentication failed" in await three.join(token)
    await three.upload()
    cluster = three.cluster
    assert cluster.upload is not None
    cluster.upload.until = time.time() - 1
    three.rig.connector.simulation.look(SIMULATED_VIM, lambda db, _: save_cluster(db, cluster))
    assert "This Secret might have expired" in await three.join(token)
    await three.upload()
    assert await three.join(token) == ""
    assert len(three.cluster.members) == 4


async def test_a_master_does_not_join_while_a_member_is_dead(three: Three) -> None:
    token = await three.token()
    await three.upload()
    await three.lose_power("masterNode-2")
    assert "etcd cluster is not healthy" in await three.join(token)


async def test_a_token_ends(three: Three) -> None:
    await three.upload()
    token = await three.token(timedelta(seconds=-1))
    assert f'for token ID "{token[:6]}"' in await three.join(token)
    assert "failed to verify JWS signature" in await three.join(f"{(await three.token())[:6]}.{'0' * 16}")


async def test_the_name_of_a_node_that_is_ready_is_taken(three: Three) -> None:
    await three.upload()
    taken = node_name(three.instance_id, "workerNode-1")
    said = await three.join(await three.token(), name=taken)
    assert f'a Node with name "{taken}" and status "Ready" already exists in the cluster' in said


async def test_a_balancer_leads_to_the_masters_that_it_was_told_of_and_to_no_others(three: Three) -> None:
    token = await three.token()
    for slot in ("masterNode-0", "masterNode-1", "masterNode-2"):
        host = three.host(slot)
        told = await host.get("/etc/haproxy/haproxy.cfg") or b""
        await host.put("/etc/haproxy/haproxy.cfg", told.replace(b"    server ", b"    # server "))
    assert "failed to request the cluster-info ConfigMap" in await three.join(token)


async def test_a_script_that_is_not_simulated_can_not_pass(three: Three) -> None:
    with pytest.raises(StepError, match=r"exit code 127.*this host is simulated"):
        await three.host("workerNode-0").run(["sh", "-c", "true", "slipway-something_new"])


async def test_a_machine_that_is_gone_answers_nobody_and_its_node_is_not_ready(three: Three) -> None:
    host = three.host("workerNode-1")
    await three.rig.rig.slipway.simulated.lose_machine(SIMULATED_VIM, three.machines["workerNode-1"])
    with pytest.raises(StepError, match="can't be reached: No route to host") as caught:
        await host.get("/etc/hosts")
    assert caught.value.temporary
    api = await three.rig.api(three.instance_id)
    gone = await api.get(paths.node(node_name(three.instance_id, "workerNode-1")))
    assert gone["status"]["conditions"][0]["reason"] == "NodeStatusUnknown"


async def test_several_clusters_on_one_vim_do_not_meet(three: Three) -> None:
    other = await three.rig.cluster()
    await three.rig.completed(OperationType.SCALE, other, out())
    assert sorted(len(seen.nodes) for seen in three.rig.seen()) == [4, 5]
