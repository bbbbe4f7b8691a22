from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slipway.model.errors import BadRequest
from slipway.store.filters import LONGEST, TAKES_SEVERAL, Filter, Operator, parse, render

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAME = TEXT.filter(bool)


@st.composite
def filter_expressions(draw: st.DrawFn) -> Filter:
    operator = draw(st.sampled_from(Operator))
    values = draw(st.lists(TEXT, min_size=1, max_size=3 if operator in TAKES_SEVERAL else 1))
    # Names with characters that only a value may have can't be written at all.
    plain = NAME.filter(lambda name: not set(name) & set("();'"))
    path = draw(st.lists(plain, min_size=1, max_size=3))
    return Filter(operator, tuple(path), tuple(values), draw(st.booleans()))


@given(st.lists(filter_expressions(), min_size=1, max_size=3).map(tuple))
def test_what_is_rendered_is_read_back(filters: tuple[Filter, ...]) -> None:
    assert parse(render(filters)) == filters


@given(st.text() | st.text(alphabet="(),;'@~/eqinx01ab", max_size=30))
@example("(eq,a,'")
@example("(eq,a/@key/b,c)")
@example("\ud800")
def test_anything_else_is_a_bad_request_and_nothing_worse(text: str) -> None:
    try:
        filters = parse(text)
    except BadRequest:
        return
    assert parse(render(filters)) == filters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(eq,a/b,v)", Filter(Operator.EQ, ("a", "b"), ("v",))),
        ("(in,x,v1,v2)", Filter(Operator.IN, ("x",), ("v1", "v2"))),
        ("(eq,a~1b/c~ad~be~0f,v)", Filter(Operator.EQ, ("a/b", "c,d@e~f"), ("v",))),
        ("(eq,a,'it''s (so), ok;')", Filter(Operator.EQ, ("a",), ("it's (so), ok;",))),
        ("(neq,a,'')", Filter(Operator.NEQ, ("a",), ("",))),
        ("(cont,a/@key,v)", Filter(Operator.CONT, ("a",), ("v",), by_key=True)),
    ],
)
def test_the_forms_of_the_standard(text: str, expected: Filter) -> None:
    assert parse(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "position", "cure"),
    [
        ("eq,a,b", 1, "write an expression as"),
        ("(equal,a,b)", 2, "use one of the operators eq, neq"),
        ("(eq,a)", 6, "a value after the attribute"),
        ("(eq,a,)", 7, "write an empty one as ''"),
        ("(eq,a,b,c)", 8, "eq takes one value"),
        ("(eq,a,'b)", 7, "close the quotation"),
        ("(eq,a,b", 8, "close the expression"),
        ("(eq,a,b)(eq,c,d)", 9, "';' between expressions"),
        ("(eq,a,b);", 10, "ends too early"),
        ("(eq,a~x,b)", 5, "write ~ as ~0"),
        ("(eq,a//b,c)", 5, "has no name"),
        ("(eq,@key,c)", 5, "write it as ~b"),
    ],
)
def test_a_mistake_is_named_with_its_position_and_its_cure(text: str, position: int, cure: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(text)
    assert refused.value.detail.startswith(f"filter, character {position}:")
    assert cure in refused.value.detail


def test_a_filter_that_is_too_long_is_not_read() -> None:
    with pytest.raises(BadRequest, match=f"at most {LONGEST}"):
        parse("(eq,a," + "b" * LONGEST + ")")
