"""Why a stack failed, in the words of whoever failed first and deepest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slipway.model.errors import VimFault
from slipway.vim.openstack.failure import stack_failure
from slipway.vim.openstack.heat import Stack, StackResource
from slipway.vim.openstack.hot_template import SERVER

STACK = Stack("1", "vnf-1", "CREATE_FAILED", "Resource CREATE failed: resources.workers: ...", None)
NO_HOST = (
    'ResourceInError: resources.workers.resources.abc.resources.workerNode: Went to status ERROR due to "Message: '
    'No valid host was found. There are not enough hosts available., Code: 500"'
)


def resource(*path: str, reason: str = "", type_: str = SERVER, id_: str = "s-1", failed: bool = True) -> StackResource:
    status = "CREATE_FAILED" if failed else "CREATE_COMPLETE"
    return StackResource(path[-1], type_, id_, status, reason, ("vnf-1", "1"), path)


def test_the_deepest_resource_speaks_and_its_vnfc_is_named() -> None:
    found = [
        resource("workers", reason=NO_HOST, type_="OS::Heat::AutoScalingGroup", id_="g"),
        resource("workers", "abc", reason=NO_HOST, type_="worker.yaml", id_="m"),
        resource("workers", "abc", "workerNode", reason=NO_HOST),
        resource("workers", "def", "workerNode", reason="CREATE aborted", id_="s-2"),
    ]
    error = stack_failure(STACK, found, {"s-1": "workerNode-1"})
    assert error.detail.startswith(
        "Stack vnf-1 is CREATE_FAILED: resource workers/abc/workerNode (OS::Nova::Server) of VNFC workerNode-1: "
        'Went to status ERROR due to "Message: No valid host was found. There are not enough hosts available., '
        'Code: 500".'
    )
    assert "choose another flavour or zone" in error.detail
    assert error.fault is VimFault.QUOTA


def test_the_words_of_who_marked_a_resource_are_no_cause_and_a_build_that_nova_aborted_is_one() -> None:
    marked = replace(resource("w-0", "server", reason="to be made anew, says Slipway"), status="CHECK_FAILED")
    aborted = resource("w-1", reason="Build of instance 7 aborted: Volume 3 is in use", id_="s-2")
    waits = resource("w-2", reason="Create timed out", id_="s-3")
    error = stack_failure(STACK, [waits, marked, resource("w-3", "x", reason="CREATE aborted"), aborted], {})
    assert "says Slipway" not in error.detail
    assert "CREATE aborted" not in error.detail
    assert stack_failure(STACK, [marked, aborted], {}).detail.startswith(
        "Stack vnf-1 is CREATE_FAILED: resource w-1 (OS::Nova::Server): Build of instance 7 aborted"
    )


def test_a_reason_that_is_made_to_be_slow_to_read_is_read_at_once() -> None:
    for dots in ("." * 100_000, "no " * 100_000):
        error = stack_failure(STACK, [resource("w-0", reason=f"NotFound: resources.{dots} x: gone")], {})
        assert len(error.detail) < 1000


def test_secrets_are_left_out() -> None:
    found = [resource("w-0", reason="Property password: hunter2 is too short")]
    assert "hunter2" not in stack_failure(STACK, found, {}, ["hunter2"]).detail


def test_a_member_is_known_by_its_own_resource_too() -> None:
    error = stack_failure(STACK, [resource("w-0", reason="Quota exceeded for instances", id_="")], {"w-0": "w-0"})
    assert "of VNFC w-0: Quota exceeded for instances." in error.detail
    assert error.fault is VimFault.QUOTA


@pytest.mark.parametrize(
    ("reason", "fault", "cure"),
    [
        ("Image matching {'name': 'no-such'} not found.", VimFault.PERMANENT, "make it there"),
        ("IpAddressInUseClient: Unable to complete operation", VimFault.PERMANENT, "ask for another"),
        ("Volume is too big", VimFault.PERMANENT, "mend what is named"),
        ("Create timed out", VimFault.PERMANENT, "it is not tried again by itself"),
    ],
)
def test_what_to_do_about_it(reason: str, fault: VimFault, cure: str) -> None:
    error = stack_failure(STACK, [resource("w-0", reason=reason)], {})
    assert error.fault is fault
    assert cure in error.detail


def test_without_a_failed_resource_the_stack_speaks_for_itself() -> None:
    error = stack_failure(STACK, [resource("w-0", failed=False)], {})
    assert error.detail.startswith("Stack vnf-1 is CREATE_FAILED: Resource CREATE failed")


def test_a_deletion_that_failed_is_not_explained_by_a_creation_that_did() -> None:
    made = resource("w-0", "server", reason=NO_HOST)
    stuck = replace(
        resource("net", reason="Conflict: ports are on it", type_="OS::Neutron::Net"), status="DELETE_FAILED"
    )
    gone = replace(STACK, status="DELETE_FAILED", reason="Resource DELETE failed: net")
    assert (
        "resource net (OS::Neutron::Net): Conflict: ports are on it." in stack_failure(gone, [made, stuck], {}).detail
    )
    assert "Resource DELETE failed: net" in stack_failure(gone, [made], {}).detail


@pytest.mark.parametrize(
    "reason",
    [
        "Forbidden: resources.multi: Policy doesn't allow volume_extension:types_manage to be performed. (HTTP 403)",
        "Forbidden: resources.multi: You are not authorized to use OS::Cinder::VolumeType.",
    ],
)
def test_a_member_of_a_project_is_told_what_only_administrators_may_make(reason: str) -> None:
    found = [resource("multi", reason=reason, type_="OS::Cinder::VolumeType", id_="")]
    error = stack_failure(STACK, found, {})
    assert error.fault is VimFault.AUTH
    assert "have an administrator make it" in error.detail


def test_a_secret_is_left_out_before_a_reason_is_cut() -> None:
    """One that is longer than what is looked at would not be found any more."""
    key = "k3y" * 1000
    failed = resource("w-0", "server", reason=f"{key} is no user data")
    assert "k3y" not in stack_failure(STACK, [failed], {}, [key]).detail
