"""Charts are strangers' files: read within bounds, and refused when Helm would read or fetch something by them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pytest

from slipway.model.errors import PackageError, VimError
from slipway.vim.kubernetes.helm.arguments import VduObject
from slipway.vim.kubernetes.helm.chart import read_chart, unpacked
from slipway.vim.kubernetes.helm.release_objects import check_numbers, read_manifest, vdu_positions
from tests.unit.vim.helm_targets import CHART, archive
from tests.unit.vim.kubernetes_targets import config, together, workload

ARCHIVE = "Files/web.tgz"


def link(name: str, target: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = tarfile.SYMTYPE, target
        tar.addfile(member)
    return made.getvalue()


def test_an_archive_and_a_directory_are_the_same_chart() -> None:
    packed = read_chart(ARCHIVE, {ARCHIVE: archive(CHART)})
    spread = read_chart("Files/web", {f"Files/web/{name}": content for name, content in CHART.items()})
    assert packed == spread
    assert str(packed) == "web 1.0.0"


def test_charts_in_a_chart_are_unpacked_so_that_helm_reads_what_was_checked() -> None:
    inner = archive({"Chart.yaml": b"apiVersion: v2\nname: db\nversion: 2.0.0\n", "values.yaml": b""}, "db")
    chart = read_chart(ARCHIVE, {ARCHIVE: archive({**CHART, "charts/db-2.0.0.tgz": inner})})
    assert set(chart.files) == {*CHART, "charts/db-2.0.0/Chart.yaml", "charts/db-2.0.0/values.yaml"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "file:///etc/passwd"},
        {"properties": {"a": {"items": [{"$ref": "http://169.254.169.254/latest"}]}}},
        {"$defs": {"a": {"$dynamicRef": "other.json#/a"}}},
        {"$schema": "file:///dev/zero"},
    ],
)
def test_a_schema_that_reads_something_else_is_refused(schema: object) -> None:
    inner = archive({"Chart.yaml": b"name: db\nversion: 2.0.0\n", "values.schema.json": json.dumps(schema).encode()})
    for files in (
        {**CHART, "values.schema.json": json.dumps(schema).encode()},
        {**CHART, "charts/db.tgz": inner},
        {**CHART, "charts/db/Chart.yaml": b"name: db\nversion: 2.0.0\n", "charts/db/charts/inner.tgz": inner},
    ):
        with pytest.raises(PackageError, match=r"values\.schema\.json"):
            read_chart(ARCHIVE, {ARCHIVE: archive(files)})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no archive", "no archive"),
        (archive(CHART)[:-30], "no archive"),
        (link("web/templates/x.yaml", "/etc/passwd"), "link"),
        (archive({"../../x": b""}), "not all in one directory|is called"),
        (archive({**CHART, "a\nb": b""}), "is called"),
        (archive({"values.yaml": b""}), "no Chart.yaml"),
        (archive({"Chart.yaml": b"name: web\n"}), "no version"),
        (archive({"Chart.yaml": b"name: web\nversion: 1.0.0\ntype: library\n"}), "library"),
    ],
    ids=["no archive", "cut off", "link", "outside", "newline", "no Chart.yaml", "no version", "library"],
)
def test_what_is_no_chart_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(PackageError, match=why) as raised:
        read_chart(ARCHIVE, {ARCHIVE: content})
    assert raised.value.file is not None
    assert raised.value.file.startswith(ARCHIVE)


def test_an_archive_that_grows_without_end_is_refused() -> None:
    with pytest.raises(PackageError, match="too large"):
        read_chart(ARCHIVE, {ARCHIVE: archive({**CHART, "bomb": bytes(65 << 20)})})


@pytest.mark.parametrize(
    ("called", "wanted"),
    [
        ("front", VduObject(name="front")),
        ("shop-123-front", VduObject(name="front")),
        ("front-shop-123", VduObject(name="front")),
        ("shop-123-front", VduObject(name="shop-front")),  # as it would be called by a release "shop"
        ("shop-123-front", VduObject(name="shop-front", kind="Deployment")),
    ],
)
def test_a_vdu_is_the_workload_of_its_name_with_or_without_the_releases(called: str, wanted: VduObject) -> None:
    manifests = read_manifest("shop-123", together(config(called), workload(name=called), workload(name="x")).encode())
    assert vdu_positions("shop-123", "shop", {"VDU1": wanted}, manifests) == {1: "VDU1"}


def test_a_vdu_that_the_chart_does_not_make_is_named_with_what_it_makes() -> None:
    manifests = read_manifest("r", workload(name="other").encode())
    with pytest.raises(VimError, match=r"VDU VDU1: .* it makes: Deployment other.*vdu_mapping\.VDU1"):
        vdu_positions("r", "r", {"VDU1": VduObject(name="web")}, manifests)


def test_a_value_that_is_not_the_number_is_named() -> None:
    text = workload().replace("spec:", "spec:\n  replicas: 1", 1)
    manifests = read_manifest("r", text.encode())
    vdus = {"VDU1": VduObject(name="web", replicas=3, value="replica")}
    with pytest.raises(VimError, match="has 1 replicas, and 3 are wanted: the value replica"):
        check_numbers(vdus, manifests, vdu_positions("r", "r", vdus, manifests))


def test_an_archive_is_not_unpacked_further_than_a_chart_may_be_large() -> None:
    header = tarfile.TarInfo("web/notes")
    header.type, header.size = tarfile.XHDTYPE, 200 << 20  # names and owners in as many bytes, which are read at once
    bomb = gzip.compress(header.tobuf() + bytes(header.size), 1)
    with pytest.raises(PackageError, match="too large when unpacked"):
        unpacked(bomb, "web.tgz")


def test_charts_inside_a_chart_are_unpacked_until_they_are_too_large_together() -> None:
    large = archive({"Chart.yaml": b"", "data": bytes(40 << 20)}, "inner")
    inner = {"charts/a.tgz": large, "charts/b.tgz": large, "charts/c.tgz": b"no archive"}
    with pytest.raises(PackageError, match="too large when unpacked"):
        unpacked(archive({**CHART, **inner}), "web.tgz")


def test_a_file_that_is_a_directory_as_well_is_refused() -> None:
    with pytest.raises(PackageError, match="'templates' is a file and a directory"):
        read_chart("web", {f"web/{name}": b"" for name in ("templates", "templates/a.yaml")} | in_package(CHART))


def in_package(files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"web/{name}": content for name, content in files.items()}
