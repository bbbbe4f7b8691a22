"""What the hooks of a workload cluster plan, and which parameters are refused before anything begins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.cluster.cluster_api.driver import ClusterApiDriver, lasting_receiver
from slipway.cluster.cluster_api.parameters import WorkloadClusterParameters
from slipway.cluster.cluster_api.steps import KEY, SENT, WorkloadDependencies
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.model.descriptor import Hook
from slipway.model.errors import BadRequest
from slipway.model.hooks import EDGES, HookPlan
from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import OperationType
from slipway.model.requests import (
    AnyRequest,
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ModifyRequest,
    TerminateRequest,
    TerminationType,
)
from slipway.model.situation import PlanningSituation
from slipway.outgoing.guard import Guard
from tests.unit.cluster.cluster_situations import ID, UNUSED, situation, slots
from tests.unit.cluster.parameter_names import parameter_names
from tests.unit.vim.authority import Authority

DRIVER = ClusterApiDriver(WorkloadDependencies(UNUSED, UNUSED, UNUSED, Guard(is_own=lambda address: False)))
MANAGEMENT = ManagementDrivers([DRIVER, Noop()])
PEM = Authority().pem
URL = "https://receiver.example/credentials"
RECEIVER = {"url": URL}


def of(
    kind: OperationType,
    request: AnyRequest,
    *,
    inputs: dict[str, Any] | None = None,
    stored: dict[str, Any] | None = None,
    sent: str | None = None,
    registered: bool = False,
    former: dict[str, Hook] | None = None,
    hooks: dict[str, Hook] | None = None,
) -> PlanningSituation:
    """`former`: the hooks of the package that the VNF had. `hooks`: those of its package; else one with `inputs`."""
    found = situation(kind, request, {} if kind is OperationType.INSTANTIATE else slots(1, 1), slots(1, 1), 1)
    flavour = msgspec.structs.replace(found.flavour, hooks=hooks or hook(inputs))
    before = None if former is None else msgspec.structs.replace(found.flavour, hooks=former)
    vnf = found.instance.vnf
    info = vnf.instantiated_vnf_info
    if info and sent:
        info = msgspec.structs.replace(info, metadata={**info.metadata, SENT: sent})
    connections = {KEY: VimConnectionInfo(vim_id="v")} if registered else {}
    vnf = msgspec.structs.replace(vnf, instantiated_vnf_info=info, vim_connection_info=connections)
    instance = msgspec.structs.replace(found.instance, vnf=vnf, parameters=stored or {})
    return PlanningSituation(
        kind,
        request,
        instance,
        found.descriptor,
        flavour,
        flavour_before=before,
        found=found.found,
        change=found.change,
    )


def hook(
    inputs: dict[str, Any] | None, operation: str = "instantiate_end", implementation: str = "cluster-api"
) -> dict[str, Hook]:
    return {operation: Hook(operation=operation, implementation=implementation, inputs=inputs or {})}


def receives(**said: Any) -> dict[str, Any]:
    return {"cluster_api": {"credentials_receiver": said}}


def new(asked: Any = None, inputs: dict[str, Any] | None = None, **more: Any) -> PlanningSituation:
    params = {} if asked is None else {"cluster_api": asked}
    request = InstantiateRequest(flavour_id="simple", additional_params=params, **more)
    return of(OperationType.INSTANTIATE, request, inputs={"cluster_api": inputs} if inputs else None)


def refused(asked: Any, inputs: dict[str, Any] | None = None) -> str:
    with pytest.raises(BadRequest) as caught:
        DRIVER.check(new(asked, inputs))
    return caught.value.detail


def test_a_new_cluster_is_sent_and_registered_side_by_side() -> None:
    asked = {"credentials_receiver": RECEIVER, "register_vim": {"name": "edge-1"}}
    DRIVER.check(new(asked))
    plan = DRIVER.plan("instantiate", frozenset(EDGES), new(asked))
    assert plan.start.steps == ()
    assert {step.id: step.after for step in plan.end.steps} == {"send credentials": (), "register as VIM": ()}
    assert DRIVER.vim_name(new(asked)) == ("additionalParams.cluster_api.register_vim.name", "edge-1")
    assert DRIVER.vim_name(new({"register_vim": {}})) == (
        "additionalParams.cluster_api.register_vim.name",
        f"kubernetes_vim_{ID}",
    )


def test_the_package_names_the_receiver_and_a_request_goes_before_it() -> None:
    package = {"credentials_receiver": {"url": URL, "attempts": 2}}
    [step] = DRIVER.plan("instantiate", frozenset(EDGES), new(None, package)).end.steps
    assert step.args["receiver"] == {"url": URL, "attempts": 2}
    asked = {"credentials_receiver": {"bearer_token": "t"}}
    [step] = DRIVER.plan("instantiate", frozenset(EDGES), new(asked, package)).end.steps
    assert step.args["receiver"] == {"url": URL, "attempts": 2, "bearer_token": "t"}
    asked = {"credentials_receiver": {"url": "https://other.example/"}}
    [step] = DRIVER.plan("instantiate", frozenset(EDGES), new(asked, package)).end.steps
    assert step.args["receiver"] == {"url": "https://other.example/"}


def test_a_login_does_not_follow_to_another_receiver() -> None:
    """Who may start an operation but not read secrets could have it sent to himself."""
    stored: dict[str, Any] = {"cluster_api": {"credentials_receiver": {"url": URL, "bearer_token": {"$secret": "1"}}}}
    other = {"cluster_api": {"credentials_receiver": {"url": "https://other.example/"}}}
    heal = of(OperationType.HEAL, HealRequest(additional_params=other), stored=stored)
    [step] = DRIVER.plan("heal", frozenset(EDGES), heal).end.steps
    assert step.args["receiver"] == {"url": "https://other.example/"}
    client: dict[str, Any] = {"token_url": URL, "client_id": "c", "client_secret": {"$secret": "1"}}
    stored = {"cluster_api": {"credentials_receiver": {"url": URL, "oauth2": client}}}
    elsewhere = {"cluster_api": {"credentials_receiver": {"oauth2": {"token_url": "https://other.example/"}}}}
    with pytest.raises(BadRequest, match=r"oauth2\.client_id: is missing"):
        DRIVER.check(of(OperationType.HEAL, HealRequest(additional_params=elsewhere), stored=stored))


def test_a_login_does_not_stay_when_another_authority_is_trusted() -> None:
    """Who stands between the two could read it then."""
    stored: dict[str, Any] = {"cluster_api": {"credentials_receiver": {"url": URL, "bearer_token": {"$secret": "1"}}}}
    trusted = {"cluster_api": {"credentials_receiver": {"url": URL, "ca_certificate": PEM}}}
    heal = of(OperationType.HEAL, HealRequest(additional_params=trusted), stored=stored)
    [step] = DRIVER.plan("heal", frozenset(EDGES), heal).end.steps
    assert step.args["receiver"] == {"url": URL, "ca_certificate": PEM}


LOGIN: dict[str, Any] = {"bearer_token": {"$secret": "1"}}
OF_ANOTHER = {
    "url": receives(url="https://other.example/"),
    "path": receives(url=URL + "/elsewhere"),
    "authority": receives(url=URL, ca_certificate=PEM),
}


def changed(
    asked: dict[str, Any],
    now: dict[str, Any],
    *,
    stored: dict[str, Any] | None = None,
    former: dict[str, Hook] | None = None,
    hooks: dict[str, Hook] | None = None,
) -> PlanningSituation:
    """To a package that says `now` of the receiver, of one that names URL."""
    request = ChangePackageRequest(vnfd_id="next", additional_params=asked)
    before = hook(receives(url=URL)) if former is None else former
    stored = stored or receives(**LOGIN)
    return of(OperationType.CHANGE_VNFPKG, request, inputs=now, stored=stored, former=before, hooks=hooks)


@pytest.mark.parametrize("now", OF_ANOTHER.values(), ids=OF_ANOTHER)
@pytest.mark.parametrize("login", [LOGIN, {"username": "u", "password": {"$secret": "1"}}])
def test_a_login_does_not_follow_a_package_to_another_receiver(now: dict[str, Any], login: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match=r"credentials_receiver: the stored login was given for .* give it again"):
        MANAGEMENT.check(changed({}, now, stored=receives(**login)))


@pytest.mark.parametrize("now", OF_ANOTHER.values(), ids=OF_ANOTHER)
def test_nor_does_it_follow_a_package_that_a_modification_names(now: dict[str, Any]) -> None:
    request = ModifyRequest(vnfd_id="next")
    modified = of(
        OperationType.MODIFY_INFO, request, inputs=now, stored=receives(**LOGIN), former=hook(receives(url=URL))
    )
    with pytest.raises(BadRequest, match="change_vnfpkg"):
        MANAGEMENT.check(modified)


def test_a_login_that_is_given_again_goes_to_the_receiver_of_the_package() -> None:
    MANAGEMENT.check(changed({}, receives(url=URL, attempts=2)))
    for given in ({"bearer_token": {"$secret": "2"}}, {"bearer_token": None}):
        MANAGEMENT.check(changed(receives(**given), OF_ANOTHER["url"]))
    with pytest.raises(BadRequest, match="give it again"):
        MANAGEMENT.check(changed(receives(username="another", bearer_token=None, attempts=2), OF_ANOTHER["url"],
                             stored=receives(username="u", password={"$secret": "1"})))  # fmt: skip


def test_a_change_of_package_keeps_no_login_for_a_receiver_that_it_names_itself() -> None:
    """This operation would go there without it, and all later ones with it."""
    stored = receives(url=URL, **LOGIN)
    for elsewhere in OF_ANOTHER.values():
        with pytest.raises(BadRequest, match="give it again"):
            MANAGEMENT.check(changed(elsewhere, receives(url=URL), stored=stored))
    MANAGEMENT.check(changed(receives(url="https://other.example/", bearer_token=None), {}, stored=stored))
    MANAGEMENT.check(changed(receives(url="https://other.example/", bearer_token={"$secret": "2"}), {}, stored=stored))


def test_a_package_in_between_that_sends_nothing_moves_no_login_either() -> None:
    there = OF_ANOTHER["url"]
    with pytest.raises(BadRequest, match="give it again"):
        MANAGEMENT.check(changed({}, there, former=hook(there, implementation="noop")))


def test_a_package_that_sends_nothing_says_no_receiver_and_moves_no_login() -> None:
    noop = hook(OF_ANOTHER["url"], implementation="noop")
    elsewhere = receives(oauth2={"token_url": "https://other.example/"})
    client = receives(url=URL, oauth2={"token_url": URL, "client_id": "c", "client_secret": {"$secret": "1"}})
    with pytest.raises(BadRequest, match="give it again"):
        MANAGEMENT.check(changed(elsewhere, {}, stored=client, hooks=noop))
    request = ChangePackageRequest(vnfd_id="next", additional_params=OF_ANOTHER["url"])
    for former in (hook(receives(url=URL)), noop):
        changing = of(OperationType.CHANGE_VNFPKG, request, stored=receives(**LOGIN), former=former, hooks=noop)
        with pytest.raises(BadRequest, match="give it again"):
            MANAGEMENT.check(changing)
        still = msgspec.structs.replace(request, additional_params={})
        MANAGEMENT.check(of(OperationType.CHANGE_VNFPKG, still, stored=receives(**LOGIN), former=former, hooks=noop))
    assert lasting_receiver(changing.flavour, receives(**LOGIN)) is None
    assert lasting_receiver(changing.flavour, receives(url=URL, **LOGIN)) == {"url": URL, **LOGIN}


def test_a_login_is_not_for_the_receiver_of_another_hook() -> None:
    hooks = hook(receives(url=URL)) | hook(OF_ANOTHER["url"], "heal_end")
    given = receives(bearer_token={"$secret": "2"})
    with pytest.raises(BadRequest, match="give it again"):
        MANAGEMENT.check(of(OperationType.HEAL, HealRequest(), stored=receives(**LOGIN), hooks=hooks))
    MANAGEMENT.check(
        of(OperationType.HEAL, HealRequest(additional_params=given), stored=receives(**LOGIN), hooks=hooks)
    )


def test_later_operations_look_again_with_what_was_sent_before() -> None:
    stored = {"cluster_api": {"credentials_receiver": RECEIVER, "register_vim": {"name": "edge-1"}}}
    heal = of(OperationType.HEAL, HealRequest(), stored=stored, sent="digest", registered=True)
    DRIVER.check(heal)
    sending, registering = DRIVER.plan("heal", frozenset(EDGES), heal).end.steps
    assert sending.args["sent"] == "digest"
    assert (registering.args["vim_name"], registering.args["anew"]) == ("edge-1", False)
    assert DRIVER.vim_name(heal) is None


def test_a_termination_first_takes_the_vim_away_and_is_never_refused_for_parameters() -> None:
    request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
    stored = {"cluster_api": "nonsense"}
    gone = of(OperationType.TERMINATE, request, stored=stored, registered=True)
    DRIVER.check(gone)
    plan = DRIVER.plan("terminate", frozenset(EDGES), gone)
    assert [step.id for step in plan.start.steps] == ["unregister VIM"]
    assert plan.end.steps == ()
    never = of(OperationType.TERMINATE, request)
    assert DRIVER.plan("terminate", frozenset(EDGES), never) == HookPlan()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (None, "neither credentials_receiver nor register_vim"),
        ("text", "additionalParams.cluster_api: must be an object"),
        ({"receiver": {}}, "there is no such parameter"),
        ({"credentials_receiver": {}}, "credentials_receiver.url: is missing"),
        ({"credentials_receiver": {"url": "http://receiver.example/"}}, "by HTTPS only"),
        ({"credentials_receiver": {"url": "https://user:word@receiver.example/"}}, "URL without a login"),
        ({"credentials_receiver": {"url": URL, "ca_certificate": "word"}}, "ca_certificate: it is no certificate"),
        ({"credentials_receiver": {"url": URL, "username": "u"}}, "password: it is missing"),
        ({"credentials_receiver": {"url": URL, "username": "u:v", "password": "p"}}, "username: it has a colon"),
        (
            {"credentials_receiver": {"url": URL, "bearer_token": "t", "username": "u", "password": "p"}},
            "bearer_token: username says another way to log in",
        ),
        ({"credentials_receiver": {"url": URL, "attempts": 99}}, "attempts: the number is out of range"),
        ({"credentials_receiver": {"url": URL, "timeout": 0}}, "timeout: the number is out of range"),
        ({"credentials_receiver": {"url": URL, "oauth2": {"token_url": "x"}}}, "oauth2.token_url"),
        ({"register_vim": {"access": "password"}}, "access: unknown value; must be one of: client_certificate"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_cure(asked: Any, why: str) -> None:
    assert why in refused(asked)


def test_a_package_does_not_name_vims() -> None:
    assert "the same for all VNFs of the package" in refused(None, {"register_vim": {"name": "edge"}})


def test_the_key_of_the_workload_cluster_is_its_own() -> None:
    taken = new({"register_vim": {}}, vim_connection_info={KEY: VimConnectionInfo(vim_id="v")})
    with pytest.raises(BadRequest, match=f"vimConnectionInfo.{KEY}: .*choose another"):
        DRIVER.check(taken)


def test_an_authority_is_accepted_as_pem() -> None:
    DRIVER.check(new({"credentials_receiver": {"url": URL, "ca_certificate": PEM}}))


def test_the_page_has_every_parameter_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cluster-api.md").read_text()
    table = page.partition("| parameter | what it means |")[2].partition("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()]
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == {
        *parameter_names(WorkloadClusterParameters)
    }


@pytest.mark.parametrize(
    ("receiver", "why"),
    [
        ({"url": "https://169.254.169.254/credentials"}, "credentials_receiver.url: 169.254.169.254 is"),
        ({"url": "https://[::1]:8443/"}, "credentials_receiver.url: ::1 is"),
        ({"url": "https://receiver.example:22/"}, "credentials_receiver.url: Port 22 of receiver.example"),
        (
            {**RECEIVER, "oauth2": {"token_url": "https://127.0.0.1/t", "client_id": "a", "client_secret": "b"}},
            "credentials_receiver.oauth2.token_url: 127.0.0.1 is",
        ),
    ],
)
def test_a_receiver_that_nothing_would_be_sent_to_is_refused_at_the_request(receiver: Any, why: str) -> None:
    assert why in refused({"credentials_receiver": receiver})
