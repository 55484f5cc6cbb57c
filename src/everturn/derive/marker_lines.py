"""Find marker lines: lines in which a person or an agent names what they say.

    DECISION: use token buckets             PROPOSAL: a cache in front of it
    CONSTRAINT: never use an ORM            RATIONALE: raw SQL is easier to profile
    OPEN QUESTION: which region?            RESEARCH: three libraries compared
    RISK: the migration locks a table       ACTION ITEM: ask the operations team

A line is an entry with its evidence and a status. Further lines change the status of earlier entries with the same words:

    RESOLVED: which region?                 REJECTED: a cache in front of it
    SUPERSEDED: never use an ORM            PROPOSAL [rejected]: a cache in front of it

A decision in the words of a proposal or an open question resolves it. Only capitals count, and nothing inside a code block.
The output of tools is not read: a file may contain such lines, and they would be nobody's words. Pure; work is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.decisions import FENCED, WORD
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line

ACTIVE = "active"
STATUSES = (ACTIVE, "superseded", "resolved", "rejected")
KINDS = ("decision", "constraint", "proposal", "research", "rationale", "open question", "risk", "action item")
_LONGEST = 200
_MOST = 20  # lines of one message
_MOST_ENTRIES = 200  # of one session
_SAME = {
    "done": "resolved",
    "closed": "resolved",
    "answered": "resolved",
    "accepted": "resolved",
    "dropped": "rejected",
}


_LINE = lazy_pattern(
    r"^[ \t>*_#-]{0,8}(DECISION|CONSTRAINT|PROPOSAL|RESEARCH|RATIONALE|OPEN QUESTION|RISK|ACTION ITEM|RESOLVED|REJECTED|SUPERSEDED)"
    r"(?:[ \t]?[\[(]([A-Za-z]{4,10})[\])])?[*_]{0,2}[ \t]?:[*_]{0,2}[ \t]*(\S[^\n]{0,2000})$",
    re.MULTILINE,
)
_SUPERSEDES = lazy_pattern(r"[\[(]?\bsupersedes:?[ \t]+[\"“']?([^\"”'\])]{3,200})[\"”'\])]*\s*$", re.IGNORECASE)


class MarkerLine(Struct, frozen=True):
    """One line. Of kind `status` it is about an earlier entry."""

    kind: str  # of KINDS, or status
    text: str
    status: str = ACTIVE
    supersedes: str = ""  # the words of the entry that it replaces


class MarkedEntry(Struct, frozen=True):
    """An entry of the state with its evidence."""

    text: str
    kind: str
    turn: int
    seq: int
    by: str = "person"  # or agent
    status: str = ACTIVE
    status_turn: int | None = None  # evidence of the status
    status_seq: int | None = None
    session: str = ""  # of the evidence, if it is inherited


def find_marker_lines(text: str) -> list[MarkerLine]:
    """Return the marker lines of a message, in order."""
    found = [] if ":" not in text else list(_LINE.finditer(FENCED.sub("\n", text) if "```" in text else text))
    return [_marker_line(*one.groups()) for one in found[:_MOST]]


def _marker_line(name: str, status: str | None, words: str) -> MarkerLine:
    words, supersedes = words.strip(" *_\t\r"), ""
    if (other := _SUPERSEDES.search(words)) is not None:
        words, supersedes = words[: other.start()].rstrip(" ,;") or words, one_line(other[1], _LONGEST)
    words = one_line(words, _LONGEST)
    if name.lower() in STATUSES:
        return MarkerLine("status", words, name.lower())
    said = _SAME.get((status or "").lower(), (status or ACTIVE).lower())
    return MarkerLine(name.lower(), words, said if said in STATUSES else ACTIVE, supersedes)


def advance_entries(
    known: tuple[MarkedEntry, ...], lines: Iterable[tuple[MarkerLine, int, str]], turn: int, new: bool = True
) -> tuple[MarkedEntry, ...]:
    """Return the entries after the lines of one more turn; without `new` only their statuses change."""
    entries = list(known)
    for line, seq, by in lines:
        for number, one in enumerate(entries):
            status = _status_after(one.text, one.kind, one.status, line)
            if status != one.status:
                entries[number] = replace(one, status=status, status_turn=turn, status_seq=seq)
        if (
            new
            and line.kind != "status"
            and not any(_same(one.text, line.text) and one.kind == line.kind for one in entries)
        ):
            entries.append(MarkedEntry(line.text, line.kind, turn, seq, by, line.status))
    return tuple(entries[-_MOST_ENTRIES:])


def changed_status(
    text: str, status: str, said_at: tuple[int, int], lines: Iterable[tuple[MarkerLine, int, str]], turn: int
) -> str:
    """Return the status of a decision or constraint after the lines of a turn that come after it."""
    for line, seq, _ in lines:
        if (turn, seq) != said_at or line.kind == "status":
            status = _status_after(text, "", status, line)
    return status


def _status_after(text: str, kind: str, status: str, line: MarkerLine) -> str:
    if line.supersedes and _same(text, line.supersedes):
        return "superseded"
    if not _same(text, line.text):
        return status
    if line.kind == "status" or (line.kind == kind and line.status != ACTIVE):
        return line.status
    if line.kind == "decision" and kind in ("proposal", "open question"):
        return "resolved"
    return ACTIVE if line.kind in (kind, "decision", "constraint") and status != ACTIVE else status


def _same(one: str, other: str) -> bool:
    """Whether two texts have the same words, or one is the beginning of the other."""
    first, second = " ".join(WORD.findall(one.lower())), " ".join(WORD.findall(other.lower()))
    shorter, longer = sorted((first, second), key=len)
    return first == second or (len(shorter) >= 12 and longer.startswith(f"{shorter} "))
