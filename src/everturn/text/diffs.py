"""What an edit changed, as a unified diff, taken from the arguments of the call.

Tools name their arguments in few ways: an old and a new text, a list of such pairs, a whole new text, or a patch. What is
none of these has no diff, and its arguments are shown as they are. Nothing is looked up on a disk. Never raises; the work
is bounded: texts of very many lines are shown as taken out and put in, without looking for what they share.

The files a patch in the `*** Begin Patch` envelope is about: several agents hand such text to a tool of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from everturn.model.conversation import CallStart

_OLD = ("old_string", "oldString", "old_str", "oldText", "old_text", "old_source", "search", "old")
_NEW = ("new_string", "newString", "new_str", "newText", "new_text", "new_source", "replace", "new")
_WHOLE = ("content", "contents", "file_text", "text", "code_edit", "newContent")
_PATCH = ("patch", "diff", "input", "patchText", "unified_diff")
_LISTS = ("edits", "changes", "replacements")
_MOST_COMPARED = 2_000  # lines of both texts together
_BEGINNINGS = ("*** Begin Patch", "--- ", "diff --git", "@@", "Index: ")


def diff_of(start: CallStart) -> list[str]:
    """The lines of the diff, without line ends; nothing when the call is no edit we can show so."""
    if start.kind not in ("edit", "create"):
        return _patch_lines(start.command) if _BEGINNINGS[0] in start.command else []
    given = start.input
    if isinstance(given, str):
        return _patch_lines(given)
    return list(_diff_arguments(given, start.path)) if isinstance(given, dict) else []


def style_of(line: str) -> str:
    """The name of the style of a line of a diff."""
    if line.startswith(("+++", "---", "*** ", "diff ")):
        return "bold"
    if line.startswith("@@"):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "")


def _diff_arguments(given: dict[str, Any], path: str) -> Iterator[str]:
    patch = _first_text(given, _PATCH)
    if patch is not None and patch.lstrip().startswith(_BEGINNINGS):
        yield from _patch_lines(patch)
        return
    pairs = list(_edit_pairs(given))
    if not pairs and (whole := _first_text(given, _WHOLE)) is not None:
        pairs = [("", whole)]
    for number, (old, new) in enumerate(pairs):
        yield from _diff_texts(old, new, path if number == 0 else "")


def _edit_pairs(given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every old text with the new one in its place."""
    old, new = _first_text(given, _OLD), _first_text(given, _NEW)
    if new is not None or old is not None:
        yield old or "", new or ""
    for name in _LISTS:
        listed = given.get(name)
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict):
                yield from _edit_pairs(one)


def _diff_texts(old: str, new: str, path: str) -> Iterator[str]:
    before, after = old.splitlines(), new.splitlines()
    if path:
        yield f"--- {path}" if before else "--- (new)"
        yield f"+++ {path}"
    if len(before) + len(after) > _MOST_COMPARED or not before or not after:
        yield f"@@ -{len(before)} lines +{len(after)} lines @@"
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    # The first two lines name the files, which is done above; where in the file it stands nobody knows.
    for line in list(unified_diff(before, after, lineterm="", n=3))[2:]:
        yield "@@" if line.startswith("@@") else line


def _patch_lines(text: str) -> list[str]:
    return text.splitlines() if text.lstrip().startswith(_BEGINNINGS) or _BEGINNINGS[0] in text else []


def _first_text(given: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((given[name] for name in names if isinstance(given.get(name), str)), None)


_BEGIN = "*** Begin Patch"
_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.{1,4096}?)[ \t]*\r?$", re.MULTILINE)
_KINDS = {"Add": "create", "Update": "edit", "Delete": "delete"}
_LOOKED_AT = 1 << 20


def patched_files(text: str) -> list[tuple[str, str]]:
    """The neutral kind of each change and the path it is made to, in order; nothing for what is no patch."""
    if _BEGIN not in text:
        return []
    return [(_KINDS[verb], path) for verb, path in _FILE.findall(text[:_LOOKED_AT])]
