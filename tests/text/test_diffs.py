"""Diffs made of the arguments of a call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.model.conversation import CallStart
from everturn.text.diffs import diff_of, style_of

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch"
UNIFIED = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new"


def edit(given: Any, kind: str = "edit", command: str = "") -> list[str]:
    return diff_of(CallStart("1", "tool", kind, "a.py", command, given))


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "a.py", "old_string": "old", "new_string": "new"},
        {"filePath": "a.py", "oldString": "old", "newString": "new"},
        {"path": "a.py", "old_str": "old", "new_str": "new"},
        {"file_path": "a.py", "edits": [{"old_string": "old", "new_string": "new"}]},
        {"patch": PATCH},
        {"diff": UNIFIED},
        PATCH,
    ],
)
def test_every_way_to_say_an_edit_gives_the_same_change(given: Any) -> None:
    lines = edit(given)
    assert "-old" in lines
    assert "+new" in lines


def test_a_new_file_is_put_in_as_a_whole() -> None:
    assert edit({"file_path": "a.py", "content": "one\ntwo"}, "create")[-2:] == ["+one", "+two"]


def test_a_patch_given_to_a_shell_is_a_diff_and_other_commands_are_not() -> None:
    assert "+new" in edit({"command": PATCH}, "shell", f"apply_patch <<'EOF'\n{PATCH}\nEOF")
    assert edit({"command": "ls"}, "shell", "ls") == []


def test_very_long_texts_are_not_compared() -> None:
    old = "\n".join(f"a{n % 7}" for n in range(50_000))
    lines = edit({"old_string": old, "new_string": old + "\nend"})
    assert len(lines) == 2 + 1 + 50_000 + 50_001


def test_a_line_is_known_by_its_beginning() -> None:
    assert [style_of(line) for line in ("+a", "-a", " a", "@@ -1 @@", "+++ b", "")] == [
        "added", "removed", "", "hunk", "bold", "",
    ]  # fmt: skip


@settings(max_examples=40)
@given(st.recursive(st.none() | st.text() | st.integers(), lambda one: st.lists(one) | st.dictionaries(
    st.sampled_from(("old_string", "new_string", "edits", "content", "patch", "diff", "input", "search")), one
)))  # fmt: skip
def test_whatever_a_call_was_given_there_are_lines_or_none(given: Any) -> None:
    assert all("\n" not in line for line in edit(given))
