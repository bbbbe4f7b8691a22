"""Whether a VNF is where a connection leads, asked of the real drivers; and which changes lead elsewhere at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from slipway.lcm.vim_moves import missing_there
from slipway.model.action import VimConnection
from slipway.model.instance import InstantiatedVnfInfo, InstantiationState, VnfInstance
from slipway.model.machine import PREREQUISITE, FoundObject
from slipway.model.vim import KUBERNETES, OPENSTACK
from slipway.model.vim_secrets import same_place
from slipway.vim.drivers import Drivers
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from tests.unit.lcm.situations import empty_instance
from tests.unit.vim.cluster_standin import Cluster, a_cluster
from tests.unit.vim.keystone_standin import Keystone, a_keystone
from tests.unit.vim.openstack_standin import ACCESS, INSTANCE, OpenStack, an_openstack

STACK = FoundObject(id="1", kind="OS::Heat::Stack", name=f"vnf-{INSTANCE}")
WORKLOAD = FoundObject(id="web", kind="Deployment", name="web", namespace="default", api_version="apps/v1")
DEFINITION = FoundObject(
    id=f"{PREREQUISITE}pages",
    kind="CustomResourceDefinition",
    name="pages.example.com",
    api_version="apiextensions.k8s.io/v1",
)


def vnf_with(*objects: FoundObject) -> VnfInstance:
    info = InstantiatedVnfInfo(
        flavour_id="simple", vnf_state="STARTED", metadata={"objects": msgspec.to_builtins(objects)}
    )
    vnf = empty_instance().vnf
    return replace(vnf, id=INSTANCE, instantiation_state=InstantiationState.INSTANTIATED, instantiated_vnf_info=info)


@pytest.fixture
def drivers() -> Iterator[Drivers]:
    with closing(Drivers([OpenStackDriver(), KubernetesVimDriver()])) as drivers:
        yield drivers


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with a_keystone() as keystone:
        yield keystone


@pytest.fixture
def cloud(keystone: Keystone) -> Iterator[OpenStack]:
    with an_openstack(keystone) as cloud:
        yield cloud


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with a_cluster() as cluster:
        cluster.tokens["good-token"] = "operator"
        yield cluster


def on_cluster(cluster: Cluster, *, known: bool) -> VimConnection:
    interface = {"endpoint": cluster.url, "ssl_ca_cert": cluster.authority.pem}
    return VimConnection(KUBERNETES, interface, {"bearer_token": "good-token" if known else "another"}, {})


async def test_a_stack_of_the_vnf_is_looked_for(drivers: Drivers, cloud: OpenStack) -> None:
    assert await missing_there(drivers, cloud.connection, vnf_with(STACK)) is None
    cloud.stack = None
    missing = await missing_there(drivers, cloud.connection, vnf_with(STACK))
    assert missing == f"the VIM there has nothing of VNF instance {INSTANCE}, which would be left behind where it is."
    assert await missing_there(drivers, cloud.connection, vnf_with()) is None


@pytest.mark.parametrize("change", [{"region": "RegionTwo"}, {"password": "wrong"}])
async def test_a_cloud_that_can_not_be_asked_is_none(
    drivers: Drivers, cloud: OpenStack, change: dict[str, str]
) -> None:
    cloud.access |= change
    missing = await missing_there(drivers, cloud.connection, vnf_with(STACK))
    assert missing is not None
    assert missing.startswith(f"the VIM there can't be asked what it has of VNF instance {INSTANCE}: "), missing
    assert "wrong" not in missing


async def test_a_definition_that_was_there_before_does_not_show_that_the_vnf_is(
    drivers: Drivers, cluster: Cluster
) -> None:
    """A driver repeats it from the record, and another cluster may have it as well."""
    missing = await missing_there(drivers, on_cluster(cluster, known=True), vnf_with(WORKLOAD, DEFINITION))
    assert missing is not None
    assert missing.startswith("the VIM there has nothing of VNF instance")
    missing = await missing_there(drivers, on_cluster(cluster, known=False), vnf_with(WORKLOAD))
    assert missing is not None
    assert "can't be asked" in missing


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"interface_info": {"endpoint": "https://other:5000/v3"}}, False),
        ({"vim_type": KUBERNETES}, False),
        ({"access_info": {**ACCESS, "region": "RegionTwo"}}, False),
        ({"access_info": {**ACCESS, "project": "other"}}, False),
        ({"access_info": {**ACCESS, "namespace": "other"}}, False),
        ({"access_info": {**ACCESS, "applicationCredentialId": "other"}}, False),
        ({"access_info": {**ACCESS, "username": "other", "password": "other", "userDomain": "other"}}, True),
        ({"extra": {"area": "north"}}, True),
        ({"vim_id": "registered anew"}, True),
    ],
)
def test_what_leads_elsewhere(change: dict[str, Any], same: bool) -> None:
    parts: dict[str, Any] = {
        "vim_type": OPENSTACK, "interface_info": {"endpoint": "https://one:5000/v3"}, "access_info": ACCESS, "extra": {}
    }  # fmt: skip
    assert same_place(VimConnection(**parts), VimConnection(**parts | change)) is same
