"""Search in PostgreSQL: everything that ranking needs to know about a query, in one statement and one round trip.

The statement reads the lists of the query's words (`store.word_lists`), best entries first: all of a word with up to LISTED entries,
else about so many. It adds up what each entry has of the words, and a share of the best of its session, and returns the stems of the
entries with the highest sums, of the other matches of the best sessions, of neighbours, and of every entry that is in no list yet.
Whether an entry matches, how often it holds each phrase and in which fields, is then decided here, by its stems. Where every match
fits, the result is complete and the same as SQLite's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry, IndexQuery
from everturn.store.index import (
    BY_FIELD,
    EntryKey,
    GatheredEntries,
    IndexScope,
    Phrase,
    length_factor,
    phrase_share,
    rareness,
    stem_word,
    weigh_phrases,
)
from everturn.store.postgres_driver import PostgresDriver
from everturn.store.word_lists import OWN, split_fields, unpack_text
from everturn.text.terms import terms

LONGEST = 500  # characters of a term, at most 2,000 bytes

LISTED = 3800  # entries of a word that are read, at least: blocks of a list are read as a whole
REACH = 60_000  # the same if a phrase is required and fewer than FEW entries have it
FEW = 20
OPENED = 200  # terms of a word that matches by prefix
VERIFIED = 3  # entries looked at for each one wanted where words are required, since many will not hold all of them
WIDE = 5  # entries whose neighbours are considered, for each one wanted
PER_NEAR = 15  # entries wanted for each one whose neighbours are looked at too
PER_BEST = 100  # entries wanted for each session of which all matches are looked at
SAMPLED = 375  # entries with all words of a phrase that are looked at to count it
NAMED = 20  # sessions that are read as a whole if only they are searched
_WORDS = 60  # of a query, in the bits of an integer
#: Share of the best match of every word in the session, and of neighbours; about what ranking gives them.
_SESSION = 0.7
_BESIDE = 0.2
_NEAR = (-2, -1, 1, 2)
_ANY = 1 << 40  # no bound

_TOTAL = """SELECT COALESCE(SUM("n_messages"-"n_inherited"),0) FROM "session" WHERE "mode"<>'structure'"""
_SEQ = f"CASE {{0}}&{OWN} WHEN {OWN} THEN -1 ELSE {{0}}&{OWN} END"

#: Parameters by name; `number_names` turns them into numbers. Where a table must be read by key, a subquery with OFFSET 0 leaves the
#: planner no choice: it knows nothing about how many rows the lists have.
_GATHER = """
WITH total AS MATERIALIZED ({total}),{scoped}
h AS MATERIALIZED (SELECT x."o", x."key", x."share", x."n" FROM {lists}(:terms::text[],:beyond::text[],:budget,:opened) x),
n AS MATERIALIZED (SELECT "o", MAX("n")>:budget OR MIN("n")<0 AS cut, {count}::float8 AS n FROM h GROUP BY "o"),
g AS MATERIALIZED (
    SELECT n."o", n.n, n.cut,
    (:weights::float8[])[n."o"]*LN(1+(GREATEST(total.total-n.n,0)+0.5)/(n.n+0.5))/255 AS worth
    FROM n CROSS JOIN (SELECT * FROM total) AS total(total)),
c AS MATERIALIZED (SELECT COALESCE(BIT_OR(1::bigint<<("o"-1)::int) FILTER (WHERE cut),0) AS cut FROM g),
k AS MATERIALIZED (SELECT "key", SUM({worth}*"share") AS s, BIT_OR(1::bigint<<("o"-1)::int) AS has FROM h GROUP BY 1),
{pool}
sampled AS ({sampled}),
final AS MATERIALIZED (
    SELECT "key", BOOL_OR(fresh) AS fresh FROM (
        SELECT "key", FALSE AS fresh FROM pool
        UNION ALL
        SELECT k."key", FALSE FROM (
            SELECT "key">>24 AS session FROM pool GROUP BY 1 ORDER BY MAX(s) DESC, 1 DESC LIMIT :best_sessions) b
        JOIN k ON k."key">>24=b.session WHERE {is_cut}
        UNION ALL
        SELECT b."key"+d.d, FALSE FROM (SELECT "key" FROM pool WHERE "key"&{own}<>{own} ORDER BY s DESC LIMIT :near) b
        CROSS JOIN (VALUES (-2),(-1),(1),(2)) AS d(d) WHERE ("key"&{own})+d.d BETWEEN 0 AND {own}-1 AND {is_cut}
        UNION ALL
        SELECT "key", FALSE FROM sampled
        UNION ALL
        SELECT u."session"<<24|(q&{own}), TRUE FROM "unlisted_entry" u CROSS JOIN LATERAL UNNEST(u."seqs") AS q
    ) x GROUP BY "key")
