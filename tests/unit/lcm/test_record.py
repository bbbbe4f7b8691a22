"""What steps leave in the record of an instance when an operation ends."""

from __future__ import annotations

from slipway.lcm.record import with_instance_patches, with_outcomes
from slipway.model.machine import FoundMachine, Outcome
from tests.unit.cluster.cluster_situations import instance
from tests.unit.cluster.flavours import flavour

SAID = Outcome(instance={"instantiatedVnfInfo": {"metadata": {"balancer": "10.0.0.9"}}, "metadata": {"kept": "yes"}})
KEY = "ssh-ed25519 AAAA"


def test_what_is_said_of_an_instantiated_vnf_is_recorded() -> None:
    vnf = with_instance_patches(instance({"workerNode-0": "one"}, 1).vnf, [SAID])
    assert vnf.instantiated_vnf_info is not None
    assert vnf.instantiated_vnf_info.metadata["balancer"] == "10.0.0.9"


def test_after_a_termination_what_was_said_of_the_instantiated_vnf_is_gone_with_it() -> None:
    """A termination whose step, or script of the package, said something of it could never end otherwise."""
    vnf = with_instance_patches(instance({}, 1).vnf, [SAID])
    assert vnf.instantiated_vnf_info is None
    assert vnf.metadata == {"kept": "yes"}


def recorded_key(*reported: FoundMachine) -> str | None:
    info = instance({"workerNode-0": "one"}, 1).vnf.instantiated_vnf_info
    assert info is not None
    outcomes = [Outcome(machines=(machine,)) for machine in reported]
    (vnfc,) = with_outcomes(info, outcomes, flavour(masters=1, workers=1), "vim", {}, 1).vnfc_resource_info
    key: str | None = vnfc.metadata.get("hostKey")
    return key


def machine(resource_id: str = "one", host_key: str | None = None) -> FoundMachine:
    return FoundMachine(
        id="one", name="workerNode-0", vdu="workerNode", resource_id=resource_id, ready=True, host_key=host_key
    )


def test_the_host_key_that_a_first_contact_showed_outlives_what_a_vim_reports_that_can_not_tell_keys() -> None:
    """A stack reports all its servers after each change. Without the key whoever answers next would be trusted."""
    assert recorded_key(machine(host_key=KEY), machine()) == KEY


def test_another_machine_in_its_place_has_another_key() -> None:
    assert recorded_key(machine(host_key=KEY), machine("two")) is None
