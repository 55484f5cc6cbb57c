"""Turn index hits into search hits: the session, the message, an excerpt with the match marked, the turns around it.

`excerpt` finds where most of the phrases are together (`retrieval.marks`). Work is bounded: at most 64 parts of a long text
are searched, each once per phrase. Secrets are masked in the whole text before an excerpt is cut: one that was cut in
half would not be recognised.

A page shows the best of the hits with the same text and counts the others under it. Two texts are the same if they differ
in white space only; tool input and tool output also in numbers, since a command that ran again differs in times and counts.
What people and models wrote keeps its numbers: they may be the answer. A page takes hits until it shows `limit` different
ones. Every hit it takes is shown or counted under a shown one, and the next page continues after the last one taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import MessageRow, Session, SessionText, Turn
from everturn.model.conversation import Message
from everturn.retrieval.marks import MarkPatterns, each_mark, fold_text, literal_patterns, mark_patterns
from everturn.sessions.messages import Records, Sources, has_words
from everturn.store.contract import IndexHit, Store
from everturn.text.printable import one_line, printable

if TYPE_CHECKING:
    from everturn.text.regex import Effort, LinearPattern


Spans = list[tuple[int, int]]
Match = tuple[int, int, int]  # start, end, number of the phrase

_PART = 262_144
_PARTS = 64
_MATCHES = 100  # per phrase and part
_PHRASES = 16
_MARGIN = 4  # white space may take this many times the room it is given
_SPACE = re.compile(r"\s+")


def excerpt(text: str, phrases: list[str], width: int = 160, literally: bool = False) -> tuple[str, Spans]:
    """Return the best part of a text on one line of at most `width` characters, cut with `…`, and the matches in it.

    `retrieval.marks` says what matches; `literally`, the characters do, wherever they are. Without any match it is the
    beginning of the text.
    """
    patterns_of = literal_patterns if literally else mark_patterns
    patterns = [pattern for phrase in phrases[:_PHRASES] if (pattern := patterns_of(phrase))]
    best = _best_window(text, patterns, width)
    if not best:
        return one_line(text, width), []
    return _excerpt_around(text, best, width)


def excerpt_at(text: str, spans: Spans, width: int = 160) -> tuple[str, Spans]:
    """Return the same around known spans, in order; without any, the beginning of the text."""
    if not spans:
        return one_line(text, width), []
    near = [span for span in spans if span[1] - spans[0][0] <= width] or spans[:1]
    return _excerpt_around(text, [(start, end, 0) for start, end in near], width)


def _best_window(text: str, phrases: list[MarkPatterns], width: int) -> list[Match]:
    """Return the matches in the best window: most phrases, then most matches, then the first."""
    best: list[Match] = []
    for start in range(0, min(len(text), _PART * _PARTS), _PART):
        # Parts overlap by a window, so that nothing is missed between two of them.
        part = text[start : start + _PART + width]
        matches = sorted(each_mark(part, fold_text(part), phrases, _MATCHES))
        found = _densest_matches(matches, width)
        if _window_worth(found) > _window_worth(best):
            best = [(start + first, start + last, number) for first, last, number in found]
        if len({number for _, _, number in best}) == len(phrases):
            break
    return best


def _densest_matches(matches: list[Match], width: int) -> list[Match]:
    best, most = (0, 0), (0, 0)  # the window, and its numbers of phrases and matches
    first = 0
    held: dict[int, int] = {}  # matches of each phrase in the window
    for last, (_, end, number) in enumerate(matches):
        held[number] = held.get(number, 0) + 1
        while first < last and (end - matches[first][0] > width or first < last - 2 * _PHRASES):
            gone = matches[first][2]
            held[gone] -= 1
            if not held[gone]:
                del held[gone]
            first += 1
        worth = len(held), last + 1 - first
        if worth > most:
            best, most = (first, last + 1), worth
    return matches[slice(*best)]


def _window_worth(matches: list[Match]) -> tuple[int, int]:
    return len({number for _, _, number in matches}), len(matches)


# --- the excerpt ---


def _excerpt_around(text: str, matches: list[Match], width: int) -> tuple[str, Spans]:
    core, spans = _matched_core(text, _merge_spans(matches))
    if len(core) > width:
        core = core[: width - 1] + "…"
        return core, [(start, min(end, width - 1)) for start, end in spans if start < width - 1]
    first, last = matches[0][0], max(end for _, end, _ in matches)
    reach = _MARGIN * width
    before = _clean_text(text[max(0, first - reach) : first]).lstrip()
    after = _clean_text(text[last : last + reach]).rstrip()
    room = width - len(core)
    left = min(len(before), max(room // 3, room - len(after)))
    head = _cut_head(before, left, first > reach)
    tail = _cut_tail(after, room - len(head), last + reach < len(text))
    return head + core + tail, [(start + len(head), end + len(head)) for start, end in spans]


def _matched_core(text: str, spans: Spans) -> tuple[str, Spans]:
    """Return the cleaned text from the first match to the last, and the matches in it."""
    line, shown, at = "", [], spans[0][0]
    for start, end in spans:
        line += _clean_text(text[at:start])
        found = _clean_text(text[start:end])
        shown.append((len(line), len(line) + len(found)))
        line, at = line + found, end
    return line, shown


def _merge_spans(matches: list[Match]) -> Spans:
    spans: Spans = []
    for start, end, _ in matches:
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _clean_text(text: str) -> str:
    return printable(_SPACE.sub(" ", text), keep="")


def _cut_head(text: str, room: int, more: bool) -> str:
    if len(text) <= room and not more:
        return text
    kept = text[len(text) - room + 1 :] if room > 1 else ""
    _, space, rest = kept.partition(" ")
    return "…" + (rest if space and rest and len(rest) > len(kept) - 20 else kept) if room > 0 else ""


def _cut_tail(text: str, room: int, more: bool) -> str:
    if len(text) <= room and not more:
        return text
    kept = text[: room - 1] if room > 1 else ""
    rest, space, _ = kept.rpartition(" ")
    return (rest if space and rest and len(rest) > len(kept) - 20 else kept) + "…" if room > 0 else ""


# --- hits ---

Clean = Callable[[str], str]

#: Fields by preference, when several match.
BEST_FIRST = ("prompt", "answer", "summary", "thinking", "tool_input", "tool_output", "meta")
_READ_TOGETHER = 262_144  # bytes of a record that is read with others
_OPEN = 20  # sessions with open records: each caches the last one, unless it is very long
_NEIGHBOUR_CHARS = 120  # of a turn next to a hit
_NEIGHBOUR_MESSAGES = 5  # read of such a turn


class NeighbourTurn(Struct, frozen=True):
    """The beginning of a turn before or after a hit."""

    turn: int
    role: str
    text: str


class SimilarHit(Struct, frozen=True):
    """A hit with the same text as the one it is counted under."""

    session: Session
    row: MessageRow | None

    @property
    def at(self) -> int | None:
        return hit_time(self.session, self.row)


class SearchHit(Struct, frozen=True):
    """A search hit with its excerpt. `row` is None if the title or summary of the session matches."""

    session: Session
    text: SessionText
    row: MessageRow | None
    field: str  # that matches: of FIELDS, or `title`
    snippet: str  # on one line, safe to print
    spans: Spans  # of the matches in it
    score: float
    before: tuple[NeighbourTurn, ...] = ()  # turns before and after it, if requested
    after: tuple[NeighbourTurn, ...] = ()
    similar: tuple[SimilarHit, ...] = ()  # hits with the same text, if these are collapsed

    @property
    def at(self) -> int | None:
        """The time of the message, or else of the session."""
        return hit_time(self.session, self.row)

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """The excerpt in pieces, each with whether it matches."""
        found, at = list[tuple[str, bool]](), 0
        for start, end in self.spans:
            found += [(self.snippet[at:start], False), (self.snippet[start:end], True)]
            at = end
        return [piece for piece in (*found, (self.snippet[at:], False)) if piece[0]]


class HitOptions(Struct, frozen=True):
    """The fields, cleaner and pattern of search hits."""

    fields: tuple[str, ...]
    clean: Clean
    pattern: LinearPattern | None = None


def hit_time(session: Session, row: MessageRow | None) -> int | None:
    """Return the time of a message, or else the time its session ended."""
    if row is not None and row.at is not None:
        return row.at
    return session.started if session.ended is None else session.ended


def hit_texts(message: Message, fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a message with their fields; all of them if no fields are given."""
    for block in message.blocks:
        if block.text and (not fields or block.field in fields):
            yield block.field, block.text