SELECT r."session", r."seq", f.fresh, {in_scope}, r."stems", NULL::bigint, NULL::bigint, NULL FROM final f CROSS JOIN LATERAL (
    SELECT e."session", e."seq", e."stems" FROM "entry_text" e WHERE e."session"=f."key">>24 AND e."seq"=({seq})::integer OFFSET 0) r
UNION ALL
SELECT f.session, NULL, NULL, NULL, NULL, s."started", s."ended", s."state" FROM (SELECT DISTINCT "key">>24 AS session FROM final) f
CROSS JOIN LATERAL (SELECT t."started", t."ended", t."state" FROM "session" t WHERE t."id"=f.session OFFSET 0) s
UNION ALL
SELECT NULL, NULL, NULL, (SELECT COUNT(*)>=:most FROM pool), NULL, total.total::bigint, (SELECT cut FROM c),
    COALESCE((SELECT STRING_AGG(g."o"||' '||g.n, ',') FROM g),'')||';'||CONCAT_WS(',',{phrase_counts}) FROM (SELECT * FROM total) AS total(total)
"""
#: How many entries hold a word; of one that matches by prefix, an entry may have several places.
_COUNT = 'ABS(MAX("n"))'
_COUNT_OPENED = """
    CASE WHEN MAX("n") BETWEEN 0 AND :budget AND (:beyond::text[])["o"] IS NOT NULL
    THEN COUNT(DISTINCT "key") FILTER (WHERE (:beyond::text[])["o"] IS NOT NULL) ELSE ABS(MAX("n")) END
"""
#: The entries with the highest sums that hold something of every required group, as far as the lists tell.
_POOL = """
b AS MATERIALIZED (
    SELECT session, SUM(best) AS best FROM (
        SELECT "key">>24 AS session, MAX("share")*{worth} AS best FROM h GROUP BY 1, "o") x GROUP BY 1),
wide AS MATERIALIZED (
    SELECT r."key", r.own, r.s FROM (
        SELECT k."key", k."key">>24 AS "session", {seq} AS "seq", k.s AS own, k.s+:session_share*b.best AS s
        FROM k JOIN b ON b.session=k."key">>24 CROSS JOIN c WHERE TRUE{groups} ORDER BY 5 DESC, 1 DESC OFFSET 0) r
    WHERE TRUE{scope} ORDER BY 3 DESC, 1 DESC LIMIT :wide),
pool AS MATERIALIZED (
    SELECT "key", s+:beside*(SUM(own) OVER (ORDER BY "key" RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING)-own) AS s FROM wide
    ORDER BY 2 DESC, 1 DESC LIMIT :most),
"""
#: Every entry of named sessions.
_NAMED_POOL = """
pool AS MATERIALIZED (
    SELECT DISTINCT r."session"<<24|(r."seq"&16777215) AS "key", 0::float8 AS s FROM "entry_text" r WHERE TRUE{scope}),
