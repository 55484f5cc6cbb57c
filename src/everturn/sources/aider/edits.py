"""The edits a model asks for in its answer: SEARCH/REPLACE blocks, unified diffs, or whole files.

aider applies them and says so in a line of its own; there is no id, so a call is named after its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

_SEARCH = re.compile(r"<{5,9} (?:SEARCH|ORIGINAL)\s*")
_MIDDLE = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r">{5,9} (?:REPLACE|UPDATED)\s*")
_FENCE = re.compile(r"(`{3,}|~{3,})([\w+#.-]*)\s*")
_PATH = re.compile(r"[\w@.~+\-()\[\]]+(?:[/\\][\w@.~+\-()\[\] ]+)*")
_ABOVE = 3  # how many lines above a block its file may stand


class Edit(Struct, frozen=True):
    """All that an answer asks to do to one file."""

    path: str
    text: str
    creates: bool = False


def edits(text: str) -> list[Edit]:
    """The edits in an answer, one per file, in order."""
    if "<<<<<" not in text and "```" not in text and "~~~" not in text:
        return []
    lines = text.split("\n")
    found = list(_replacements(lines)) or list(_diffs(lines)) or list(_whole_files(lines))
    by_path: dict[str, list[Edit]] = {}
    for edit in found:
        by_path.setdefault(edit.path, []).append(edit)
    return [Edit(path, "\n".join(one.text for one in them), them[0].creates) for path, them in by_path.items()]


def call_id(path: str) -> str:
    """The name of the call that edits a file."""
    return f"edit {path}"


def _replacements(lines: list[str]) -> Iterator[Edit]:
    path, number = "", 0
    while number < len(lines):
        if not _SEARCH.fullmatch(lines[number]):
            number += 1
            continue
        path = next(filter(None, (_path(line) for line in reversed(lines[max(number - _ABOVE, 0) : number]))), path)
        end = _end(lines, number)
        if path and end:
            block = lines[number : end + 1]
            yield Edit(path, "\n".join(block), creates=bool(_MIDDLE.fullmatch(block[1])))
        number = (end or number) + 1


def _end(lines: list[str], start: int) -> int:
    for number in range(start + 1, len(lines)):
        if _REPLACE.fullmatch(lines[number]):
            return number
        if _SEARCH.fullmatch(lines[number]):
            return 0
    return 0


def _diffs(lines: list[str]) -> Iterator[Edit]:
    for opening, start, end in _find_fences(lines):
        if opening != "diff":
            continue
        heads = [n for n in range(start, end - 1) if lines[n].startswith("--- ") and lines[n + 1].startswith("+++ ")]
        for head, after in pairwise([*heads, end]):
            path = _path(lines[head + 1][4:].removeprefix("b/"))
            if path:
                yield Edit(path, "\n".join(lines[head:after]), creates=lines[head][4:].strip() == "/dev/null")


def _whole_files(lines: list[str]) -> Iterator[Edit]:
    for _, start, end in _find_fences(lines):
        line = lines[start - 2] if start > 1 else ""
        path = _path(line)
        if path and ("." in path or "/" in path) and " " not in line.strip():
            yield Edit(path, "\n".join(lines[start:end]))


def _find_fences(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """What is in fences: the language, the first line and the one after the last."""
    opening, start = None, 0
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if opening is None:
            opening, start = fence, number + 1
        elif fence and fence[1] == opening[1] and not fence[2]:
            yield opening[2], start, number
            opening = None


def _path(line: str) -> str:
    """The file a line names, if it names one and nothing else."""
    if _FENCE.fullmatch(line):
        return ""
    bare = line.strip().strip("`*#: ").strip()
    return bare if len(bare) <= 300 and _PATH.fullmatch(bare) else ""
