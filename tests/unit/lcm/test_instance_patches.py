"""What steps say of the instance beside its resources: merge patches, put over the record when an operation ends."""

from __future__ import annotations

from slipway.lcm.record import with_instance_patches
from slipway.model.machine import Outcome
from tests.unit.cluster.cluster_situations import instance

SAID = Outcome(instance={"instantiatedVnfInfo": {"metadata": {"balancer": "10.0.0.9"}}, "metadata": {"kept": "yes"}})


def test_what_is_said_of_an_instantiated_vnf_is_recorded() -> None:
    vnf = with_instance_patches(instance({"workerNode-0": "one"}, 1).vnf, [SAID])
    assert vnf.instantiated_vnf_info is not None
    assert vnf.instantiated_vnf_info.metadata["balancer"] == "10.0.0.9"


def test_after_a_termination_what_was_said_of_the_instantiated_vnf_is_gone_with_it() -> None:
    """A termination whose step, or script of the package, said something of it could never end otherwise."""
    vnf = with_instance_patches(instance({}, 1).vnf, [SAID])
    assert vnf.instantiated_vnf_info is None
    assert vnf.metadata == {"kept": "yes"}
