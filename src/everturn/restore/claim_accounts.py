"""What of a statement the messages that it cites account for.

That nothing in the record speaks against a statement does not make it agree with the record. It agrees if the cited messages
account for what it says: its numbers and the names with digits stand there, hardly a word is the model's own, what it affirms or
denies is affirmed or denied there, each act is recorded or told there, and the call it rests on did not fail. What is missing is
told as a reason, and the statement is not checked. Nothing here says that a statement is false.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from everturn.model.archive import MessageRow
from everturn.restore.claim_acts import FAILURE, ClaimedAct, find_acts, hide_acts
from everturn.restore.claim_conflicts import find_open_item, find_state, find_told_state, hide_state
from everturn.restore.claim_counts import NUMBER_WORDS, count_total, read_numbers
from everturn.restore.claim_polarity import Phrase, hide_stance, read_phrases, split_sentences, write_contrast
from everturn.restore.claim_record import REMOVAL, act_record, has_failed, record_counts
from everturn.restore.claim_speech import FRAME, SAYS_CJK, SPEECH_WORDS, find_attributions
from everturn.restore.evidence import quote_short
from everturn.restore.grounds import Ground, NamedThings, all_stems, hide_names, hide_quotes, stems
from everturn.text.statement_words import IN_PLACE_OF

_MOST_OWN = 0.25  # share of the words of a statement that may be the model's own
_NEAR = 0.75  # share of the best overlap with a phrase that another sentence about the same thing has
#: Number and share of the words of a statement in another language that a sentence must have.
_LEAST_SHARED, _LEAST_NAMES = 2, 0.5
_PREFIX = 5  # letters that two forms of a long word have in common
_MOST_TOLD = 4  # words of its own that a reason names
_MAX_CHARS = 20_000
#: Sections that tell what is wanted, not what is.
WISHED = ("high_level_goal", "primary_task", "constraints", "next_steps")
_ASKED = ("high_level_goal", "constraints", "next_steps")
_MOST_ROWS, _MOST_SENTENCES = 200, 2_000  # what is compared of a turn that is cited as a whole
_T = TypeVar("_T")
#: Acts that the record decides about, whatever is said of them.
_RECORDED = frozenset(("push", "merge", "pr", "tag", "release", "deploy", "install", "commit"))
_ON_FILES = frozenset(("delete", "create", "edit", "rename"))
_CHANGES = frozenset(("create", "edit", "rename"))
_COUNTED = re.compile(r"\d (?:\w+ )?(?:files|commits|turns)\b")  # what can be counted in the record itself
_TROUBLE = re.compile(
    r"\b(?:errors?|issues?|problems?|warnings?|mistakes?|faults?|conflicts?|bugs?|missing|absent|lacks?|unavailable|Fehler|erreurs?|problèmes?|errores?|problemas?|erros?)\b"
    r"|错误|问题|エラー|問題",
    re.I,
)
#: To find none of them is good: "no issues found" does not deny that it is valid.
_TROUBLES = all_stems(
    "error issue problem warning mistake fault failure fails failed conflict bug Fehler erreur problème errores problemas erros"
)
_LEFT = stems("left remains remaining pending open outstanding")  # that something is still to be done
_CHECKS = stems("tests test suite build linter lint checks check compilation")
#: What a statement says of its subject: "should stay", "was still parsed", "est affiché".
_PREDICATE = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|must|should|shall|may|might|can|could|will|would|do|does|did|est|sont|été|doit|peut|está|están|es|son|fue|fueron|debe|puede|ist|sind|wird|wurden?|é|são|foi|foram|deve)"
    r"(?:\s+(?:not|never|still|also|now|to|be|been|already|only|again|no|yet|toujours|encore|aún|ainda|\w{2,20}ly))*\s+([^\W\d_]{4,40})",
    re.I,
)
_UNIVERSAL = re.compile(
    r"\b(?:all|every(?! \d)|everything|each|entire|whole|alle|jede[rsn]?|tous|toutes|chaque|todos?|todas?|cada|all[ae]s|ogni|tutt[ieo])\b|全て|すべて|全部|所有|每个|各",
    re.I,
)
_DEGREE = re.compile(r"\b(more|most|less|least|fewer|mehr|weniger|plus|moins|más|mais|menos)\s+(\w{4,40})", re.I)
_MORE = frozenset(("more", "most", "mehr", "plus", "más", "mais"))
_SLASHED = re.compile(r"[\w.-]+(?:/[\w.-]+)+")
_NAME = re.compile(r"[^a-z.,;:()'\"`*]|[a-z][.+_/-][a-z]")
_PLACEHOLDER = re.compile(r"\[REDACTED[^\]]{0,60}\]")
_LIST_ITEM = re.compile(r"(?:^|\s)(?:[-*•]|\d{1,2}[.)])\s", re.MULTILINE)
_IDENTIFIER = re.compile(r"(?<![\w./-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9][\w-]+(?![\w/-])")


class CitedStatement(Struct, frozen=True):
    """A statement of a model, and what it cites."""

    key: str  # of its section
    text: str
    things: NamedThings
    acts: tuple[ClaimedAct, ...]
    turns: tuple[int, ...]
    cited: tuple[MessageRow, ...]
    rows: tuple[MessageRow, ...]  # the cited messages with the results of their calls, or those of the cited turns
    foreign: bool  # in another language than these


def find_gaps(ground: Ground, statement: CitedStatement) -> Iterator[str]:
    """Yield what nothing in the cited messages accounts for."""
    account = _StatementAccount(ground, statement)
    yield from account.number_gaps()
    yield from account.act_gaps()
    yield from account.failure_gap()
    yield from account.state_gap()
    yield from account.stance_gap()
    yield from account.degree_gap()
    yield from account.universal_gap()
    yield from account.name_gap() if statement.foreign else account.word_gap()


class _StatementAccount:
    """Compares one statement with the messages it cites, the results of their calls, and their turns."""

    def __init__(self, ground: Ground, statement: CitedStatement) -> None:
        self.ground, self.statement = ground, statement
        self.text, self.acts, self.things = statement.text, statement.acts, statement.things
        rows = (one for row in statement.rows[:_MOST_ROWS] for one in ground.with_calls(row))
        self.rows = list({one.seq: one for one in rows}.values())

    # --- the evidence ---
    @cached_property
    def _texts(self) -> list[str]:
        return [self.ground.text(row) for row in self.rows]

    @cached_property
    def _sentences(self) -> list[str]:
        """The cited sentences: what was said, and what was given to tools and printed by them."""
        said = [self.ground.speech(row) for row in self.rows]
        texts = [one for one in said if one] + [text for one, text in zip(said, self._texts, strict=True) if not one]
        return list(islice((one for text in texts for one in split_sentences(text[:_MAX_CHARS])), _MOST_SENTENCES))

    @cached_property
    def _parts(self) -> list[Phrase]:
        """The parts of the cited sentences that are affirmed or denied as a whole."""
        return [part for one in self._sentences for part in read_phrases(one)]

    @cached_property
    def _said(self) -> frozenset[str]:
        """The words of the cited messages."""
        return frozenset[str]().union(*map(_all_words, self._texts))

    @cached_property
    def _has_failed(self) -> bool:
        """Whether a cited call failed, or was refused by the person."""
        refused = any(self.ground.answers.get(row.seq) == "refusal" for row in self.rows)
        return refused or any(map(has_failed, self._texts))

    @cached_property
    def _where(self) -> str:
        if self.statement.cited:
            return f"message {', '.join(str(row.seq + 1) for row in self.statement.cited[:5])}"
        return f"turn {', '.join(str(turn + 1) for turn in self.statement.turns[:5])}"

    # --- numbers ---
    def number_gaps(self) -> Iterator[str]:
        """Yield the numbers and the names with digits that the cited messages lack."""
        prose = hide_names(self.text)
        whole = "\n".join(self._texts)
        there = read_numbers(whole).all | {str(count_total(whole))}
        if _COUNTED.search(prose):
            there |= set(map(str, record_counts(self.ground)))
        for number in sorted(read_numbers(_IDENTIFIER.sub(" ", prose)).all - there):
            if not (len(number) == 1 and self._is_counted(int(number))):
                yield f"the number {number} does not occur in {self._where}"
        yield from self._bound_gaps(prose, whole)
        for name in _IDENTIFIER.findall(prose):
            if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", whole, re.I):
                yield f"{quote_short(name)} does not occur in {self._where}"

    def _bound_gaps(self, prose: str, whole: str) -> Iterator[str]:
        """Yield the numbers that stand before a word before which the cited messages only have others."""
        here, there = read_numbers(prose).after, read_numbers(whole).after
        for word in here.keys() & there.keys():
            if here[word].isdisjoint(there[word]) and str(count_total(whole)) not in here[word]:
                yield f"{self._where} has {', '.join(sorted(there[word])[:3])} there, not {', '.join(sorted(here[word]))}"

    def _is_counted(self, number: int) -> bool:
        """Whether a small number is one of things that are listed: there, in the statement, or as citations."""
        counts = {len(_LIST_ITEM.findall(self.ground.speech(row))) for row in self.rows}
        return number <= 1 or number in {*counts, len(self.statement.cited)}

    # --- acts ---
    def act_gaps(self) -> Iterator[str]:
        """Yield the acts that neither a call nor a sentence shows."""
        for act in self.acts:
            alone = not any(other.clause == act.clause and self._is_recorded(other) for other in self.acts)
            if alone and not (act.denied or self._is_told(act)):
                yield f"nothing in {self._where} shows that it was done: {quote_short(act.clause.strip())}"
                return

    def _is_recorded(self, act: ClaimedAct) -> bool:
        """Whether the record of calls decides about an act."""
        if act.kind in _RECORDED or (act.kind in ("pass", "fail") and act.is_check):
            return True
        if act.kind in _ON_FILES and act.things.files:
            return True
        deeds = act_record(self.ground).deeds
        if act.kind == "delete":
            words = stems(hide_acts(act.clause))
            done = [one for one in deeds.of("delete") if one.turn in self.statement.turns]
            return any(words <= _all_words(one.text) for one in done) if words else self._has_change("delete")
        return act.kind == "verify" and any(self._is_cited(one.seq, one.result_seq) for one in deeds.runs)

    def _is_told(self, act: ClaimedAct) -> bool:
        """Whether a cited sentence tells of an act, or a call may have done it."""
        if act.kind in _CHANGES and self._has_change(*(("create",) if act.kind == "create" else ())):
            return True
        if act.kind == "fail" and (self._has_failed or any(map(_denies, self._sentences))):
            return True
        if act.kind == "delete":
            return self._is_removal_told(act)
        words = _all_words(hide_acts(act.clause))
        near = [one for one in self._sentences if not words or words & _all_words(one)]
        return any(told.kind == act.kind and not told.denied for one in near for told in find_acts(one))

    def _is_removal_told(self, act: ClaimedAct) -> bool:
        """Whether a cited sentence speaks of the removal of what has the same names."""
        words, named = stems(hide_acts(act.clause)), _SLASHED.findall(act.clause)
        told = [one for one in self._sentences if REMOVAL.search(one) and words & _all_words(one)]
        return any(all(name in one for name in named) for one in told)

    def _has_change(self, *kinds: str) -> bool:
        """Whether a file was changed in the cited turns, in a certain way if one is given."""
        actions = {action for turn in self.statement.turns for action in self.ground.actions(turn)} - {"read"}
        return bool(actions & set(kinds)) if kinds else bool(actions)

    def _is_cited(self, *seqs: int | None) -> bool:
        return any(row.seq in seqs for row in self.rows)

    # --- calls that failed ---
    def failure_gap(self) -> Iterator[str]:
        """Report that all that is cited are calls that failed, of which the statement does not speak."""
        if any(act.kind == "fail" or act.denied for act in self.acts) or _denies(self.text):
            return
        runs = [one for one in act_record(self.ground).deeds.runs if self._is_cited(one.seq, one.result_seq)]
        seqs = {seq for one in runs if one.failed for seq in (one.seq, one.result_seq)}
        if not self.statement.cited or any(row.seq not in seqs for row in self.rows):
            return
        printed = frozenset[str]().union(*(stems(self.ground.printed(row)) for row in self.rows))
        given = frozenset[str]().union(*(stems(one.command) for one in runs))
        if stems(self.text).isdisjoint(printed - given):
            yield f"the call in {self._where} failed"

    # --- affirmed or denied ---
    def state_gap(self) -> Iterator[str]:
        """Report that something is said to be done, or open, of which the closest sentences do not say so."""
        state = find_told_state(self.text) if self.statement.key not in _ASKED else ""
        if not state or any(self._is_recorded(act) for act in self.acts) or self._is_left_open:
            return
        near = self._sentences_about(_all_words(hide_state(self.text)))
        if near and state not in map(find_state, near):
            yield f"{self._where} does not say that this is {state}"

    def stance_gap(self) -> Iterator[str]:
        """Report the first part whose like the cited messages only deny, or only affirm."""
        if any(act.kind == "fail" and self._is_recorded(act) for act in self.acts):
            return
        chosen = bool(IN_PLACE_OF.search(write_contrast(self.text))) or self._is_left_open
        phrases = [one for one in read_phrases(hide_quotes(self.text)) if not (one.denied and chosen)]
        for phrase in phrases:
            if not self._is_judged(phrase) and not self._has_stance(phrase):
                told = "affirms" if _is_negative(phrase) else "denies"
                yield f"{self._where} only {told} what comes closest to {quote_short(phrase.text)}"
                return

    def _is_judged(self, phrase: Phrase) -> bool:
        """Whether the record of calls decides about a phrase."""
        recorded = (act for act in self.acts if self._is_recorded(act))
        return any(phrase.names <= _all_words(act.clause) for act in recorded)

    def _has_stance(self, phrase: Phrase) -> bool:
        """Whether something that comes as close to a phrase as anything affirms what it affirms, or denies what it denies."""
        words = phrase.words if self.statement.foreign else phrase.names
        is_negative = _is_negative(phrase)
        if is_negative and (self._has_failed or any(map(_denies, self._sentences_about(words)))):
            return True
        near = _closest(words, [(one.words | one.names, one) for one in self._parts])
        return not near or any(_is_negative(one) == is_negative for one in near)

    @cached_property
    def _is_left_open(self) -> bool:
        """Whether the statement says of an item of a list of what is to be done that it is not done."""
        return bool(find_open_item(self.text, "\n".join(self.ground.speech(row) for row in self.rows)))

    def degree_gap(self) -> Iterator[str]:
        """Report "more reliable" where the cited messages only have "less reliable"."""
        there = {(_is_more(degree), word.lower()) for one in self._sentences for degree, word in _DEGREE.findall(one)}
        for degree, word in _DEGREE.findall(self.text):
            own = _is_more(degree)
            if (own, word.lower()) not in there and (not own, word.lower()) in there:
                yield f"{self._where} has it the other way round: {quote_short(word)}"

    def universal_gap(self) -> Iterator[str]:
        """Report that all of something is meant where the cited messages speak of it without "all"."""
        if any(map(self._is_recorded, self.acts)):
            return
        if _UNIVERSAL.search(self.text) and not any(map(_UNIVERSAL.search, self._sentences_about(self._words))):
            yield f"{self._where} does not say this of all"

    def _sentences_about(self, words: frozenset[str]) -> list[str]:
        return _closest(words, [(_all_words(one), one) for one in self._sentences])

    # --- words ---
    @cached_property
    def _words(self) -> frozenset[str]:
        """The significant words of the statement, without those that other checks look up."""
        text = FRAME.sub("", SAYS_CJK.sub(" ", _PLACEHOLDER.sub(" ", self.text)))
        words = (stems(hide_stance(hide_acts(text))) | (stems(text) & self._said)) - NUMBER_WORDS - _LEFT
        if any(act.is_check for act in find_acts(self.text)):
            words -= _CHECKS
        if self.statement.key in WISHED:  # how the model calls what is to be done: "extend the timetable"
            words -= stems("".join(hide_stance(text).split()[:1])) - self._said
        asked = find_attributions(self.text) or any(self.ground.is_person(row) for row in self.rows)
        return words - SPEECH_WORDS if asked else words

    def word_gap(self) -> Iterator[str]:
        """Report that the statement says something in words that are the model's own."""
        words = self._words
        own = words - _covered(words, self._said)
        looked_up = len(self._looked_up)
        if not words and not self._looked_up and not find_attributions(self.text):
            yield "it states nothing that can be checked"
        elif len(own) > _MOST_OWN * (len(words) + looked_up):
            yield f"{self._where} does not speak of {self._spell(own)}"
        elif said := self._own_predicate(own):
            yield f"{self._where} does not speak of {said}"

    @property
    def _looked_up(self) -> list[str]:
        """The names, numbers and acts of the statement, which are looked up elsewhere."""
        things = self.things
        numbers = read_numbers(hide_names(self.text)).all
        return [*things.files, *things.code, *things.commits, *numbers, *{act.kind for act in self.acts}]

    def _own_predicate(self, own: frozenset[str]) -> str:
        """Return what the statement says of its subject, if only the model says so."""
        said = (one for one in _PREDICATE.findall(hide_stance(self.text)) if stems(one) & own - SPEECH_WORDS)
        return "" if self._is_left_open else next(map(quote_short, said), "")

    def _spell(self, own: frozenset[str]) -> str:
        """Return words of the statement by their stems, in order."""
        found = [quote_short(one) for one in re.findall(r"[\w'’-]+", self.text) if stems(one) & own]
        return ", ".join(found[:_MOST_TOLD])

    def name_gap(self) -> Iterator[str]:
        """Report that a statement in another language has too little in common with a sentence to be compared with it."""
        if self.things.code or any(map(self._is_recorded, self.acts)) or find_attributions(self.text):
            return
        names = {one.strip("`'\"*,;.:()") for one in self.text.split() if _NAME.search(one)}
        words = stems(self.text)
        shared = (max(len(_covered(words, _all_words(one))), sum(map(one.count, names))) for one in self._sentences)
        if max(shared, default=0) < max(_LEAST_SHARED, _LEAST_NAMES * len(words)):
            yield "it is in another language than the session, and has too few names and numbers in common with a sentence there"


