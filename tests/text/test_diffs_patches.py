"""The files that a patch is about."""

from __future__ import annotations

from everturn.text.diffs import patched_files

PATCH = """*** Begin Patch
*** Add File: src/new file.py
+x = 1
*** Update File: src/old.py
*** Move to: src/older.py
@@
-*** Delete File: not/a/header.py
+y
*** Delete File: gone.txt\r
*** End Patch
"""


def test_each_file_is_named_with_what_happens_to_it() -> None:
    assert patched_files(PATCH) == [("create", "src/new file.py"), ("edit", "src/old.py"), ("delete", "gone.txt")]


def test_a_patch_inside_a_command_is_found() -> None:
    assert patched_files(f"apply_patch <<'EOF'\n{PATCH}EOF")[0] == ("create", "src/new file.py")


def test_what_is_no_patch_names_nothing() -> None:
    assert patched_files("*** Add File: a.py") == []
    assert patched_files("") == []
