"""The answer of a search within a budget: the best turns first, each as long as there is room.

A ladder of steps, the same for every budget (`ladder_steps`): the best lines, the prompt and a window of each turn, and more
of each of them (`turn_quote`), the most valuable first. An answer climbs as many steps as fit. So a larger budget shows all
that a smaller one shows, and another good turn comes before more of the same one.

Turns whose matches have nearly the same text are quoted once; the heading counts and names the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import Session
from everturn.recall.answer import AnswerEntry, RecallAnswer, RecallRequest, handle
from everturn.recall.budget import cost
from everturn.recall.turn_quote import (
    ANSWER,
    BESIDE,
    HIT,
    MATCH,
    MORE,
    PROMPT,
    WIDE,
    WINDOW,
    TurnMatch,
    TurnQuote,
    show_excerpt,
)
from everturn.recall.windows import QueryWords
from everturn.sessions.lookup import short_ids
from everturn.text.printable import plural, quote_for_model, safe_line
from everturn.text.terms import terms
from everturn.text.times import iso

#: What a stage is worth, beside 1 for the first lines, the prompt and the first window of a turn.
STAGE_VALUES = {HIT: 0.95, MORE: 0.9, ANSWER: 0.8, WIDE: 0.6, BESIDE: 0.3}
_HITS = 6  # of one turn
#: Two texts are nearly the same if they share this part of their words.
SAME_TEXT = 0.85
_FEWEST_WORDS = 6  # of a text that is compared
_NAMED = 3  # turns with the same text that are named
_FRAME = 90  # tokens of the two lines of a quotation and a hint
_SHORTEST = 40  # characters of a quotation that is cut to the smallest budget

#: Where a turn is, in the words of a heading.
RINGS = {
    "session": "this session",
    "lineage": "came from or started by this session",
    "workspace": "same workspace",
    "everything": "",
}


class QuoteParts(Struct, frozen=True):
    """The text around a quotation: made from the turns shown and the number of those left out."""

    lead: Callable[[list[TurnMatch]], str]
    hints: Callable[[list[TurnMatch], int], list[str]]


class QuoteOptions(Struct, frozen=True):
    """How many turns are quoted, whether text that clients inserted is, and the turns that are never quoted beside others."""

    limit: int
    quiet: bool = False
    asking: int | None = None  # the turn of the session that asks
    is_echo: Callable[[Session, int], bool] | None = None  # turns of a session that only ask or repeat


class SearchQuotation:
    """The matching turns of a search, best first."""

    def __init__(
        self, request: RecallRequest, matches: Sequence[TurnMatch], words: QueryWords, options: QuoteOptions
    ) -> None:
        self._request, self._matches, self._words = request, matches, words
        self._limit, self._options = options.limit, options
        shorts = short_ids((match.session for match in matches), request.store)
        self._shorts = {number: handle(short) for number, short in shorts.items()}

    def short(self, match: TurnMatch) -> str:
        """Return the handle of the session of a match."""
        return self._shorts[match.session.id]

    def write(self, parts: QuoteParts, budget: int) -> RecallAnswer:
        """Return the longest answer that fits."""
        steps = self._climb(budget - cost(parts.lead(list(self._matches[: self._limit]))) - _FRAME)
        for climbed in range(len(steps), 0, -1):
            answer = self._compose(steps[:climbed], parts, hints=max(1, budget // 250))
            if cost(answer.text) <= budget:
                return answer
        return self._write_least(steps[0].entries, parts, budget) if steps else RecallAnswer(parts.lead([]), "nothing")

    # --- the ladder ---
    def _climb(self, room: int) -> list[_Step]:
        """Return the steps that may fit: as long as the sum of what they add is below the room; at least one."""
        sizes: dict[int, int] = {}
        taken: list[_Step] = []
        for number, quote, stage, hit in self._steps():
            quote.grow_quote(stage, hit)
            entries = quote.entries()
            sizes[number] = cost("\n".join([self._heading(quote), *map(show_excerpt, entries)]))
            if taken and sum(sizes.values()) > room:
                break
            taken.append(_Step(number, quote, entries))
        return taken

    def _steps(self) -> Iterator[tuple[int, TurnQuote, int, int]]:
        """Yield the number of a turn, the turn, the stage to add and the number of its hit."""
        quotes: dict[int, TurnQuote] = {}
        seen: dict[int, frozenset[str]] = {}
        for number, stage, hit in ladder_steps(self._matches):
            if stage == MATCH and len(quotes) < self._limit:
                quote = self._begin_quote(self._matches[number])
                quote.grow_quote(MATCH)
                if (same := _find_same(seen, quote.matched_text())) is not None:
                    quotes[same].same.append(quote.match)
                    continue
                seen[number] = _word_set(quote.matched_text())
                quotes[number] = quote
            if number in quotes:
                yield number, quotes[number], stage, hit

    def _begin_quote(self, match: TurnMatch) -> TurnQuote:
        options, own = self._options, self._request.session
        quoted = {one.turn for one in self._matches if one.session.id == match.session.id}
        asking = options.asking if own is not None and own.id == match.session.id else None

        def is_beside(turn: int) -> bool:
            if turn in quoted or turn == asking:
                return False
            return options.is_echo is None or not options.is_echo(match.session, turn)

        return TurnQuote(self._request, match, self._words, options.quiet, is_beside)

    # --- text ---
    def _compose(self, steps: list[_Step], parts: QuoteParts, hints: int) -> RecallAnswer:
        shown = {step.number: step for step in steps}
        before = ""
        blocks: list[str] = []
        for step in shown.values():
            head = self._heading(step.quote)
            blocks += [head] if head != before else []
            blocks += map(show_excerpt, step.entries)
            before = head
        turns = [step.quote.match for step in shown.values()]
        entries = [entry for step in shown.values() for entry in step.entries]
        missing = parts.hints(turns, len(self._matches) - len(turns))[:hints]
        text = f"{parts.lead(turns)}\n{quote_for_model(chr(10).join(blocks))}"
        if missing:
            text += "\nNot shown here:\n" + "\n".join(f"- {hint}" for hint in missing)
        return RecallAnswer(text, "found", entries, missing)

    def _write_least(self, entries: list[AnswerEntry], parts: QuoteParts, budget: int) -> RecallAnswer:
        """Return the best lines alone, cut as far as needed."""
        match = self._matches[0]
        size = max((len(entry.text) for entry in entries), default=0)
        while True:
            cut = [replace(entry, text=entry.text[:size], is_cut=True) for entry in entries if size >= _SHORTEST]
            text = f"{parts.lead([match])}\n{quote_for_model(chr(10).join(map(show_excerpt, cut)))}"
            if cost(text) <= budget or not cut:
                return RecallAnswer(text, "found", cut)
            size = size * 4 // 5

    def _heading(self, quote: TurnQuote) -> str:
        """Return the line above a turn: the session, its date, where it is, and the turns with the same text."""
        match = quote.match
        folder = "/".join([part for part in match.text.workspace.replace("\\", "/").split("/") if part][-1:])
        facts = [
            iso(match.session.ended)[:10],
            RINGS[match.ring] or safe_line(folder, self._request.clean, 40),
            "" if match.session.state == "current" else "older version",
            safe_line(match.text.title or match.text.first_prompt, self._request.clean, 80) if match.turn < 0 else "",
            self._same_text(quote.same),
        ]
        return f"[Session {self.short(match)}] " + " · ".join(filter(None, facts))

    def _same_text(self, same: list[TurnMatch]) -> str:
        if not same:
            return ""
        names = [f"{self.short(match)} turn {match.turn + 1}" for match in same[:_NAMED]]
        return f"the same in {plural(len(same), 'more turn')}: {', '.join(names)}" + (", …" * (len(same) > _NAMED))


class _Step(Struct, frozen=True):
    """A turn as quoted after one step."""

    number: int
    quote: TurnQuote
    entries: list[AnswerEntry]


def ladder_steps(matches: Sequence[TurnMatch]) -> list[tuple[int, int, int]]:
    """Return the steps as (number of the turn, stage, number of the hit), the most valuable first.

    The value of a step is the score of its turn or hit times that of its stage. So a turn that is nearly as good as the best
    one comes before more of that one, and one that is much worse does not.
    """
    best = max((match.scores[0] for match in matches), default=1.0) or 1.0
    least = 1.0
    steps: list[tuple[float, int, int, int]] = []
    for number, match in enumerate(matches):
        # The turns are in order, whatever their scores: echoes are at the end.
        least = min(least, match.scores[0] / best)
        steps += [(-least, number, stage, 0) for stage in (MATCH, PROMPT, WINDOW)]
        for hit, score in enumerate(match.scores[1:_HITS], 1):
            steps.append((-min(least, score / best) * STAGE_VALUES[HIT], number, HIT, hit))
        steps += [(-least * STAGE_VALUES[stage], number, stage, 0) for stage in (MORE, ANSWER, WIDE, BESIDE)]
    return [(number, stage, hit) for _, number, stage, hit in sorted(steps)]


def _find_same(seen: dict[int, frozenset[str]], text: str) -> int | None:
    """Return the number of the text that is nearly the same."""
    words = _word_set(text)
    if len(words) < _FEWEST_WORDS:
        return None
    for number, others in seen.items():
        if others and len(words & others) >= SAME_TEXT * len(words | others):
            return number
    return None


def _word_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))
