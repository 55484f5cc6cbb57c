"""Where a message begins in a saved session.

    _**User (2026-05-01 10:00:00Z)**_            what a human typed, or what was put in its place
    _**Agent (model 2026-05-01 10:00:05Z)**_     text, <think>…</think>, <tool-use …>…</tool-use>
    _**Agent - sidechain (…)**_                  of another thread of the same session
    _**User**_ … --- … _**Assistant**_           the older form: what the agent did are items between rules

What a tool printed may hold such marks too: inside <tool-use> nothing begins. Marks without a time stand after a rule.
"""

from __future__ import annotations

import re

from msgspec import Struct

MARK = re.compile(r"_\*\*(User|Agent|Assistant)( - sidechain)?(?: \(([^()\n]*)\))?\*\*_\s*")
RULE = "---"

#: What the first character of a line that means something may be.
_TELLING = frozenset("_<- \t")

#: Lines of text one after the other, nearly all there are: the first of them says as much as all of them.
ALIKE = re.compile(rb"(?:[^_<\- \t\r\n][^\n]*+\n)++")

_TIME = re.compile(r"(?:^|\s)(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)$")


class SpecstoryMark(Struct, frozen=True):
    """What a section says about itself."""

    role: str = ""  # User Agent Assistant; "" when there is no mark
    sidechain: bool = False
    model: str = ""
    time: str = ""


class SpecstoryLineState(Struct):
    """What is known of the lines before."""

    begun: bool = False
    role: str = ""
    in_tool: bool = False
    last: str = ""  # what the line before was: blank, rule or text
    earlier: str = ""  # and what was before lines of that kind


def opens(known: SpecstoryLineState, line: str) -> bool:
    """Does a section begin with this line? (`Passages` asks for every line in order.)"""
    if line and line[0] not in _TELLING:  # nearly all of them
        if known.last != "text":
            known.last, known.earlier = "text", known.last
        return False
    last, earlier = known.last, known.earlier
    kind = "rule" if line.rstrip() == RULE else "text" if line.strip() else "blank"
    if kind != last:
        known.last, known.earlier = kind, last
    if known.in_tool:
        known.in_tool = not line.startswith(("</details></tool-use>", "</tool-use>"))
        return False
    if line.startswith("<tool-use ") and "</tool-use>" not in line:
        known.in_tool = True
        return False
    if kind == "rule":
        return known.role == "Assistant"
    return line[:3] == "_**" and _begins_section(known, line, last, earlier)


def _begins_section(known: SpecstoryLineState, line: str, last: str, earlier: str) -> bool:
    found = MARK.fullmatch(line)
    if found is None or last not in ("", "blank"):
        return False
    if not found[3] and known.role and earlier != "rule":
        return False
    known.role = found[1]
    return True


def mark_of(line: str) -> SpecstoryMark:
    """What the first line of a section says."""
    found = MARK.fullmatch(line.rstrip("\r\n"))
    if found is None:
        return SpecstoryMark()
    about = (found[3] or "").strip()
    time = _TIME.search(about)
    return SpecstoryMark(
        found[1], bool(found[2]), about[: time.start()].strip() if time else about, time[1] if time else ""
    )
