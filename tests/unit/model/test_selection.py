from __future__ import annotations

from typing import Any

import pytest

from slipway.model.attributes import attributes_of
from slipway.model.errors import BadRequest
from slipway.model.instance import VnfInstance
from slipway.model.selection import Selection, select

RESOURCE = attributes_of(VnfInstance)
DEFAULT = ("vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions")
REQUIRED = {
    "id": "1",
    "vnfdId": "2",
    "vnfProvider": "p",
    "vnfProductName": "n",
    "vnfSoftwareVersion": "1",
    "vnfdVersion": "1",
    "instantiationState": "INSTANTIATED",
}
DOCUMENT: dict[str, Any] = REQUIRED | {
    "vnfInstanceName": "name",
    "vimConnectionInfo": {"vim1": {"vimType": "t", "vimId": "v"}, "vim2": {"vimType": "u"}},
    "instantiatedVnfInfo": {
        "flavourId": "f",
        "vnfState": "STARTED",
        "scaleStatus": [{"aspectId": "a", "scaleLevel": 1}],
        "vnfcResourceInfo": [
            {"id": "c1", "vduId": "w", "computeResource": {"resourceId": "r"}, "zoneId": "z", "metadata": {"slot": 1}}
        ],
    },
    "metadata": {"a": {"b": 1, "c": 2}},
    "_links": {"self": {}},
}


def chosen(**selectors: Any) -> dict[str, Any]:
    return select(RESOURCE, excluded_by_default=DEFAULT, **selectors).apply(DOCUMENT)


def test_without_selectors_the_default_is_left_out() -> None:
    assert chosen() == chosen(exclude_default=True) == REQUIRED | {"vnfInstanceName": "name", "_links": {"self": {}}}


def test_all_fields_leaves_the_document_as_it_is() -> None:
    assert chosen(all_fields=True) is DOCUMENT


def test_fields_keeps_what_is_required_at_each_level_and_what_is_named() -> None:
    assert chosen(fields="instantiatedVnfInfo/vnfcResourceInfo/zoneId,metadata/a/b") == REQUIRED | {
        "instantiatedVnfInfo": {
            "flavourId": "f",
            "vnfState": "STARTED",
            "vnfcResourceInfo": [{"id": "c1", "vduId": "w", "computeResource": {"resourceId": "r"}, "zoneId": "z"}],
        },
        "metadata": {"a": {"b": 1}},
        "_links": {"self": {}},
    }


def test_a_map_is_entered_by_key_or_by_an_attribute_of_all_its_entries() -> None:
    assert chosen(fields="vimConnectionInfo/vim1")["vimConnectionInfo"] == {"vim1": {"vimType": "t", "vimId": "v"}}
    assert chosen(fields="vimConnectionInfo/vimType")["vimConnectionInfo"] == {
        "vim1": {"vimType": "t"},
        "vim2": {"vimType": "u"},
    }
    assert chosen(exclude_fields="vimConnectionInfo/vimType")["vimConnectionInfo"] == {
        "vim1": {"vimId": "v"},
        "vim2": {},
    }


def test_exclude_fields_leaves_out_what_is_named_and_nothing_else() -> None:
    rest = chosen(exclude_fields="metadata/a/b,vnfInstanceName,instantiatedVnfInfo/vnfcResourceInfo")
    assert "vnfInstanceName" not in rest
    assert rest["metadata"] == {"a": {"c": 2}}
    assert rest["instantiatedVnfInfo"] == {
        "flavourId": "f",
        "vnfState": "STARTED",
        "scaleStatus": [{"aspectId": "a", "scaleLevel": 1}],
    }


def test_fields_with_exclude_default_shows_the_default_and_what_is_named() -> None:
    shown = chosen(exclude_default=True, fields="metadata/a/c")
    assert shown == chosen() | {"metadata": {"a": {"c": 2}}}


def test_a_whole_value_goes_before_a_part_of_it() -> None:
    assert chosen(fields="metadata/a/b,metadata")["metadata"] == DOCUMENT["metadata"]


@pytest.mark.parametrize(
    "selectors",
    [{"all_fields": True, "fields": "id"}, {"fields": "id", "exclude_fields": "metadata"},
     {"all_fields": True, "exclude_default": True}, {"exclude_fields": "metadata", "exclude_default": True}],
)  # fmt: skip
def test_selectors_that_contradict_each_other_are_refused(selectors: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="contradict each other"):
        chosen(**selectors)


def test_an_unknown_attribute_is_refused_and_the_nearest_named() -> None:
    with pytest.raises(BadRequest, match=r"^fields: there is no attribute 'metdata'. Did you mean: metadata"):
        chosen(fields="metdata")
    with pytest.raises(BadRequest, match=r"^exclude_fields: an attribute has no name"):
        chosen(exclude_fields="metadata,")


def test_what_must_be_there_cannot_be_left_out() -> None:
    with pytest.raises(BadRequest, match=r"^exclude_fields: instantiatedVnfInfo/vnfState is always there"):
        chosen(exclude_fields="instantiatedVnfInfo/vnfState")
    with pytest.raises(BadRequest, match="vnfInstanceName is always there"):
        chosen(exclude_fields="vnfInstanceName", mandatory=["vnfInstanceName"])


def test_the_database_can_leave_out_what_goes_as_a_whole() -> None:
    def at_top(**selectors: Any) -> set[str]:
        return set(select(RESOURCE, excluded_by_default=DEFAULT, **selectors).dropped_at_top(RESOURCE))

    assert at_top() == set(DEFAULT)
    assert at_top(all_fields=True) == set()
    assert at_top(exclude_fields="metadata,instantiatedVnfInfo/scaleStatus") == {"metadata"}
    assert at_top(exclude_default=True, fields="metadata/a") == set(DEFAULT) - {"metadata"}
    assert Selection().apply(DOCUMENT) is DOCUMENT
