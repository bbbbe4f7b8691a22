from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slipway.remote.output import LONGEST_LINE, Tail, readable

CHUNKS = st.lists(st.binary(min_size=1, max_size=50), max_size=30)


@given(chunks=CHUNKS, keep=st.integers(1, 100))
def test_the_end_is_kept_and_the_rest_is_counted(chunks: list[bytes], keep: int) -> None:
    tail, whole = Tail(keep), b"".join(chunks)
    for chunk in chunks:
        tail.feed(chunk)
        assert sum(map(len, tail._chunks)) < keep + 50
    assert tail.end() == whole[-keep:] == tail.end()
    assert tail.lost == max(0, len(whole) - keep)


@given(chunks=CHUNKS)
def test_lines_are_the_same_however_they_are_cut(chunks: list[bytes]) -> None:
    lines = list[str]()
    tail = Tail(10, lines.append)
    for chunk in chunks:
        tail.feed(chunk)
    tail.end()
    whole = b"".join(chunks)
    assert lines == [readable(line) for line in whole.removesuffix(b"\n").split(b"\n")] * bool(whole)


def test_a_line_without_end_comes_in_pieces() -> None:
    lines = list[str]()
    tail = Tail(10, lines.append)
    for _ in range(100):
        tail.feed(b"x" * 1000)
    assert {len(line) for line in lines} == {LONGEST_LINE}


@given(st.binary())
def test_readable_text_has_no_control_characters(printed: bytes) -> None:
    assert not any((ord(char) < 32 and char not in "\t\n") or 127 <= ord(char) < 160 for char in readable(printed))


def test_colours_go_and_words_stay() -> None:
    assert readable(b"\x1b[1;31merror\x1b[0m: caf\xc3\xa9 \xff\r\x07") == "error: café \N{REPLACEMENT CHARACTER}"
