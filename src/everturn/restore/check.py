"""Check the sentences of a model against the records of a session.

Each turn and message that a sentence cites must exist, each quotation must occur in a cited message, and the files,
commands, commits and numbers it names must occur in the cited turns. What it says was done must have been done
(`claim_record`), its numbers must belong to the same thing (`claim_counts`), and whoever it says spoke must
have said so, not the opposite (`claim_speech`). What passes all this agrees with the record only if the cited messages account
for what it says (`claim_accounts`). Of statements that contradict each other only one with clearly better support stays
(`claim_conflicts`). A sentence without a citation gets that of a mechanical fact that says
the same. One that rests only on a client's summary, or a rule that only a tool printed, is not a fact. Code cannot check that a
sentence draws the right conclusion. All checks use the text as captured, before secrets are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from everturn.model.archive import MessageRow
from everturn.restore.claim_accounts import WISHED, CitedStatement, find_gaps
from everturn.restore.claim_acts import ClaimedAct, find_acts
from everturn.restore.claim_conflicts import find_conflicts
from everturn.restore.claim_counts import (
    NumberTexts,
    find_count_faults,
    find_number_faults,
    find_value_faults,
)
from everturn.restore.claim_language import find_language, spoken_languages
from everturn.restore.claim_polarity import split_sentences
from everturn.restore.claim_record import RecordedRun, act_record, command_kinds, has_failed, record_counts
from everturn.restore.claim_speech import (
    find_speech_doubts,
    find_speech_faults,
    is_hearsay,
    unknown_names,
)
from everturn.restore.document import AGREES, CONTRADICTED, NOT_CHECKED, QUOTED, Evidence, Statement
from everturn.restore.evidence import CheckedStatement, has_quote, mark_checked, normalise_quotes, quote_short
from everturn.restore.grounds import (
    Citation,
    Fact,
    Ground,
    NamedThings,
    StatementCitations,
    find_named_things,
    read_citations,
    same_file,
    stems,
    turns_named,
)
from everturn.text.printable import one_line

_LEAST_SPOKEN = 0.5  # share of the words beside the quotation of a tool that somebody must say
_LEAST_LIKENESS = 0.7  # share of them that a fact must contain to say the same
_LONGEST = 600
#: Messages, and characters of each, in which the support of a statement is looked for.
_MOST_ROWS, _LONGEST_COMPARED = 40, 20_000

#: Sections in which a statement must rest on a message of a person or model, not on the output of a tool.
_SPOKEN_SECTIONS = ("high_level_goal", "key_decisions", "constraints", "next_steps")

#: Those of them that are asked for once and then done.
_WANTED = ("high_level_goal", "primary_task", "next_steps")
_CLEARLY = 0.1  # by how much the support of a statement must be better


def check_sentence(ground: Ground, key: str, sentence: str) -> CheckedStatement:
    """Check one sentence. The word of the statement says what was checked, never more."""
    parsed = read_citations(one_line(sentence, _LONGEST))
    citations = parsed.citations or tuple(_match_fact(ground, parsed))
    if not citations:
        reason = "it cites no turn or message, and no recorded fact supports it"
        return mark_checked(Statement(parsed.text, label="model", check=NOT_CHECKED), [reason])
    trial = _StatementTrial(ground, key, parsed, citations)
    statement = Statement(parsed.text, tuple(trial.evidence()), label=trial.label, check=trial.check)
    return replace(mark_checked(statement, trial.reasons), support=0.0 if trial.reasons else trial.support())


def check_together(checked: dict[str, list[CheckedStatement]]) -> dict[str, list[CheckedStatement]]:
    """Take back what holds alone but is contradicted by a statement of the model that is as well supported.

    Of two that contradict each other the one with clearly better support stays; both fall if neither has it. What is wanted and
    what was done by the end do not contradict each other.
    """
    places = [(key, number) for key, entries in checked.items() for number, one in enumerate(entries) if one.holds]
    texts = [checked[key][number].statement.text for key, number in places]
    against: dict[tuple[str, int], str] = {}
    for one, other in find_conflicts(texts):
        if not _are_comparable(places[one][0], places[other][0]):
            continue
        lead = _rank(checked, places[one]) - _rank(checked, places[other])
        if lead < _CLEARLY:
            against.setdefault(places[one], texts[other])
        if -lead < _CLEARLY:
            against.setdefault(places[other], texts[one])
    return {
        key: [_take_back(one, against.get((key, number), "")) for number, one in enumerate(entries)]
        for key, entries in checked.items()
    }


def _are_comparable(one: str, other: str) -> bool:
    """Whether statements of two sections can contradict each other: what is still to be done says nothing of what was."""
    return (one in _WANTED) == (other in _WANTED) and {one, other} != {"constraints", "artifacts"}


def _rank(checked: dict[str, list[CheckedStatement]], place: tuple[str, int]) -> float:
    key, number = place
    one = checked[key][number]
    return 1 + one.support if one.statement.check == QUOTED else one.support


def _take_back(one: CheckedStatement, other: str) -> CheckedStatement:
    if not other or one.statement.check == QUOTED:
        return one
    reason = f"another statement by the model says {quote_short(other)}"
    return mark_checked(replace(one.statement, check=CONTRADICTED), [reason])


class _StatementTrial:
    """Checks one sentence of a model against the session."""

    def __init__(self, ground: Ground, key: str, parsed: StatementCitations, citations: tuple[Citation, ...]) -> None:
        self.ground, self.key, self.parsed = ground, key, parsed
        self.reasons: list[str] = []
        self.label, self.check = "model", AGREES
        self.cited: list[MessageRow] = []
        self.turns: list[int] = []
        self.proofs: dict[int, tuple[MessageRow, str]] = {}
        self.acts: list[ClaimedAct] = []
        self.foreign = False
        for citation in citations:
            self._add_citation(citation)
        self.reasons += [f"there is no turn {one + 1}" for one in turns_named(parsed.text) if not ground.has_turn(one)]
        if self.reasons:
            self.check = NOT_CHECKED
        else:
            self._check_words()

    def evidence(self) -> Iterator[Evidence]:
        """Yield the messages it rests on, those that contain its quotations first."""
        session = self.ground.session
        rows = list(self.proofs.values()) + [(row, "") for row in self.cited if row.seq not in self.proofs]
        if not rows and self.turns:
            rows = [(self._best_row(turn), "") for turn in self.turns[:3]]
        for row, quote in rows:
            yield Evidence(session.id, row.turn, row.seq, None, row.start, row.size, quote, session.native_id)

    def support(self) -> float:
        """Return the share of its words that the best sentence of the cited messages has."""
        words = stems(self.parsed.text)
        rows = list(self._candidates())[:_MOST_ROWS]
        texts = (self.ground.speech(row) or self.ground.text(row) for row in rows)
        sentences = (stems(one) for text in texts for one in split_sentences(text[:_LONGEST_COMPARED]))
        return max((len(words & one) for one in sentences), default=0) / max(1, len(words))

    def _add_citation(self, citation: Citation) -> None:
        if citation.message is None:
            if citation.turn is not None and self.ground.has_turn(citation.turn):
                self.turns.append(citation.turn)
            else:
                self.reasons.append(f"there is no turn {(citation.turn or 0) + 1}")
            return
        row = self.ground.row(citation.message)
        if row is None:
            self.reasons.append(f"there is no message {citation.message + 1}")
        elif citation.turn is not None and row.turn != citation.turn:
            actual = f"message {citation.message + 1} belongs to turn {row.turn + 1}"
            self.reasons.append(f"{actual}, not to turn {citation.turn + 1}")
        else:
            self.cited.append(row)
            self.turns.append(row.turn)

    def _check_words(self) -> None:
        self.turns = list(dict.fromkeys(self.turns))
        self.foreign = self._is_foreign()
        things = find_named_things(self.parsed.text)
        self.acts = list(find_acts(self.parsed.text))
        self._look_for_faults(things)
        if self.reasons:
            self.check = CONTRADICTED
            return
        is_quotation = self._is_quotation()
        if not is_quotation:
            self._check_account(things)
        if not self.reasons:
            self._check_origin()
        if self.reasons:
            self.check = NOT_CHECKED
        elif is_quotation:
            self.check = QUOTED

    def _look_for_faults(self, things: NamedThings) -> None:
        """Look for what the record contradicts."""
        self._check_quotations()
        self._check_things(things)
        if not self.reasons:
            self._check_acts(things)
        self.reasons = list(dict.fromkeys(self.reasons))
        if not self.reasons:
            self.reasons += find_speech_faults(
                self.ground, self.parsed.text, self.key, self.turns, self.cited, self.foreign
            )

    def _check_account(self, things: NamedThings) -> None:
        """Look for what the cited messages do not account for."""
        ground, text, cited = self.ground, self.parsed.text, self.cited
        rows, turns = tuple(self._candidates()), tuple(self.turns)
        statement = CitedStatement(self.key, text, things, tuple(self.acts), turns, tuple(cited), rows, self.foreign)
        self.reasons += find_gaps(ground, statement)
        self.reasons += find_speech_doubts(ground, text, self.turns, cited)
        self.reasons += [f"{quote_short(name)} does not occur in the session" for name in unknown_names(ground, text)]

    def _check_things(self, things: NamedThings) -> None:
        """Look up its files, code, commits and numbers."""
        texts = [self.ground.words(turn).text for turn in self.turns]
        spoken = "\n".join(self.ground.speech(row) for turn in self.turns for row in self.ground.rows(turn))
        cited = "\n".join(self.ground.text(row) for row in self._candidates())
        whole = "\n".join(texts)
        self.reasons += _missing_files(self.ground, self.turns, texts, things)
        self.reasons += _missing_things(self.ground, self.turns, texts, things)
        self.reasons += find_count_faults(self.parsed.text, whole, record_counts(self.ground))
        self.reasons += find_number_faults(self.parsed.text, NumberTexts(cited, whole, spoken, self.foreign))
        self.reasons += find_value_faults(self.parsed.text, cited)

    def _check_acts(self, things: NamedThings) -> None:
        """Hold what it says was done against the record."""
        acts = self.acts
        if self.key == "high_level_goal" or is_hearsay(
            self.parsed.text
        ):  # what is wanted or said, not how a check ended
            acts = [act for act in acts if act.kind not in ("pass", "fail")]
        self.reasons += _unchanged_files(self.ground, self.turns, acts, things)
        if self.key not in WISHED:
            self.reasons += _find_ending_faults(self.ground, self.parsed.text, acts, self.cited)
        if acts and not self._is_human_quotation():  # a person may ask for what was never done
            self.reasons += act_record(self.ground).find_faults(acts, self.turns, bool(self.key), self.foreign)

    def _is_foreign(self) -> bool:
        """Whether it is in another language than what was said in the cited messages, or in their turns if they say nothing."""
        own = find_language(self.parsed.text)
        if not own:
            return False
        for rows in (self.cited, [row for turn in self.turns for row in self.ground.rows(turn)]):
            spoken = frozenset[str]().union(*(spoken_languages(self.ground.speech(row)) for row in rows))
            if spoken:
                return own not in spoken
        return False

    def _is_human_quotation(self) -> bool:
        people = (row for row in self._candidates() if self.ground.is_person(row))
        return any(has_quote(self.parsed.text, self.ground.text(row)) for row in people)

    def _is_quotation(self) -> bool:
        """Whether the words of the statement are those of a cited message."""
        own = self.parsed.text
        for quote in self.parsed.quotes:
            own = own.replace(quote, " ")
        if self.parsed.quotes and len(stems(own)) <= 1 and not find_named_things(own).files:
            return True
        return any(has_quote(self.parsed.text, self.ground.text(row)) for row in self._candidates())

    def _check_quotations(self) -> None:
        for quote in self.parsed.quotes:
            row = next((row for row in self._candidates() if self.ground.quotes(row, quote)), None)
            if row is None:
                where = f"turn {self.turns[0] + 1}" if not self.cited else f"message {self.cited[0].seq + 1}"
                self.reasons.append(f"the quotation {quote_short(quote)} does not occur in {where}")
            elif "…" in quote or "[REDACTED" in quote or not has_quote(quote, self.ground.text(row)):
                self.proofs.setdefault(row.seq, (row, ""))
            else:
                self.proofs[row.seq] = row, quote

    def _candidates(self) -> Iterator[MessageRow]:
        """Yield messages that may contain a quotation: cited ones, their results, and turns cited as a whole."""
        for row in self.cited:
            yield from self.ground.with_results(row)
        by_message = {row.turn for row in self.cited}
        for turn in self.turns:
            if turn not in by_message:
                yield from self.ground.rows(turn)

    def _check_origin(self) -> None:
        """Check who says it. A client's summary is hearsay, and the output of a tool binds nobody."""
        rows = [row for row, _ in self.proofs.values()] or self.cited
        if rows and all(row.kind in ("summary", "compaction") for row in rows):
            self.label = "compaction summary"
            self.reasons.append("its only source is a summary written by the client, which is not evidence")
        elif (
            rows
            and self.key in _SPOKEN_SECTIONS
            and all(
                (row.origin == "tool" or (row.origin == "injected" and self.key != "constraints"))
                and not self.ground.is_person(row)
                for row in rows
            )
        ):
            said = bool(self.acts) or self._is_spoken()
            self.reasons += [] if said else ["only the output of a tool says so; nobody in the session does"]

    def _is_spoken(self) -> bool:
        """Whether its own words, beside the quotation of a tool, are said by somebody in a cited turn."""
        own = self.parsed.text
        for quote in self.parsed.quotes:
            own = own.replace(quote, " ")
        words = stems(own)
        rows = (row for turn in self.turns for row in self.ground.rows(turn) if row.origin in ("human", "model"))
        return bool(words) and any(
            len(words & stems(self.ground.text(row))) >= _LEAST_SPOKEN * len(words) for row in rows
        )

    def _best_row(self, turn: int) -> MessageRow:
        """Return the message of a turn that touched the file the sentence names, else the most similar one."""
        touches = [
            seq for path in find_named_things(self.parsed.text).files for _, seq in self.ground.touches(turn, path)
        ]
        if touches and (row := self.ground.row(touches[-1])) is not None:
            return row
        significant, rows = stems(self.parsed.text), self.ground.rows(turn)
        return max(rows[:400], key=lambda row: (len(significant & stems(self.ground.text(row))), -row.seq))


