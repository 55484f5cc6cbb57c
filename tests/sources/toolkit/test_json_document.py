"""Elements of JSON documents are found with their byte ranges."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.sources.toolkit.json_document import Damage, document_start, elements, follow_keys

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(VALUES), st.sampled_from([None, 2]), st.booleans())
def test_the_elements_of_an_array_are_its_values(values: list[Any], indent: int | None, plain: bool) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    found = [
        json.loads(element.cut(data).decode("utf-8", "surrogatepass"))
        for element in elements(data, document_start(data))
    ]
    assert found == values


@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 1]))
def test_the_elements_of_an_object_are_its_values_with_their_keys(values: dict[str, Any], indent: int | None) -> None:
    data = json.dumps(values, indent=indent).encode()
    assert {element.key: json.loads(element.cut(data)) for element in elements(data, document_start(data))} == values


@given(st.lists(VALUES, min_size=1), st.data())
def test_a_document_that_breaks_off_gives_what_is_whole(values: list[Any], data: st.DataObject) -> None:
    whole = json.dumps(values).encode()
    cut = data.draw(st.integers(1, len(whole) - 1))
    found = []
    with pytest.raises(Damage) as damage:
        for element in elements(whole[:cut], 0):
            found.append(json.loads(element.cut(whole)))
    assert found == values[: len(found)]
    assert damage.value.at <= cut


def test_a_value_is_found_by_its_keys() -> None:
    data = b' {"a": {"b": [1, {"c": "}]"}]}, "d": 2}'
    element = follow_keys(data, document_start(data), "a", "b")
    assert element is not None
    assert element.cut(data) == b'[1, {"c": "}]"}]'
    assert follow_keys(data, document_start(data), "a", "x") is None
    assert follow_keys(data, document_start(data), "d", "x") is None


def test_a_text_that_is_no_document_is_damage() -> None:
    for data in (b"", b"hello", b"12"):
        with pytest.raises(Damage):
            document_start(data)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_elements_or_damage(data: bytes) -> None:
    try:
        assert all(element.size > 0 for element in elements(data, document_start(data)))
    except Damage as damage:
        assert damage.at <= len(data)
