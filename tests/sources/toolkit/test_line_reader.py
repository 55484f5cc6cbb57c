"""Files of records as plain dicts: every record is passed on once, whatever happened to the file."""

from __future__ import annotations

import pytest

from everturn.model.conversation import Block, CallStart, Message, ReadResult
from everturn.sources.toolkit import line_reader
from everturn.sources.toolkit.line_reader import (
    Counted,
    ReadTally,
    Rec,
    RecordPlace,
    add,
    listing,
    mapping,
    read,
    records,
    single_record,
    walker,
)


def taken(data: bytes, last: bool = True) -> tuple[list[tuple[Rec, RecordPlace]], ReadResult]:
    seen: list[tuple[Rec, RecordPlace]] = []

    def take(record: Rec, place: RecordPlace) -> Counted:
        seen.append((record, place))
        return "thing", "message", "1.0"

    return seen, read(ReadTally(), walker(), data, 10, last, take)


def test_each_record_comes_with_its_place_and_is_counted() -> None:
    seen, reading = taken(b'{"a":1}\n{"b":2}{"c":3}\n')
    assert seen == [({"a": 1}, RecordPlace(10, 7)), ({"b": 2}, RecordPlace(18, 7)), ({"c": 3}, RecordPlace(25, 7))]
    assert (reading.consumed, reading.lines, reading.glued) == (23, 2, 1)
    assert [(row.type, row.client, row.disposition, row.n) for row in reading.census] == [
        ("thing", "1.0", "message", 3)
    ]


def test_damage_is_a_problem_and_a_torn_tail_waits() -> None:
    seen, reading = taken(b'broken\n\n{"a":1}\n{"b":')
    assert [record for record, _ in seen] == [{"a": 1}]
    assert [(p.kind, p.start, p.provisional) for p in reading.problems] == [
        ("invalid_json", 10, False),
        ("torn_tail", 26, True),
    ]
    assert sum(row.n for row in reading.census) == reading.lines == 3


def test_of_a_very_long_line_only_the_beginning_is_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_reader, "LONG_LINE", 100)
    monkeypatch.setattr(line_reader, "LONG_TEXT", 5)
    gathering = ReadTally()
    call = CallStart("c", "write", input={"text": "word " * 50})
    block = Block("call", "word " * 50, "tool_input", call=call, data={})
    add(gathering, gathering.session("s"), Message("assistant", "model", blocks=(block,), start=7, size=101))
    (part,) = gathering.reading(0).parts
    (short,) = part.messages[0].blocks
    assert (short.text, short.data, short.call and short.call.input) == ("word ", None, None)
    assert [(p.kind, p.start, p.size) for p in gathering.problems] == [("indexed_in_part", 7, 101)]


def test_a_record_by_itself_is_found_also_when_it_is_damaged() -> None:
    assert single_record(b'{"a":1}') == {"a": 1}
    assert single_record(b'{"a":"\\ud800"}') == {"a": "\ufffd"}
    assert single_record(b"[1]") is None
    assert single_record(b'{"a":1}{"b":2}') is None
    assert records(b'{"a":1}\nbroken\n{"b":2}\n{"c"') == [{"a": 1}, {"b": 2}]


def test_what_is_no_object_and_no_array_is_an_empty_one() -> None:
    assert (mapping([1]), mapping({"a": 1}), listing({"a": 1}), listing([1])) == ({}, {"a": 1}, [], [1])
