"""Who belongs to whom, by uid."""

from __future__ import annotations

from slipway.kube.interface import Object
from slipway.kube.owners import owned_by


def owned(uid: str, *owners: str) -> Object:
    return {"metadata": {"uid": uid, "name": "same", "ownerReferences": [{"uid": owner} for owner in owners]}}


def test_chains_lead_to_their_roots_whatever_the_names() -> None:
    candidates = [owned("pod1", "set1"), owned("set1", "deployment"), owned("pod2", "job"), owned("stranger", "other")]
    found = owned_by(["deployment", "job", "bare"], [*candidates, owned("bare")])
    assert found == {
        "deployment": "deployment", "job": "job", "bare": "bare",
        "set1": "deployment", "pod1": "deployment", "pod2": "job",
    }  # fmt: skip


def test_the_nearest_of_two_roots_is_the_owner() -> None:
    candidates = [owned("workers", "cluster"), owned("set", "workers"), owned("machine", "set", "cluster")]
    found = owned_by(["cluster", "workers"], candidates)
    assert (found["set"], found["workers"], found["machine"]) == ("workers", "workers", "cluster")


def test_references_in_a_circle_have_an_end() -> None:
    assert "a" not in owned_by(["root"], [owned("a", "b"), owned("b", "a")])
    assert owned_by(["root"], [owned("a", "b", "root"), owned("b", "a")]) == {"root": "root", "a": "root", "b": "root"}
