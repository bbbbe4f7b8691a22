"""What a route takes and answers, said where the route is declared, so that /schema can tell it to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.replies import JSON
from slipway.model.access import Role

if TYPE_CHECKING:
    from slipway.api.bodies import Body

OPT = "declared"  # where a route keeps what it declares


class Answer(msgspec.Struct, frozen=True):
    """`kind` is the type of the JSON in it; None: there is no body, or it is something else than JSON.

    `linked`: it has `_links`. `page`: it is a list of them.
    """

    kind: Any = None
    media_types: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    linked: bool = False
    page: bool = False


Answers = Mapping[int, Answer]

NOTHING = Answer()
ACCEPTED = Answer(headers=("Location",))


def json_of(kind: Any, *headers: str) -> Answer:
    return Answer(kind, (JSON,), headers)


def resource(kind: Any, *headers: str) -> Answer:
    return Answer(kind, (JSON,), headers, linked=True)


def page_of(kind: Any) -> Answer:
    return Answer(kind, (JSON,), ("Link",), linked=True, page=True)


def file_of(*media_types: str) -> Answer:
    return Answer(None, media_types)


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """`takes` is what reads the body, or the media types of one that is no JSON. `headers` are those that it looks at.

    `refuses` are the statuses of errors that not every route of its kind has.
    """

    handler: Any
    needs: Role
    takes: Body[Any] | tuple[str, ...] | None
    answers: Answers
    refuses: tuple[int, ...]
    parameters: tuple[str, ...]
    headers: tuple[str, ...]
