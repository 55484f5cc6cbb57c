"""The changes that a call made to files."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.derive.edits import Change, FileEdit, added_lines, file_edits
from everturn.model.conversation import CallEnd, CallStart

PATCH = "*** Begin Patch\n*** Update File: b.py\n@@ def f\n a\n-b\n+c\n*** Add File: n.py\n+one\n*** End Patch"


def edits(kind: str, given: Any, command: str = "", path: str = "a.py") -> list[FileEdit]:
    return file_edits(CallStart("1", "tool", kind, path, command, given), CallEnd("1"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"old_string": "x", "new_string": "y"}, FileEdit("a.py", "replace", (Change("y", "x"),))),
        ({"oldString": "x", "newString": "y", "replaceAll": True}, FileEdit("a.py", "replace", (Change("y", "x", True),))),
        ({"old_str": "x", "new_str": "y"}, FileEdit("a.py", "replace", (Change("y", "x"),))),
        ({"edits": [{"oldText": "x", "newText": "y"}]}, FileEdit("a.py", "replace", (Change("y", "x"),))),
        ({"diff": "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE"}, FileEdit("a.py", "patch", (Change("y", "x"),))),
        ({"edit": "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"}, FileEdit("a.py", "patch", (Change("y", "x"),))),
        ({"code_edit": "y\n// ... existing code ..."}, FileEdit("a.py", "text", (Change("y\n// ... existing code ..."),))),
        ({"patch": "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x\n+y\n"}, FileEdit("x.py", "patch", (Change("y", "x"),))),
    ],
)  # fmt: skip
def test_arguments_of_editing_tools(given: dict[str, Any], expected: FileEdit) -> None:
    assert edits("edit", given) == [expected]


def test_a_whole_file_a_notebook_cell_and_a_patch_of_several_files() -> None:
    assert edits("create", {"content": "one\n"}) == [FileEdit("a.py", "write", (Change("one\n"),))]
    cell = edits("edit", {"new_source": 'print("a")\nb'}, path="n.ipynb")
    assert cell == [FileEdit("n.ipynb", "text", (Change('"print(\\"a\\")\\n",\n"b"'),))]
    expected = [FileEdit("b.py", "patch", (Change("a\nc", "a\nb"),)), FileEdit("n.py", "write", (Change("one"),))]
    assert edits("edit", PATCH) == expected
    assert edits("edit", {"input": PATCH}) == expected
    assert edits("shell", {}, f"apply_patch <<'EOF'\n{PATCH}\nEOF") == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd sub && cat > f.py <<'EOF'\none\ntwo\nEOF", [FileEdit("sub/f.py", "write", (Change("one\ntwo"),))]),
        ("cat >> f.py <<EOF\none\nEOF\n", [FileEdit("f.py", "append", (Change("one"),))]),
        ("tee -a f.py <<EOF\none\nEOF\n", [FileEdit("f.py", "append", (Change("one"),))]),
        ("echo 'one' > f.py", [FileEdit("f.py", "write", (Change("one"),))]),
        ("sed -i 's/old/new/g' f.py", [FileEdit("f.py", "replace", (Change("new", "old", True),))]),
        ("sed -i 's/o.*d/new/g' f.py", []),
        ("sed -n '1,5p' f.py", []),
        ("grep x f.py > out.txt", []),
    ],
)
def test_shell_commands(command: str, expected: list[FileEdit]) -> None:
    assert edits("shell", {}, command) == expected


def test_a_script_that_writes_a_file_keeps_its_text() -> None:
    (found,) = edits("shell", {}, "python3 - <<'EOF'\nfrom pathlib import Path\nPath('q.py').write_text('x')\nEOF")
    assert (found.path, found.kind) == ("q.py", "text")


def test_failed_and_rejected_calls_have_no_edits() -> None:
    start = CallStart("1", "Edit", "edit", "a.py", "", {"old_string": "x", "new_string": "y"})
    assert file_edits(start, CallEnd("1", True)) == [] and file_edits(start, CallEnd("1", exit_status=1)) == []


@pytest.mark.parametrize(
    "given", [None, 3, [], {"edits": "x"}, {"edits": [3]}, {"new_string": 3}, {"patch": "@@"}, "@@ -1 +1 @@\n-a\n+b"]
)
def test_odd_arguments_have_no_edits_and_never_raise(given: Any) -> None:
    assert edits("edit", given) == []


def test_added_lines_are_those_that_the_old_text_does_not_have() -> None:
    edit = FileEdit("a", "replace", (Change("a\n  b\nc\nc\n\n", "a\nb\nc"), Change("", "x")))
    assert list(added_lines(edit)) == [["c"]]