class HitBuilder:
    """Builds search hits; each session is looked up once."""

    def __init__(self, store: Store, sources: Sources, options: HitOptions) -> None:
        self._store, self._sources, self._options = store, sources, options
        self._fields = [name for name in BEST_FIRST if not options.fields or name in options.fields]
        self._sessions: dict[int, tuple[Session, SessionText]] = {}
        self._rows: dict[tuple[int, int], MessageRow] = {}
        self._bytes: dict[tuple[int, int], bytes] = {}
        self._open: dict[int, Records] = {}
        self._effort: Effort | None = None
        self.words: list[str] = []  # to mark
        self.literally = False  # whether to mark their characters, also within words

    def session(self, number: int) -> tuple[Session, SessionText]:
        if number not in self._sessions:
            self._sessions[number] = self._store.session(number)
        return self._sessions[number]

    def row(self, hit: IndexHit) -> MessageRow | None:
        """Return the message of a hit; None for a session's own entry."""
        if hit.seq < 0:
            return None
        if (hit.session, hit.seq) not in self._rows:
            self.load([hit])
        return self._rows.get((hit.session, hit.seq))

    def load(self, hits: Sequence[IndexHit]) -> None:
        """Look up the messages and sessions of several hits at once: each lookup may be a round trip to a server."""
        keys = {
            (hit.session, hit.seq)
            for hit in hits
            if hit.session not in self._sessions or (hit.seq >= 0 and (hit.session, hit.seq) not in self._rows)
        }
        for session, text, row in self._store.entries_at(sorted(keys)) if keys else ():
            self._sessions[session.id] = session, text
            if row is not None:
                self._rows[row.session, row.seq] = row

    def load_texts(self, rows: Iterable[MessageRow | None]) -> None:
        """Read the records of several messages at once, except very long ones."""
        known = self._bytes
        wanted = [
            row
            for row in rows
            if row is not None and (row.session, row.seq) not in known and row.size <= _READ_TOGETHER
        ]
        known |= {
            (row.session, row.seq): b"" for row in wanted if not row.size or not has_words(self.session(row.session)[0])
        }
        wanted = [row for row in wanted if (row.session, row.seq) not in known]
        ranges = [(self.session(row.session)[0].version, row.start, row.size) for row in wanted]
        for row, data in zip(wanted, self._store.read_ranges(ranges) if ranges else (), strict=True):
            self._bytes[row.session, row.seq] = data

    def texts(self, hit: IndexHit, row: MessageRow | None) -> list[tuple[str, str]]:
        """Return the texts of a hit by field, in order of preference."""
        session, text = self.session(hit.session)
        if row is None:
            return [(name, words) for name, words in (("title", text.title), ("summary", text.summary)) if words]
        by_field: dict[str, list[str]] = {}
        records, data = self._records(session), self._bytes.get((row.session, row.seq))
        message = records.message(row) if data is None else records.view(row, data)
        for field, words in hit_texts(message, self._options.fields):
            by_field.setdefault(field, []).append(words)
        return [(name, "\n".join(by_field[name])) for name in self._fields if name in by_field]

    def build(self, hit: IndexHit, row: MessageRow | None) -> SearchHit:
        session, text = self.session(hit.session)
        return SearchHit(session, text, row, *self._best_excerpt(self.texts(hit, row)), hit.score)

    def _records(self, session: Session) -> Records:
        if session.id not in self._open:
            if len(self._open) >= _OPEN:
                self._open.clear()
            self._open[session.id] = Records(self._store, self._sources, session, until=0)
        return self._open[session.id]

    def _best_excerpt(self, found: list[tuple[str, str]]) -> tuple[str, str, Spans]:
        """Return field, excerpt and spans of the text with most matches together; of equals the first."""
        made = [(name, *self._text_excerpt(self._options.clean(words))) for name, words in found]
        return max(made, key=lambda one: len(one[2]), default=("", "", []))

    def _text_excerpt(self, text: str) -> tuple[str, Spans]:
        pattern = self._options.pattern
        if pattern is None:
            return excerpt(text, self.words, literally=self.literally)
        from everturn.text.regex import EFFORT, Effort

        # Effort of its own: hits are shown even if the search used up its effort.
        self._effort = self._effort or Effort(EFFORT // 4)
        line = next(pattern.search_lines(text, self._effort), None)
        spans = [(line.start + start, line.start + end) for start, end in line.spans] if line else []
        return excerpt_at(text, spans) if spans else excerpt(text, self.words)


# --- neighbouring turns ---


def with_neighbours(store: Store, sources: Sources, found: SearchHit, near: int, clean: Clean) -> SearchHit:
    """Return the hit with the beginning of `near` turns before and after it."""
    if found.row is None:
        return found
    at = found.row.turn
    turns = store.turns(found.session.id, max(0, at - near), at + near)
    neighbours = [
        one for turn in turns if turn.idx != at and (one := _neighbour_turn(store, sources, found.session, turn, clean))
    ]
    before, after = [one for one in neighbours if one.turn < at], [one for one in neighbours if one.turn > at]
    return replace(found, before=tuple(before), after=tuple(after))


def _neighbour_turn(store: Store, sources: Sources, session: Session, turn: Turn, clean: Clean) -> NeighbourTurn | None:
    """Return the beginning of a turn: what was typed, not what the client inserted before."""
    rows = list(store.messages(session.id, turn.first_seq, min(turn.last_seq, turn.first_seq + _NEIGHBOUR_MESSAGES)))
    rows.sort(key=lambda row: (row.origin in ("injected", "system"), row.seq))
    records = Records(store, sources, session, until=0)
    for row in rows:
        for _, words in hit_texts(records.message(row), ()):
            return NeighbourTurn(turn.idx, row.role, one_line(clean(words), _NEIGHBOUR_CHARS))
    return None


# --- hits with the same text ---

T = TypeVar("T")

_NUMBER = re.compile(r"[0-9]+")
_COUNTED = ("tool_input", "tool_output", "meta")  # fields in which numbers do not count
_TAKEN = 10  # times the limit: most hits a page takes


class HitGroups(NamedTuple, Generic[T]):
    """The hits of a page: groups of hits with the same text, each with its best first."""

    groups: list[list[T]]
    last: T | None  # the last hit taken
    has_more: bool


def collect_groups(hits: Iterator[T], limit: int, key: Callable[[T], object] | None) -> HitGroups[T]:
    """Take hits for a page of `limit` groups; without a `key` every hit is a group."""
    groups: dict[object, list[T]] = {}
    last: T | None = None
    for number, hit in enumerate(hits):
        same = key(hit) if key else number
        if (same not in groups and len(groups) == limit) or number >= _TAKEN * limit:
            return HitGroups(list(groups.values()), last, has_more=True)
        groups.setdefault(same, []).append(hit)
        last = hit
    return HitGroups(list(groups.values()), last, has_more=False)


def text_key(texts: Iterable[tuple[str, str]]) -> bytes:
    """Return a digest that is equal for texts that count as the same. `texts` are fields and their texts."""
    digest = blake2b(digest_size=16)
    for field, text in texts:
        plain = _SPACE.sub(" ", text).strip()
        plain = _NUMBER.sub("0", plain) if field in _COUNTED else plain
        digest.update(f"{field}\0{plain}\0".encode("utf-8", "surrogatepass"))
    return digest.digest()