def _closest(words: frozenset[str], among: list[tuple[frozenset[str], _T]]) -> list[_T]:
    """Return what has most of some words, or nearly as many."""
    shares = [(len(_covered(words, there)), one) for there, one in among]
    most = max((share for share, _ in shares), default=0)
    return [one for share, one in shares if share and share >= _NEAR * most]


def _is_more(degree: str) -> bool:
    return degree.lower() in _MORE


def _all_words(text: str) -> frozenset[str]:
    return stems(text) | all_stems(text)


def _covered(words: frozenset[str], known: frozenset[str]) -> frozenset[str]:
    """Return the words that are known, perhaps in another form."""
    alike = {one[:_PREFIX] for one in known if one.isalpha() and len(one) >= _PREFIX}
    return frozenset(one for one in words if one in known or (one.isalpha() and one[:_PREFIX] in alike))


def _is_negative(phrase: Phrase) -> bool:
    """Whether a phrase denies, or tells of a failure. To deny a failure is neither."""
    if phrase.denied:
        return phrase.refused.isdisjoint(_TROUBLES)
    return phrase.optional or _fails(phrase.text)


def _fails(text: str) -> bool:
    return bool(FAILURE.search(text) or _TROUBLE.search(text))


def _denies(text: str) -> bool:
    return any(_is_negative(one) for one in read_phrases(text))
