"""The lab's OpenStack as its operators see it: what tests need there, and what there is."""

from __future__ import annotations

import dataclasses
import io
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from slipway.model.action import VimConnection
from slipway.model.vim import OPENSTACK

PASSWORD = "lab"
KINDS = ("first", "next")  # of images and flavors: those of the contract's two packages
NETWORKS = {"net-1": "10.81.0.0/24", "net-2": "10.82.0.0/24"}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
DIRECTORY = Path(os.environ.get("LAB_DIR") or CACHE / "slipway" / "openstack-lab")
SCRIPTS = Path(__file__).parents[3] / "lab" / "openstack"


def run_lab(script: str, *arguments: str | Path, **settings: str) -> None:
    """Of lab/openstack; each does what is missing."""
    subprocess.run([SCRIPTS / script, *arguments], check=True, timeout=1800, env={**os.environ, **settings})


@dataclass
class OpenStackLab:
    """`user` is a member of the project `name`, as operators of VNFs are; `admin` is the cloud's own."""

    user: Any
    admin: Any
    keystone: str
    name: str = "lab"

    @classmethod
    def connect(cls) -> OpenStackLab:
        import openstack

        os.environ["OS_CLIENT_CONFIG_FILE"] = str(DIRECTORY / "clouds.yaml")
        user, admin = openstack.connect(cloud="lab"), openstack.connect(cloud="lab-admin")
        return cls(user, admin, user.config.get_auth_args()["auth_url"])

    def project(self, name: str) -> OpenStackLab:
        """Another project, with a member of its own of the same name."""
        import openstack

        identity = self.admin.identity
        project = identity.find_project(name) or identity.create_project(name=name, domain_id="default")
        user = identity.find_user(name) or identity.create_user(name=name, password=PASSWORD, domain_id="default")
        for role in ("member", "reader", "heat_stack_owner"):
            identity.assign_project_role_to_user(project, user, identity.find_role(role))
        own = self.user.config.get_auth_args() | {"username": name, "password": PASSWORD, "project_name": name}
        return OpenStackLab(openstack.connect(auth=own, region_name="RegionOne"), self.admin, self.keystone, name)

    @property
    def vim(self) -> dict[str, Any]:
        """As a request registers it, in the user's name."""
        access = {
            "username": self.name,
            "password": PASSWORD,
            "project": self.name,
            "userDomain": "Default",
            "projectDomain": "Default",
            "region": "RegionOne",
        }
        return {"vimType": OPENSTACK, "interfaceInfo": {"endpoint": self.keystone}, "accessInfo": access}

    def connection(self) -> VimConnection:
        vim = self.vim
        return VimConnection(OPENSTACK, vim["interfaceInfo"], vim["accessInfo"], {})

    def prepare(self) -> None:
        """Images and flavors by the names that the contract's VNFDs have, and two networks to connect to."""
        for kind in KINDS:
            if not self.admin.image.find_image(f"image-{kind}"):
                self.admin.image.create_image(
                    name=f"image-{kind}", disk_format="raw", container_format="bare", visibility="public",
                    validate_checksum=False, data=io.BytesIO(b"Stands for the lab's own root file system.\n"),
                )  # fmt: skip
            if not self.admin.compute.find_flavor(f"size-{kind}"):
                self.admin.compute.create_flavor(name=f"size-{kind}", vcpus=1, ram=512, disk=1)
        for name, cidr in NETWORKS.items():
            self.own_network(name, cidr)

    def network_id(self, name: str) -> str:
        return str(self.user.network.find_network(name, ignore_missing=False).id)

    def own_network(self, name: str, cidr: str) -> str:
        """One of the project, by its name. It stays."""
        api = self.user.network
        if not api.find_network(name):
            network = api.create_network(name=name)
            api.create_subnet(name=name, network_id=network.id, ip_version=4, cidr=cidr)
        return name

    def holdings(self) -> dict[str, set[str]]:
        """All that a VNF may leave."""
        return {
            "stacks": {one.id for one in self.user.orchestration.stacks() if one.status != "DELETE_COMPLETE"},
            "servers": {one.id for one in self.user.compute.servers(details=False)},
            "ports": {one.id for one in self.user.network.ports(project_id=self.user.current_project_id)},
            "networks": {one.id for one in self.user.network.networks(project_id=self.user.current_project_id)},
            "volumes": {one.id for one in self.user.block_storage.volumes(details=False)},
            "floating IPs": {one.id for one in self.user.network.ips(project_id=self.user.current_project_id)},
            "server groups": {one.id for one in self.user.compute.server_groups()},
            "images": {one.id for one in self.user.image.images()},
        }

    def left_since(self, before: dict[str, set[str]]) -> dict[str, set[str]]:
        return {kind: new for kind, ids in self.holdings().items() if (new := ids - before[kind])}

    @contextmanager
    def nothing_left(self) -> Iterator[None]:
        """Nothing of a VNF in it, before and after."""
        self.clear()
        before = self.holdings()
        yield
        left = self.left_since(before)
        self.clear()
        assert not left, f"left behind: {left}"

    def remove_server(self, server_id: str) -> None:
        """Behind everybody's back, until it is gone."""
        server = self.user.compute.get_server(server_id)  # before: a moment later it may be gone
        self.user.compute.delete_server(server)
        self.user.compute.wait_for_delete(server, wait=120)

    def mark_unhealthy(self, stack: str, resource: str) -> None:
        """As `openstack stack resource mark unhealthy` does."""
        api = self.user.orchestration
        found = api.find_stack(stack, ignore_missing=False)
        path = f"/stacks/{found.name}/{found.id}/resources/{resource}"
        api.patch(path, json={"mark_unhealthy": True}).raise_for_status()

    def status(self, stack: str) -> str:
        """ "" when there is none."""
        return next((one.status for one in self.user.orchestration.stacks(name=stack)), "")

    def reasons(self, stack: str) -> set[str]:
        """What Heat has recorded as reasons for what became of the stack's resources."""
        api = self.user.orchestration
        return {one.resource_status_reason for one in api.stack_events(api.find_stack(stack, ignore_missing=False))}

    def until(self, test: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not test():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.1)

    @contextmanager
    def service(self, type_: str, url: str) -> Iterator[None]:
        """In the catalogue, for a while: alone of its type, whatever a run that was killed has left."""
        identity = self.admin.identity
        for left in [one for one in identity.services() if one.type == type_]:
            identity.delete_service(left)
        service = identity.create_service(name=type_, type=type_)
        identity.create_endpoint(service_id=service.id, interface="public", url=url, region_id="RegionOne")
        try:
            yield
        finally:
            identity.delete_service(service)  # and its endpoint

    @contextmanager
    def application_credential(self, **attributes: bool) -> Iterator[VimConnection]:
        """One of the user's, for a while: a connection by it."""
        identity, user = self.user.identity, self.user.current_user_id
        made = identity.create_application_credential(user, name=f"slipway-{uuid4()}", **attributes)
        access = {"applicationCredentialId": made.id, "applicationCredentialSecret": made.secret, "region": "RegionOne"}
        try:
            yield dataclasses.replace(self.connection(), access_info=access)
        finally:
            identity.delete_application_credential(user, made)

    @contextmanager
    def application_trusts(self) -> Iterator[None]:
        """Keystone lets application credentials make trusts, for a while."""
        run_lab("restart", "keystone", LAB_APPLICATION_TRUSTS="true")
        try:
            yield
        finally:
            run_lab("restart", "keystone")

    @contextmanager
    def quota(self, **limits: int) -> Iterator[None]:
        """Of the user's project, for a while."""
        project = self.user.current_project_id
        usual = self.admin.compute.get_quota_set(project)
        self.admin.compute.update_quota_set(project, **limits)
        try:
            yield
        finally:
            self.admin.compute.update_quota_set(project, **{name: getattr(usual, name) for name in limits})

    @contextmanager
    def floating_network(self, name: str, cidr: str, inside: str) -> Iterator[str]:
        """An external network, and a router from it to the one that is `inside`, for a while: without it Neutron gives
        ports there no floating IPs."""
        network = self.admin.network
        outside = network.create_network(name=name, is_router_external=True)
        network.create_subnet(name=name, network_id=outside.id, ip_version=4, cidr=cidr, is_dhcp_enabled=False)
        router = network.create_router(name=name, external_gateway_info={"network_id": outside.id})
        door = network.create_port(network_id=self.network_id(inside))  # the subnet's gateway is the lab's own
        network.add_interface_to_router(router, port_id=door.id)
        try:
            yield str(outside.id)
        finally:
            network.remove_interface_from_router(router, port_id=door.id)
            network.delete_router(router)
            network.delete_network(outside)

    def clear(self) -> None:
        """Whatever a test before left, so that the next one begins with nothing."""
        stacks = [one for one in self.user.orchestration.stacks() if one.name.startswith("vnf-")]
        for stack in stacks:
            self.user.orchestration.delete_stack(stack)
        deadline = time.monotonic() + 120
        while any(one.name.startswith("vnf-") for one in self.user.orchestration.stacks()):
            assert time.monotonic() < deadline, "stacks are not deleted"
            time.sleep(0.5)
        for image in self.user.image.images(tag="slipway"):
            self.user.image.delete_image(image)
