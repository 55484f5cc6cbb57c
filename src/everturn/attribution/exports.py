"""A report of `why` in the formats of others: git notes (git-ai authorship 3.0.0) and Agent Trace 0.1.

Only lines with an answer of the chosen levels are exported; about the others nothing is claimed, least of all that a human
wrote them. A note carries ids, levels and line numbers. Texts of requests are added only if asked for, and masked.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from typing import Any

from msgspec import Struct

from everturn.attribution.report import LineAnswer, WhyReport, line_ranges
from everturn.attribution.repository import Repository
from everturn.model.archive import KeptRow
from everturn.store.contract import Store
from everturn.text.times import iso

#: Levels that are exported unless others are asked for.
SURE = ("replayed", "matched")
NOTES, OWN_NOTES = "ai", "everturn"
_SCHEMA = "authorship/3.0.0"
_DIGITS = 14
_TRACE = "0.1.0"
_GIT_NOTE = "git note"  # the kind of kept rows that say where a session is named in a note

Clean = Callable[[str], str]
Requests = dict[tuple[str, str, int], str]  # (agent, session, turn) → request


class NoteDraft(Struct, frozen=True):
    """A note that is about to be written, and where."""

    commit: str
    ref: str
    text: str
    writers: tuple[tuple[str, str], ...] = ()  # agent and session


def requests_of(report: WhyReport, clean: Clean) -> Requests:
    """Return the masked request of each turn of a report."""
    return {(one.agent, one.session, one.turn): clean(one.reason.asked) for one in report.turns if one.reason.asked}


# --- git notes ---
def note_drafts(
    report: WhyReport, repository: Repository, levels: tuple[str, ...] = SURE, requests: Requests | None = None
) -> Iterator[NoteDraft]:
    """Yield a note for each commit with answers: under `refs/notes/ai` where that is free, else under our own ref."""
    for sha, files in _lines_by_commit(report, levels).items():
        existing = repository.note(NOTES, sha)
        ref = NOTES if existing is None else OWN_NOTES
        if existing is not None and (_is_own(existing) or repository.note(OWN_NOTES, sha) is not None):
            continue  # a note is never replaced, and one of ours is enough
        writers = {(one.writer.agent, one.writer.session) for lines in files.values() for one in lines if one.writer}
        text = _note_text(sha, files, requests or {})
        yield NoteDraft(sha, ref, text, tuple(sorted(writers)))


def _is_own(note: str) -> bool:
    """Whether a note was written here: only ours says how sure it is."""
    try:
        about = json.loads(note.partition("\n---\n")[2])
    except ValueError:
        return False
    return isinstance(about, dict) and "everturn" in about


def write_notes(repository: Repository, drafts: list[NoteDraft], store: Store, now: int) -> int:
    """Write notes; return how many. The archive keeps where they are, for `forget`."""
    place = str(repository.root or repository.common)
    for one in drafts:
        repository.add_note(one.ref, one.commit, one.text)
        key = json.dumps([place, one.ref, one.commit])
        with store.write():
            for agent, session in one.writers:
                store.keep(KeptRow(_GIT_NOTE, agent, session, key, "{}", now))
    return len(drafts)


def note_removals(store: Store, sessions: Collection[str]) -> list[str]:
    """Return the commands that remove the notes which name one of these sessions, as far as this archive wrote them."""
    keys = dict.fromkeys(one.key for one in store.kept(_GIT_NOTE) if one.subject in sessions)
    places = (json.loads(key) for key in keys)
    return [shlex.join(["git", "-C", place, "notes", f"--ref={ref}", "remove", sha]) for place, ref, sha in places]


def _note_text(sha: str, files: dict[str, list[LineAnswer]], requests: Requests) -> str:
    lines: list[str] = []
    writers: dict[str, dict[str, Any]] = {}
    for path, answers in files.items():
        lines.append(json.dumps(path, ensure_ascii=False) if any(sign in path for sign in ' "\t\n') else path)
        for key, numbers in _ranges_by_writer(answers).items():
            writer = next(
                one.writer for one in answers if one.writer is not None and _turn_key(*one.writer.turn_key) == key
            )
            assert writer is not None
            lines.append(f"  {key} {numbers}")
            writers[key.partition("::")[0]] = {"agent_id": {"tool": writer.agent, "id": writer.session}}
    turns = {_turn_key(*one.writer.turn_key) for answers in files.values() for one in answers if one.writer is not None}
    told = {key: text for turn, text in requests.items() if (key := _turn_key(*turn)) in turns}
    levels = sorted({answer.level for answers in files.values() for answer in answers})
    more: dict[str, Any] = {"levels": levels, **({"requests": told} if told else {})}
    about = {"schema_version": _SCHEMA, "base_commit_sha": sha, "sessions": writers, "everturn": more}
    return "\n".join([*lines, "---", json.dumps(about, ensure_ascii=False, indent=2)]) + "\n"


def _session_key(agent: str, session: str) -> str:
    return f"s_{sha256(f'{agent}:{session}'.encode('utf-8', 'replace')).hexdigest()[:_DIGITS]}"


def _turn_key(agent: str, session: str, turn: int) -> str:
    digits = sha256(f"{agent}:{session}:{turn}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{_session_key(agent, session)}::t_{digits}"


def _lines_by_commit(report: WhyReport, levels: tuple[str, ...]) -> dict[str, dict[str, list[LineAnswer]]]:
    found: dict[str, dict[str, list[LineAnswer]]] = {}
    for file in report.files:
        for line in file.lines:
            if line.level in levels and line.commit:
                found.setdefault(line.commit, {}).setdefault(line.path, []).append(line)
    return found


def _ranges_by_writer(answers: list[LineAnswer]) -> dict[str, str]:
    """Return the numbers of lines of each writer as `1-4,9`."""
    numbers: dict[str, list[int]] = {}
    for one in answers:
        if one.writer is not None:
            numbers.setdefault(_turn_key(*one.writer.turn_key), []).append(one.line_there)
    return {
        key: ",".join(f"{a}-{b}" if a < b else str(a) for a, b in line_ranges(found)) for key, found in numbers.items()
    }


# --- Agent Trace ---
def trace_records(
    report: WhyReport, now: int, levels: tuple[str, ...] = SURE, requests: Requests | None = None
) -> Iterator[dict[str, Any]]:
    """Yield one Agent Trace record for each commit with answers."""
    for sha, files in _lines_by_commit(report, levels).items():
        name = sha256(f"everturn:{sha}".encode()).hexdigest()
        yield {
            "version": _TRACE,
            "id": f"{name[:8]}-{name[8:12]}-4{name[13:16]}-8{name[17:20]}-{name[20:32]}",
            "timestamp": iso(now),
            "vcs": {"type": "git", "revision": sha},
            "tool": {"name": "everturn"},
            "files": [_trace_file(path, answers, requests or {}) for path, answers in files.items()],
        }


def _trace_file(path: str, answers: list[LineAnswer], requests: Requests) -> dict[str, Any]:
    groups: dict[tuple[str, str, int, str, str], list[LineAnswer]] = {}
    for one in answers:
        if one.writer is not None:
            groups.setdefault((*one.writer.turn_key, one.level, one.rule), []).append(one)
    talks = []
    for (agent, session, turn, level, rule), lines in groups.items():
        ranges = [{"start_line": a, "end_line": b} for a, b in line_ranges([one.line_there for one in lines])]
        own: dict[str, Any] = {"level": level, "rule": rule, "agent": agent, "session": session, "turn": turn + 1}
        if (agent, session, turn) in requests:
            own["request"] = requests[agent, session, turn]
        talks.append({"contributor": {"type": "ai"}, "ranges": ranges, "metadata": {"dev.everturn": own}})
    return {"path": path, "conversations": talks}
