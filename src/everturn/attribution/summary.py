"""A report of `why` as lines of text, as items for programs, and as git blame porcelain.

Text of the archive and of the repository goes through `show`, which masks secrets and makes control characters visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from msgspec import Struct, to_builtins

from everturn.attribution.reason import Reason
from everturn.attribution.report import (
    SILENCES,
    CommitNote,
    FileAnswer,
    LineAnswer,
    TurnNote,
    WhyReport,
    Writer,
    count_levels,
)
from everturn.text.printable import one_line, plural
from everturn.text.times import duration, iso

Show = Callable[[str], str]
_LONGEST = 110
_RANGES = 8


class LineGroup(Struct, frozen=True):
    """Consecutive lines with the same answer."""

    first: int
    last: int
    answer: LineAnswer  # of the first line that is not blank

    @property
    def numbers(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def group_lines(file: FileAnswer) -> list[LineGroup]:
    """Return the lines of a file in groups with the same commit, level and turn; blank lines join their neighbours."""
    found: list[LineGroup] = []
    for line in file.lines:
        last = found[-1] if found else None
        if (
            last is not None
            and line.line == last.last + 1
            and (not line.text.strip() or _key(line) == _key(last.answer))
        ):
            found[-1] = LineGroup(last.first, line.line, last.answer)
        else:
            found.append(LineGroup(line.line, line.line, line))
    return found


def _key(line: LineAnswer) -> tuple[Any, ...]:
    writer = line.writer
    return line.commit, line.level, line.silence, (writer.session, writer.turn) if writer else None


# --- details of a few lines ---
def detail_lines(report: WhyReport, show: Show) -> Iterator[str]:
    """Yield everything about the lines of a report."""
    turns = {(one.agent, one.session, one.turn): one for one in report.turns}
    for file in report.files:
        for group in group_lines(file):
            answer = group.answer
            yield f"{show(file.path)}:{group.numbers}   {show(one_line(answer.text.strip(), _LONGEST))}"
            yield f"  {_commit_line(report.commits.get(answer.commit), show)}"
            writer = answer.writer
            note = turns.get(writer.turn_key) if writer is not None else None
            if writer is None or note is None:
                yield f"  NO ANSWER: {SILENCES.get(answer.silence, 'nothing is known')}"
            else:
                yield from (f"  {line}" for line in _writer_lines(report, answer, writer, note, show))
            for one in answer.same_text:
                yield f"  same text earlier   {_writer_name(one)} · {iso(one.at)}"
    yield from (f"note: {note}" for note in report.notes)


def _commit_line(commit: CommitNote | None, show: Show) -> str:
    if commit is None:
        return "not committed yet"
    return f"commit {commit.sha[:9]}  {iso(commit.authored)[:10]}  {show(commit.author)}  {show(one_line(commit.subject, _LONGEST))}"


def _writer_lines(report: WhyReport, answer: LineAnswer, writer: Writer, note: TurnNote, show: Show) -> Iterator[str]:
    commit = report.commits.get(answer.commit)
    before = (
        f", {duration(commit.authored - writer.at)} before the commit" if commit and commit.authored > writer.at else ""
    )
    evidence = "evidence {}:{}+{}".format(*writer.evidence)
    yield f"{answer.level.upper()} ({answer.rule})  {_writer_name(writer)} · {show(writer.tool)} {iso(writer.at)}{before}  [{evidence}]"
    if note.kind != "main":
        yield f"by      {note.kind}"
    yield from _reason_lines(note.reason, note, show)
    if commit is not None and commit.sessions and writer.session not in commit.sessions:
        yield f"committed by another session: {', '.join(commit.sessions)}"
    for other in answer.alternatives:
        yield f"also wrote this text   {_writer_name(other)} · {iso(other.at)}"
    yield f"more    everturn show {writer.session} --turn {writer.turn + 1}"


def _writer_name(writer: Writer) -> str:
    return f"{writer.agent} · {writer.session} · turn {writer.turn + 1}"


def _reason_lines(reason: Reason, note: TurnNote, show: Show) -> Iterator[str]:
    place = ""
    if reason.asked_turn >= 0 and (reason.asked_session, reason.asked_turn) != (note.session, note.turn):
        other = "" if reason.asked_session == note.session else f" of {reason.asked_session}"
        place = f"   (turn {reason.asked_turn + 1}{other})"
    if reason.asked:
        yield f"asked   “{show(reason.asked)}”{place}"
    else:
        yield "asked   (the request is not in the archive)"
    if reason.task:
        yield f"task    “{show(reason.task)}”"
    if reason.go_ahead:
        approves = f"   ← approves: {show(reason.approves)}" if reason.approves else ""
        yield f"go-ahead   “{show(reason.go_ahead)}”{approves}"
    yield from (f"decided   {show(one)}" for one in reason.decisions)
    if reason.said_before:
        yield f"said just before   “{show(reason.said_before)}”"
    for test in reason.tests:
        line = f": {show(test.line)}" if test.line else ""
        yield f"then ran   {show(test.what)} ({test.verdict}{line})"


# --- overviews ---
def overview_lines(report: WhyReport, show: Show) -> Iterator[str]:
    """Yield which turns wrote how much, with the lines of each file."""
    counts = count_levels(report)
    sessions = {(line.writer.agent, line.writer.session) for file in report.files for line in file.lines if line.writer}
    shares = "  ".join(
        f"{name} {_percent(n, counts.lines)}"
        for name, n in (("replayed", counts.replayed), ("matched", counts.matched), ("likely", counts.likely), ("unknown", counts.unknown))
    )  # fmt: skip
    yield f"{plural(counts.lines, 'line')} · {plural(len(sessions), 'session')} wrote   {shares}"
    for note in report.turns:
        yield f"{note.agent} · {note.session} · turn {note.turn + 1}   “{show(note.reason.asked or note.title)}”"
        yield from (f"    {line}" for line in _turn_ranges(report, note, show))
    silent: dict[str, int] = {}
    for line in (line for file in report.files for line in file.lines if not line.level and line.text.strip()):
        silent[line.silence] = silent.get(line.silence, 0) + 1
    for silence, n in sorted(silent.items(), key=lambda item: -item[1]):
        yield f"{plural(n, 'line')} without an answer: {SILENCES.get(silence, silence)}"
    yield from _same_text_overview(report, show)
    if shared := sum(bool(line.alternatives) for file in report.files for line in file.lines):
        yield f"{plural(shared, 'line')} that another session wrote too, with the same text: `everturn why FILE:LINE` names both"
    committers = {one for commit in report.commits.values() for one in commit.sessions} - {name for _, name in sessions}
    if committers:
        yield f"committed by other sessions: {', '.join(sorted(committers))}"
    yield from (f"note: {note}" for note in report.notes)


def _same_text_overview(report: WhyReport, show: Show) -> Iterator[str]:
    """Yield, for each turn that wrote the text of lines without an answer earlier, these lines."""
    for file in report.files:
        found: dict[str, list[str]] = {}
        for line in file.lines:
            for name in dict.fromkeys(map(_writer_name, line.same_text)):
                found.setdefault(name, []).append(str(line.line))
        for name, lines in found.items():
            shown = ",".join(lines[:_RANGES]) + ("…" if len(lines) > _RANGES else "")
            yield f"same text earlier   {name}   {show(file.path)}  {shown}"


def _turn_ranges(report: WhyReport, note: TurnNote, show: Show) -> Iterator[str]:
    for file in report.files:
        own = [
            group
            for group in group_lines(file)
            if group.answer.writer is not None and group.answer.writer.turn_key == (note.agent, note.session, note.turn)
        ]
        if not own:
            continue
        levels = ", ".join(dict.fromkeys(group.answer.level for group in own))
        shown = ",".join(group.numbers for group in own[:_RANGES]) + ("…" if len(own) > _RANGES else "")
        commit = own[0].answer.commit[:9] or "not committed"
        yield f"{show(file.path)}  {shown}  ({levels}; {commit})"


def _percent(n: int, total: int) -> str:
    return f"{100 * n / total:.0f} %" if total else "0 %"


# --- for programs ---
def report_items(report: WhyReport) -> Iterator[dict[str, Any]]:
    """Yield one item for each line: what is known about it, with the request of its turn."""
    reasons = {(one.agent, one.session, one.turn): one for one in report.turns}
    for file in report.files:
        for line in file.lines:
            writer = line.writer
            note = reasons.get(writer.turn_key) if writer is not None else None
            yield {"file": file.path, **_line_item(line), **(_reason_item(note.reason) if note is not None else {})}


def _line_item(line: LineAnswer) -> dict[str, Any]:
    return {
        "line": line.line,
        "text": line.text,
        "commit": line.commit or None,
        "path": line.path,
        "line_there": line.line_there,
        "level": line.level or None,
        "rule": line.rule or None,
        **_writer_item(line.writer),
        "silence": line.silence or None,
        "alternatives": [_writer_item(one) for one in line.alternatives],
        "same_text": [_writer_item(one) for one in line.same_text],
    }


def _writer_item(writer: Writer | None) -> dict[str, Any]:
    if writer is None:
        return {"session": None, "turn": None, "call": None, "evidence": None}
    version, start, size = writer.evidence
    return {
        "agent": writer.agent,
        "session": writer.session,
        "turn": writer.turn + 1,
        "message": writer.seq + 1,
        "call": writer.call,
        "tool": writer.tool,
        "at": iso(writer.at),
        "evidence": {"version": version, "start": start, "size": size},
    }


def _reason_item(reason: Reason) -> dict[str, Any]:
    return {
        "asked": reason.asked or None,
        "asked_from": {"session": reason.asked_session, "turn": reason.asked_turn + 1}
        if reason.asked_turn >= 0
        else None,
        "go_ahead": reason.go_ahead or None,
        "approves": reason.approves or None,
        "task": reason.task or None,
        "decisions": list(reason.decisions),
        "said_before": reason.said_before or None,
        "tests": to_builtins(reason.tests),
    }


def commit_items(report: WhyReport) -> list[dict[str, Any]]:
    """Return the commits of a report, with the sessions that made them."""
    return [
        {
            "commit": one.sha, "authored": iso(one.authored), "committed": iso(one.committed), "author": one.author,
            "subject": one.subject, "sessions": list(one.sessions),
        }
        for one in report.commits.values()
    ]  # fmt: skip


def porcelain_lines(report: WhyReport, show: Show) -> Iterator[str]:
    """Yield git blame porcelain (every line with all headers) plus headers of our own."""
    for file in report.files:
        # A group is a run of lines that the commit has in the same order.
        for _, run in groupby(file.lines, key=lambda line: (line.commit, line.path, line.line - line.line_there)):
            yield from _porcelain_run(list(run), report, show)


def _porcelain_run(lines: list[LineAnswer], report: WhyReport, show: Show) -> Iterator[str]:
    for number, line in enumerate(lines):
        count = f" {len(lines)}" if number == 0 else ""
        yield f"{line.commit or '0' * 40} {line.line_there} {line.line}{count}"
        yield from _porcelain_headers(line, report, show)
        yield f"\t{show(line.text)}"


def _porcelain_headers(line: LineAnswer, report: WhyReport, show: Show) -> Iterable[str]:
    commit = report.commits.get(line.commit)
    if commit is not None:
        people: tuple[tuple[str, str, str, int, str], ...] = (
            ("author", commit.author, commit.author_mail, commit.authored, commit.author_zone),
            ("committer", commit.committer, commit.committer_mail, commit.committed, commit.committer_zone),
        )
        subject = show(commit.subject)
    else:
        people = tuple((role, "Not Committed Yet", "not.committed.yet", 0, "+0000") for role in ("author", "committer"))
        subject = "Not committed yet"
    for role, name, mail, at, zone in people:
        yield from (
            f"{role} {show(name)}", f"{role}-mail <{show(mail)}>", f"{role}-time {at // 1000}", f"{role}-tz {zone}"
        )  # fmt: skip
    yield f"summary {subject}"
    yield f"filename {show(line.path)}"
    if line.writer is not None:
        yield from (
            f"everturn-agent {line.writer.agent}", f"everturn-session {line.writer.session}",
            f"everturn-turn {line.writer.turn + 1}", f"everturn-level {line.level}",
            *(f"everturn-also {one.agent} {one.session} {one.turn + 1}" for one in line.alternatives),
        )  # fmt: skip
    else:
        yield f"everturn-silence {line.silence}"
