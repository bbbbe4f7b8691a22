"""The OpenStack driver keeps the contract of all VIM drivers, on a real Heat, Nova, Neutron and Cinder.

Tests that begin with a VNF as it is made share one stack for each form of template (`kept_stack.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from slipway.model.action import VimConnection
from slipway.model.target import PackageFile
from slipway.vim.contract import VimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from tests.contract.driver import DriverContract
from tests.contract.life import ONE, OTHER, Life
from tests.lab.openstack.hot_packages import grouped, indexed
from tests.lab.openstack.kept_stack import KeptStack, SharingLife, a_kept_stack
from tests.lab.openstack.openstack_lab import NETWORKS, OpenStackLab

pytestmark = pytest.mark.group(name="openstack")

# A plan is one step, or a chain of them, so that no order is to be tried; and what a stop in the middle leaves is what
# Heat has begun.
ELSEWHERE = (
    "test_a_step_that_needs_another_names_it",  # a chain
    "test_it_goes_on_after_a_stop_at_any_step",  # test_openstack_failures.py: while Heat works
    "test_undo_takes_back_what_was_made_wherever_it_stopped",  # there, too
    "test_nothing_is_left_of_a_half_made_instance",  # there, too
    "test_a_change_of_package_touches_one_member_after_another",  # test_openstack_package_change.py, in all forms
    "test_a_change_of_package_is_taken_back_wherever_it_stopped",  # there, too: after the first step, and after all
    # What comes, goes and stays is counted for each operation by the tests of what a grant is asked for.
    "test_resources_are_what_the_operation_leaves",
    "test_a_scale_out_only_adds_and_a_scale_in_only_removes",
)
# What the form of a template decides: which resource is whose, which member leaves or is made anew, in which turns.
BY_FORM = (
    "test_what_was_made_is_what_was_wanted_and_what_the_record_says",
    "test_when_all_is_as_wanted_there_is_nothing_to_do",
    "test_undo_of_a_scale_out_leaves_what_was_there",
    "test_members_that_leave_are_those_that_were_chosen",
    "test_a_heal_makes_the_named_vnfcs_anew_and_leaves_the_others",
    "test_another_package_changes_content_under_the_same_name",
)
IN_GROUPS = ("test_machines_of_vdus_that_are_not_named_stay_until_they_are_healed",)  # whose members are all alike


@pytest.fixture(scope="class")
def kept(openstack_lab: OpenStackLab) -> Iterator[KeptStack]:
    with a_kept_stack(openstack_lab) as kept:
        yield kept


class OnOpenStack(DriverContract):
    keeps_macs = False

    def stops(self, steps: int) -> Iterable[int]:
        return (steps,)

    @pytest.fixture
    def cloud(self, openstack_lab: OpenStackLab) -> OpenStackLab:
        """What is left is counted after all tests of a form, for there is always the stack that is kept."""
        return openstack_lab

    @pytest.fixture
    async def life(self, driver: VimDriver, connection: VimConnection, kept: KeptStack) -> AsyncIterator[Life]:
        """What is left at the end goes by the driver."""
        lives = [
            SharingLife(driver, connection, self.flavours(), id_, files_of=self.files_of, kept=kept)
            for id_ in (ONE, OTHER)
        ]
        yield lives[0]
        for life in lives:
            await life.ended()

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


def _leave_out(contract: type[OnOpenStack], names: Iterable[str]) -> None:
    for name in names:
        assert callable(getattr(contract, name)), f"the contract has no {name}"
        setattr(contract, name, None)


ALL = {name for name in dir(DriverContract) if name.startswith("test_")}
_leave_out(TestGeneratedTemplate, ELSEWHERE)
_leave_out(TestIndexedTemplate, ALL.difference(BY_FORM))
_leave_out(TestGroupedTemplate, ALL.difference(BY_FORM, IN_GROUPS))
