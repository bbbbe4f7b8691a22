"""What kubeadm must do on every host: begin a cluster, let in who has a token, and nobody else."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from slipway.cluster.flannel import flannel_manifests
from slipway.cluster.kubeadm_config import Document, JoinCredentials, NodeShape, as_yaml, join_documents
from slipway.cluster.steps import bootstrap, etcd
from slipway.cluster.steps.arguments import Init, Join, Prepare, Ready
from slipway.cluster.steps.machine import address_of, facts_of, run, run_job
from slipway.cluster.steps.nodes import ready
from slipway.cluster.steps.prepare import prepare
from slipway.cluster.values import Secret
from slipway.kube import paths
from slipway.kube.bootstrap import ca_hash, cluster_ca, make_token, new_token, remove_token
from slipway.kube.nodes import find_node, node_is_ready
from slipway.kube.pods import condition
from tests.contract.cluster_world import Check, Stage, refused

CONFIG = "/etc/kubernetes/slipway.yaml"


async def both_are_prepared_and_once_more(stage: Stage) -> None:
    for node in (stage.master, stage.worker, stage.worker):
        await prepare(stage.world, Prepare(node=node, cluster=stage.cluster), stage.ctx)


async def init_makes_a_cluster_whose_api_answers(stage: Stage) -> None:
    for _ in range(2):
        await bootstrap.init(stage.world, Init(node=stage.master, cluster=stage.cluster), stage.ctx)
    host = await stage.host(stage.master)
    version = (await facts_of(host, await address_of(stage.master, stage.ctx))).kubeadm
    async with stage.api() as api:
        assert await api.text("/readyz") == "ok"
        assert (await api.get("/version"))["gitVersion"] == version
        (node,) = await api.list(paths.NODES)
        assert node["metadata"]["name"] == stage.master.name
        assert "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]
        assert node["spec"]["taints"][0]["key"] in (
            "node-role.kubernetes.io/control-plane",
            "node.kubernetes.io/not-ready",
        )
        assert ca_hash(await cluster_ca(api)).startswith("sha256:")


async def a_node_is_ready_once_there_is_a_network(stage: Stage) -> None:
    async with stage.api() as api:

        async def not_ready() -> bool:
            node = await find_node(api, stage.master.name)
            return node is not None and condition(node, "Ready").get("status") == "False"

        await stage.until(not_ready, "the master is there, and not ready")
        node = await find_node(api, stage.master.name)
        assert node is not None
        assert "cni plugin not initialized" in condition(node, "Ready")["message"]
        for manifest in flannel_manifests(stage.cluster.networks.pods, stage.cluster.image_repository):
            await api.apply(manifest)
    await ready(stage.world, Ready(node=stage.master, cluster=stage.cluster), stage.ctx)


async def nobody_joins_with_a_token_that_the_cluster_does_not_know(stage: Stage) -> None:
    token = new_token()
    async with stage.api() as api:
        pin = ca_hash(await cluster_ca(api))
    said = await _refused_join(stage, token, pin)
    assert f'token ID "{token[:6]}"' in said or "JWS signature" in said, said


async def nobody_joins_a_cluster_with_another_ca(stage: Stage) -> None:
    async with stage.api() as api:
        token = await make_token(api, timedelta(minutes=20))
        try:
            said = await _refused_join(stage, token, f"sha256:{'0' * 64}")
        finally:
            await remove_token(api, token)
    assert "none of the public keys" in said, said


async def who_has_a_token_joins_and_joining_again_is_harmless(stage: Stage) -> None:
    for _ in range(2):
        await bootstrap.join(stage.world, Join(node=stage.worker, cluster=stage.cluster, cluster_stays=True), stage.ctx)
        await ready(stage.world, Ready(node=stage.worker, cluster=stage.cluster), stage.ctx)
    async with stage.api() as api:
        nodes = {node["metadata"]["name"]: node for node in await api.list(paths.NODES)}
        assert sorted(nodes) == sorted([stage.master.name, stage.worker.name])
        assert all(node_is_ready(node) for node in nodes.values())
        assert nodes[stage.worker.name]["status"]["addresses"][0]["address"] == await address_of(
            stage.worker, stage.ctx
        )
        secrets = await api.list(paths.namespaced("/api/v1", "kube-system", "secrets"))
        left = [one for one in secrets if one.get("type") == "bootstrap.kubernetes.io/token"]
        assert len(left) == 1  # the one of init


async def etcd_knows_its_one_member_and_keeps_it(stage: Stage) -> None:
    host = await stage.host(stage.master)
    (member,) = await etcd.members_of(host)
    address = await address_of(stage.master, stage.ctx)
    assert member.name == stage.master.name
    assert member.clients == (f"https://{address}:2379",)
    assert member.peers == (f"https://{address}:2380",)
    assert await etcd.answering(host, [member]) == {member.id}
    nobody = json.dumps({"ID": "123456789"})
    await refused(run(host, "etcd", "cluster/member/remove", nobody), "exit code 22", "member not found")
    await refused(etcd.members_of(await stage.host(stage.worker)), "'etcd'", "exit code 7")


async def _refused_join(stage: Stage, token: str, pin: str) -> str:
    """With little patience: kubeadm asks for minutes whether the token is known by now."""
    host = await stage.host(stage.worker)
    shape = await bootstrap.cluster_shape(host, stage.worker, stage.cluster, stage.ctx)
    own = NodeShape(name=stage.worker.name, address=await address_of(stage.worker, stage.ctx))
    credentials = JoinCredentials(token=Secret(token), ca_cert_hashes=(pin,))
    documents: list[Document] = join_documents(shape, own, credentials, control_plane=False)
    hasty: dict[str, Any] = {**documents[0], "timeouts": {"discovery": "5s"}}
    await host.put(CONFIG, as_yaml([hasty]), sudo=True)
    error = await refused(
        run_job(host, "join", CONFIG, limit=120), "exit code 1", "couldn't validate the identity of the API Server"
    )
    return error.detail


BOOTSTRAP_CHECKS: tuple[Check, ...] = (
    both_are_prepared_and_once_more,
    init_makes_a_cluster_whose_api_answers,
    a_node_is_ready_once_there_is_a_network,
    nobody_joins_with_a_token_that_the_cluster_does_not_know,
    nobody_joins_a_cluster_with_another_ca,
    who_has_a_token_joins_and_joining_again_is_harmless,
    etcd_knows_its_one_member_and_keeps_it,
)
