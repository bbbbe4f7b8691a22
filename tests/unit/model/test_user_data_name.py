"""How a request names the user data of a package."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.model.errors import RequestError
from slipway.model.user_data import CLASS, FILE, UserData, named_user_data

FILES = frozenset({"UserData/data.py", "UserData/data.yaml"})


@pytest.mark.parametrize("path", ["UserData/data.py", "./UserData/data.py", "/UserData/data.py", "UserData/./data.py"])
def test_the_file_is_named_from_the_top_of_the_package(path: str) -> None:
    assert named_user_data({FILE: path, CLASS: "Data"}, FILES) == UserData("UserData/data.py", "Data")


def test_a_request_need_not_name_any() -> None:
    assert named_user_data({"other": 1}, FILES) is None


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({FILE: "UserData/data.py"}, f"'{FILE}' is there, so '{CLASS}' must be, too, as a string."),
        ({CLASS: "Data"}, f"'{CLASS}' is there, so '{FILE}' must be, too, as a string."),
        ({FILE: "UserData/data.py", CLASS: 3}, f"'{CLASS}' must be"),
        ({FILE: "UserData/data.py", CLASS: "Data\x1b[31m"}, r"is 'Data\x1b[31m'; give the name of a class"),
        ({FILE: "UserData/data.py", CLASS: "os.system"}, "is 'os.system'; give the name of a class"),
        ({FILE: "UserData/other.py", CLASS: "Data"}, "names 'UserData/other.py', and the package has no such file."),
        ({FILE: "../../etc/passwd", CLASS: "Data"}, "the package has no such file."),
        ({FILE: "UserData/data.yaml", CLASS: "Data"}, "user data is a Python file"),
    ],
)
def test_what_can_not_be_used_is_refused_by_name(params: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError) as raised:
        named_user_data(params, FILES)
    assert said in raised.value.detail
