"""The full-text index as the shared code sees it: add and remove text, count words, find entries. And its stems.

An entry is a message with text of its own, or a session's own title and summary (seq -1). Which sessions and messages a
search covers is decided by shared code (`index_search`); an engine only matches words and reports how much of each it
found. Every term is stemmed the same way in text and query, by FTS5's porter tokenizer, also for PostgreSQL, so that both
engines hold the same stems. It works on what `text.terms` has folded: runs of letters and digits in any case.

Which entries of the index a query covers, and where they are reported.

A message is indexed once, in the session that owns it, and reported where the caller expects it: if the owner is an older
version of a file, in the current version that holds the same message; if certain sessions are searched, in those, even
if they only inherited the message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from math import log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

import apsw
from msgspec import Struct

from everturn.model.archive import IndexRow
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry, IndexQuery
from everturn.store.sql import Conditions, Driver, add_messages, add_sessions, query_in_lists, query_pairs
from everturn.text.terms import fold, index_text

if TYPE_CHECKING:
    from collections.abc import Callable


Phrase = tuple[str, ...]

#: Weight of a word by field. Chosen with the other constants of ranking; see retrieval/ranking.py.
WEIGHTS = {
    "prompt": 2.4, "summary": 3.0, "answer": 2.0, "tool_input": 1.2, "thinking": 1.2, "tool_output": 0.8, "meta": 0.5,
}  # fmt: skip
BY_FIELD = tuple(WEIGHTS[name] for name in FIELDS)

#: An entry of this many terms has normal length. Words of longer entries count less; LENGTH_MATTERS says how much.
USUAL_LENGTH = 80
LENGTH_MATTERS = 0.6
#: At this many weighted occurrences a phrase reaches half of its maximum.
ENOUGH = 1.6

#: Parts of compound names are not indexed in these fields: two thirds of all text, and the least searched.
WITHOUT_PIECES = ("tool_output", "meta")
LAST_SEQ = 0xFFFFFE  # messages beyond this are not indexed
_REMEMBERED = 10_000  # estimates


#: How the text of each field becomes what an index tokenizes.
_FOLDS = tuple(fold if name in WITHOUT_PIECES else index_text for name in FIELDS)


def fold_row(row: IndexRow) -> IndexRow:
    """Return the row with its texts as an index tokenizes them: costly, and possible in a process without the archive."""
    if row.is_folded:
        return row
    texts = list(row.texts)
    for number, text in enumerate(texts):
        if text:
            texts[number] = _FOLDS[number](text)
    return IndexRow(row.seq, tuple(texts), True)


class Range(NamedTuple):
    """Entries of one session, both ends included."""

    session: int
    first: int = -1
    last: int = LAST_SEQ


EntryKey = tuple[int, int]  # session, seq


class IndexScope(Struct, frozen=True):
    """Which entries to search, and where to report them."""

    ranges: tuple[Range, ...] | None
    sessions: tuple[str, tuple[Any, ...]] | None
    messages: tuple[str, tuple[Any, ...]] | None
    #: From the owner's entry to ours; if given, other sessions than `named` are left out.
    moves: dict[EntryKey, EntryKey] | None
    named: frozenset[int] = frozenset()
    has_older: bool = False


class GatheredEntries(Struct, frozen=True):
    """The entries worth ranking, and facts about their sessions, from an engine that finds them in one statement."""

    entries: list[IndexEntry]
    counts: tuple[float, ...]  # entries with each phrase in the whole index; 0 for pairs of words of the query
    total: int
    complete: bool
    times: dict[int, tuple[int | None, int | None]]
    older: frozenset[int]  # superseded sessions


class IndexLook(Struct, frozen=True):
    """A lookup in the index. Entries are examined newest first: by session, then by seq, both downwards."""

    groups: tuple[tuple[Phrase, ...], ...]  # each must match by any one of its phrases
    phrases: tuple[Phrase, ...]  # reported of an entry
    without: tuple[Phrase, ...] = ()
    fields: tuple[str, ...] = ()
    ranges: tuple[Range, ...] | None = None  # only these
    sessions: tuple[str, tuple[Any, ...]] | None = None  # only these: a SELECT of ids, and its parameters
    messages: tuple[str, tuple[Any, ...]] | None = None  # only messages `m` with this condition
    first_in: tuple[str, ...] = ()  # fields of the first group
    from_session: int = 0  # lowest session id
    walk: int = -1  # most entries to examine
    most: int = -1  # most entries to return: the best or, where that costs too much, the newest
    worth: tuple[float, ...] = ()  # of each of `phrases`, to find the best


class IndexMatches(NamedTuple):
    """The matching entries, each once."""

    entries: list[IndexEntry]
    walked: bool  # every matching entry was examined
    complete: bool  # every matching entry is returned


class Index(Protocol):
    """The full-text index of one archive: one that is searched lookup by lookup, or all at once (`WholeIndex`)."""

    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Add the text of messages that have no entry yet."""

    def add_session(self, session: int, text: str) -> None:
        """Replace the session's own entry (title and summary, field `summary`); without text, remove it."""

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Remove entries of messages, if present."""

    def remove_session(self, session: int) -> None:
        """Remove every entry of a session, including its own."""

    def finish_write(self, failed: bool) -> None:
        """Complete the changes of a write transaction before it is committed, or drop them because it failed."""

    def expand_prefix(self, beginning: str) -> list[str]:
        """Return the words, some ending in `*`, that together match exactly the terms with this beginning."""

    def count_words(self, words: Sequence[str], most: int) -> dict[str, int]:
        """Return the words that occur with their number of entries, counted up to `most`."""

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Return indexed stems with this beginning."""


