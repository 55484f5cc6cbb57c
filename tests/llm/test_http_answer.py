"""Events out of bytes that come in any pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.llm.http_answer import ServerEventStream

STREAM = (
    '\ufeffevent: one\ndata: {"a": 1}\n\n: a comment\r\ndata:no space\r\rdata: two\ndata: lines\nid: 7\nretry: 5\n\n'
    "event: empty\n\ndata\n\ndata: ünïcode ✓\r\n\r\n"
).encode()
EVENTS = ['{"a": 1}', "no space", "two\nlines", "", "ünïcode ✓"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_a_stream_gives_the_same_events_wherever_it_is_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    reader = ServerEventStream()
    pieces = [STREAM[start:end] for start, end in pairwise(edges)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


def test_byte_by_byte_is_the_same() -> None:
    reader = ServerEventStream()
    assert [event for place in range(len(STREAM)) for event in reader.feed(STREAM[place : place + 1])] == EVENTS


def test_an_event_without_its_empty_line_is_given_only_when_asked_for() -> None:
    reader = ServerEventStream()
    assert reader.feed(b"data: [DONE]") == []
    assert reader.last() == ["[DONE]"]
    assert ServerEventStream().last() == []


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"::::\n\n", b"\n" * 100])
def test_what_is_no_stream_gives_no_events(data: bytes) -> None:
    assert ServerEventStream().feed(data) == []