"""


class QueryWord(Struct, frozen=True):
    """A word that is looked up: a whole one, or all from `term` to `beyond`."""

    term: str
    beyond: str | None


class _AskedPhrases:
    """The phrases of a query, and the words to look up for them. A mask has a bit for each word of a phrase."""

    def __init__(self, query: IndexQuery) -> None:
        weights = weigh_phrases(query)
        self.query = query
        self.weights = list(weights.values())
        self.phrases = tuple(weights)
        self.words = _query_words(query, weights)
        self.masks = [_word_mask(phrase, self.words) for phrase in self.phrases]
        self.groups = [[self.phrases.index(phrase) for phrase in group] for group in query.groups]
        self.has_required_phrase = any(self.masks[number].bit_count() > 1 for group in self.groups for number in group)
        #: Numbers of the phrases of several words that are counted by looking at entries.
        self.counted = [number for number, phrase in enumerate(self.phrases) if _is_counted(phrase, query, weights)]

    def conditions(self) -> str:
        """Return the condition on what an entry has: of every required group, or else of anything, all words of a phrase."""
        wanted = self.groups or [list(range(len(self.phrases)))]
        return "".join(f" AND ({_any_mask([self.masks[number] for number in some])})" for some in wanted)

    def is_examined(self, cut: int) -> bool:
        """Whether the lists had every entry that may match. `cut` are the words of which only the best entries were read."""
        return not cut or any(not any(self.masks[number] & cut for number in group) for group in self.groups)

    def counted_masks(self) -> list[str]:
        """Return a condition for each counted phrase: an entry has all of its words."""
        return [f"has&{self.masks[number]}={self.masks[number]}" for number in self.counted]


def gather_entries(driver: PostgresDriver, query: IndexQuery, scope: IndexScope, most: int) -> GatheredEntries:
    """Return the entries worth ranking, with the counts of all phrases."""
    asked = _AskedPhrases(query)
    is_narrow = not query.groups and (driver.is_limited or bool(scope.sessions or scope.messages or query.fields))
    looked_at = (most * VERIFIED if query.groups else most) or _ANY
    found = _gather(driver, asked, scope, _Bounds(most, looked_at, LISTED * (2 if is_narrow else 1)))
    if asked.has_required_phrase and not found.complete and len(found.entries) < FEW:
        # Common words that are hardly ever adjacent: more of them.
        found = _gather(driver, asked, scope, _Bounds(most, looked_at * VERIFIED, REACH))
    return _keep_best(found, asked.weights, most) if 0 < most < len(found.entries) else found


class _Bounds(NamedTuple):
    most: int  # entries wanted; 0: all
    looked_at: int
    listed: int  # entries of a word to read


def _gather(driver: PostgresDriver, asked: _AskedPhrases, scope: IndexScope, bounds: _Bounds) -> GatheredEntries:
    is_whole = scope.ranges is not None and len({some.session for some in scope.ranges}) <= NAMED
    most = bounds.most
    names: dict[str, Any] = {
        "terms": [word.term for word in asked.words], "beyond": [word.beyond for word in asked.words],
        "weights": list(asked.words.values()), "opened": OPENED, "session_share": _SESSION, "beside": _BESIDE,
        "budget": bounds.listed if most and (is_whole or scope.ranges is None) else _ANY,
        "most": bounds.looked_at, "wide": max(bounds.looked_at, WIDE * most), "near": most // PER_NEAR,
        "best_sessions": max(most // PER_BEST, 1), **_scope_parameters(scope),
    }  # fmt: skip
    statement, params = number_names(_gather_sql(driver, asked, scope, is_whole), names)
    *rows, summary = driver.all_by_index(statement, params)
    found = _read_rows(asked, rows, summary)
    return replace(found, complete=True) if is_whole else found


def _gather_sql(driver: PostgresDriver, asked: _AskedPhrases, scope: IndexScope, is_whole: bool) -> str:
    in_scope = "".join(f" AND {condition}" for condition in _scope_conditions(scope))
    counted = asked.counted_masks()
    pool = _NAMED_POOL if is_whole else _POOL
    return _GATHER.format(
        total=_TOTAL,
        scoped=_scoped_sessions(scope),
        count=_COUNT_OPENED if any(word.beyond for word in asked.words) else _COUNT,
        lists='"read_visible_lists"' if driver.is_limited else '"read_lists"',
        worth=_WORTH,
        pool=pool.format(worth=_WORTH, scope=in_scope, groups=asked.conditions(), seq=_SEQ.format('k."key"')),
        sampled=" UNION ALL ".join(f'(SELECT "key" FROM k WHERE {has} LIMIT {SAMPLED})' for has in counted)
        or _NO_SAMPLE,
        phrase_counts=",".join(f"(SELECT COUNT(*) FROM k WHERE {has})" for has in counted) or "''",
        is_cut="FALSE" if is_whole else "(SELECT cut<>0 FROM c)",
        in_scope=f"TRUE{in_scope}",
        seq=_SEQ.format('f."key"'),
        own=OWN,
    )


#: What a word is worth, without a join for each place of a list.
_WORTH = '(SELECT ARRAY_AGG(g.worth ORDER BY w.o) FROM GENERATE_SERIES(1,CARDINALITY(:weights::float8[])) AS w(o) LEFT JOIN g ON g."o"=w.o)["o"]'
_NO_SAMPLE = 'SELECT "key" FROM k LIMIT 0'


def _is_counted(phrase: Phrase, query: IndexQuery, weights: dict[Phrase, float]) -> bool:
    """Whether a phrase of several words is counted: not a pair of words of the query with a low weight of its own."""
    if len(_phrase_words(phrase)) < 2:
        return False
    is_pair = len(phrase) == 2 and weights[phrase] < 0.5 and all((term,) in weights for term in phrase)
    return not is_pair or any(phrase in group for group in query.groups)


# --- the words of a query ---


def _phrase_words(phrase: Phrase) -> list[QueryWord]:
    """Return the words of a phrase: stems, and the beginning of the last one if it matches by prefix."""
    # Analysed again, which changes no term and leaves no syntax.
    plain = [word for term in phrase for word in terms(term)]
    words = [QueryWord(stem_word(word)[:LONGEST], None) for word in plain]
    if words and phrase[-1].endswith("*"):
        beginning = plain[-1][:LONGEST]  # a prefix has no stem
        words[-1] = QueryWord(beginning, f"{beginning}\U0010ffff")
    return words


def _query_words(query: IndexQuery, weights: dict[Phrase, float]) -> dict[QueryWord, float]:
    """Return the words to look up, each with its weight: the required ones first, then those with a weight of their own."""
    found: dict[QueryWord, float] = {}
    required = {phrase for group in query.groups for phrase in group}
    ordered = sorted(weights, key=lambda phrase: (phrase not in required, len(phrase)))
    for phrase in ordered:
        words = _phrase_words(phrase)
        for word in words:
            if len(words) == 1 or word not in found:
                found[word] = max(weights[phrase] / len(words), found.get(word, 0.0))
    return dict(list(found.items())[:_WORDS])


def _word_mask(phrase: Phrase, words: dict[QueryWord, float]) -> int:
    numbers = {word: number for number, word in enumerate(words)}
    return sum({1 << numbers[word] for word in _phrase_words(phrase) if word in numbers})


def _any_mask(masks: Sequence[int]) -> str:
    """Return a condition: an entry has all words of one of the phrases, except those of which only the best entries were read."""
    return " OR ".join(f"({mask}::bigint & ~(k.has|c.cut))=0" for mask in dict.fromkeys(masks)) or "FALSE"


# --- what an entry holds ---


class _PhraseMatcher:
    """Finds the phrases of a query in the stems of entries."""

    def __init__(self, query: IndexQuery, phrases: Sequence[Phrase]) -> None:
        self._patterns = [(number, _pattern(phrase), len(phrase)) for number, phrase in enumerate(phrases)]
        self._patterns = [one for one in self._patterns if one[1]]
        self._without = [pattern for phrase in query.without if (pattern := _pattern(phrase))]
        self._groups = [{phrases.index(phrase) for phrase in group} for group in query.groups]
        self._fields = {FIELDS.index(name) for name in query.fields}

    def held_phrases(self, stems: bytes) -> tuple[tuple[int, float], ...]:
        """Return the phrases that an entry holds, by number, with its share of each."""
        text = unpack_text(stems)
        present = [one for one in self._patterns if one[1] in text]
        if not present:
            return ()
        fields = list(split_fields(text))
        factor = length_factor(text.count(b"\n") - len(fields))
        if self._fields:
            fields = [one for one in fields if one[0] in self._fields]
        held = []
        for number, pattern, length in present:
            seen = sum([BY_FIELD[field] * n for field, part in fields if (n := _count(part, pattern))])
            if seen:
                held.append((number, phrase_share(seen, factor, length)))
        return tuple(held)

    def is_match(self, stems: bytes, held: Sequence[tuple[int, float]]) -> bool:
        """Whether an entry with these phrases has one of every group, and none of what it must not have."""
        numbers = {number for number, _ in held}
        if not numbers or any(numbers.isdisjoint(group) for group in self._groups):
            return False
        if not self._without:
            return True
        text = unpack_text(stems)
        fields = [part for field, part in split_fields(text) if not self._fields or field in self._fields]
        return not any(pattern in part for pattern in self._without for part in fields)


def _pattern(phrase: Phrase) -> bytes:
    """Return the bytes of a phrase in stems: a line each; of a prefix, without an end."""
    words = _phrase_words(phrase)
    lines = "".join(f"\n{word.term}" for word in words)
    return f"{lines}{'' if words and words[-1].beyond else chr(10)}".encode("utf-8", "replace") if words else b""


def _count(text: bytes, pattern: bytes) -> int:
    """Count a phrase, also where the next one begins with the line feed that ends it."""
    n, at = 0, text.find(pattern)
    while at >= 0:
        n, at = n + 1, text.find(pattern, at + 1)
    return n


def _read_rows(asked: _AskedPhrases, rows: list[tuple[Any, ...]], summary: tuple[Any, ...]) -> GatheredEntries:
    matcher = _PhraseMatcher(asked.query, asked.phrases)
    listed = _ListCounts(asked, summary)
    entries, times, older = [], {}, set()
    for session, seq, is_fresh, in_scope, stems, started, ended, state in rows:
        if seq is None:
            times[session] = started, ended
            if state == "superseded":
                older.add(session)
            continue
        held = matcher.held_phrases(stems)
        listed.add(held, is_fresh)
        if in_scope and matcher.is_match(stems, held):
            entries.append(IndexEntry(session, seq, held))
    entries.sort(key=lambda one: (-one.session, -one.seq))
    complete = not summary[3] and asked.is_examined(int(summary[6]))
    older &= {entry.session for entry in entries}
    return GatheredEntries(entries, listed.counts(), int(summary[5]), complete, times, frozenset(older))


class _ListCounts:
    """Counts the entries of each phrase: those in lists by the lists, the others one by one."""

    def __init__(self, asked: _AskedPhrases, summary: tuple[Any, ...]) -> None:
        by_word, _, by_phrase = (summary[7] or ";").partition(";")
        numbers = {word: number for number, word in enumerate(asked.words, 1)}
        in_lists = {int(o): float(n) for o, n in (pair.split(" ") for pair in by_word.split(",") if pair)}
        self._counted = dict(zip(asked.counted, map(float, filter(None, by_phrase.split(","))), strict=True))
        self._single = {
            number: in_lists.get(numbers.get(made[0], 0), 0.0)
            for number, phrase in enumerate(asked.phrases)
            if len(made := _phrase_words(phrase)) == 1
        }
        self._size = len(asked.phrases)
        self._fresh = [0] * self._size
        self._seen = [0] * self._size

    def add(self, held: Sequence[tuple[int, float]], is_fresh: bool) -> None:
        for number, _ in held:
            if is_fresh:
                self._fresh[number] += 1
            else:
                self._seen[number] += 1

    def counts(self) -> tuple[float, ...]:
        """Return the counts. A phrase of several words is in at most as many entries as hold all of its words."""
        return tuple(self._count(number) for number in range(self._size))

    def _count(self, number: int) -> float:
        if number in self._single:
            return self._single[number] + self._fresh[number]
        n = self._seen[number]
        if n and self._counted.get(number, 0.0) > SAMPLED:
            n = max(n, int(self._counted[number] * min(n / SAMPLED, 1.0)))
        return float(n + self._fresh[number])


def _keep_best(found: GatheredEntries, weights: Sequence[float], most: int) -> GatheredEntries:
    """Keep the best entries; of the very best, also the neighbours, and of the best sessions all."""
    worth = [weight * rareness(n, found.total) for weight, n in zip(weights, found.counts, strict=True)]
    own: dict[EntryKey, float] = {}
    best_of: dict[int, dict[int, float]] = {}
    for one in found.entries:
        scores = {number: worth[number] * share for number, share in one.held}
        own[one.session, one.seq] = sum(scores.values())
        best = best_of.setdefault(one.session, {})
        for number, score in scores.items():
            best[number] = max(score, best.get(number, 0.0))
    of_session = {session: _SESSION * sum(best.values()) for session, best in best_of.items()}
    scored = {
        (session, seq): score + of_session[session] + _BESIDE * sum(own.get((session, seq + d), 0.0) for d in _NEAR)
        for (session, seq), score in own.items()
    }
    ranked = sorted(scored, key=lambda key: (scored[key], key), reverse=True)
    kept = set(ranked[:most])
    kept.update((session, seq + d) for session, seq in ranked[: most // PER_NEAR] for d in _NEAR)
    whole = set(list(dict.fromkeys(session for session, _ in ranked))[: most // PER_BEST])
    entries = [one for one in found.entries if (one.session, one.seq) in kept or one.session in whole]
    return replace(found, entries=entries, complete=False)


# --- words by themselves ---

_FRESH = """
    SELECT r."stems" FROM "unlisted_entry" u CROSS JOIN LATERAL UNNEST(u."seqs") AS q
    JOIN "entry_text" r ON r."session"=u."session" AND r."seq"=q
