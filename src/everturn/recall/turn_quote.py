"""One matching turn as a quotation that can be short or long.

`grow_quote(stage)` adds what the stage says: the lines that match best; the prompt of the turn; a window around those
lines; another match of the turn; more windows; its last answer; wider windows; the turns beside it. No stage takes away
what an earlier one showed. Only the messages that are shown are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import MessageRow, Session, SessionText, Turn
from everturn.recall.answer import AnswerEntry, RecallRequest, entries_of, indent_text
from everturn.recall.windows import QueryWords, TextSpan, merge_spans, show_spans, start_span
from everturn.sessions.messages import TurnView

#: The stages, in order; `HIT` is repeated for the second hit of the turn, the third …
MATCH, PROMPT, WINDOW, HIT, MORE, ANSWER, WIDE, BESIDE = range(8)

#: Characters of the prompt, of a window, of the last answer, of a wide window, of a turn beside it.
_PROMPT_SIZE, _WINDOW_SIZE, _ANSWER_SIZE, _WIDE_SIZE, _BESIDE_SIZE = 200, 300, 400, 1500, 200
_WINDOWS = 3  # of one message
_HEAD = 160  # characters of the line of a call
_ANSWER_MESSAGES = 8  # read to find the last answer of a turn


class TurnMatch(Struct, frozen=True):
    """A turn with hits, the best first; `turn` is -1 if the title of the session matches. `ring` says where it is."""

    session: Session
    text: SessionText
    turn: int
    rows: tuple[MessageRow, ...]
    scores: tuple[float, ...]  # of the rows; the first is that of the turn
    ring: str = "everything"
    is_behind: bool = False  # an echo of a search, or in the view of the asker


class _Excerpt:
    """An entry with the spans of its text that are shown."""

    def __init__(self, entry: AnswerEntry, is_match: bool) -> None:
        self.entry, self.is_match = entry, is_match
        self.spans: list[TextSpan] = []

    def add(self, spans: Iterable[TextSpan]) -> None:
        self.spans = merge_spans([*self.spans, *spans])

    def build_entry(self) -> AnswerEntry:
        text = show_spans(self.entry.text, self.spans)
        return replace(self.entry, text=text, is_cut=text != self.entry.text, is_match=self.is_match)


class TurnQuote:
    """A turn as it is quoted so far."""

    def __init__(
        self, request: RecallRequest, match: TurnMatch, words: QueryWords, quiet: bool, is_beside: Callable[[int], bool]
    ) -> None:
        """`is_beside` says whether a turn may be shown beside this one."""
        self.match = match
        self._is_beside = is_beside
        self.same: list[TurnMatch] = []  # turns with nearly the same text, which are not quoted
        self._request, self._words, self._quiet = request, words, quiet
        self._excerpts: dict[tuple[int, int, str], _Excerpt] = {}
        self._turns: dict[int, _PartlyReadTurn] = {}

    def grow_quote(self, stage: int, hit: int = 0) -> None:
        """Add a stage; `hit` is the number of the match that `HIT` adds."""
        if stage == HIT:
            self._show_hit(self.match.rows[hit])
        elif stage in _WIDENED:
            self._widen(*_WIDENED[stage])
        else:
            _STAGES[stage](self)

    def entries(self) -> list[AnswerEntry]:
        """Return the entries as shown: those of the turn in order, then those of the turns beside it."""
        own = max(self.match.turn, 0)
        ordered = sorted(self._excerpts.items(), key=lambda pair: (pair[0][0] != own, *pair[0][:2]))
        return [excerpt.build_entry() for _, excerpt in ordered]

    def matched_text(self) -> str:
        """Return the text of the matches as shown, to compare it with that of other turns."""
        return "\n".join(f"{one.head} {one.text}" for one in self.entries() if one.is_match)

    # --- stages ---
    def _show_match(self) -> None:
        entries = self._matching(self.match.rows[0]) if self.match.rows else self._own_turn().prompt()
        for entry in entries[:1]:
            self._add(entry, self._words.windows(entry.text, 0), is_match=bool(self.match.rows))

    def _show_prompt(self) -> None:
        for entry in self._own_turn().prompt():
            self._add(entry, self._words.windows(entry.text, _PROMPT_SIZE))

    def _show_hit(self, row: MessageRow) -> None:
        for entry in self._matching(row)[:1]:
            self._add(entry, self._words.windows(entry.text, _WINDOW_SIZE), is_match=True)

    def _show_answer(self) -> None:
        for entry in self._own_turn().answer():
            self._add(entry, self._words.windows(entry.text, _ANSWER_SIZE))

    def _show_beside(self) -> None:
        at = max(self.match.turn, 0)
        for number in (at - 1, at + 1):
            turn = self._read_turn(number) if number >= 0 and self._is_beside(number) else None
            for entry in (*turn.prompt(), *turn.answer()) if turn else ():
                self._add(entry, [start_span(entry.text, _BESIDE_SIZE)])

    def _widen(self, size: int, windows: int) -> None:
        for excerpt in self._excerpts.values():
            if excerpt.is_match:
                excerpt.add(self._words.windows(excerpt.entry.text, size, windows))

    def _add(self, entry: AnswerEntry, spans: list[TextSpan], is_match: bool = False) -> None:
        key = (entry.turn, entry.seq, entry.head)
        excerpt = self._excerpts.setdefault(key, _Excerpt(_shorten_head(entry, self._words), is_match))
        excerpt.is_match = excerpt.is_match or is_match
        excerpt.add(spans)

    def _matching(self, row: MessageRow) -> list[AnswerEntry]:
        """Return the entries of a message, those with the most of the words first."""
        entries = self._own_turn().message(row)
        return sorted(entries, key=lambda one: -self._words.weigh(self._words.find_words(f"{one.head}\n{one.text}")))

    def _own_turn(self) -> _PartlyReadTurn:
        turn = self._read_turn(max(self.match.turn, 0))
        return turn if turn is not None else _PartlyReadTurn(self._request, self.match.session, Turn(), self._quiet)

    def _read_turn(self, number: int) -> _PartlyReadTurn | None:
        if number not in self._turns:
            found = self._request.store.turns(self.match.session.id, number, number)
            if not found:
                return None
            self._turns[number] = _PartlyReadTurn(self._request, self.match.session, found[0], self._quiet)
        return self._turns[number]


_STAGES = {
    MATCH: TurnQuote._show_match,
    PROMPT: TurnQuote._show_prompt,
    ANSWER: TurnQuote._show_answer,
    BESIDE: TurnQuote._show_beside,
}
#: The size and the number of windows of each match.
_WIDENED = {WINDOW: (_WINDOW_SIZE, 1), MORE: (_WINDOW_SIZE, _WINDOWS), WIDE: (_WIDE_SIZE, _WINDOWS)}


def show_excerpt(entry: AnswerEntry) -> str:
    """Return an entry of a search answer. A part of a message has the number that `message:` takes."""
    number = f", message {entry.seq + 1}" if entry.is_cut else ""
    return f"[Turn {entry.turn + 1}{number}] {entry.head}\n{indent_text(entry.text)}".rstrip()


def _shorten_head(entry: AnswerEntry, words: QueryWords) -> AnswerEntry:
    """Return the entry with a short line of the call, cut around the words."""
    name, paren, arguments = entry.head.partition("(")
    if len(entry.head) <= _HEAD or not paren:
        return entry
    spans = words.windows(arguments, _HEAD)
    return replace(entry, head=f"{name}({show_spans(arguments, spans)}")


class _PartlyReadTurn:
    """A turn of which only some messages are read."""

    def __init__(self, request: RecallRequest, session: Session, turn: Turn, quiet: bool) -> None:
        self._request, self._session, self._turn, self._quiet = request, session, turn, quiet
        self._rows = list(request.store.messages(session.id, turn.first_seq, turn.last_seq))
        self._calls = request.store.calls(session.id, turn.idx)
        self._prompt: list[AnswerEntry] | None = None
        self._known: dict[tuple[int, ...], list[AnswerEntry]] = {}  # by the messages they are of

    def prompt(self) -> list[AnswerEntry]:
        if self._prompt is None:
            spoken = [row for row in self._rows if row.origin in ("human", "agent") and row.role == "user"]
            self._prompt = next((found[:1] for row in spoken[:2] if (found := self._read([row]))), [])
        return self._prompt

    def answer(self) -> list[AnswerEntry]:
        spoken = [row for row in reversed(self._rows) if row.origin == "model"]
        for row in spoken[:_ANSWER_MESSAGES]:
            answers = [entry for entry in self._read([row]) if not entry.is_output]
            if answers:
                return answers[-1:]
        return []

    def message(self, row: MessageRow) -> list[AnswerEntry]:
        """Return the entries of a message; a result is shown with its call."""
        callers = {call.seq for call in self._calls if call.result_seq == row.seq}
        rows = [one for one in self._rows if one.seq in callers] or [row]
        return self._read(rows, quiet=row.kind in ("summary", "compaction"))

    def _read(self, rows: list[MessageRow], quiet: bool = False) -> list[AnswerEntry]:
        if not rows:
            return []
        key = (int(quiet), *(row.seq for row in rows))
        if key not in self._known:
            view = TurnView(self._turn, [], self._calls, rows)
            store, sources, clean = self._request.store, self._request.sources, self._request.clean
            found = entries_of(store, sources, self._session, view, clean, whole=True, quiet=quiet or self._quiet)
            self._known[key] = [entry for entry in found if entry.head != "problem:"]
        return self._known[key]
