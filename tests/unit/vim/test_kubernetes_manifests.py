"""Manifests of a package are checked before anything is done: each error names file, line, object and cure."""

from __future__ import annotations

from hashlib import sha256

import pytest

from slipway.kube.readiness import Rule
from slipway.model.errors import PackageError
from slipway.model.target import PackageFile
from slipway.vim.kubernetes.manifests import Manifest, manifests_of, rules_of
from tests.unit.vim.kubernetes_targets import PATH, config, together, workload

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{}\n"


def read(text: str) -> list[Manifest]:
    return manifests_of(_files(text), [PATH])


def _files(text: str) -> dict[str, PackageFile]:
    return {PATH: PackageFile(content=text.encode(), digest=sha256(text.encode()).hexdigest())}


def test_several_documents_are_objects_in_their_order_and_empty_ones_are_none() -> None:
    found = read(together("# nothing\n", config("a"), "\n", workload(name="b")))
    assert [str(one) for one in found] == ["ConfigMap a", "Deployment b"]
    assert [one.at for one in found] == [0, 1]


def test_small_files_that_are_large_when_aliases_are_spelled_out_are_not_all_taken() -> None:
    many = "a: &a [" + "{}," * 99 + "]\nb: &b [" + "*a," * 99 + "]\nc: [" + "*b," * 50 + "]\n"
    texts = {f"{n}.yaml": f"apiVersion: v1\nkind: X\nmetadata: {{name: x{n}}}\n{many}".encode() for n in range(5)}
    files = {path: PackageFile(content=text, digest=sha256(text).hexdigest()) for path, text in texts.items()}
    with pytest.raises(PackageError, match="more than 2000000 values, aliases spelled out") as caught:
        manifests_of(files, sorted(files))
    assert caught.value.file == "3.yaml"


def test_an_object_does_not_say_whom_it_belongs_to() -> None:
    owner = "{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: 0d6f2c5e-4b7a-4e1c-9b52-6f0a3d1c7e21}"
    with pytest.raises(PackageError, match=r"Pod a: metadata\.ownerReferences is for the cluster to set"):
        read(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a, ownerReferences: [{owner}]}}\n")


def test_a_list_is_what_it_holds() -> None:
    items = "\n".join(f"- {{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}" for name in "ab")
    assert [str(one) for one in read(f"apiVersion: v1\nkind: List\nitems:\n{items}\n")] == ["Secret a", "Secret b"]


def test_numbers_are_read_as_kubernetes_does() -> None:
    (found,) = read("apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {mode: 0644, on: yes, port: 80}\n")
    assert found.content["spec"] == {"mode": 420, "on": True, "port": 80}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: v1\nkind: {", "cnf.yaml:3: Not valid YAML"),
        ("- a\n- b\n", "root is not a mapping"),
        ("kind: Pod\nmetadata: {name: a}\n", "cnf.yaml:1: A document has no apiVersion"),
        *(
            (f"apiVersion: {version}\nkind: Pod\nmetadata: {{name: a}}\n", "Pod a has an apiVersion that is none")
            for version in ("../../v1", "apps/", "/v1", "apps//v1")
        ),
        ("apiVersion: v1\nmetadata: {name: a}\n", "A document has no kind"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: ..}\n", "no metadata.name, or one that is none"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: .}\n", "metadata.namespace is none"),
        ("apiVersion: v1\nkind: Pod\n", "Pod has no metadata"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", "Pod has no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n", "no metadata.name, or one that is none"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: a-\n", "cnf.yaml:4: Pod has a generateName"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {b: 1}}\n", "metadata.labels must be strings"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {slipway.io/vdu: b}}\n", "which Slipway sets"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: b}\n", "metadata.uid is for the cluster to set"),
        (workload().replace("labels: {app: web}", "labels: {slipway.io/instance: b}"), "which Slipway sets"),
        ("apiVersion: v1\nkind: List\nitems: {}\n", "items of a List must be a list"),
        (SECRET.format("data: 4711"), "cnf.yaml:4: Secret a: data must be strings"),
        (SECRET.format("data: {pin: 4711}"), "cnf.yaml:4: Secret a: data must be strings"),
        (SECRET.format("stringData: {a: b, pin: {c: 4711}}"), "Secret a: stringData must be strings"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(PackageError) as raised:
        read(text)
    assert said in raised.value.detail
    assert "Cure: " in raised.value.detail
    assert "4711" not in raised.value.detail, "an API server would repeat it"


@pytest.mark.parametrize("metadata", ["", "metadata: {namespace: web}\n"])
def test_what_needs_no_name_is_not_told_to_have_one_alone(metadata: str) -> None:
    with pytest.raises(PackageError, match="is only asked and never kept: leave it out"):
        read(f"apiVersion: authorization.k8s.io/v1\nkind: LocalSubjectAccessReview\n{metadata}spec: {{user: a}}\n")


def test_readiness_rules_are_a_document_and_no_object() -> None:
    rules = """
apiVersion: slipway.io/v1
kind: ReadinessRules
rules:
- apiVersion: example.com/v1
  kind: Database
  ready:
  - condition: {type: Synced}
"""
    text = together(config(), rules)
    assert len(read(text)) == 1
    (rule,) = rules_of(_files(text), [PATH])
    assert isinstance(rule, Rule)
    assert rule.kind == "Database"


def test_a_rule_that_says_nothing_is_named() -> None:
    text = "apiVersion: slipway.io/v1\nkind: ReadinessRules\nrules:\n- {apiVersion: example.com/v1, kind: Database}\n"
    with pytest.raises(PackageError, match=r"rule 1 \(Database\)"):
        read(text)
