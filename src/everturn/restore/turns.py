"""Turn reports without a model: the eight fields of a TURN SUMMARY for each turn, filled from its facts.

The fields are those that a model fills in, so that a reader need not know who wrote them. Each entry cites the message it
rests on. A field about which the turn says nothing is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from everturn.derive.paths import local_path
from everturn.derive.turn_facts import CallFact, TurnFacts
from everturn.model.archive import Session
from everturn.restore.document import NOT_STATED
from everturn.restore.evidence import Proofs
from everturn.sessions.messages import Sources
from everturn.sessions.state import session_facts
from everturn.store.contract import Store
from everturn.text.printable import Clean, one_line, printable

#: The fields in their order: key in JSON, label in text.
FIELDS = {
    "turn": "Turn number",
    "request": "User request summary",
    "response": "Agent response summary",
    "outcomes": "Key outcomes",
    "state_changes": "State changes",
    "artifacts": "Artifacts modified",
    "constraints": "Constraints/assumptions added",
    "open_questions": "Open questions after this turn",
}
_COMMAND = 110
_MOST_ENTRIES = 12  # entries of one field


class TurnEntry(Struct, frozen=True):
    """One entry of a field, and the message it rests on (-1: none)."""

    text: str
    seq: int = -1


class TurnReport(Struct, frozen=True):
    """The fields of one turn, by the keys of FIELDS but the first."""

    turn: int  # 0-based
    fields: dict[str, tuple[TurnEntry, ...]]


class TurnReports(Struct, frozen=True):
    """All turns, and notes on what could not be made as requested."""

    turns: tuple[TurnReport, ...]
    notes: tuple[str, ...] = ()


def report_turns(store: Store, sources: Sources, session: Session, last: int | None = None) -> TurnReports:
    """Report the turns of a session, or those up to `last` (0-based), from their facts."""
    workspace, proofs = store.session(session.id)[1].workspace, Proofs(store, sources, session)
    return TurnReports(
        tuple(report_turn(facts, workspace, proofs) for facts in session_facts(store, sources, session, 0, last))
    )


def report_turn(facts: TurnFacts, workspace: str, proofs: Proofs) -> TurnReport:
    fields: dict[str, Iterable[TurnEntry]] = {
        "request": (TurnEntry(one.text, one.seq) for one in facts.requests),
        "response": _response_entries(facts),
        "outcomes": _outcome_entries(facts),
        "state_changes": _change_entries(facts),
        "artifacts": _artifact_entries(facts, workspace),
        "constraints": (TurnEntry(mark.text, seq) for mark, seq in facts.marks if mark.binds),
        "open_questions": (TurnEntry(one.text, one.seq) for one in facts.asked),
    }
    return TurnReport(facts.turn, {key: tuple(_complete_excerpts(entries, proofs)) for key, entries in fields.items()})


def as_text(turns: Iterable[TurnReport], clean: Clean) -> Iterator[str]:
    """Yield the turns for people, one block each."""
    for one in turns:
        lines = ["TURN SUMMARY", f"{FIELDS['turn']}: {one.turn + 1}"]
        for key, entries in one.fields.items():
            words = [_entry_text(entry, one.turn, clean) for entry in entries[:_MOST_ENTRIES]]
            more = [f"(+{len(entries) - _MOST_ENTRIES} not shown)"] if len(entries) > _MOST_ENTRIES else []
            lines += _field_lines(FIELDS[key], [*words, *more])
        yield "\n".join(lines) + "\n"


def as_items(turns: Iterable[TurnReport], clean: Clean) -> Iterator[dict[str, Any]]:
    """Yield the turns for programs."""
    for one in turns:
        fields = {
            key: [{"text": _safe_text(entry.text, clean), "message": entry.seq + 1 or None} for entry in entries]
            for key, entries in one.fields.items()
        }
        yield {"turn": one.turn + 1, **fields}


def _field_lines(label: str, words: list[str]) -> list[str]:
    if len(words) < 2:
        return [f"{label}: {words[0] if words else NOT_STATED}"]
    return [f"{label}:", *(f"- {one}" for one in words)]


def _entry_text(entry: TurnEntry, turn: int, clean: Clean) -> str:
    citation = f" [t{turn + 1} #{entry.seq + 1}]" if entry.seq >= 0 else ""
    return f"{_safe_text(entry.text, clean)}{citation}"


def _safe_text(text: str, clean: Clean) -> str:
    return printable(" ".join(clean(text).split()), keep="")


def _complete_excerpts(entries: Iterable[TurnEntry], proofs: Proofs) -> Iterator[TurnEntry]:
    for one in entries:
        yield TurnEntry(proofs.whole(one.seq, one.text), one.seq) if one.text.endswith("…") else one


def _response_entries(facts: TurnFacts) -> Iterator[TurnEntry]:
    if facts.answer is not None:
        yield TurnEntry(facts.answer.text, facts.answer.seq)
    if facts.interrupted:
        yield TurnEntry("the turn was interrupted", facts.last_seq)


def _outcome_entries(facts: TurnFacts) -> Iterator[TurnEntry]:
    for commit, seq in facts.commits:
        yield TurnEntry(f"committed {commit.hash} {commit.subject}".replace("  ", " "), seq)
    for call in _last_of_each(facts.deeds, lambda one: one.outcome == "failed"):
        yield TurnEntry(f"`{one_line(call.what, _COMMAND)}` failed: {call.error}".rstrip(": "), call.seq)
    for call in _last_of_each(facts.deeds, lambda one: one.kind == "shell" and not one.outcome):
        ended = f" → {call.ended}" if call.ended else ""
        yield TurnEntry(f"`{one_line(call.what, _COMMAND)}`{ended}", call.seq)


def _last_of_each(calls: Iterable[CallFact], matches: Callable[[CallFact], bool]) -> Iterator[CallFact]:
    """Return the last matching call of each description, in order."""
    last = {call.what: call for call in calls if matches(call)}
    return iter(sorted(last.values(), key=lambda one: one.seq))


def _change_entries(facts: TurnFacts) -> Iterator[TurnEntry]:
    for mark, seq in facts.marks:
        if not mark.binds:
            yield TurnEntry(f"decided: {mark.text}", seq)
    for plan, seq in facts.plans[-1:]:
        for change in plan.changes:
            yield TurnEntry(f"plan: {change.text or f'item {change.id}'} {change.status}".rstrip(), seq)
    for step in facts.steps:
        yield TurnEntry(f"next: {step.text}", step.seq)


def _artifact_entries(facts: TurnFacts, workspace: str) -> Iterator[TurnEntry]:
    changed = {
        local_path(touch.path, workspace): (touch.action, touch.seq) for touch in facts.files if touch.action != "read"
    }
    for path, (action, seq) in changed.items():
        yield TurnEntry(f"`{path}` {action}", seq)
