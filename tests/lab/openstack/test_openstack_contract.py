"""The OpenStack driver keeps the contract of all VIM drivers, on a real Heat, Nova, Neutron and Cinder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from slipway.model.action import VimConnection
from slipway.model.target import Change, PackageFile
from slipway.vim.contract import VimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from tests.contract.driver import DriverContract
from tests.contract.life import ONE, OTHER, Life
from tests.contract.plans import run_plan
from tests.lab.openstack.hot_packages import grouped, indexed
from tests.lab.openstack.openstack_lab import NETWORKS, OpenStackLab

pytestmark = pytest.mark.group(name="openstack")


class OnOpenStack(DriverContract):
    keeps_macs = False

    @pytest.fixture
    async def life(self, driver: VimDriver, connection: VimConnection) -> AsyncIterator[Life]:
        """What is left at the end goes by the driver, so that `cloud` finds nothing."""
        lives = [Life(driver, connection, self.flavours(), id_, files_of=self.files_of) for id_ in (ONE, OTHER)]
        yield lives[0]
        for life in lives:
            gone = Change(instance_id=life.instance_id, version=1, inventory=life.recorded)
            await run_plan(driver, driver.steps(gone, await life.found()), life.context())

    @pytest.fixture
    def outside(self, cloud: OpenStackLab) -> tuple[str, str]:
        one, other = (cloud.network_id(name) for name in NETWORKS)
        return one, other

    @pytest.fixture
    def driver(self) -> Iterator[VimDriver]:
        driver = OpenStackDriver()
        yield driver
        driver.close()

    @pytest.fixture
    def connection(self, cloud: OpenStackLab) -> VimConnection:
        return cloud.connection()


class TestGeneratedTemplate(OnOpenStack):
    """The package has no template: it is generated from the VNFD."""

    def files_of(self, globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
        return {}


class TestIndexedTemplate(OnOpenStack):
    """The package's template has a resource for each VDU; each member gets one of its own."""

    has_ports = False  # that can be connected elsewhere: its template makes the only network

    def files_of(self, globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
        return indexed(vnfd_id)


class TestGroupedTemplate(OnOpenStack):
    """The package's template has an AutoScalingGroup."""

    has_ports = False
    all_alike = True

    def files_of(self, globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
        return grouped(vnfd_id)
