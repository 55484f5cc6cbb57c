"""Check the sentences of a model against the records of a session.

Each turn and message that a sentence cites must exist, each quotation must occur in a cited message, and the files,
commands, commits and numbers it names must occur in the cited turns, as must most of its significant words. A sentence
without a citation gets that of a mechanical fact that says the same. One that rests only on a client's summary, or a rule
that only a tool printed, is not a fact. Code cannot check that a sentence draws the right conclusion. All checks use the
text as captured, before secrets are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from everturn.derive.session_state import unresolved_failures
from everturn.model.archive import MessageRow
from everturn.restore.document import Evidence, Statement
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

_LEAST_SUPPORT = 0.5  # share of the significant words that must come from the cited turns
_LEAST_LIKENESS = 0.7  # share of them that a fact must contain to say the same
_LONGEST = 600

#: Sections in which a statement must rest on a message of a person or model, not on the output of a tool.
_SPOKEN_SECTIONS = ("high_level_goal", "key_decisions", "constraints", "next_steps")


def check_sentence(ground: Ground, key: str, sentence: str) -> CheckedStatement:
    parsed = read_citations(one_line(sentence, _LONGEST))
    citations = parsed.citations or tuple(_match_fact(ground, parsed))
    if not citations:
        return mark_checked(
            Statement(parsed.text, label="model"), ["it cites no turn or message, and no recorded fact says it"]
        )
    trial = _StatementTrial(ground, key, parsed, citations)
    return mark_checked(Statement(parsed.text, tuple(trial.evidence()), label=trial.label), trial.reasons)


class _StatementTrial:
    """Checks one sentence of a model against the session."""

    def __init__(self, ground: Ground, key: str, parsed: StatementCitations, citations: tuple[Citation, ...]) -> None:
        self.ground, self.key, self.parsed = ground, key, parsed
        self.reasons: list[str] = []
        self.label = "model"
        self.cited: list[MessageRow] = []
        self.turns: list[int] = []
        self.proofs: dict[int, tuple[MessageRow, str]] = {}
        for citation in citations:
            self._add_citation(citation)
        self.reasons += [f"there is no turn {one + 1}" for one in turns_named(parsed.text) if not ground.has_turn(one)]
        if not self.reasons:
            self._check_words()

    def evidence(self) -> Iterator[Evidence]:
        """Yield the messages it rests on, those that contain its quotations first."""
        session = self.ground.session
        rows = list(self.proofs.values()) + [(row, "") for row in self.cited if row.seq not in self.proofs]
        if not rows and self.turns:
            rows = [(self._best_row(turn), "") for turn in self.turns[:3]]
        for row, quote in rows:
            yield Evidence(session.id, row.turn, row.seq, None, row.start, row.size, quote, session.native_id)

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
        self._check_quotations()
        things = find_named_things(self.parsed.text)
        texts = [self.ground.words(turn).text for turn in self.turns]
        self.reasons += _missing_files(self.ground, self.turns, texts, things)
        self.reasons += _missing_things(self.ground, self.turns, texts, things)
        self.reasons += _contradictions(self.ground, self.turns, self.parsed.text, things)
        if not self.reasons:
            self._check_support(things)
        if not self.reasons:
            self._check_origin()

    def _check_quotations(self) -> None:
        for quote in self.parsed.quotes:
            row = next((row for row in self._candidates() if self.ground.quotes(row, quote)), None)
            if row is None:
                where = f"turn {self.turns[0] + 1}" if not self.cited else f"message {self.cited[0].seq + 1}"
                self.reasons.append(f"the quotation {quote_short(quote)} does not stand in {where}")
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

    def _check_support(self, things: NamedThings) -> None:
        significant = stems(_PLACEHOLDER.sub(" ", self.parsed.text))
        if not significant:
            if not (self.parsed.quotes or things.files or things.code or things.commits):
                self.reasons.append("it says nothing that could be looked up")
            return
        known = frozenset[str]().union(*(self.ground.words(turn).stems for turn in self.turns))
        weights = {one: self.ground.weight(one) for one in significant}
        if sum(weights[one] for one in significant & known) < _LEAST_SUPPORT * sum(weights.values()):
            turns = ", ".join(str(turn + 1) for turn in self.turns[:5])
            self.reasons.append(f"most of its words do not occur in turn {turns}")

    def _check_origin(self) -> None:
        """Check who says it. A client's summary is hearsay, and the output of a tool binds nobody."""
        rows = [row for row, _ in self.proofs.values()] or self.cited
        if rows and all(row.kind in ("summary", "compaction") for row in rows):
            self.label = "compaction summary"
            self.reasons.append("it rests on a summary by the client, which is a source and not a fact")
        elif rows and self.key in _SPOKEN_SECTIONS and all(row.origin in ("tool", "injected") for row in rows):
            self.reasons.append("only the output of a tool says so, nobody in the session")

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
        if not any(has_quote(code, text) for text in texts):
            yield f"{quote_short(code)} does not occur in {where}"
    for commit in things.commits:
        hashes = [one.hash for one in ground.state.commits if one.hash and one.turn in turns]
        made = any(one.startswith(commit) or commit.startswith(one) for one in hashes)
        if not made and not any(commit in text for text in texts):
            yield f"commit {commit} does not occur in {where}"
    for number in things.numbers:
        if not any(re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)", text) for text in texts):
            yield f"the number {number} does not occur in {where}"


