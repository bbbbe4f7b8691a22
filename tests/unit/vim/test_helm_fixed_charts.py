"""What Helm installs is what was looked at: objects as they were read, in a chart that renders nothing anew."""

from __future__ import annotations

import json

import pytest
import yaml

from slipway.model.errors import VimError
from slipway.vim.kubernetes.helm.chart import Chart, read_chart
from slipway.vim.kubernetes.helm.fixed_chart import fixed_chart, kinds_alone
from slipway.vim.kubernetes.helm.release_objects import check_rendered, read_manifest
from tests.unit.vim.helm_targets import archive
from tests.unit.vim.kubernetes_targets import config, together, workload

NESTED = "charts/db/"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sheets.example.com}
"""
FILES = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}]\n",
    "values.yaml": "a: 1\n",
    ".helmignore": "all.yaml\n",
    "templates/web.yaml": '{{ lookup "v1" "Secret" "" "" }}',
    "crds/sheets.yaml": DEFINITION,
    f"{NESTED}Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
    f"{NESTED}templates/db.yaml": "{{ now }}",
    f"{NESTED}crds/sheets.yaml": f"# the definition\n{DEFINITION}",
}


def chart(**more: str) -> Chart:
    files = {name: text.encode() for name, text in {**FILES, **more}.items()}
    return read_chart("web.tgz", {"web.tgz": archive(files)})


def test_a_fixed_chart_has_the_objects_and_none_of_the_templates() -> None:
    made = fixed_chart(chart(), read_manifest("web", together(workload(), config()).encode()))
    assert set(made) == {"Chart.yaml", "values.yaml", "templates/all.yaml"}
    assert json.loads(made["Chart.yaml"]) == {"apiVersion": "v2", "name": "web", "version": "1.0.0"}
    assert list(yaml.safe_load_all(made["templates/all.yaml"])) == [
        yaml.safe_load(workload()),
        yaml.safe_load(config()),
    ]


@pytest.mark.parametrize(
    "text", ["{{ now }}", "{{{{- /* a */}}}}", "a\n---\nb", "\u2028\x85\x7f\ufeffä", "\U0001f6a2", '\\{{"', "on", "1e3"]
)
def test_what_is_in_an_object_is_text_to_every_reader(text: str) -> None:
    given = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": text}})
    made = fixed_chart(chart(), read_manifest("web", given.encode()))["templates/all.yaml"]
    assert b"{{" not in made
    assert "\n---" not in made.decode()[3:]
    (read,) = read_manifest("web", made)
    assert read.content["data"] == {"key": text}
    assert json.loads(made.removeprefix(b"---")) == read.content


def test_what_only_some_readers_see_is_refused() -> None:
    """To Helm `!!binary bmFtZQ==` is another `name`, and the last one counts."""
    given = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: harmless\n  !!binary bmFtZQ==: victim\n"
    with pytest.raises(VimError, match=r"release web:5: The tag .*binary"):
        read_manifest("web", given.encode())


def test_kinds_alone_are_the_definitions_and_what_says_which_of_them() -> None:
    made = kinds_alone(chart(**{"crds/none.yaml": "# none\n", "crds/README.md": "kind: Secret\n"}))
    assert set(made) == set(FILES) - {"templates/web.yaml", f"{NESTED}templates/db.yaml"}
    assert yaml.safe_load(made[f"{NESTED}crds/sheets.yaml"]) == yaml.safe_load(DEFINITION)


@pytest.mark.parametrize(
    "hidden", [config(kind="Secret"), DEFINITION + "  labels: {slipway.io/instance: a}\n".replace("\n", "")]
)
@pytest.mark.parametrize("path", ["crds/more/a.YML", f"{NESTED}crds/b.json"])
def test_nothing_but_definitions_is_made_of_crds(path: str, hidden: str) -> None:
    marked = hidden.replace("{name: sheets.example.com}", "\n  name: sheets.example.com")
    with pytest.raises(VimError, match=r"only definitions of kinds|which Slipway sets"):
        kinds_alone(chart(**{path: marked}))


@pytest.mark.parametrize(
    "text",
    [
        config(kind="Secret") + "type: helm.sh/release.v1\n",
        config("sh.helm.release.v1.other.v1", kind="Secret"),
        config("sh.helm.release.v1.other.v1"),
        config(kind="Secret").replace("{name: settings}", "{name: a, labels: {owner: helm, name: other}}"),
    ],
)
def test_a_chart_does_not_make_what_looks_like_a_release(text: str) -> None:
    with pytest.raises(VimError, match="only Helm makes what has"):
        check_rendered(read_manifest("web", text.encode()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (config() + "items: []\n", "it has items"),
        (config() + 'Metadata: {annotations: {"helm.sh/hook": test}}\n', "'Metadata', which Helm reads as 'metadata'"),
        (config() + "\u212aind: Secret\n", "which Helm reads as 'kind'"),
        (config().replace("{name: settings}", "{name: a, Name: b}"), "'Name', which Helm reads as 'name'"),
    ],
)
def test_what_helm_reads_otherwise_is_refused(text: str, said: str) -> None:
    with pytest.raises(VimError, match=said):
        check_rendered(read_manifest("web", text.encode()))


def test_what_charts_usually_make_is_not_refused() -> None:
    together_ = together(workload(), config(), config(kind="Secret"), DEFINITION)
    check_rendered(read_manifest("web", together_.encode()))
