from __future__ import annotations

import json
import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.kube import errors, paths
from slipway.kube.bootstrap import ca_hash, remove_token
from slipway.kube.interface import Object
from slipway.kube.nodes import node_is_ready
from slipway.kube.pods import MIRROR, names, sort_pods
from slipway.kube.waiting import describe_pod
from slipway.model.errors import StepError, VimFault
from slipway.vim.kubernetes.session import fault_of
from tests.unit.kube.pem import CA, CA_HASH


def pod(name: str, *, owner: str | None = "ReplicaSet", phase: str = "Running", **metadata: Any) -> Object:
    owners = [{"kind": owner, "controller": True}] if owner else [{"kind": "ConfigMap"}]
    identity = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "ownerReferences": owners}
    return {"metadata": {**identity, **metadata}, "spec": {}, "status": {"phase": phase}}


def test_pods_are_sorted_by_what_a_drain_may_do() -> None:
    scratch = pod("scratch")
    scratch["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    found = sort_pods(
        [
            pod("plain"),
            pod("static", owner="Node", annotations={MIRROR: "x"}),
            pod("daemon", owner="DaemonSet"),
            pod("alone", owner=None),
            pod("done", owner=None, phase="Succeeded"),
            pod("going", owner=None, deletionTimestamp="2026-01-01T00:00:00Z"),
            scratch,
        ]
    )
    assert [one.name for one in found.leaving] == ["plain", "alone", "done", "going", "scratch"]
    assert [one.name for one in found.without_controller] == ["alone"]
    assert [one.name for one in found.with_empty_dir] == ["scratch"]
    assert [one.terminating for one in found.leaving] == [False, False, False, True, False]


def test_many_pods_are_named_by_a_few() -> None:
    assert names([f"ns/{number}" for number in range(12)]).endswith("ns/9, and 2 more")


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_ready_when_it_says_so(status: str, ready: bool) -> None:
    assert node_is_ready({"status": {"conditions": [{"type": "Ready", "status": status}]}}) is ready
    assert not node_is_ready({})


@given(st.text(st.characters()))
def test_a_name_stays_one_segment_of_a_path_or_is_refused(name: str) -> None:
    try:
        path = paths.pod("ns", name, "eviction")
    except StepError:
        assert name in ("", ".", "..") or any("\ud800" <= character <= "\udfff" for character in name)
    else:
        assert path.startswith("/api/v1/namespaces/ns/pods/")
        assert path.count("/") == 7
        assert not set(path) & set("?# \n")


def test_an_answer_that_is_no_status_is_told_in_short_and_without_control_characters() -> None:
    error = errors.refused("GET /x on https://k", 503, b"\x1b[2J<html>" + b"x" * 100_000)
    assert error.temporary
    assert len(error.detail) < errors.MOST + 100
    assert "\x1b" not in error.detail


@pytest.mark.parametrize(
    ("status", "temporary"),
    [(401, False), (403, False), (404, False), (409, False), (422, False), (429, True), (504, True)],
)
def test_what_may_pass_is_temporary_and_what_may_not_has_a_cure(status: int, temporary: bool) -> None:
    error = errors.refused("GET /x on https://k", status, b'{"kind":"Status","message":"m","reason":"R"}')
    assert (error.temporary, error.status, error.reason) == (temporary, status, "R")
    assert ("Cure: " in error.detail) is not temporary


@pytest.mark.parametrize(("user", "temporary"), [("kubernetes-admin", True), ("system:serviceaccount:a:b", False)])
def test_an_administrator_is_refused_only_until_the_server_knows_its_roles(user: str, temporary: bool) -> None:
    said = f'daemonsets.apps "kube-proxy" is forbidden: User "{user}" cannot get resource "daemonsets"'
    body = json.dumps({"kind": "Status", "message": said, "reason": "Forbidden"}).encode()
    assert errors.refused("GET /x on https://k", 403, body).temporary is temporary


@pytest.mark.parametrize(
    "said",
    [
        'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsUser=0 (container "main" must not)',
        'pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
        'configmaps "a" is forbidden: unable to create new content in namespace a because it is being terminated',
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
    ],
)
def test_what_the_clusters_rules_refuse_is_not_said_to_be_the_accounts_rights(said: str) -> None:
    body = json.dumps({"kind": "Status", "message": said, "reason": "Forbidden"}).encode()
    error = errors.refused("PATCH /x on https://k", 403, body)
    assert "role binding" not in error.detail
    assert "correct what" in error.detail
    assert fault_of(error) is VimFault.PERMANENT


@pytest.mark.parametrize("who", ['User "a" cannot create resource "pods"', 'user "a" is attempting to grant rights'])
def test_what_the_account_may_not_do_has_the_cure_for_that(who: str) -> None:
    body = json.dumps({"kind": "Status", "message": f'pods "b" is forbidden: {who}', "reason": "Forbidden"}).encode()
    error = errors.refused("PATCH /x on https://k", 403, body)
    assert "role binding" in error.detail
    assert fault_of(error) is VimFault.AUTH


def test_a_kind_that_is_only_asked_has_a_cure() -> None:
    body = b'{"message":"the server does not allow this method on the requested resource","reason":"MethodNotAllowed"}'
    assert "leave it out of the manifests" in errors.refused("PATCH /x", 405, body).detail


@pytest.mark.parametrize(
    "why",
    [
        "failed to create typed patch object (a/b; /v1, Kind=Pod): .spec.x: field not declared in schema",
        "failed to convert new object (a/b; /v1, Kind=Pod) to proper version: quantities must match the regular expr",
    ],
)
def test_a_value_that_fits_no_schema_is_not_tried_again(why: str) -> None:
    error = errors.refused("PATCH /x on https://k", 500, json.dumps({"kind": "Status", "message": why}).encode())
    assert not error.temporary
    assert "correct the field that is named" in error.detail
    assert fault_of(error) is VimFault.PERMANENT


def test_a_server_without_server_side_apply_is_named_as_one() -> None:
    error = errors.refused("PATCH /x on https://k", 415, b"415: Unsupported Media Type")
    assert "server-side apply" in error.detail
    assert fault_of(error) is VimFault.PERMANENT


def test_causes_are_kept() -> None:
    body = b'{"message":"m","details":{"causes":[{"reason":"DisruptionBudget","message":"The budget b needs 1"}]}}'
    cause = errors.refused("POST /x", 429, body).cause(errors.BUDGET)
    assert cause
    assert cause.message == "The budget b needs 1"


def test_a_certificate_error_is_found_behind_others() -> None:
    root = ssl.SSLCertVerificationError()
    root.verify_message = "self-signed certificate"
    outer = OSError("outer")
    outer.__cause__ = root
    error = errors.unreachable("GET /x", outer)
    assert not error.temporary
    assert "self-signed certificate" in error.detail


def test_what_a_container_waits_for_is_told() -> None:
    one = pod("one", phase="Pending")
    one["status"]["containerStatuses"] = [
        {"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
    ]
    assert describe_pod(one) == "pod one is Pending, container c waiting (ErrImagePull: no)"


def test_the_hash_of_a_ca_is_that_of_its_public_key() -> None:
    assert ca_hash(CA) == f"sha256:{CA_HASH}"  # openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum
    with pytest.raises(StepError, match="not a PEM certificate"):
        ca_hash("nonsense")


async def test_what_is_no_bootstrap_token_is_not_shown() -> None:
    with pytest.raises(StepError) as caught:
        await remove_token(None, "canary/../../x")  # type: ignore[arg-type]
    assert "canary" not in caught.value.detail