def _contradictions(ground: Ground, turns: list[int], text: str, things: NamedThings) -> Iterator[str]:
    """Yield contradictions to the records: a success that was never seen, a change made in another turn."""
    prose = _CODE.sub(" ", text)
    if _SUCCESS.search(prose) and not _FAILURE.search(prose):
        for one in unresolved_failures(ground.state):
            if any(_is_similar_code(code, one.what) for code in things.code) and max(turns) >= one.turn:
                yield f"{quote_short(one.what)} failed in turn {one.last_turn + 1} and was not seen to succeed since"
    if _CHANGE.search(prose) and len(things.files) == 1:
        yield from _find_unchanged(ground, turns, things.files[0])


def _find_unchanged(ground: Ground, turns: list[int], path: str) -> Iterator[str]:
    """Report a change recorded only in other turns, or a file that was only read. A shell may change files unseen."""
    if _changing_turns(ground, turns, path):
        return
    elsewhere = _changing_turns(ground, ground.turns_of(path), path)
    if elsewhere:
        yield f"{quote_short(path)} was not changed there but in turn {', '.join(str(turn + 1) for turn in elsewhere[:3])}"
    elif any(ground.touches(turn, path) for turn in turns):
        yield f"{quote_short(path)} was only read there"


def _changing_turns(ground: Ground, turns: list[int], path: str) -> list[int]:
    return [turn for turn in turns if any(action != "read" for action, _ in ground.touches(turn, path))]


def _is_similar_code(code: str, what: str) -> bool:
    return len(code) >= 4 and (
        normalise_quotes(code) in normalise_quotes(what) or normalise_quotes(what) in normalise_quotes(code)
    )


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


_CODE = re.compile(r"`[^`\n]{1,400}`")
_PLACEHOLDER = re.compile(r"\[REDACTED[^\]]{0,60}\]")
_SUCCESS = re.compile(
    r"\b(?:fix(?:ed|es)?|resolv(?:ed|es)|pass(?:es|ed|ing)?|succeed(?:s|ed)?|works?|working|green|solved)\b", re.I
)
_FAILURE = re.compile(
    r"\b(?:not|never|still|fail(?:s|ed|ing|ure)?|cannot|broken|unresolved|until|if|n['’]t)\b|n['’]t\b", re.I
)
_CHANGE = re.compile(
    r"\b(?:created|wrote|written|edited|modified|changed|updated|deleted|removed|rewrote|rewritten)\b", re.I
)
