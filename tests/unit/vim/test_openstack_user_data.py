"""What user data says, over what the stack has and what Slipway would say by itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from slipway.model.errors import PackageError, Unprocessable, VimError
from slipway.model.machine import Found
from slipway.model.secrets import find_secrets, reference, restore_references
from slipway.model.target import Change, VnfcMember, VnfTarget
from slipway.model.user_data import STACK, STACK_SECRET, UserData, stack_data
from slipway.vim.openstack.desired_stack import current_stack, desired_stack
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.user_data_stack import (
    HIDDEN,
    ReadStack,
    StackBody,
    as_it_was,
    for_new_stack,
    user_data_steps,
    with_user_data,
)
from tests.contract.life import ONE, two_vdus
from tests.lab.openstack.hot_packages import indexed

TEMPLATE: dict[str, Any] = {"heat_template_version": "2021-04-16", "resources": {"VDU1": {"type": "VDU1.yaml"}}}
OTHER: dict[str, Any] = {"heat_template_version": "2021-04-16", "resources": {"VDU1-0": {"type": "VDU1.yaml"}}}
FILES = {"VDU1.yaml": '{"heat_template_version": "2021-04-16"}'}


def body(**nfv: Any) -> StackBody:
    return StackBody(template=TEMPLATE, files=FILES, parameters={"nfv": nfv, "colour": "red"})


def test_at_instantiation_its_parameters_are_all_there_are() -> None:
    made = with_user_data({"parameters": {"nfv": {"VDU": 1}}}, body(CP=1))
    assert made == StackBody(template=TEMPLATE, files=FILES, parameters={"nfv": {"VDU": 1}})


def test_later_it_says_only_what_is_otherwise() -> None:
    made = with_user_data({"parameters": {"nfv": {"VDU": 2}}}, body(), body(VDU=1, CP=1), body())
    assert made.parameters == {"nfv": {"VDU": 2, "CP": 1}, "colour": "red"}


def test_of_a_stack_that_somebody_deleted_it_speaks_over_what_the_operation_plans() -> None:
    """Heals of user data say nothing, or what is healed: a stack of that alone could not be made."""
    own = {"resources": {"more": {"type": "OS::Neutron::Net"}}}
    made = with_user_data(
        {"parameters": {"nfv": {"VDU": 2}}, "template": own}, body(VDU=1, CP=1), None, before=body(VDU=1, CP=1)
    )
    assert made.parameters == {"nfv": {"VDU": 2, "CP": 1}, "colour": "red"}
    assert made.template["resources"].keys() == {"VDU1", "more"}
    assert made.files == FILES
    made = with_user_data({"parameters": {"nfv": {}}}, body(VDU=1), None, before=body(VDU=1))
    assert made == body(VDU=1)


def test_unless_it_wants_all_anew() -> None:
    made = with_user_data({"parameters": {"nfv": {"VDU": 2}}, "existing": False}, body(), body(VDU=1, CP=1), body())
    assert made.parameters == {"nfv": {"VDU": 2}}


def test_a_member_comes_and_goes_by_what_it_says_of_the_template() -> None:
    """The others stay, also where only user data ever named them."""
    noted = StackBody(template=OTHER, files=FILES)
    came = {"resources": {"VDU1-1": {"type": "VDU1.yaml"}}}
    made = with_user_data({"template": came}, body(), noted, body())
    assert made.template["resources"].keys() == {"VDU1-0", "VDU1-1"}
    assert made.files == FILES
    made = with_user_data({"template": {"resources": {"VDU1-1": None}}}, body(), made, body())
    assert made.template == OTHER


def test_where_it_says_nothing_of_the_template_that_of_the_stack_stays() -> None:
    """A heal by parameters alone must not take away what user data made at the instantiation."""
    noted = StackBody(template=OTHER, files={"VDU1.yaml": "made by user data"})
    made = with_user_data({"parameters": {"colour": "blue"}}, body(), noted, body())
    assert (made.template, made.files) == (noted.template, noted.files)


def test_where_it_says_nothing_the_stack_keeps_all_but_what_the_operation_changes() -> None:
    before = StackBody(template=TEMPLATE, files=FILES, parameters={"nfv": {"CP": {"a": 1, "b": 1}}})
    noted = StackBody(template=OTHER, files=FILES, parameters={"nfv": {"CP": {"a": 1, "b": 1}, "own": "kept"}})
    new = {"resources": {**TEMPLATE["resources"], "more": {"type": "OS::Neutron::Net"}}}
    planned = StackBody(
        template={**TEMPLATE, **new}, files={**FILES, "new.yaml": ""}, parameters={"nfv": {"CP": {"a": 2}}}
    )
    made = with_user_data({}, planned, noted, before)
    assert made.parameters == {"nfv": {"CP": {"a": 2}, "own": "kept"}}
    assert made.template["resources"].keys() == {"VDU1-0", "more"}
    assert made.files == planned.files


def with_secret(value: str | None, **more: Any) -> StackBody:
    parameters = {"colour": "red", **more, **({"secret": value} if value else {})}
    return StackBody(template=TEMPLATE, files=FILES, parameters=parameters)


def test_a_hidden_parameter_that_only_user_data_had_set_is_left_to_heat_which_alone_has_it() -> None:
    made = with_user_data(
        {"parameters": {"old": None}}, with_secret(None), with_secret(HIDDEN, old=1), with_secret(None)
    )
    assert made.parameters == {"colour": "red"}
    assert made.clear_parameters == ("old",)
    set_again = with_user_data({"parameters": {"secret": "new"}}, body(), with_secret(HIDDEN), with_secret(None))
    assert (set_again.parameters["secret"], set_again.clear_parameters) == ("new", None)


def test_a_hidden_parameter_that_was_planned_is_said_again() -> None:
    made = with_user_data({}, with_secret("known"), with_secret(HIDDEN), with_secret("known"))
    assert (made.parameters["secret"], made.clear_parameters) == ("known", None)


def test_the_way_back_keeps_what_only_heat_has_and_drops_what_the_operation_added() -> None:
    back = as_it_was(with_secret(HIDDEN), with_secret(None), ["colour", "added"])
    assert (back.parameters, back.clear_parameters) == ({"colour": "red"}, ("added",))
    known = as_it_was(with_secret(HIDDEN), with_secret("known"), ["colour", "added"])
    assert (known.parameters, known.clear_parameters) == ({"colour": "red", "secret": "known"}, None)


def test_a_stack_whose_hidden_parameters_only_heat_has_is_not_deleted_to_be_made_again() -> None:
    kept = with_user_data({}, with_secret(None), with_secret(HIDDEN), with_secret(None))
    with pytest.raises(VimError, match=r"Stack vnf-1 is to be made again, and of hidden .* let user data give all"):
        for_new_stack("vnf-1", kept)
    assert for_new_stack("vnf-1", body()) == body()


def test_its_template_and_files_count() -> None:
    made = with_user_data({"template": OTHER, "files": FILES, "parameters": {}}, body())
    assert made.template == OTHER


@pytest.mark.parametrize("type_", ["http://elsewhere/x.yaml", "file:///etc/passwd", "no-such-file.yaml"])
def test_its_template_may_use_nothing_from_elsewhere(type_: str) -> None:
    template = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": type_}}}
    with pytest.raises(PackageError, match="nothing is fetched from elsewhere"):
        with_user_data({"template": template}, body())


def test_what_is_noted_of_a_stack_keeps_its_secrets_hidden_wherever_user_data_put_them() -> None:
    after = VnfTarget(
        vnfd_id="v", flavour=two_vdus(), scale={}, counts={}, parameters={"db": [{"password": reference("given")}]}
    )
    change = Change(instance_id="i", version=1, inventory=Found(), after=after)
    named = UserData("UserData/data.py", "Data")
    note, _ = user_data_steps(change, after, named, {"nfv": {"VDU": {"key": reference("planned")}}}, ())
    assert msgspec.convert(note.args, ReadStack).secrets == (reference("planned"), reference("given"))
    told = {"nfv": {"VDU": {"key": "k", "copy": ["open sesame"]}, "colour": "red"}}
    known = [(reference("planned"), "k"), (reference("given"), "open sesame")]
    assert restore_references(told, known) == {
        "nfv": {"VDU": {"key": reference("planned"), "copy": [reference("given")]}, "colour": "red"}
    }


def test_user_data_without_a_template_of_the_package_is_refused() -> None:
    named = {"lcm-operation-user-data": "./UserData/data.py", "lcm-operation-user-data-class": "Data"}
    after = VnfTarget(
        vnfd_id="v",
        flavour=two_vdus(),
        scale={},
        counts={},
        parameters=named,
        file_names=frozenset({"UserData/data.py"}),
    )
    change = Change(instance_id="i", version=1, inventory=Found(), after=after)
    with pytest.raises(Unprocessable, match="none in BaseHOT/simple"):
        OpenStackDriver().refuse(change)


def test_parameters_of_a_template_that_nobody_would_read_are_refused() -> None:
    here = VnfTarget(vnfd_id="first", flavour=two_vdus(), scale={}, counts={}, files=indexed("first"))
    scale = Change(instance_id="i", version=1, inventory=Found(), before=here, after=here)
    with pytest.raises(Unprocessable, match=r"additionalParams.nfv: it is read at the instantiation"):
        OpenStackDriver().refuse(dataclasses.replace(scale, additional_params={"nfv": {"VDU": {}}}))


def test_nfv_that_is_no_object_is_refused_at_the_request() -> None:
    here = VnfTarget(vnfd_id="first", flavour=two_vdus(), scale={}, counts={}, parameters={"nfv": "text"})
    with pytest.raises(Unprocessable, match=r"additionalParams.nfv: .* give an object"):
        OpenStackDriver().refuse(Change(instance_id="i", version=1, inventory=Found(), after=here))


def test_a_secret_among_other_words_makes_the_whole_stack_one() -> None:
    """A reference can stand for a value, and not for a part of a text."""
    assert stack_data({"files": {"a": "chpasswd: root:open sesame"}}, ["open sesame"]).keys() == {STACK_SECRET}
    assert stack_data({"parameters": {"a": reference("1")}}, ["open sesame"]).keys() == {STACK}
    assert find_secrets({STACK_SECRET: {"files": {}}}) == ((STACK_SECRET,),)


def test_servers_are_looked_for_anywhere_also_when_only_this_request_names_user_data() -> None:
    """Its template may call them otherwise than the package's own does."""
    member = VnfcMember(id="m", vdu="base", slot=0)
    after = VnfTarget(
        vnfd_id="first", flavour=two_vdus(), scale={}, counts={"base": 1}, members=(member,), files=indexed("first")
    )
    change = Change(instance_id=ONE, version=1, inventory=Found(), after=after)
    assert [one.top for one in desired_stack(change, after).members] == ["base"]
    named = dataclasses.replace(change, additional_params={"lcm-operation-user-data": "./UserData/data.py"})
    for drawn in (desired_stack(named, after), current_stack(named, after)):
        assert [(one.top, one.group) for one in drawn.members] == [(None, True)]
