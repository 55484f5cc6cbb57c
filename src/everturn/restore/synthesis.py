"""Restore a session with a model: turn summaries, an evidence search, a SESSION SUMMARY, every statement checked.

`restore_with_model` always returns a complete document: the mechanical one, and the model's statements that code
confirmed, which come first in their section. Nothing certain is lost because a model left it out. Unconfirmed statements
are listed apart with the reason. If no answer is usable, the document is the mechanical one and its notes say why.
Answers are kept: the same request is never paid for twice.

`report_turns_with_model` checks the TURN SUMMARY of each turn in the same way. A turn that the model did not summarise is
reported from its facts, so that no turn is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import ModelError
from everturn.llm.asker import Asker
from everturn.llm.protocol import Receipt
from everturn.model.archive import KeptRow, Session
from everturn.model.conversation import prepared
from everturn.recall.evidence import session_evidence
from everturn.restore.check import check_sentence, check_together
from everturn.restore.document import SECTIONS, Document, DocumentSection, Statement
from everturn.restore.evidence import CheckedStatement, Proofs, weight_by_rank
from everturn.restore.evidence_search import Brief, EvidenceFindings, findings_text, search_evidence
from everturn.restore.grounds import Ground, find_named_things, read_citations, same_file, stems
from everturn.restore.markdown import document_markdown
from everturn.restore.mechanical import Progress, document_from_state, read_material
from everturn.restore.prompts import (
    SESSION_HEADER,
    SessionSummary,
    TurnSummary,
    ask_in_form,
    fill_prompt,
    session_summary,
    single_message_request,
)
from everturn.restore.summaries import (
    ModelRestoreOptions,
    TurnSummaries,
    all_summaries_text,
    keep,
    model_of,
    state_text,
    summarise_turns,
)
from everturn.restore.turns import FIELDS, TurnEntry, TurnReport, TurnReports, report_turn
from everturn.sessions.messages import Sources, has_words
from everturn.store.contract import Store
from everturn.text.printable import one_line, plural, quote_for_model

#: The weight of a model's first statement in each section, and the most statements of a section.
_TOP_WEIGHTS = {
    "session_name": 100.0, "high_level_goal": 99.5, "primary_task": 98.5, "next_steps": 93.0, "constraints": 91.0,
    "open_questions": 89.0, "key_decisions": 85.0, "artifacts": 80.0,
}  # fmt: skip
_MOST_BY_SECTION = {"session_name": 1, "high_level_goal": 2, "primary_task": 3}
_MOST_PER_SECTION = 60
_LEAST_WEIGHT = 40.0
_UNVERIFIED = 45.0
_SAME = 0.6


def weigh_statements(ground: Ground, summary: SessionSummary) -> dict[str, list[CheckedStatement]]:
    """Check every statement of the model, each alone and then all together."""
    return check_together({
        key: [check_sentence(ground, key, sentence) for sentence in summary.sections.get(key, ())[:_MOST_PER_SECTION]]
        for key in SECTIONS
    })  # fmt: skip


def merge_documents(document: Document, checked: dict[str, list[CheckedStatement]]) -> Document:
    sections = tuple(_merge_section(one, checked.get(one.key, ())) for one in document.sections)
    failed = [one.statement for entries in checked.values() for one in entries if not one.holds]
    unverified = tuple(
        replace(one, weight=weight_by_rank(_UNVERIFIED, rank, 10.0))
        for rank, one in enumerate(_unique_statements(failed))
    )
    return replace(document, sections=sections, unverified=(*document.unverified, *unverified))


def _merge_section(section: DocumentSection, checked: Iterable[CheckedStatement]) -> DocumentSection:
    confirmed = _unique_statements(one.statement for one in checked if one.holds)[
        : _MOST_BY_SECTION.get(section.key, _MOST_PER_SECTION)
    ]
    ours = [
        replace(
            one,
            weight=max(
                weight_by_rank(_TOP_WEIGHTS[section.key], rank, _LEAST_WEIGHT),
                max((other.weight for other in section.statements if _is_same(other, one)), default=0.0),
            ),
        )
        for rank, one in enumerate(confirmed)
    ]
    if section.key == "session_name" and ours:
        return replace(section, statements=tuple(ours))
    rest = (one for one in section.statements if not any(_is_same(one, other) for other in ours))
    return replace(section, statements=(*ours, *rest))


def _is_same(mechanical: Statement, other: Statement) -> bool:
    """Whether two statements say the same: about the same file, or about the same message in mostly the same words."""
    files, others = find_named_things(mechanical.text).files, find_named_things(other.text).files
    if files and others:
        return any(same_file(one, path) or same_file(path, one) for one in files for path in others)
    significant = stems(mechanical.text)
    if not significant:
        return False
    messages = {(one.session, one.message) for one in mechanical.evidence}
    shares_message = any((one.session, one.message) in messages for one in other.evidence)
    return shares_message and len(significant & stems(other.text)) >= _SAME * len(significant)


def _unique_statements(statements: Iterable[Statement]) -> list[Statement]:
    return list({" ".join(one.text.lower().split()): one for one in reversed(list(statements))}.values())[::-1]


#: Kind of the kept rows that hold one answer each.
SYNTHESIS_KIND = "synthesis"

_ANSWER = 4000  # tokens
_MOST_REASONS = 5  # reasons for skipped turns that are shown


class Synthesis(Struct, frozen=True):
    """The model's answer, and notes on how it came about."""

    text: str = ""
    notes: tuple[str, ...] = ()
    receipts: list[Receipt] = []


