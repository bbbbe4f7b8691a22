from __future__ import annotations

from typing import Any

import pytest

from slipway.api.selectors import select
from slipway.model.attributes import attributes_of
from slipway.model.errors import BadRequest
from slipway.model.instance import VnfInstance

RESOURCE = attributes_of(VnfInstance)
DEFAULT = ("metadata", "instantiatedVnfInfo")
REQUIRED = {
    "id": "1", "vnfdId": "d", "vnfProvider": "p", "vnfProductName": "n", "vnfSoftwareVersion": "1",
    "vnfdVersion": "1", "instantiationState": "INSTANTIATED",
}  # fmt: skip
VNFC = {"id": "a", "vduId": "v", "vnfcState": "STARTED", "vnfcResourceInfoId": "r"}
INFO = {"flavourId": "f", "vnfState": "STARTED", "vnfcInfo": [VNFC], "metadata": {"k": 1}}
CONNECTION = {"vimType": "t", "vimId": "i"}
DOCUMENT: dict[str, Any] = {
    **REQUIRED,
    "vnfInstanceName": "name",
    "instantiatedVnfInfo": INFO,
    "vimConnectionInfo": {"one": CONNECTION},
    "metadata": {"a": {"b": 1, "c": 2}, "list": [{"x": 1, "y": 2}]},
}


def cut(**query: str) -> dict[str, Any]:
    """What is left after the database and the selection have done their part."""
    selection = select(query, RESOURCE, DEFAULT)
    read = {name: value for name, value in DOCUMENT.items() if name not in selection.without}
    result: dict[str, Any] = selection.cut(read)
    return result


def test_nothing_asked_leaves_out_the_default() -> None:
    assert set(DOCUMENT) - set(cut()) == set(DEFAULT)
    assert cut(exclude_default="") == cut()
    assert cut(all_fields="") == DOCUMENT


def test_fields_come_with_what_must_be_there() -> None:
    assert cut(fields="vnfInstanceName") == {**REQUIRED, "vnfInstanceName": "name"}
    assert cut(fields="metadata/a/b")["metadata"] == {"a": {"b": 1}}
    assert cut(fields="metadata/list/x")["metadata"] == {"list": [{"x": 1}]}
    assert cut(fields="vimConnectionInfo/vimType")["vimConnectionInfo"] == {"one": {"vimType": "t"}}
    assert cut(fields="instantiatedVnfInfo/vnfcInfo")["instantiatedVnfInfo"] == {
        "flavourId": "f", "vnfState": "STARTED", "vnfcInfo": [VNFC]
    }  # fmt: skip
    inner = cut(fields="instantiatedVnfInfo/vnfcInfo/vduId")["instantiatedVnfInfo"]["vnfcInfo"]
    assert inner == [{"id": "a", "vduId": "v", "vnfcState": "STARTED"}]


def test_a_whole_attribute_goes_before_a_part_of_it() -> None:
    assert cut(fields="metadata/a/b,metadata")["metadata"] == DOCUMENT["metadata"]


def test_excluded_fields_are_gone_and_nothing_else() -> None:
    assert set(DOCUMENT) - set(cut(exclude_fields="metadata,vnfInstanceName")) == {"metadata", "vnfInstanceName"}
    left = cut(exclude_fields="instantiatedVnfInfo/vnfcInfo,metadata/a/b,vimConnectionInfo/vimId,metadata/list/y")
    assert left["instantiatedVnfInfo"] == {name: value for name, value in INFO.items() if name != "vnfcInfo"}
    assert left["metadata"] == {"a": {"c": 2}, "list": [{"x": 1}]}
    assert left["vimConnectionInfo"] == {"one": {"vimType": "t"}}
    inner = cut(exclude_fields="instantiatedVnfInfo/vnfcInfo/vnfcResourceInfoId")["instantiatedVnfInfo"]["vnfcInfo"]
    assert inner == [{name: value for name, value in VNFC.items() if name != "vnfcResourceInfoId"}]


def test_what_must_be_there_is_not_excluded() -> None:
    assert cut(exclude_fields="id,vnfInstanceName,instantiationState").items() >= REQUIRED.items()
    inner = cut(exclude_fields="instantiatedVnfInfo/vnfcInfo/vduId,instantiatedVnfInfo/flavourId")
    assert inner["instantiatedVnfInfo"] == INFO


def test_the_default_with_some_more() -> None:
    assert set(cut(exclude_default="", fields="metadata")) == set(DOCUMENT) - {"instantiatedVnfInfo"}


@pytest.mark.parametrize(
    "query",
    [
        {"fields": "nonsense"},
        {"fields": ""},
        {"exclude_fields": "id/x"},
        {"all_fields": "", "exclude_fields": "id"},
        {"fields": "id", "exclude_fields": "id"},
        {"all_fields": "perhaps"},
    ],
)
def test_nonsense_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        select(query, RESOURCE, DEFAULT)
