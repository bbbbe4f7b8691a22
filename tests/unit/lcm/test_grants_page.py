"""docs/grants.md shows a request as it is sent and a grant that is taken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from slipway.lcm.grant_application import check_grant
from slipway.model.grant import GrantRequest
from slipway.nfvo.reading import read_grant

PAGE = Path(__file__).parents[3] / "docs" / "grants.md"


def shown() -> tuple[Any, Any]:
    request, grant = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return json.loads(request), json.loads(grant)


def test_the_request_is_one_and_the_grant_answers_it() -> None:
    request, grant = shown()
    asked = msgspec.convert(request, GrantRequest)
    assert json.loads(msgspec.json.encode(asked)) == request
    answered = read_grant(json.dumps(grant).encode(), asked)
    check_grant(asked, answered, {"vim"})
    assert json.loads(msgspec.json.encode(answered)) == {
        name: value for name, value in grant.items() if name != "_links"
    }