def restore_with_model(
    store: Store,
    sources: Sources,
    session: Session,
    asker: Asker | None,
    options: ModelRestoreOptions | None = None,
    progress: Progress = lambda done, total: None,
) -> Document:
    """Return the document of a session, written with a model if there is one."""
    options = options or ModelRestoreOptions()
    state = read_material(store, sources, session, options.last).state
    document = document_from_state(store, sources, session, state)
    if asker is None or asker.backend is None or not has_words(session) or not document.turns:
        return document
    first = len(asker.receipts)
    summaries = summarise_turns(store, sources, session, asker, options, progress)
    work = _SynthesisPass(store, sources, session, asker, options)
    ground = Ground(store, sources, session, state, options.clean)
    made, checked = work.synthesis(document, summaries, ground)
    document = merge_documents(document, checked) if checked else document
    return replace(
        document,
        notes=(*document.notes, *skipped_notes(summaries), *made.notes),
        model=model_of(asker) if checked else "",
        prompt_version=options.prompts.version if checked else "",
        receipts=(*summaries.receipts, *made.receipts, *asker.receipts[first:]),
        missing=bool(summaries.skipped) or not checked,
    )


class _SynthesisPass:
    def __init__(
        self, store: Store, sources: Sources, session: Session, asker: Asker, options: ModelRestoreOptions
    ) -> None:
        self.store, self.sources, self.session, self.asker, self.options = store, sources, session, asker, options
        self.room = options.room(asker, _ANSWER)

    def synthesis(
        self, document: Document, summaries: TurnSummaries, ground: Ground
    ) -> tuple[Synthesis, dict[str, list[CheckedStatement]]]:
        """Return the model's answer and its checked statements; a note and no statements if there is no answer."""
        if not summaries.turns:
            return Synthesis(
                notes=("the model could not summarise any turn; this document is made from the records only",)
            ), {}
        key = self._key(summaries)
        kept = None if self.options.fresh else self._read_kept(key)
        summary = session_summary(kept.text) if kept is not None else None
        if kept is not None and summary is not None:
            return kept, weigh_statements(ground, summary)
        first = len(self.asker.receipts)
        try:
            made, checked = self._ask_synthesis(document, summaries, ground)
        except ModelError as error:
            return Synthesis(
                notes=(f"the model's summary is missing: {error.why}; this document is made from the records only",)
            ), {}
        if checked:
            value = replace(made, receipts=list(self.asker.receipts[first:]))
            row = msgspec.json.encode(value).decode()
            keep(
                self.store,
                KeptRow(SYNTHESIS_KIND, self.session.agent, self.session.native_id, key, row, self.options.now),
            )
        return made, checked

    def _ask_synthesis(
        self, document: Document, summaries: TurnSummaries, ground: Ground
    ) -> tuple[Synthesis, dict[str, list[CheckedStatement]]]:
        material = self._prompt_material(document, summaries)
        found = self._search_evidence(material)
        values = {**material, "evidence": findings_text(found, self.room * 4 // 10)}
        request = single_message_request(fill_prompt(self.options.prompts.synthesis, values), _ANSWER)
        reading = _SynthesisReader(ground)
        answer = ask_in_form(self.asker, request, "synthesis", SESSION_HEADER, reading.read)
        notes = list(found.notes)
        if answer.was_cut and answer.value is not None:
            notes.append("the model's summary was cut off; its last line is omitted")
        if answer.value is None and reading.unconfirmed is None:
            return Synthesis(notes=(*notes, f"{answer.why}; this document is made from the records only")), {}
        if answer.value is None and reading.unconfirmed is not None:
            notes.append("no statement by the model could be confirmed")
            return Synthesis(reading.text, tuple(notes)), reading.unconfirmed
        return Synthesis(answer.text, tuple(notes)), answer.value or {}

    def _prompt_material(self, document: Document, summaries: TurnSummaries) -> dict[str, str]:
        """Return the values of every prompt about the whole session: at least summaries and state."""
        tenth = self.room // 10
        known = document_markdown(document, self.options.clean, max(tenth * 2, 600))
        state = f"{known}\n\nWhat the turn summaries add up to:\n{state_text(summaries.state, tenth)}"
        return {"summaries": quote_for_model(all_summaries_text(summaries, tenth * 3)), "state": quote_for_model(state)}

    def _search_evidence(self, material: dict[str, str]) -> EvidenceFindings:
        if self.options.skip_evidence or self.options.max_searches < 1:
            return EvidenceFindings()
        clean, most = self.options.clean, self.options.max_searches
        tools = session_evidence(self.store, self.sources, self.session, self.options.workspace, clean, most)
        brief = Brief(self.options.prompts.evidence, material, self.room * 4 // 10)
        can = self.asker.backend is not None and self.asker.backend.takes_tools
        native = can if self.options.native_tools is None else self.options.native_tools
        return search_evidence(self.asker, tools, brief, native)

    def _key(self, summaries: TurnSummaries) -> str:
        """Return a hash of all that the answer depends on: turns, skipped turns, prompts, model, search options."""
        options = self.options
        parts = (
            summaries.digest, sorted(summaries.skipped), options.prompts.version, model_of(self.asker),
            options.skip_evidence, options.max_searches, options.prompt_tokens, *filter(None, [options.workspace]),
        )  # fmt: skip
        return blake2b(repr(parts).encode(), digest_size=16).hexdigest()

    def _read_kept(self, key: str) -> Synthesis | None:
        for row in self.store.kept(SYNTHESIS_KIND, self.session.native_id):
            if row.key == key and row.agent == self.session.agent:
                try:
                    return msgspec.json.decode(row.value, type=prepared(Synthesis))
                except msgspec.MsgspecError:  # written by another version
                    return None
        return None


class _SynthesisReader:
    """Reads an answer and checks it. An answer of which nothing holds is not a summary."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.unconfirmed: dict[str, list[CheckedStatement]] | None = None
        self.text = ""

    def read(self, text: str) -> dict[str, list[CheckedStatement]] | None:
        """Return the statements by section; None if the form is not filled in, or no statement holds."""
        summary: SessionSummary | None = session_summary(text)
        if summary is None:
            return None
        checked = weigh_statements(self._ground, summary)
        if any(one.holds for entries in checked.values() for one in entries):
            return checked
        self.unconfirmed, self.text = checked, text
        return None


def skipped_notes(summaries: TurnSummaries) -> Iterator[str]:
    """Yield notes on skipped turns, so that none is lost silently. Turns with one reason share a note."""
    by_reason: dict[str, list[int]] = {}
    for turn, why in summaries.skipped.items():
        by_reason.setdefault(one_line(why, 300), []).append(turn)
    reasons = list(by_reason.items())
    for why, turns in reasons[:_MOST_REASONS]:
        which = f"turn {turns[0] + 1} was" if len(turns) == 1 else f"turns {_format_ranges(turns)} were"
        yield f"{which} not summarised by the model: {why}"
    more = [turn for _, turns in reasons[_MOST_REASONS:] for turn in turns]
    if more:
        yield f"{plural(len(more), 'more turn')} not summarised: {_format_ranges(more)}"


def _format_ranges(turns: Iterable[int]) -> str:
    """Format turn numbers, 1-based, with neighbours as a range: 3–5, 9."""
    spans: list[list[int]] = []
    for turn in sorted(turns):
        if spans and turn == spans[-1][1] + 1:
            spans[-1][1] = turn
        else:
            spans.append([turn, turn])
    return ", ".join(f"{one + 1}" if one == last else f"{one + 1}–{last + 1}" for one, last in spans)


#: The section whose rules apply to a field; other fields have no rules.
_RULES = {"constraints": "constraints", "state_changes": "key_decisions"}


def report_turns_with_model(
    store: Store,
    sources: Sources,
    session: Session,
    asker: Asker,
    options: ModelRestoreOptions | None = None,
    progress: Progress = lambda done, total: None,
) -> TurnReports:
    options = options or ModelRestoreOptions()
    facts = read_material(store, sources, session, options.last, keep_facts=True)
    summaries = summarise_turns(store, sources, session, asker, options, progress)
    ground = Ground(store, sources, session, facts.state, options.clean)
    by_model = {one.turn: one for one in summaries.turns}
    workspace, proofs = store.session(session.id)[1].workspace, Proofs(store, sources, session)
    turns = (
        _check_turn(ground, by_model[one.turn]) if one.turn in by_model else report_turn(one, workspace, proofs)
        for one in facts.facts
    )
    return TurnReports(tuple(turns), tuple(skipped_notes(summaries)))


def _check_turn(ground: Ground, summary: TurnSummary) -> TurnReport:
    return TurnReport(
        summary.turn, {key: tuple(_check_entries(ground, summary, key)) for key in FIELDS if key != "turn"}
    )


def _check_entries(ground: Ground, summary: TurnSummary, key: str) -> Iterator[TurnEntry]:
    value = getattr(summary, key) or ()
    for sentence in (value,) if isinstance(value, str) else value:
        cited = sentence if read_citations(sentence).citations else f"{sentence} [t{summary.turn + 1}]"
        checked = check_sentence(ground, _RULES.get(key, ""), cited)
        one = checked.statement
        if checked.holds and one.evidence:
            yield TurnEntry(one.text, one.evidence[0].message)
        else:
            yield TurnEntry(f"{one.text} (unverified: {one.reason})")