@runtime_checkable
class StepIndex(Index, Protocol):
    """An index in this process: a lookup costs little, so that the next one may depend on it."""

    def total(self) -> int:
        """Return the approximate number of entries."""

    def estimate(self, phrase: Phrase, fields: Sequence[str], sample: int, since: int, newest: int) -> float:
        """Estimate how many entries hold a phrase from at most `sample` of them.

        Only sessions from `since` on are examined; the others, up to session `newest`, are assumed to be alike.
        """

    def look(self, looking: IndexLook) -> IndexMatches:
        """Return the matches, within the bounds."""


@runtime_checkable
class WholeIndex(Index, Protocol):
    """An index behind a network, where every lookup costs a round trip."""

    def gather(self, query: IndexQuery, scope: IndexScope, most: int) -> GatheredEntries:
        """Return the entries worth ranking."""


class KnownCounts:
    """Estimates of earlier queries, as long as the index is the same."""

    def __init__(self) -> None:
        self._state = (0, 0)
        self._counts: dict[tuple[tuple[str, ...], Phrase], float] = {}

    def of(self, newest: int, total: int) -> dict[tuple[tuple[str, ...], Phrase], float]:
        """Return the estimates by fields and phrase for an index of this size, to read and to add to."""
        if (newest, total) != self._state or len(self._counts) > _REMEMBERED:
            self._state, self._counts = (newest, total), {}
        return self._counts


def weigh_phrases(query: IndexQuery) -> dict[Phrase, float]:
    """Return the phrases of a query with their weights: the required ones, then the optional ones."""
    weights = dict.fromkeys((phrase for group in query.groups for phrase in group), 1.0)
    for number, phrase in enumerate(query.optional):
        weights.setdefault(phrase, query.weights[number] if number < len(query.weights) else 1.0)
    return weights


def rareness(count: float, total: int) -> float:
    """Return the inverse document frequency of a word that occurs in `count` of `total` entries."""
    return log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def length_factor(length: int) -> float:
    """Return the divisor for occurrences in an entry of this length."""
    return 1 - LENGTH_MATTERS + LENGTH_MATTERS * length / USUAL_LENGTH


def phrase_share(seen: float, factor: float, terms: int) -> float:
    """Return an entry's share of a phrase with `terms` terms from its weighted occurrences.

    A single word may occur in a long text by chance, two adjacent words hardly, more of them never: then the length
    does not matter.
    """
    if terms == 1:
        seen /= factor
    elif terms == 2:
        seen /= sqrt(factor)
    return seen / (seen + ENOUGH)


#: The tokenizer of every index.
TOKENIZER = ("porter", "unicode61", "remove_diacritics", "0")


def stem_words(folded: str) -> list[str]:
    """Return the stems of a folded text, in order."""
    return _tokenize()(folded.encode("utf-8", "replace"))


