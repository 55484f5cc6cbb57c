"""Turn index hits into search hits: the session, the message, an excerpt with the match marked, the turns around it.

`excerpt` finds where most of the phrases are together, regardless of case, accents and the signs between the words
(`parse json line` matches `parse_json_line`). A word is searched as it is, then with other endings, then within words.
Work is bounded: at most 64 parts of a long text are searched, each once per phrase. Secrets are masked in the whole text
before an excerpt is cut: one that was cut in half would not be recognised.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import MessageRow, Session, SessionText, Turn
from everturn.model.conversation import Message
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import IndexHit, Store
from everturn.text.printable import one_line, printable
from everturn.text.terms import terms

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
_OVERLAP = 1000  # between two parts
_Patterns = tuple[str, ...]
#: Endings of a stem, perhaps after a doubled letter.
_ENDINGS = r"[a-z]?(?:(?:at)?ions?|ments?|ings?|ies|ied|ers?|ed|es|ly|[sye])?(?![^\W_])"


def excerpt(text: str, phrases: list[str], width: int = 160) -> tuple[str, Spans]:
    """Return the best part of a text on one line of at most `width` characters, cut with `…`, and the matches in it.

    A phrase that ends in `*` matches the beginning of a word. Without any match it is the beginning of the text.
    """
    patterns = [pattern for phrase in phrases[:_PHRASES] if (pattern := _pattern(phrase))]
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


def find_phrases(text: str, phrases: list[str]) -> set[int]:
    compiled = {number: pattern for number, phrase in enumerate(phrases) if (pattern := _pattern(phrase))}
    found: set[int] = set()
    for start in range(0, min(len(text), _PART * _PARTS), _PART):
        folded = _fold_text(text[start : start + _PART + _OVERLAP])
        found |= {
            number
            for number, patterns in compiled.items()
            if number not in found and any(re.search(pattern, folded) for pattern in patterns)
        }
        if len(found) == len(compiled):
            break
    return found


def _best_window(text: str, phrases: list[_Patterns], width: int) -> list[Match]:
    """Return the matches in the best window: most phrases, then most matches, then the first."""
    best: list[Match] = []
    for start in range(0, min(len(text), _PART * _PARTS), _PART):
        # Parts overlap by a window, so that nothing is missed between two of them.
        folded = _fold_text(text[start : start + _PART + width])
        matches = sorted(
            match for number, patterns in enumerate(phrases) for match in _find_phrase(folded, patterns, number)
        )
        found = _densest_matches(matches, width)
        if _window_worth(found) > _window_worth(best):
            best = [(start + first, start + last, number) for first, last, number in found]
        if len({number for _, _, number in best}) == len(phrases):
            break
    return best


def _find_phrase(folded: str, patterns: _Patterns, number: int) -> list[Match]:
    """Find a phrase as whole words, or else with other endings, or else within words."""
    for pattern in patterns:
        found = [
            (match.start(), match.end(), number)
            for match, _ in zip(re.finditer(pattern, folded), range(_MATCHES), strict=False)
        ]
        if found:
            return found
    return []


def _densest_matches(matches: list[Match], width: int) -> list[Match]:
    best: list[Match] = []
    first = 0
    for last, match in enumerate(matches):
        while match[1] - matches[first][0] > width and first < last:
            first += 1
        window = matches[max(first, last - 2 * _PHRASES) : last + 1]
        if _window_worth(window) > _window_worth(best):
            best = window
    return best


def _window_worth(matches: list[Match]) -> tuple[int, int]:
    return len({number for _, _, number in matches}), len(matches)


# --- patterns ---


@lru_cache(256)
def _pattern(phrase: str) -> _Patterns:
    """Return patterns over folded text, the strictest first. Each begins with literal text, which is fast to find."""
    words = terms(phrase)
    if not words:
        literal = re.escape(phrase.strip().lower())
        return (literal,) if literal else ()
    by_prefix = phrase.rstrip().endswith("*")
    found = [_words_pattern(words, by_prefix)]
    if len(words) == 1 and not by_prefix and (stem := _stem(words[0])):
        found.append(_word_start_pattern(stem) + _ENDINGS)
    if len(phrase) < 3 and phrase.isascii():  # within words it matches almost anywhere
        return tuple(found)
    loose = re.escape(words[0])
    for word in words[1:]:
        loose += rf"[\W_]{{0,40}}{re.escape(word)}"
    return (*found, loose)


def _words_pattern(words: list[str], by_prefix: bool) -> str:
    pattern = _word_start_pattern(words[0])
    for before, word in pairwise(words):
        gap = 0 if _is_single_character(before) or _is_single_character(word) else 1
        pattern += rf"[\W_]{{{gap},40}}{re.escape(word)}"
    return pattern if by_prefix or _is_single_character(words[-1]) else pattern + r"(?![^\W_])"


def _word_start_pattern(word: str) -> str:
    return re.escape(word) if _is_single_character(word) else rf"{re.escape(word)}(?<![^\W_]{re.escape(word)})"


def _stem(word: str) -> str:
    """Return a word without its ending, since the index knows words by their stems; "" if it is not worth trying."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return ""
    ending = re.search(r"(?:(?:at)?ions?|ments?|ings?|ies|ied|ers?|ed|es|ly|[sye])$", word)
    stem = word[: ending.start()] if ending else word
    stem = stem if len(stem) >= 3 else word
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "sl" else stem


