"""The Kubernetes image on a real machine: its programs, its container images, and a control plane made from them."""

from __future__ import annotations

import shutil
from pathlib import Path

import asyncssh
import msgspec
import pytest

from slipway.model.action import VimConnection
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.engine_images import ensure_kubernetes, kubernetes_in
from slipway.vim.sandbox.image.kubernetes.versions import DEFAULT, RELEASES
from tests.lab.test_sandbox_machines import logged_in, one_machine, output, reached

pytestmark = pytest.mark.group(name="sandbox")

RELEASE = RELEASES[DEFAULT]
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
# A bridge will do for a network of one node.
NETWORK = """{"cniVersion": "0.3.1", "name": "pods", "plugins": [{"type": "bridge", "isDefaultGateway": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]]}}]}"""
PREPARE = f"""
printf 'net.ipv4.ip_forward = 1\\nnet.bridge.bridge-nf-call-iptables = 1\\n' >/etc/sysctl.d/90-kubernetes.conf
sysctl --quiet --system
containerd config default | sed -E '
    s#(sandbox_image = ).*#\\1"registry.slipway.test/pause:{RELEASE.pause}"#
    s#(SystemdCgroup = ).*#\\1true#' >/etc/containerd/config.toml
mkdir -p /etc/cni/net.d
echo '{NETWORK}' >/etc/cni/net.d/10-pods.conflist
systemctl restart containerd
for archive in node master; do
    ctr -n k8s.io images import /usr/share/slipway/images/$archive.tar >/dev/null
done
"""
CLUSTER = f"""
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v{RELEASE.version}
imageRepository: registry.slipway.test
"""
INIT = f"""
echo '{CLUSTER}' >/root/kubeadm.yaml
kubeadm init --config /root/kubeadm.yaml --skip-phases=addon
"""
READY = "kubectl --kubeconfig /etc/kubernetes/admin.conf wait --for=condition=Ready node --all --timeout=60s"
ANSWERS = (
    "timeout 90 sh -c 'until kubectl --kubeconfig /etc/kubernetes/admin.conf get --raw /readyz; do sleep 0.5; done'"
)


@pytest.fixture
def image(engines: Engines, operations: EngineOperations) -> None:
    """The engine has it. The first time on a machine, this takes as long as a compiler takes for Kubernetes."""
    if absent := [program for program in ("go", "zstd") if shutil.which(program) is None]:
        pytest.skip(f"no {', '.join(absent)} on this machine, to make the Kubernetes image with")
    ensure_kubernetes(operations.engine, engines.paths, operations.locks, lambda said: None)


@pytest.mark.usefixtures("image")
async def test_a_machine_of_the_image_becomes_a_control_plane(
    driver: SandboxDriver, connection: VimConnection, operations: EngineOperations, engines: Engines
) -> None:
    assert RELEASE in kubernetes_in(operations.engine)
    before = _settings()
    plain = one_machine()
    machine = msgspec.structs.replace(plain.machines[0], image="kubernetes", volumes=())
    found = (await reached(driver, connection, msgspec.structs.replace(plain, machines=(machine,)))).machines[0]
    async with logged_in(found, engines.paths.key) as ssh:
        assert await output(ssh, "systemctl is-system-running --wait || true") == "running"
        await _the_programs_are_there(ssh)
        await _as_root(ssh, PREPARE)
        await _the_images_are_there(ssh)
        await _as_root(ssh, INIT)
        assert "condition met" in await _as_root(ssh, READY)
    assert _settings() == before

    # What runs inside is there again after a power cut.
    await driver.work(connection, lambda operations: operations.engine.kill(found.resource_id))
    again = msgspec.structs.replace(plain, machines=(machine,))
    found = (await reached(driver, connection, again, "op-2")).machines[0]
    async with logged_in(found, engines.paths.key) as ssh:
        await _as_root(ssh, ANSWERS)


async def _the_programs_are_there(ssh: asyncssh.SSHClientConnection) -> None:
    assert await output(ssh, "kubeadm version -o short") == f"v{DEFAULT}"
    assert await output(ssh, "kubelet --version") == f"Kubernetes v{DEFAULT}"
    assert await output(ssh, f"/opt/kubernetes/{DEFAULT}/bin/kubectl version --client") != ""
    assert "containerd" in await output(ssh, "sudo ctr version && containerd --version")
    states = await output(ssh, "systemctl is-enabled containerd kubelet haproxy keepalived || true")
    assert states.split() == ["enabled", "enabled", "disabled", "disabled"]
    assert {"bridge", "loopback", "portmap"} <= set((await output(ssh, "ls /opt/cni/bin")).split())


async def _the_images_are_there(ssh: asyncssh.SSHClientConnection) -> None:
    asked = await output(
        ssh, f"kubeadm config images list --image-repository registry.slipway.test --kubernetes-version v{DEFAULT}"
    )
    there = await output(ssh, "sudo ctr -n k8s.io images ls -q")
    assert set(asked.split()) <= set(there.split())


async def _as_root(ssh: asyncssh.SSHClientConnection, script: str) -> str:
    done = await ssh.run("sudo bash -euo pipefail -s", input=script, timeout=300)
    assert done.exit_status == 0, f"{done.stdout!s}{done.stderr!s}"
    return str(done.stdout)


def _settings() -> dict[str, str]:
    """Of this host, which machines must leave alone."""
    return {name: (Path("/proc/sys") / name).read_text() for name in SYSCTLS}