# --- named things ---
def _missing_files(ground: Ground, turns: list[int], texts: list[str], things: NamedThings) -> Iterator[str]:
    for path in things.files:
        if any(ground.touches(turn, path) for turn in turns) or any(_has_path(path, text) for text in texts):
            continue
        elsewhere = [turn + 1 for turn in ground.turns_of(path) if ground.has_turn(turn)][:3]
        known = f"; it was touched in turn {', '.join(map(str, elsewhere))}" if elsewhere else ""
        yield f"{quote_short(path)} does not occur in turn {', '.join(str(turn + 1) for turn in turns[:5])}{known}"


def _missing_things(ground: Ground, turns: list[int], texts: list[str], things: NamedThings) -> Iterator[str]:
    where = f"turn {', '.join(str(turn + 1) for turn in turns[:5])}"
    for code in things.code:
        if not any(has_quote(code, text) or _has_parts(code, text) for text in texts):
            yield f"{quote_short(code)} does not occur in {where}"
    for commit in things.commits:
        hashes = [one.hash for one in ground.state.commits if one.hash and one.turn in turns]
        made = any(one.startswith(commit) or commit.startswith(one) for one in hashes)
        if not made and not any(commit in text for text in texts):
            yield f"commit {commit} does not occur in {where}"


def _has_parts(code: str, text: str) -> bool:
    """Whether a setting written in one line stands in several: `server.port: 80` for "server:" above "port: 80"."""
    parts = [re.escape(part) for part in re.split(r"[.:=\s]+", normalise_quotes(code)) if part]
    if not (2 <= len(parts) <= 8 and re.search(r"\w\.\w.*[:=]", code)):
        return False
    return bool(re.search(r"(?<!\w)" + r"(?!\w)[^\w]{0,12}(?:[\w-]+:\s*[\w./-]{1,40}\s*){0,4}".join(parts), text))


