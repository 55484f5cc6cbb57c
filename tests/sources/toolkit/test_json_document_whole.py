"""Documents are walked element by element, in any pieces, up to where they are broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.sources.toolkit.json_document import DocumentItem, DocumentWalk, decode_item, value_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def items(data: bytes, key: str = "messages") -> list[tuple[str, Any]]:
    return [(item.key, json.loads(item.raw)) for item in DocumentWalk(key).split(data, 0, True)]


def in_pieces(data: bytes, cuts: list[int]) -> list[DocumentItem]:
    found: list[DocumentItem] = []
    walk, at = DocumentWalk(), 0
    for end in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        walk = DocumentWalk(stage=walk.stage)
        found += walk.split(data[at:end], at, end == len(data))
        at += walk.consumed
    return found


@given(st.lists(VALUES), st.sampled_from([None, 1, 2]))
def test_an_array_gives_its_elements(values: list[Any], indent: int | None) -> None:
    assert items(json.dumps(values, indent=indent).encode()) == [("", value) for value in values]


@given(st.lists(VALUES, max_size=5), st.dictionaries(st.text(max_size=5), VALUES, max_size=3), st.booleans())
def test_an_object_gives_the_elements_of_its_array_and_its_other_values(
    values: list[Any], others: dict[str, Any], plainly: bool
) -> None:
    others = {key: value for key, value in others.items() if key not in ("messages", "zz")}
    document = {**others, "messages": values, "zz": 1}
    expected = [*others.items(), *(("", value) for value in values), ("zz", 1)]
    assert items(json.dumps(document, ensure_ascii=plainly).encode()) == expected


@given(st.lists(VALUES), st.lists(st.integers(0, 10_000), max_size=8), st.sampled_from([None, 2]))
def test_any_pieces_give_the_same(values: list[Any], cuts: list[int], indent: int | None) -> None:
    data = json.dumps({"a": 1, "messages": values, "b": "x"}, indent=indent, ensure_ascii=False).encode()
    assert in_pieces(data, cuts) == list(DocumentWalk().split(data, 0, True))


def test_ranges_are_those_of_the_elements() -> None:
    data = b'\xef\xbb\xbf [ {"a": "]"} ,\n\t"\xc3\xa9", 12 ]\n'
    walk = DocumentWalk()
    found = list(walk.split(data, 100, True))
    assert [data[item.start - 100 :][: len(item.raw)] for item in found] == [item.raw for item in found]
    assert [item.raw for item in found] == [b'{"a": "]"}', b'"\xc3\xa9"', b"12"]
    assert (walk.consumed, walk.stage, walk.tail, walk.broken) == (len(data), ".", None, None)


def test_what_breaks_off_is_left_and_gone_on_with() -> None:
    data = b'{"messages":[{"n":1},{"n":2},{"n":3}]}'
    first = DocumentWalk()
    assert [item.raw for item in first.split(data[:25], 0, True)] == [b'{"n":1}']
    assert first.tail == (20, 5, "torn_tail")
    second = DocumentWalk(stage=first.stage)
    assert [item.raw for item in second.split(data[20:], 20, True)] == [b'{"n":2}', b'{"n":3}']
    assert second.stage == "."


@pytest.mark.parametrize("data", [b"hello", b"42", b'[{"n":1}}', b'{"messages" []}', b"{1:2}", b"[1] x", b'[{"n":1}:]'])
def test_broken_structure_is_told_and_everything_dealt_with(data: bytes) -> None:
    walk = DocumentWalk()
    list(walk.split(data, 0, True))
    assert walk.broken is not None
    assert walk.consumed == len(data) == sum(walk.broken[:2])


def test_nothing_is_no_trouble() -> None:
    for data in (b"", b" \n", b"\xef\xbb"):
        walk = DocumentWalk()
        assert list(walk.split(data, 0, True)) == []
        assert walk.broken is None


def test_values_are_decoded_forgivingly() -> None:
    assert decode_item(b'{"a":1}') == ({"a": 1}, "")
    assert decode_item(b'"\\ud800"') == ("\ufffd", "")
    assert decode_item(b'"a\nb"') == ("a\nb", "")
    assert decode_item(b'"\xff"') == ("\ufffd", "invalid_utf8")
    assert decode_item(b"{") == (None, "invalid_json")
    assert decode_item(b"[" * 5000 + b"]" * 5000) == (None, "too_deep")
    assert decode_item(b"1" * 5000)[1] in ("", "invalid_json")


@pytest.mark.parametrize(
    ("raw", "trouble"),
    [
        (b"{}", ""),
        (b"null", "not_an_object"),
        (b"3", "not_an_object"),
        (b'"\xff"', "not_an_object"),
        (b"{\x01}", "invalid_json"),
    ],
)
def test_an_element_that_is_no_object_is_a_trouble(raw: bytes, trouble: str) -> None:
    assert value_of(DocumentItem("", 0, raw))[1] == trouble
    assert value_of(DocumentItem("key", 0, b"null")) == (None, "")
