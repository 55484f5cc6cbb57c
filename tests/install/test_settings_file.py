"""Settings files of other programs are changed in one place and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.install import settings_file

COMMENTED = """// settings of mine
{
    "theme": "dark", // not light
    /* servers */
    "mcp": {
        "other": {"command": ["x", "a,b"]}, // the other
    },
    "hooks": {"Stop": [{"hooks": []}]}
}
"""

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_OBJECTS = st.dictionaries(st.sampled_from("abcd"), _VALUES, max_size=4)
_FORMS: list[dict[str, Any]] = [{}, {"indent": 2}, {"indent": "\t"}, {"indent": 4, "ensure_ascii": False}]


def test_comments_blanks_and_commas_stay_where_they_are() -> None:
    text = settings_file.put_entry(COMMENTED, ("mcp", "ours"), {"command": ["e"]})
    text = settings_file.append_item(text, ("hooks", "Stop"), {"hooks": [1]})
    kept = [line for line in COMMENTED.splitlines() if "hooks" not in line]
    assert [line for line in text.splitlines() if line in kept] == kept
    assert settings_file.value_at(text, ())["mcp"] == {"other": {"command": ["x", "a,b"]}, "ours": {"command": ["e"]}}
    assert '"Stop": [{"hooks": []}, {"hooks": [1]}]' in text
    assert '        "ours": {\n            "command": [\n' in text


def test_a_line_comment_behind_the_last_member_does_not_swallow_the_new_one() -> None:
    text = settings_file.put_entry('{\n  "a": 1 // one\n}\n', ("b",), 2)
    assert text == '{\n  "a": 1, // one\n  "b": 2\n}\n'
    assert settings_file.take_entry(text, ("b",)) == '{\n  "a": 1 // one\n}\n'


def test_a_comment_in_an_empty_object_stays() -> None:
    text = settings_file.put_entry("{\n  // nothing yet\n}", ("a",), 1)
    assert text == '{\n  // nothing yet\n  "a": 1\n}'
    assert "nothing yet" in settings_file.take_entry(text, ("a",))


def test_objects_on_the_way_are_made_and_depth_tells_how_many_were_there() -> None:
    assert settings_file.value_at(settings_file.put_entry("{}", ("a", "b", "c"), 1), ()) == {"a": {"b": {"c": 1}}}
    assert [settings_file.depth('{"a": {"b": 1}}', at) for at in (("x",), ("a", "x"), ("a", "b", "c"))] == [0, 1, 2]


def test_a_value_is_changed_where_it_stands() -> None:
    assert settings_file.put_entry('{"a": 1, /* b */ "b": 2}', ("a",), [3]) == '{"a": [\n  3\n], /* b */ "b": 2}'


@pytest.mark.parametrize("text", ["", "{", "[1 2]", '{"a" 1}', "{} x", "'a'", "{a: 1}", "[" * 5000])
def test_what_is_no_json_is_said_to_be(text: str) -> None:
    with pytest.raises(ValueError):
        settings_file.value_at(text, ())


def test_what_cannot_hold_an_entry_is_left_alone() -> None:
    with pytest.raises(ValueError):
        settings_file.put_entry('{"a": 1}', ("a", "b"), 2)
    with pytest.raises(ValueError):
        settings_file.append_item('{"a": {}}', ("a",), 2)
    assert settings_file.take_entry('{"a": 1}', ("b", "c")) == '{"a": 1}'


@given(_OBJECTS, st.sampled_from(_FORMS), _VALUES)
def test_what_is_put_in_and_taken_out_again_leaves_the_text_as_it_was(
    before: dict[str, Any], form: dict[str, Any], value: Any
) -> None:
    text = json.dumps(before, **form)
    changed = settings_file.put_entry(text, ("new",), value)
    assert settings_file.value_at(changed, ()) == json.loads(changed) == {**before, "new": value}
    assert settings_file.take_entry(changed, ("new",)) == text


@given(st.lists(_VALUES, max_size=4), st.sampled_from(_FORMS), _VALUES)
def test_the_same_for_items_of_a_list(before: list[Any], form: dict[str, Any], value: Any) -> None:
    text = json.dumps({"l": before}, **form)
    mark = {"ours": value}
    changed = settings_file.append_item(text, ("l",), mark)
    assert json.loads(changed)["l"] == [*before, mark]
    assert settings_file.take_items(changed, ("l",), lambda item: item == mark) == text


@given(_OBJECTS.filter(bool), st.sampled_from(_FORMS), st.data())
def test_any_member_can_be_taken_out(before: dict[str, Any], form: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(before)))
    left = settings_file.value_at(settings_file.take_entry(json.dumps(before, **form), (name,)), ())
    assert left == {key: value for key, value in before.items() if key != name}