def _unchanged_files(ground: Ground, turns: list[int], acts: list[ClaimedAct], things: NamedThings) -> Iterator[str]:
    told = [act for act in acts if act.kind in ("edit", "create", "delete") and not act.denied]
    if len(things.files) == 1 and told:
        path = things.files[0]
        if not all(act_record(ground).may_be_done(act, path, turns) for act in told):
            yield from _find_unchanged(ground, turns, path)


def _find_unchanged(ground: Ground, turns: list[int], path: str) -> Iterator[str]:
    """Report a change recorded only in other turns, or a file that was only read. A shell may change files unseen."""
    if _changing_turns(ground, turns, path):
        return
    elsewhere = _changing_turns(ground, ground.turns_of(path), path)
    if elsewhere:
        yield f"{quote_short(path)} was not changed there; it was changed in turn {', '.join(str(turn + 1) for turn in elsewhere[:3])}"
    elif any(ground.touches(turn, path) for turn in turns):
        yield f"{quote_short(path)} was only read there"


def _changing_turns(ground: Ground, turns: list[int], path: str) -> list[int]:
    return [turn for turn in turns if any(action != "read" for action, _ in ground.touches(turn, path))]


def _has_path(path: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(path)}(?![\w-])", text))


def _match_fact(ground: Ground, parsed: StatementCitations) -> Iterator[Citation]:
    """Yield the citation of a mechanical fact that says the same as a sentence without one."""
    significant, things = stems(parsed.text), find_named_things(parsed.text)
    best, score = None, 0.0
    for fact in ground.facts:
        share = _fact_likeness(fact, significant, things, parsed)
        if share >= score and share > 0:  # of equal ones the last, which holds now
            best, score = fact, share
    if best is not None and score >= _LEAST_LIKENESS:
        yield Citation(best.turn, best.seq)


