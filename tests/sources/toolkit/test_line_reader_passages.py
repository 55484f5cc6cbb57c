"""Passages of a text: cut where a format says so, in any pieces, without losing a byte."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from everturn.sources.specstory import message
from everturn.sources.toolkit.line_reader import Passages, text_of


class Known(Struct):
    begun: bool = False
    lines: int = 0


def opens(known: Known, line: str) -> bool:
    """A passage begins at every `#`, but not at the first line of all."""
    known.lines += 1
    return line.startswith("#") and known.lines > 1


TEXTS = st.lists(
    st.sampled_from([b"# a\n", b"b\n", b"\n", b"c\r\n", b"#", b"\xff\n", "é\n".encode()]), max_size=12
).map(b"".join)


@given(data=TEXTS, cuts=st.lists(st.integers(0, 40), max_size=5), whole_lines=st.booleans())
@settings(max_examples=300)
def test_pieces_that_do_not_end_the_text_change_nothing(data: bytes, cuts: list[int], whole_lines: bool) -> None:
    at_once = Passages(opens, Known())
    expected = list(at_once.split(data, 0, True, whole_lines))
    found: list[tuple[int, bytes]] = []
    passages, done = Passages(opens, Known()), 0
    for end in sorted({min(cut, len(data)) for cut in cuts}):
        found += passages.split(data[done:end], done, False, whole_lines)
        done += passages.consumed
        passages = Passages(opens, passages.state)
    found += passages.split(data[done:], done, True, whole_lines)
    assert found == expected
    assert b"".join(raw for _, raw in found) == data[: done + passages.consumed]
    assert passages.state == at_once.state
    left = data[done + passages.consumed :]
    assert b"\n" not in left
    assert passages.tail == ((len(data) - len(left), len(left)) if left else None)


def test_what_comes_after_the_end_continues_the_last_passage() -> None:
    passages = Passages(opens, Known())
    assert list(passages.split(b"x\n# a\n", 0, True)) == [(0, b"x\n"), (2, b"# a\n")]
    continued = [(raw, passages.continues) for _, raw in passages.split(b"more\n# b\n", 6, True)]
    assert continued == [(b"more\n", True), (b"# b\n", False)]


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert text_of(b"a\xff") == ("a\ufffd", False)
    assert text_of("é".encode()) == ("é", True)


MARKED = [
    b"_**User (2026-05-01 10:00:00Z)**_\n", b"_**Assistant**_\n", b"---\n", b"\n", b"words\n", b"more words\r\n", b" blank\n",
    b"<tool-use data-x>\n", b"</tool-use>\n", b"\r\n", b"-\n", b"last",
]  # fmt: skip


@given(st.lists(st.sampled_from(MARKED), max_size=40).map(b"".join))
@settings(max_examples=300)
def test_lines_that_are_alike_may_be_told_once(data: bytes) -> None:
    every = Passages(message.opens, message.SpecstoryLineState())
    fewer = Passages(message.opens, message.SpecstoryLineState(), message.ALIKE)
    assert list(every.split(data, 0, last=True)) == list(fewer.split(data, 0, last=True))
    assert every.state == fewer.state
