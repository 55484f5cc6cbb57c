"""Show an edit as a unified diff, from the arguments of its call, and list the files of a patch.

Tools name their arguments in few ways: an old and a new text, a list of such pairs, a whole new text, or a patch. Any other
call has no diff. Nothing is read from disk. Never raises. The work is bounded: very long texts are shown as removed and
added without a comparison. Several agents pass patches in the `*** Begin Patch` envelope to a tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from everturn.model.conversation import CallStart

#: Names that tools give to their arguments.
OLD = ("old_string", "oldString", "old_str", "oldText", "old_text", "old_source", "search", "old")
NEW = ("new_string", "newString", "new_str", "newText", "new_text", "new_source", "replace", "new")
WHOLE = ("content", "contents", "file_text", "text", "code_edit", "newContent")
PATCH = ("patch", "diff", "input", "patchText", "unified_diff")
EDIT_LISTS = ("edits", "changes", "replacements")
_MAX_COMPARED = 2_000  # lines of both texts together
PATCH_BEGINNINGS = ("*** Begin Patch", "--- ", "diff --git", "@@", "Index: ")


def diff_of(start: CallStart) -> list[str]:
    """Return the lines of the diff, without line ends; empty when the call is not such an edit."""
    if start.kind not in ("edit", "create"):
        return _patch_lines(start.command) if PATCH_BEGINNINGS[0] in start.command else []
    given = start.input
    if isinstance(given, str):
        return _patch_lines(given)
    return list(_diff_arguments(given, start.path)) if isinstance(given, dict) else []


def style_of(line: str) -> str:
    if line.startswith(("+++", "---", "*** ", "diff ")):
        return "bold"
    if line.startswith("@@"):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "")


def _diff_arguments(given: dict[str, Any], path: str) -> Iterator[str]:
    if (patch := first_text(given, PATCH)) is not None and patch.lstrip().startswith(PATCH_BEGINNINGS):
        yield from _patch_lines(patch)
        return
    if not (pairs := list(_edit_pairs(given))) and (whole := first_text(given, WHOLE)) is not None:
        pairs = [("", whole)]
    for number, (old, new) in enumerate(pairs):
        yield from _diff_texts(old, new, path if number == 0 else "")


def _edit_pairs(given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    old, new = first_text(given, OLD), first_text(given, NEW)
    if new is not None or old is not None:
        yield old or "", new or ""
    for name in EDIT_LISTS:
        listed = given.get(name)
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict):
                yield from _edit_pairs(one)


def _diff_texts(old: str, new: str, path: str) -> Iterator[str]:
    before, after = old.splitlines(), new.splitlines()
    if path:
        yield f"--- {path}" if before else "--- (new)"
        yield f"+++ {path}"
    if len(before) + len(after) > _MAX_COMPARED or not before or not after:
        yield f"@@ -{len(before)} lines +{len(after)} lines @@"
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    # The first two lines name the files, as above; the line numbers are not known.
    for line in list(unified_diff(before, after, lineterm="", n=3))[2:]:
        yield "@@" if line.startswith("@@") else line


def _patch_lines(text: str) -> list[str]:
    return text.splitlines() if text.lstrip().startswith(PATCH_BEGINNINGS) or PATCH_BEGINNINGS[0] in text else []


def first_text(given: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these arguments that is a text."""
    for name in names:
        value = given.get(name)
        if isinstance(value, str):
            return value
    return None


_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.{1,4096}?)[ \t]*\r?$", re.MULTILINE)
#: A command with the diff that it applies.
_APPLIES = re.compile(r"\bgit\b(?:\s+-[cC]\s+\S+)*\s+(?:apply|am)\b(?![^\n]*--(?:check|stat|numstat|cached))")
_DIFF = re.compile(r"^diff --git a/[^\n]{1,4096}? b/([^\n]{1,4096})\n(?:(new|deleted) file)?", re.MULTILINE)
_MODES = {"new": "create", "deleted": "delete"}
_KINDS = {"Add": "create", "Update": "edit", "Delete": "delete"}
_MAX_CHARS = 1 << 20


def patched_files(text: str) -> list[tuple[str, str]]:
    """Return the neutral kind and the path of each change, in order; empty when the text is not a patch."""
    if PATCH_BEGINNINGS[0] in text:
        return [(_KINDS[verb], path) for verb, path in _FILE.findall(text[:_MAX_CHARS])]
    if "diff --git a/" in text and _APPLIES.search(text[:_MAX_CHARS]):
        return [(_MODES.get(mode, "edit"), path) for path, mode in _DIFF.findall(text[:_MAX_CHARS])]
    return []