def _fact_likeness(fact: Fact, significant: frozenset[str], things: NamedThings, parsed: StatementCitations) -> float:
    if fact.path:
        return 0.9 if len(things.files) == 1 and same_file(things.files[0], fact.path) else 0.0
    if parsed.quotes and all(has_quote(quote, normalise_quotes(fact.text)) for quote in parsed.quotes):
        return 1.0
    return len(significant & stems(fact.text)) / len(significant) if len(significant) > 1 else 0.0


# --- success that only a failed run is cited for ---
_SUCCESSES = ("pass", "push", "merge", "commit", "pr", "tag", "release", "deploy", "install")
_BROKEN_OFF = re.compile(
    r"\b(?:interrupted|aborted|turn_aborted|hit your (?:usage )?limit|rate limit|(?:an|the) (?:issue|error|problem) with|may not exist|not found|(?:may|do) not have access|API error)\b",
    re.I,
)
_RUN_CHARS = 4_000


def _find_ending_faults(ground: Ground, text: str, acts: list[ClaimedAct], cited: list[MessageRow]) -> Iterator[str]:
    """Report that something is said to have succeeded whose run, the only thing that is cited, failed or was broken off."""
    if not cited or any(act.kind == "fail" or act.denied for act in acts):
        return
    if not any(act.kind in _SUCCESSES for act in acts):
        return
    for row in cited:
        if row.kind == "notification" and has_failed(ground.text(row)):
            yield f"message {row.seq + 1} reports a failure"
            return
    if all(_is_failure(ground, row) for row in cited):
        yield f"message {cited[0].seq + 1} reports a failure or an interruption"
    runs = _runs_meant(ground, acts, {row.seq for row in cited})
    if runs and all(one.failed for one in runs):
        yield f"{quote_short(runs[-1].command)} failed in turn {runs[-1].turn + 1}"


def _is_failure(ground: Ground, row: MessageRow) -> bool:
    """Whether a message that nobody wrote says that something failed or was broken off."""
    if row.origin in ("human", "model") or ground.is_person(row):
        return False
    text = ground.text(row)[:_RUN_CHARS]
    return bool(_BROKEN_OFF.search(text)) if row.origin != "tool" else _has_no_call(ground, row) and has_failed(text)


def _has_no_call(ground: Ground, row: MessageRow) -> bool:
    return not any(row.seq in (one.seq, one.result_seq) for one in act_record(ground).deeds.runs)


def _runs_meant(ground: Ground, acts: list[ClaimedAct], seqs: set[int]) -> list[RecordedRun]:
    """Return the cited runs if they all failed, else those of commands that do what is told."""
    runs = [one for one in act_record(ground).deeds.runs if one.seq in seqs or one.result_seq in seqs]
    if all(one.failed for one in runs):
        return runs
    kinds = {act.kind for act in acts}
    return [one for one in runs if kinds & {kind for kind, _ in command_kinds(one.command[:_RUN_CHARS])}]
