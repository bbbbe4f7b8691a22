"""Plain YAML comes out as PyYAML users expect, with lines and the text as written."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.model.errors import PackageError
from slipway.package.yaml_reader import YamlMap, YamlSeq, plain, read_yaml
from tests.examples import examples


def root(text: str) -> YamlMap:
    return read_yaml(text.encode(), "a.yaml").root


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-7", -7), ("0x1F", 31), ("017", 15), ("0b11", 3), ("1_000", 1000), ("0", 0), ("+3", 3),
        ("1.10", 1.1), ("-2.5e+3", -2500.0), ("1e+06", 1000000.0), ("12e4", "12e4"), (".5", 0.5), ("1.", 1.0),
        ("true", True), ("No", False), ("on", True), ("~", None), ("null", None), ("", None),
        ("2020-01-01", "2020-01-01"), ("1:30", "1:30"), (".inf", ".inf"), ("0x", "0x"), ("1.2.3", "1.2.3"),
        ("99999999999999999999", "99999999999999999999"), ("'1'", "1"), ('"yes"', "yes"), ("!!str 1", "1"),
        ("!!int 3", 3), ("!!float 3", 3.0), ("! 1", "1"), ("!!timestamp 2020-01-01", "2020-01-01"),
    ],
)  # fmt: skip
def test_scalars(text: str, value: object) -> None:
    found = root(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_text_as_written_and_lines_are_kept() -> None:
    document = root("a:\n  version: 1.10\n  list: [1.20, x]\n")
    section, listed = document["a"], document["a"]["list"]
    assert isinstance(section, YamlMap)
    assert isinstance(listed, YamlSeq)
    assert (section.raw["version"], listed.raw) == ("1.10", {0: "1.20"})
    assert (section.line_of("version"), section.line_of("list"), listed.line_of(1)) == (2, 3, 3)


def test_keys_are_text_as_written() -> None:
    assert root("1.10: a\non: b\n~: c") == {"1.10": "a", "on": "b", "~": "c"}


def test_aliases_in_moderation() -> None:
    assert root("a: &x {b: 1}\nc: [*x, *x]") == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {long}\nb: [{many}]",
        "a: {{&x {long}: 1}}\nb: [{many}]",
        "a: &x {{b: {long}}}\nb: [{many}]",
        "a: &y {long}\nb: &x [*y]\nc: [{many}]",
    ],
    ids=["a text", "a key", "in a mapping", "an alias of an alias"],
)
def test_aliases_of_a_long_text_are_long_as_well(text: str) -> None:
    length = 1000 if "{{&x" in text else 100_000
    document = text.format(long="x" * length, many=",".join(["*x"] * (15_000_000 // length)))
    with pytest.raises(PackageError, match=r"a\.yaml:\d: .*aliases spelled out"):
        root(document)


def test_merge_keys_yield_to_own_keys_and_to_earlier_maps() -> None:
    document = root("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: own}")
    assert document["c"] == {"x": "own", "y": 1, "z": 2}


@pytest.mark.parametrize("text", ["a: {<<: 1}", "a: {<<: [1]}", "a: {<<: {b: 1}, <<: {c: 1}}"])
def test_merge_keys_without_mappings_are_refused(text: str) -> None:
    with pytest.raises(PackageError):
        root(text)


def test_errors_name_file_and_line() -> None:
    with pytest.raises(PackageError) as refused:
        root("a: 1\nb: 2\nc: !!python/name:os.system x\n")
    assert (refused.value.file, refused.value.line) == ("a.yaml", 3)
    assert refused.value.detail.startswith("a.yaml:3: ")


words = st.text("abcé😀: -#'\"\\\n\t\0", max_size=12)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | words
trees = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(words, inner), max_leaves=20)


@given(st.dictionaries(st.text("abc123", min_size=1), trees))
@settings(max_examples=examples(50))
def test_what_pyyaml_writes_is_read_back_or_refused_for_its_text(tree: dict[str, object]) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    refused = refusal(text.encode())
    if refused is None:
        assert plain(root(text)) == tree
    else:
        assert "NUL" in refused.what or "key" in refused.what


@given(st.text("[]{}:,-?&*!|>'\"%@ \n\tab1~<\x85\u2028😀"))
def test_any_text_is_read_or_refused(text: str) -> None:
    refusal(text.encode())


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    refusal(data)


def refusal(data: bytes) -> PackageError | None:
    try:
        read_yaml(data, "a.yaml")
    except PackageError as error:
        return error
    return None
