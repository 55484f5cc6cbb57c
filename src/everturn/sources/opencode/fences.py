"""The lines of a rendered transcript: where messages begin, where a tool's section and its output end.

An output stands between two fences and nothing in it is escaped. Its end is found by following the fences inside it; a
fence that opens one is known by the word after it, or because a true end has a blank line behind it. An output that was cut
off inside a fence is told from one that quotes a transcript by what follows: there must be no fence left over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

FENCE = "```"
THINKING = "_Thinking:_"
HEADING = re.compile(r"## (User|Assistant|Shell)(?: \((.*)\))?\s*")
_TOOL = re.compile(r"\*\*Tool: (.+?)\*\*\s*")
_OLD_TOOL = "Tool: "
_INPUT, _RESULTS = "**Input:**", ("**Output:**", "**Error:**")
_TEXT_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")

#: How far is looked ahead or back where a file may lead us on for ever.
_FAR = 400

Lines = Sequence[str]


class OpencodeToolSection(NamedTuple):
    """A tool's section; None for what it does not have. `end` is the line after it."""

    name: str
    input: str | None
    output: str | None
    error: str | None
    end: int


def is_boundary(lines: Lines, at: int) -> bool:
    """Does a message begin here: a heading after a rule?"""
    if not lines[at].startswith("## ") or HEADING.fullmatch(lines[at]) is None:
        return False
    for before in range(at - 1, max(at - _FAR, -1), -1):
        if lines[before].strip():
            return lines[before].strip() == "---"
    return True


def tool_at(lines: Lines, at: int) -> OpencodeToolSection | None:
    """The tool's section that begins here, of either generation of the client."""
    name, old = _tool_name(lines, at)
    if not name:
        return None
    found: dict[str, str] = {}
    end = at + 1 + old
    while (label := _skip_blank(lines, end)) < len(lines) - 1:
        opening, key = lines[label + 1], lines[label]
        if key == _INPUT and opening == f"{FENCE}json" and not found:
            close = _first_fence(lines, label + 2)
        elif key in _RESULTS and opening == FENCE:
            close = _output_end(lines, label + 2, old)
        else:
            break
        found[key] = "\n".join(lines[label + 2 : close])
        end = close + 1
        if key in _RESULTS:
            break
    if old and (close := _skip_blank(lines, end)) < len(lines) and lines[close] == FENCE:
        end = close + 1
    return OpencodeToolSection(
        name, found.get(_INPUT), found.get(_RESULTS[0]), found.get(_RESULTS[1]), min(end, len(lines))
    )


def skip_fence(lines: Lines, at: int) -> int:
    """The line after the fenced stretch that begins here; `at` itself when none does, or it is never closed."""
    opening = _TEXT_FENCE.match(lines[at])
    if opening is None:
        return at
    marks, about = opening[1], opening[2].strip()
    for end in range(at + 1, min(at + _FAR, len(lines))):
        line = lines[end].strip()
        if line.startswith(marks) and not line.strip(marks[0]):
            return end + 1
        if line.startswith("## ") and about not in ("markdown", "md") and is_boundary(lines, end):
            break
    return at


def _tool_name(lines: Lines, at: int) -> tuple[str, bool]:
    line = lines[at]
    if line.startswith("**Tool: "):
        found = _TOOL.fullmatch(line)
        return (found[1], False) if found else ("", False)
    if line == FENCE and at + 1 < len(lines) and lines[at + 1].startswith(_OLD_TOOL):
        return lines[at + 1][len(_OLD_TOOL) :].strip(), True
    return "", False


def _skip_blank(lines: Lines, at: int) -> int:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _first_fence(lines: Lines, at: int) -> int:
    """Arguments are JSON, in which a line cannot begin with a fence."""
    return next((end for end in range(at, len(lines)) if lines[end] == FENCE), len(lines))


def _output_end(lines: Lines, at: int, old: bool) -> int:
    """The fence that ends an output which begins at `at`."""
    inside: list[bool] = []  # fences that are open in it: is it that of a quoted tool's section?
    perhaps = -1  # the last fence that ended something, as it seemed
    for end in range(at, len(lines)):
        if not lines[end].startswith(FENCE):
            if perhaps >= 0 and not inside and _is_outside(lines, end):
                return perhaps
        elif lines[end].strip() != FENCE:
            inside.append(False)
        elif inside:
            perhaps = perhaps if inside.pop() else end
            if perhaps == end and _goes_on(lines, end, old):
                return end
        elif _may_end(lines, end, old):
            return end
        else:
            inside.append(lines[end - 1] in _RESULTS)
    return len(lines) if perhaps < 0 else perhaps


def _may_end(lines: Lines, at: int, old: bool) -> bool:
    """Behind the fence of an output stands a blank line; in the older form, the fence of the section."""
    if lines[at - 1] in _RESULTS:  # it opens one that is quoted
        return False
    after = lines[at + 1] if at + 1 < len(lines) else ""
    return after == FENCE if old else not after.strip()


def _goes_on(lines: Lines, at: int, old: bool) -> bool:
    """Does the transcript itself go on behind this fence: with a message or a tool, and no fence left over there?"""
    after = _skip_blank(lines, at + 1)
    if old and after < len(lines) and lines[after] == FENCE:  # the end of the section
        after = _skip_blank(lines, after + 1)
    if after >= len(lines):
        return True
    if lines[after].strip() == "---":
        after = _skip_blank(lines, after + 1)
        if after >= len(lines):
            return True
        return is_boundary(lines, after) and _is_even(lines, after + 1)
    return bool(_tool_name(lines, after)[0]) or lines[after] == THINKING


def _is_outside(lines: Lines, at: int) -> bool:
    """Does something begin here that can only begin outside an output?"""
    if lines[at].startswith("**Tool: "):
        return True
    return is_boundary(lines, at) and _is_even(lines, at + 1)


def _is_even(lines: Lines, at: int) -> bool:
    """Are the fences from here to the next tool closed? The end of an output that quotes messages would be left over."""
    fences = 0
    for here in range(at, min(at + _FAR, len(lines))):
        if lines[here].startswith("**Tool: "):
            break
        fences += lines[here].startswith(FENCE)
    return fences % 2 == 0