def stem_word(term: str) -> str:
    """Return the stem of a term; anything else is returned unchanged."""
    stems = stem_words(term)
    return stems[0] if len(stems) == 1 else term


@cache
def _tokenize() -> Callable[[bytes], list[str]]:
    name, *options = TOKENIZER
    connection = apsw.Connection(":memory:")
    tokenizer = connection.fts5_tokenizer(name, options)

    def tokenize(text: bytes) -> list[str]:
        tokens = tokenizer(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        return cast("list[str]", tokens)  # the result without offsets and synonyms

    return tokenize


#: Endings that stemming removes: how an incomplete word may continue.
_ENDINGS = (
    *"s es ed ies ied ing ings er ers ly al able ible ity ive ize ized".split(),
    *"izing ization ion ions ation ations ational icate ication ications ically".split(),
    *"ment ments ness ance ence ful fulness ousness ional ement ements".split(),
)
_SHORTEST = 3


def word_with_stem(term: str) -> str:
    """Return a word whose stem is `term` (a stem may itself have another stem), or "" if none is found."""
    return next((word for ending in ("", "ing", "e", "ed", *_ENDINGS) if stem_word(word := term + ending) == term), "")


def completions(beginning: str) -> list[str]:
    """Return words with this beginning whose stems lack it: `parsi` → parsing, indexed as pars. Errs on too many."""
    words: dict[str, str] = {}
    for length in range(_SHORTEST, len(beginning)):
        tail = beginning[length:]
        for ending in _ENDINGS if len(tail) > 1 or tail in "eis" else ():
            if ending.startswith(tail):
                word = beginning[:length] + ending
                words.setdefault(stem_word(word), word)
    for ending in ("ing", "ed"):  # runn, for running
        words.setdefault(stem_word(beginning + ending), beginning + ending)
    root = stem_word(beginning)
    return [word for stem, word in words.items() if not stem.startswith(root)]


# --- Which entries of the index a query covers, and where they are reported ---
_IDS = 'SELECT t."id" FROM "session" t LEFT JOIN "session_text" x ON x."session"=t."id"'
#: Older versions whose current version matches the filter; shared messages are reported in the current one.
_OLDER_IDS = """
    SELECT o."id" FROM "session" o JOIN "session" t ON t."agent"=o."agent" AND t."native_id"=o."native_id"
        AND t."machine"=o."machine" AND t."state"='current'
    LEFT JOIN "session_text" x ON x."session"=t."id"
"""
_INHERITED = """
    SELECT o."session", o."seq", m."seq" FROM "message" m
    CROSS JOIN "message" o CROSS JOIN "session" a CROSS JOIN "session" b
    WHERE m."session"=? AND m."inherited"=1 AND m."seq" BETWEEN ? AND ?
    AND o."fingerprint"=m."fingerprint" AND o."inherited"=0 AND a."id"=o."session" AND b."id"=m."session"
    AND a."agent"=b."agent" ORDER BY m."seq" DESC
"""
_CURRENT = """
    SELECT m."session", m."seq", c."id", MIN(cm."seq") FROM "message" m CROSS JOIN "session" s CROSS JOIN "session" c
    CROSS JOIN "message" cm
    WHERE (m."session",m."seq") IN (VALUES {}) AND s."id"=m."session" AND c."agent"=s."agent"
    AND c."native_id"=s."native_id" AND c."machine"=s."machine" AND c."state"='current'
    AND cm."session"=c."id" AND cm."fingerprint"=m."fingerprint" GROUP BY m."session", m."seq", c."id"
"""


def resolve_scope(driver: Driver, query: IndexQuery, has_older: bool | None = None) -> IndexScope:
    """Return the scope of a query. `has_older`: whether there may be superseded sessions; None: look."""
    named = _named_sessions(query)
    conditions = Conditions()
    add_messages(conditions, query, turns=named is None)
    messages = (conditions.together(), tuple(conditions.params)) if conditions else None
    if named is None:
        if has_older is None:
            has_older = driver.one("""SELECT 1 FROM "session" WHERE "state"='superseded' LIMIT 1""") is not None
        return IndexScope(None, _sessions_sql(query, has_older), messages, None, has_older=has_older)
    ids = _matching_sessions(driver, query, named)
    ranges = [part for session in ids if (part := _turn_range(driver, query, session))]
    moves = _inherited_entries(driver, ranges, set(ids))
    by_owner: dict[int, list[int]] = defaultdict(list)
    for owner, seq in moves:
        by_owner[owner].append(seq)
    ranges += [Range(owner, min(seqs), max(seqs)) for owner, seqs in by_owner.items()]
    return IndexScope(tuple(ranges), None, messages, moves, frozenset(ids))


def report_entries(
    driver: Driver,
    query: IndexQuery,
    scope: IndexScope,
    entries: Iterable[IndexEntry],
    older: Collection[int] | None = None,
) -> list[IndexEntry]:
    """Return the entries where the caller expects them, without those out of scope. `older`: superseded sessions, if known."""
    if scope.moves is not None:
        targets = ((scope.moves.get((e.session, e.seq)), e) for e in entries)
        moved = [(to or (e.session, e.seq), e) for to, e in targets if to or e.session in scope.named]
    elif scope.has_older:
        moved = _move_to_current(driver, query, list(entries), older)
    else:
        return list(entries)
    return [IndexEntry(*key, entry.held) for key, entry in dict(moved).items()]


def _named_sessions(query: IndexQuery) -> list[int] | None:
    if query.session is None:
        return sorted(set(query.within)) if query.within else None
    return [query.session] if not query.within or query.session in query.within else []


def _sessions_sql(query: IndexQuery, has_older: bool) -> tuple[str, tuple[Any, ...]] | None:
    if query.sessions is None:
        return None
    conditions, older = Conditions(), Conditions()
    add_sessions(conditions, query.sessions, s="t")
    sql, params = _IDS + conditions.where(), tuple(conditions.params)
    if has_older:
        older.add("""o."state"='superseded'""")
        add_sessions(older, query.sessions, s="t")
        sql, params = f"{sql} UNION {_OLDER_IDS}{older.where()}", (*params, *older.params)
    return sql, params


def _matching_sessions(driver: Driver, query: IndexQuery, ids: Sequence[int]) -> list[int]:
    if query.sessions is None:
        return list(ids)
    conditions = Conditions()
    add_sessions(conditions, query.sessions, s="t")
    conditions.add('t."id" IN ({})')
    sql = _IDS + conditions.where()
    return [row[0] for row in query_in_lists(driver.all, sql, ids, conditions.params)]


def _turn_range(driver: Driver, query: IndexQuery, session: int) -> Range | None:
    if query.turns is None:
        return Range(session)
    sql = 'SELECT MIN("first_seq"), MAX("last_seq") FROM "turn" WHERE "session"=? AND "idx" BETWEEN ? AND ?'
    row = driver.one(sql, (session, *query.turns))
    return Range(session, row[0], row[1]) if row and row[0] is not None else None


def _inherited_entries(driver: Driver, ranges: Sequence[Range], named: set[int]) -> dict[EntryKey, EntryKey]:
    """Map the entries that these sessions inherited from others to their own."""
    moves: dict[EntryKey, EntryKey] = {}
    for session, first, last in ranges:
        if driver.one('SELECT 1 FROM "session" WHERE "id"=? AND "n_inherited">0', (session,)):
            for owner, seq, here in driver.all(_INHERITED, (session, max(first, 0), min(last, LAST_SEQ))):
                if owner not in named:
                    moves[owner, seq] = session, here
    return moves


def _move_to_current(
    driver: Driver, query: IndexQuery, entries: list[IndexEntry], older: Collection[int] | None
) -> list[tuple[EntryKey, IndexEntry]]:
    if older is None:
        sql = """SELECT "id" FROM "session" WHERE "state"='superseded' AND "id" IN ({})"""
        ids = list({entry.session for entry in entries})
        older = {row[0] for row in query_in_lists(driver.all, sql, ids)}
    keys = [(entry.session, entry.seq) for entry in entries if entry.session in older and entry.seq >= 0]
    moves = {(row[0], row[1]): (row[2], row[3]) for row in query_pairs(driver.all, _CURRENT, keys)}
    staying = set(_matching_sessions(driver, query, sorted(older))) if older else set()
    targets = ((moves.get((e.session, e.seq)), e) for e in entries)
    return [(to or (e.session, e.seq), e) for to, e in targets if to or e.session not in older or e.session in staying]