def _is_single_character(word: str) -> bool:
    """Whether the word is one character of a script written without spaces."""
    return len(word) == 1 and ord(word) >= 0x2E80


def _fold_text(text: str) -> str:
    """Lower the case and drop accents, character by character, so that positions stay."""
    return text.lower() if text.isascii() else text.translate(_FOLDED)


class _FoldingTable(dict[int, str]):
    def __missing__(self, point: int) -> str:
        char = chr(point)
        plain = unicodedata.normalize("NFKD", char.lower())
        base = "".join(part for part in plain if not unicodedata.combining(part))
        folded = self[point] = base if len(base) == 1 else char
        return folded


_FOLDED = _FoldingTable()


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
_OPEN = 20  # sessions with open records: each caches the last one, unless it is very long
_NEIGHBOUR_CHARS = 120  # of a turn next to a hit
_NEIGHBOUR_MESSAGES = 5  # read of such a turn


class NeighbourTurn(Struct, frozen=True):
    """The beginning of a turn before or after a hit."""

    turn: int
    role: str
    text: str


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


class HitOptions(Struct, frozen=True):
    """The fields, cleaner and pattern of search hits."""

    fields: tuple[str, ...]
    clean: Clean
    pattern: LinearPattern | None = None


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
        self._open: dict[int, Records] = {}
        self._effort: Effort | None = None
        self.words: list[str] = []  # to mark
        self.held: list[set[int]] = []  # for each message shown, the numbers of its words

    def session(self, number: int) -> tuple[Session, SessionText]:
        if number not in self._sessions:
            self._sessions[number] = self._store.session(number)
        return self._sessions[number]

    def texts(self, hit: IndexHit, row: MessageRow | None) -> list[tuple[str, str]]:
        """Return the texts of a hit by field, in order of preference."""
        session, text = self.session(hit.session)
        if row is None:
            return [(name, words) for name, words in (("title", text.title), ("summary", text.summary)) if words]
        by_field: dict[str, list[str]] = {}
        for field, words in hit_texts(self._records(session).message(row), self._options.fields):
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
        cleaned = [(name, self._options.clean(words)) for name, words in found]
        words = self.words
        if len(words) > 1:
            self.held.append({number for _, text in cleaned for number in find_phrases(text, words)})
        made = [(name, *self._text_excerpt(text)) for name, text in cleaned]
        return max(made, key=lambda one: len(one[2]), default=("", "", []))

    def _text_excerpt(self, text: str) -> tuple[str, Spans]:
        pattern = self._options.pattern
        if pattern is None:
            return excerpt(text, self.words)
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
