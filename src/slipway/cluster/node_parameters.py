"""What a request says about masters and workers: which machines they are, how to log in, what they carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from slipway.cluster.kubernetes_names import Taint, labels, taints
from slipway.cluster.reading import Parameters, Refusal
from slipway.cluster.values import Secret, address, key_text, name, network, secret, user, whole


class NodeParameters(Parameters, frozen=True, kw_only=True):
    """Machines of one role. They are named by aspect (v1) or by VDU (v2); otherwise by the CP that SSH uses."""

    aspect_id: Annotated[str | None, name] = None
    vdu_id: Annotated[str | None, name] = None
    ssh_cp_name: Annotated[str, name]
    nic_cp_name: Annotated[str | None, name] = None  # the CP of the cluster's own traffic; else that of SSH
    username: Annotated[str, user]
    password: Annotated[Secret | None, secret] = None
    private_key: Annotated[Secret | None, key_text] = None
    passphrase: Annotated[Secret | None, secret] = None
    ssh_port: Annotated[int, whole(1, 65535)] = 22
    labels: Annotated[dict[str, str], labels] = msgspec.field(default_factory=dict)
    taints: Annotated[tuple[Taint, ...] | None, taints] = None  # None: what Kubernetes does by itself

    @property
    def traffic_cp_name(self) -> str:
        return self.nic_cp_name or self.ssh_cp_name

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if "password" not in given and "private_key" not in given:
            yield "password", Refusal("there is neither password nor private_key", "give one of them to log in with")
        if "passphrase" in given and "private_key" not in given:
            yield "passphrase", Refusal("there is no private_key that it would open", "give private_key, too")


class MasterParameters(NodeParameters, frozen=True, kw_only=True):
    """`pod_cidr` and `cluster_cidr` (the Services' network) are chosen when not given: cluster/networks.py."""

    pod_cidr: Annotated[str | None, network] = None
    cluster_cidr: Annotated[str | None, network] = None
    cluster_cp_name: Annotated[str | None, name] = None
    cluster_ip: Annotated[str | None, address] = None
    cluster_fip_name: Annotated[str | None, name] = None


class WorkerParameters(NodeParameters, frozen=True, kw_only=True):
    pass
