"""Lines of JSON, whole and broken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everturn.sources.toolkit import json_lines
from everturn.sources.toolkit.json_lines import REASONS, JsonLines

Seen = list[tuple[int, bytes, Any, str]]


def split(data: bytes, last: bool = True) -> tuple[Seen, JsonLines[Any]]:
    lines: JsonLines[Any] = JsonLines(msgspec.json.Decoder(dict[str, Any]).decode, lambda found: found)
    return [(start, bytes(raw), value, trouble) for start, raw, value, trouble in lines.split(data, 0, last)], lines


def test_each_line_is_a_record_with_its_own_bytes() -> None:
    seen, lines = split(b'{"a":1}\n{"b":2}\n')
    assert seen == [(0, b'{"a":1}', {"a": 1}, ""), (8, b'{"b":2}', {"b": 2}, "")]
    assert (lines.lines, lines.glued, lines.consumed, lines.tail) == (2, 0, 16, None)


def test_an_empty_piece_is_nothing() -> None:
    seen, lines = split(b"")
    assert (seen, lines.lines, lines.consumed, lines.tail) == ([], 0, 0, None)


def test_a_line_without_an_end_waits_unless_it_is_the_last() -> None:
    seen, lines = split(b'{"a":1}\n{"b":2}', last=False)
    assert (len(seen), lines.consumed, lines.open_line) == (1, 8, False)
    seen, lines = split(b'{"a":1}\n{"b":2}', last=True)
    assert (len(seen), lines.consumed, lines.open_line) == (2, 15, True)


def test_the_end_of_a_line_that_was_read_before_is_no_blank_line() -> None:
    _, lines = split(b'{"a":1}')
    assert list(lines.split(b"\n", 7, True)) == []
    assert (lines.lines, lines.glued, lines.consumed, lines.open_line) == (0, 0, 1, False)


def test_what_is_glued_later_to_a_line_read_before_is_a_record_of_its_own() -> None:
    _, lines = split(b'{"a":1}')
    assert [record[2] for record in lines.split(b'{"b":2}\n{"c":3}\n', 7, True)] == [{"b": 2}, {"c": 3}]
    assert (lines.lines, lines.glued) == (1, 1)


@pytest.mark.parametrize(
    "tail",
    [b'{"a":', b'{"a":{"b":1}', b'{"a":"\xc3', b"4", b"tru", b'"text', b"[1,", b'x{"a":1}', b'{"a":"\\'],
)
def test_an_incomplete_tail_is_left_and_said(tail: bytes) -> None:
    seen, lines = split(b'{"z":0}\n' + tail)
    assert len(seen) == 1
    assert lines.consumed == 8
    assert lines.tail == (8, len(tail), "torn_tail")


@pytest.mark.parametrize(
    ("line", "troubles"),
    [
        (b"", ["blank"]),
        (b" \t\r", ["blank"]),
        (b"nonsense", ["invalid_json"]),
        (b"[1]", ["not_an_object"]),
        (b'"x"', ["not_an_object"]),
        (b"null", ["not_an_object"]),
        (b'{"a":1}{"b":2}', ["", ""]),
        (b' {"a":1} {"b":2}\r', ["", ""]),
        (b'\xef\xbb\xbf{"a":1}', [""]),
        (b'{"a":1}}', ["", "invalid_json"]),
        (b'{"a":1,"b":{"c":2},oops}', ["invalid_json"]),  # the inner object is not a record
        (b'{"a":"tor{"b":2}', ["invalid_json", ""]),
        (b'{"a":"tor{"b":{"x":[1]}}{"c":3}', ["invalid_json", "", ""]),
        (b'\0\0{"a":1}\0', ["nul_block", "", "nul_block"]),
        (b'{"a":"cut\0\0\0{"b":2}', ["invalid_json", "nul_block", ""]),
        (b'{"a":"caf\xe9"}', ["invalid_utf8"]),
        (b'{"a":"\\ud800"}', [""]),
        (b'{"a":NaN,"b":Infinity}', [""]),
        (b'{"a":' + b"7" * 9999 + b"}", [""]),
        (b'{"a":"tab\tin\x01side"}', [""]),
        (b'{"a":1,"a":2}', [""]),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, ["too_deep"]),
        ('{"ä":"ö"}{"ü":'.encode() + b"}", ["", "invalid_json"]),
    ],
)
def test_a_line_gives_a_record_for_each_thing_in_it(line: bytes, troubles: list[str]) -> None:
    seen, lines = split(line + b"\n")
    assert [trouble for *_, trouble in seen] == troubles
    assert (lines.lines, lines.glued, lines.consumed) == (1, len(troubles) - 1, len(line) + 1)
    for start, raw, value, trouble in seen:
        assert line[start : start + len(raw)] == raw
        assert (value is None) == (trouble not in ("", "invalid_utf8"))
        assert trouble in ("", "blank") or trouble in REASONS


def test_text_that_no_database_takes_is_replaced() -> None:
    seen, _ = split(b'{"\\ud800":["\\udfff x"],"b":"caf\xe9"}\n')
    assert seen[0][2] == {"\ufffd": ["\ufffd x"], "b": "caf\ufffd"}


def test_no_reason_quotes_what_was_found() -> None:
    assert all("{" not in reason and "%" not in reason for reason in REASONS.values())


def test_a_line_too_long_to_be_searched_is_read_when_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_RESCUE_LIMIT", 10)
    assert [trouble for *_, trouble in split(b'{"a":1}{"b":2}{"c":3}\n')[0]] == ["invalid_json"]
    assert [value for _, _, value, _ in split(b'\0{"a":123456789}')[0]] == [None, {"a": 123456789}]
    assert [trouble for *_, trouble in split(b" [1234567890]\n")[0]] == ["not_an_object"]
    assert [trouble for *_, trouble in split(b"[" * 9000 + b"\n")[0]] == ["too_deep"]


def test_a_line_too_long_to_be_copied_is_read_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_LONG", 10)
    seen, lines = split(b'{"a":123456789}\n{"b":1}\n')
    assert [value for _, _, value, _ in seen] == [{"a": 123456789}, {"b": 1}]
    assert lines.consumed == 24
