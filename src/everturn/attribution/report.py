"""The answers of `why`: for lines of a file, and for the commits of a range.

Numbers of turns and messages count from 0 here, as in the archive; surfaces show them from 1. Lines count from 1, as in git.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from everturn.attribution.reason import Reason
from everturn.attribution.repository import CommitFacts

#: Why a line has no answer.
NO_SESSION = "no_session"  # no archived session edited the file
NOT_THIS_LINE = "not_this_line"  # sessions edited the file, but none wrote this line
BEFORE_ARCHIVE = "before_archive"  # the commit is older than the first archived edit
AMBIGUOUS = "ambiguous"  # it says nothing alone or repeats a line beside it, and the writers differ
CUT_OFF = "cut_off"  # its commit is where a shallow clone ends
SILENCES = {
    NO_SESSION: "no archived session edited this file",
    NOT_THIS_LINE: "archived sessions edited this file, but none of their edits wrote this line",
    BEFORE_ARCHIVE: "the line is older than the first archived edit",
    CUT_OFF: "the commit that added the line is not in this shallow clone",
    AMBIGUOUS: "the line is like others beside it that somebody else wrote; git cannot tell them apart",
}


class Writer(Struct, frozen=True):
    """The edit that wrote a line."""

    agent: str
    session: str  # native id
    turn: int
    seq: int
    call: str
    tool: str
    at: int  # milliseconds UTC
    evidence: tuple[int, int, int]  # version of the source file, start and size of the call's record

    @property
    def turn_key(self) -> tuple[str, str, int]:
        """The turn: agent, session and number."""
        return self.agent, self.session, self.turn


class LineAnswer(Struct, frozen=True):
    """One line: its commit, and who wrote it, or why that is not known."""

    line: int
    text: str
    commit: str  # "" if it is not committed
    path: str
    line_there: int
    level: str = ""  # replayed | matched | likely
    rule: str = ""
    writer: Writer | None = None
    silence: str = ""  # of SILENCES
    alternatives: tuple[Writer, ...] = ()  # others who wrote the same text before the same commit
    same_text: tuple[Writer, ...] = ()  # older edits with the same text, if asked for


class CommitNote(CommitFacts, frozen=True):
    """A commit as git has it, and the sessions that are known to have made it."""

    sessions: tuple[str, ...] = ()


class TurnNote(Struct, frozen=True):
    """A turn that wrote some of the lines."""

    agent: str
    session: str
    turn: int
    title: str
    kind: str  # of the session: main, subagent …
    reason: Reason


class FileAnswer(Struct, frozen=True):
    """The answer about lines of a file, or about the added lines of one file of a commit."""

    path: str
    lines: tuple[LineAnswer, ...]


class WhyReport(Struct, frozen=True):
    """Everything about a question: files with lines, commits, and the turns that wrote the lines."""

    files: tuple[FileAnswer, ...]
    commits: dict[str, CommitNote]
    turns: tuple[TurnNote, ...]
    notes: tuple[str, ...] = ()


class LevelCounts(Struct, frozen=True):
    """How many lines have which answer; blank lines are not counted."""

    lines: int = 0
    replayed: int = 0
    matched: int = 0
    likely: int = 0

    @property
    def unknown(self) -> int:
        return self.lines - self.replayed - self.matched - self.likely


def count_levels(report: WhyReport) -> LevelCounts:
    """Count the lines of a report that are not blank, by level."""
    found = dict.fromkeys(("", "replayed", "matched", "likely"), 0)
    for file in report.files:
        for line in file.lines:
            found[line.level] += bool(line.text.strip())
    return LevelCounts(sum(found.values()), found["replayed"], found["matched"], found["likely"])


def line_ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return consecutive numbers as ranges."""
    found: list[tuple[int, int]] = []
    for one in sorted(set(numbers)):
        if found and found[-1][1] == one - 1:
            found[-1] = (found[-1][0], one)
        else:
            found.append((one, one))
    return found