"""
_COUNT_TERMS = """SELECT x."o", COUNT(*), MAX(x."n") FROM {}(?::text[],?::text[],0,0) x GROUP BY x."o" """
_LIST_TERMS = """
    SELECT DISTINCT y.term COLLATE "C" FROM "word_segment" g CROSS JOIN LATERAL (
        SELECT l."terms" FROM "word_list" l WHERE l."seg"=g."seg" AND l."first"<? AND l."first">=COALESCE(
            (SELECT k."first" FROM "word_list" k WHERE k."seg"=g."seg" AND k."first"<=? ORDER BY k."first" DESC LIMIT 1),'')
    ) b CROSS JOIN LATERAL UNNEST(STRING_TO_ARRAY(b."terms",E'\\n')) AS y(term)
    WHERE y.term COLLATE "C">=? AND y.term COLLATE "C"<? ORDER BY 1 LIMIT ?
"""


def count_terms(driver: PostgresDriver, stems: Sequence[str]) -> dict[str, int]:
    """Return how many entries hold each stem, without those that none holds."""
    found = driver.all_by_index(_COUNT_TERMS.format('"read_lists"'), [list(stems), [None] * len(stems)])
    counts = {stems[o - 1]: int(n) for o, _, n in found}
    wanted = {stem.encode("utf-8", "replace"): stem for stem in stems}
    for (packed,) in driver.all_by_index(_FRESH):
        for line in wanted.keys() & set(unpack_text(packed).split(b"\n")):
            counts[wanted[line]] = counts.get(wanted[line], 0) + 1
    return counts


def list_terms(driver: PostgresDriver, beginning: str, most: int) -> list[str]:
    """Return stems with this beginning, in order."""
    beyond = f"{beginning}\U0010ffff"
    found = {str(term) for (term,) in driver.all_by_index(_LIST_TERMS, [beyond, beginning, beginning, beyond, most])}
    for (packed,) in driver.all_by_index(_FRESH):
        lines = unpack_text(packed).decode().split("\n")
        found.update(line for line in lines if line.startswith(beginning) and line >= " ")
    return sorted(found)[:most]


# --- the scope ---


def _scope_conditions(scope: IndexScope) -> Iterator[str]:
    """Yield conditions on `r`, with the parameters of `_scope_parameters`."""
    if scope.ranges is not None:
        ranges = "UNNEST(:range_sessions::bigint[],:firsts::bigint[],:lasts::bigint[]) AS g(s,a,b)"
        yield 'r."session"=ANY(:range_sessions::bigint[])'
        yield f'EXISTS (SELECT 1 FROM {ranges} WHERE g.s=r."session" AND r."seq" BETWEEN g.a AND g.b)'
    if scope.sessions is not None:
        # As a join, the planner may read all of them for each entry.
        yield '(r."session" IN (SELECT "id" FROM scoped)) IS TRUE'
    if scope.messages is not None:
        of_row = 'm."session"=r."session" AND m."seq"=r."seq"'
        yield f'EXISTS (SELECT 1 FROM "message" m WHERE {of_row} AND {_name_marks(scope.messages[0], "message")})'


def _scoped_sessions(scope: IndexScope) -> str:
    return f" scoped AS MATERIALIZED ({_name_marks(scope.sessions[0], 'session')})," if scope.sessions else ""


def _scope_parameters(scope: IndexScope) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if scope.ranges is not None:
        columns = zip(*scope.ranges, strict=True) if scope.ranges else ((), (), ())
        given |= dict(zip(("range_sessions", "firsts", "lasts"), map(list, columns), strict=True))
    for name, part in (("session", scope.sessions), ("message", scope.messages)):
        given |= {f"{name}_{number}": value for number, value in enumerate(part[1] if part else ())}
    return given


def _name_marks(sql: str, name: str) -> str:
    """Replace each `?` by a name."""
    first, *rest = sql.split("?")
    return first + "".join(f":{name}_{number}{part}" for number, part in enumerate(rest))


def number_names(sql: str, names: dict[str, Any]) -> tuple[str, list[Any]]:
    """Replace `:name` by `?`, and return the parameters in their order. `::type` stays."""
    parts = sql.replace("::", "\0").split(":")
    made, params = [parts[0]], []
    for part in parts[1:]:
        size = next((n for n, sign in enumerate(part) if not (sign.isalnum() or sign == "_")), len(part))
        params.append(names[part[:size]])
        made.append(part[size:])
    return "?".join(made).replace("\0", "::"), params
