"""What a node has that is not ours, and what a registry answers that is not to be believed."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Sequence
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from slipway.cluster.containerd_config import CERTIFICATES, CONTAINERD
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.spec import ClusterSpec, Node, SshLogin
from slipway.cluster.steps.arguments import CheckRegistries, ConnectRegistries
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.registries import check, disconnect
from slipway.model.errors import StepError
from slipway.registry.certificates import make_authority
from slipway.remote.output import Result
from tests.unit.cluster.cluster_situations import ID, UNUSED

PLUGIN = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry'
NODE = Node(machine="m", slot="workerNode-0", name="worker", master=False, ssh="CP", nic="CP",
            login=SshLogin(username="root"))  # fmt: skip
NETWORKS = ClusterNetworks(pods="10.244.0.0/16", services="10.96.0.0/12", node_prefix=24)


class Package:
    """One file."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def read(self, instance_id: str, path: str, vnfd_id: str | None = None) -> bytes:
        return self.content


class Machine:
    """A node, its connector and its context: files and their modes."""

    instance_id = ID

    def __init__(self, configuration: str, *answers: bytes) -> None:
        self.answers = list(answers)
        self.files = {CONTAINERD: (configuration.encode(), 0o600)}

    async def host(self, node: Node, ctx: Any) -> Machine:
        return self

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    async def get(self, path: str, **_: Any) -> bytes | None:
        return self.files.get(path, (None, 0))[0]

    async def run(self, argv: Sequence[str], *, stdin: bytes | None = None, **_: Any) -> Result:
        if argv[0] == "curl":
            return Result(0, self.answers.pop(0), b"")
        if argv[3] == "slipway-install_files":
            with tarfile.open(fileobj=io.BytesIO(stdin or b"")) as tar:
                for entry in tar:
                    file = tar.extractfile(entry)
                    self.files[f"/{entry.name}"] = (file.read() if file else b"", entry.mode)
        return Result(0, b"", b"")


async def back_to(machine: Any, *registries: dict[str, Any], files: Any = UNUSED) -> None:
    cluster = ClusterSpec(instance=ID, masters=(), networks=NETWORKS)
    args = ConnectRegistries(node=NODE, cluster=cluster, registries=(), former=registries)
    await disconnect(Dependencies(machine, UNUSED, files), args, machine)


async def test_logins_of_others_do_not_become_readable_to_all() -> None:
    machine = Machine(f'{PLUGIN}.configs."theirs".auth]\nusername = "u"\npassword = "under the bridge"\n')
    await back_to(machine, {"connection_type": 0, "server": "registry.example.com:5000"})
    content, mode = machine.files[CONTAINERD]
    assert b"under the bridge" in content
    assert mode == 0o600


async def test_a_configuration_that_takes_no_registries_does_not_keep_a_rollback_from_its_end() -> None:
    foreign = f'{PLUGIN}.mirrors."theirs"]\nendpoint = ["http://theirs"]\n'
    machine = Machine(foreign)
    await back_to(machine)
    assert machine.files[CONTAINERD] == (foreign.encode(), 0o600)


SECURE = {"connection_type": 1, "server": "registry.example.com", "certificate_path": "Files/ca.crt"}


async def test_a_key_beside_the_certificate_of_an_authority_comes_to_no_node() -> None:
    machine, authority = Machine(""), make_authority("one")
    both = f"# ours\n{authority.private_key}{authority.certificate}".encode()
    await back_to(machine, SECURE, files=Package(both))
    written, _ = machine.files[f"{CERTIFICATES}/registry.example.com/ca.crt"]
    assert written == authority.certificate.encode()


async def test_a_certificate_of_a_version_that_nobody_knows_is_named() -> None:
    certificate = x509.load_pem_x509_certificate(make_authority("one").certificate.encode())
    content = certificate.public_bytes(Encoding.DER).replace(
        bytes.fromhex("a003020102"), bytes.fromhex("a003020107"), 1
    )
    pem = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(content) + b"-----END CERTIFICATE-----\n"
    with pytest.raises(StepError, match=r"Files/ca\.crt of the package, .*, holds no certificate"):
        await back_to(Machine(""), SECURE, files=Package(pem))


async def test_a_token_that_is_nested_without_end_is_none() -> None:
    wants = b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm="https://registry.example.com/t"\r\n\r\n'
    machine: Any = Machine("", wants, b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000)
    registry = {"connection_type": 1, "server": "registry.example.com"}
    cluster = ClusterSpec(instance=ID, masters=(), networks=NETWORKS)
    args = CheckRegistries(node=NODE, cluster=cluster, registries=(registry,))
    with pytest.raises(StepError, match="whoever gives its tokens answered HTTP 200"):
        await check(Dependencies(machine, UNUSED, UNUSED), args, machine)
