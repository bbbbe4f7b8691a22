"""What packages for the kubespray way carry beside the rest. Read and kept; the kubeadm way does not use it."""

from __future__ import annotations

from typing import Annotated

from slipway.cluster.reading import Parameters
from slipway.cluster.values import Secret, name, optional_text, package_path, secret, user


class AnsibleParameters(Parameters, frozen=True, kw_only=True):
    """Empty paths are accepted, as documents print them; whoever runs Ansible asks for them."""

    ip_address: Annotated[str, name]
    username: Annotated[str, user]
    password: Annotated[Secret, secret]
    kubespray_root_path: Annotated[str | None, optional_text] = None
    transferring_inventory_path: Annotated[str | None, optional_text] = None


class ExternalLoadBalancerParameters(Parameters, frozen=True, kw_only=True):
    ssh_cp_name: Annotated[str, name]
    ssh_username: Annotated[str, user]
    ssh_password: Annotated[Secret, secret]
    script_path: Annotated[str, package_path]
