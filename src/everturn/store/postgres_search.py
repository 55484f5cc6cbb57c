"""Search in PostgreSQL: everything that ranking needs to know about a query, in one statement and one round trip.

The statement reads the lists of the query's words (`store.word_lists`), best entries first: all of a word with up to LISTED entries,
else about so many. It takes the sessions with the best matches, adds up what each of their entries has of the words, and returns the stems
of the entries with the highest sums, of the other matches of the best sessions, of neighbours, and of every entry that is in no list yet.
Where words are required, it takes the entries with the rarest of them instead.
Whether an entry matches, how often it holds each phrase and in which fields, is then decided here, by its stems. Where every match
fits, the result is complete and the same as SQLite's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from everturn.store.contract import IndexEntry, IndexQuery
from everturn.store.index import (
    EntryKey,
    GatheredEntries,
    IndexScope,
    Phrase,
    rareness,
    weigh_phrases,
)
from everturn.store.postgres_driver import PostgresDriver, number_names
from everturn.store.word_lists import OWN, PhraseMatcher, QueryWord, phrase_words

LISTED = 5700  # entries of a word that are read
FULLY = 3  # words of a query up to which so many of each are read
REQUIRED = 7600  # the same if several words are required: few entries hold all of them
REACH = 30_000  # and if a phrase is required and fewer than FEW entries have it
FEW = 20
OPENED = 200  # terms of a word that matches by prefix
VERIFIED = 3  # entries looked at for each one wanted where words are required, since many will not hold all of them
WIDE = 5  # entries whose neighbours are considered, for each one wanted
PER_NEAR = 15  # entries wanted for each one whose neighbours are looked at too
PER_SESSION = 2  # entries wanted for each session that is considered
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
WITH {scoped}
h AS MATERIALIZED (SELECT x."o", x."key", x."share", x."n" FROM {lists}(:terms::text[],:beyond::text[],:budget,:opened) x),
total AS MATERIALIZED ({total}),
n AS MATERIALIZED (SELECT "o", MAX("n")>:budget OR MIN("n")<0 AS cut, {count}::float8 AS n FROM h WHERE "o">0 GROUP BY "o"),
g AS MATERIALIZED (
    SELECT n."o", n.n, n.cut,
    (:weights::float8[])[n."o"]*LN(1+(GREATEST(total.total-n.n,0)+0.5)/(n.n+0.5))/255 AS worth
    FROM n CROSS JOIN (SELECT * FROM total) AS total(total)),
c AS MATERIALIZED (SELECT COALESCE(BIT_OR(1::bigint<<("o"-1)::int) FILTER (WHERE cut),0) AS cut FROM g),
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
SELECT r."session", r."seq", f.fresh, {in_scope}, r."stems", NULL::bigint, NULL::bigint, NULL FROM {stems}
UNION ALL
SELECT f.session, NULL, NULL, NULL, NULL, s."started", s."ended", s."state" FROM (SELECT DISTINCT "key">>24 AS session FROM final) f
CROSS JOIN LATERAL (SELECT t."started", t."ended", t."state" FROM "session" t WHERE t."id"=f.session OFFSET 0) s
UNION ALL
SELECT NULL, NULL, NULL, {is_full}, NULL, total.total::bigint, (SELECT cut FROM c),
    COALESCE((SELECT STRING_AGG(g."o"||' '||g.n, ',') FROM g),'')||';'||CONCAT_WS(',',{phrase_counts}) FROM (SELECT * FROM total) AS total(total)
"""
#: How many entries hold a word: the places of its lists; for a person, those that were found.
_COUNT, _COUNT_VISIBLE = 'MAX("n")', "COUNT(*)"
#: Of a word that matches by prefix, an entry may have several places.
_COUNT_OPENED = """
    CASE WHEN MAX("n")<=:budget AND (:beyond::text[])["o"] IS NOT NULL
    THEN COUNT(DISTINCT "key") FILTER (WHERE (:beyond::text[])["o"] IS NOT NULL) ELSE {} END
"""
_STEMS = """
final f CROSS JOIN LATERAL (
    SELECT e."session", e."seq", e."stems" FROM "entry_text" e WHERE e."session"=f."key">>24 AND e."seq"=({seq})::integer OFFSET 0) r
"""
_VISIBLE_STEMS = """
"read_visible_stems"(ARRAY(SELECT "key" FROM final)) r JOIN final f ON f."key"=((r."session"<<24)|(r."seq"::bigint&{own}))
"""
_ENTRIES = """
k AS MATERIALIZED (
    SELECT "key", SUM({worth}*"share") AS s, BIT_OR(1::bigint<<("o"-1)::int) AS has FROM h WHERE "o">0{among} GROUP BY 1),
"""
_SESSIONS = """
b AS MATERIALIZED (
    SELECT "session", SUM(best*{worth}) AS best FROM (
        SELECT "key">>24 AS "session", "o", MAX("share") AS best FROM h WHERE "o">0 GROUP BY 1, 2) x GROUP BY 1),
"""
#: The entries with the highest sums, as far as the lists tell; `m` are those that may match.
_POOL = """
wide AS MATERIALIZED (
    SELECT r."key", r.own, r.s FROM (
        SELECT m."key", m."key">>24 AS "session", {seq} AS "seq", m.s AS own, m.s+:session_share*b.best AS s
        FROM m JOIN b ON b."session"=m."key">>24 ORDER BY 5 DESC, 1 DESC OFFSET 0) r
    WHERE TRUE{scope} ORDER BY 3 DESC, 1 DESC LIMIT :wide),
pool AS MATERIALIZED (
    SELECT "key", s+:beside*(SUM(own) OVER (ORDER BY "key" RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING)-own) AS s FROM wide
    ORDER BY 2 DESC, 1 DESC LIMIT :most),
"""
#: COALESCE, because the planner would expect next to nothing of the condition, and join what is left in nested loops.
_MATCHES = 'm AS MATERIALIZED (SELECT k."key", k.s FROM k CROSS JOIN c WHERE COALESCE(TRUE{groups},FALSE)),'
#: Of sessions with the best matches: no entry has more of the words than its session.
_BEST_SESSIONS = """
top AS MATERIALIZED (SELECT r."session", r.best FROM b r WHERE TRUE{scope} ORDER BY 2 DESC, 1 DESC LIMIT :top_sessions),
"""
_AMONG_BEST = ' AND "key">>24 IN (SELECT "session" FROM top)'
_POOL_OF_BEST = """
pool AS MATERIALIZED (
    SELECT m."key", m.s+:session_share*b.best
        +:beside*(SUM(m.s) OVER (ORDER BY m."key" RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING)-m.s) AS s
    FROM m JOIN top b ON b."session"=m."key">>24 ORDER BY 2 DESC, 1 DESC LIMIT :most),
"""
#: Where words are required, of the entries with the rarest of them: of each phrase of a group its rarest word, of the group with the
#: fewest entries, above all one whose lists were read to the end. Whatever matches holds one of these.
_RAREST = """
d AS MATERIALIZED (
    SELECT p.number, x.* FROM UNNEST(:group_numbers::bigint[],:group_masks::bigint[]) AS p(number,mask) CROSS JOIN LATERAL (
        SELECT w.o, COALESCE(g.n,0) AS n, COALESCE(g.cut,FALSE) AS cut
        FROM GENERATE_SERIES(1,CARDINALITY(:weights::float8[])) AS w(o) LEFT JOIN g ON g."o"=w.o
        WHERE p.mask>>(w.o-1)&1=1 ORDER BY 2, 1 LIMIT 1) x),
e AS MATERIALIZED (SELECT "key" FROM h WHERE "o" IN (
    SELECT o FROM d WHERE number=(SELECT number FROM d GROUP BY 1 ORDER BY BOOL_OR(cut), SUM(n), 1 LIMIT 1))),
"""
_AMONG_RAREST = ' AND "key" IN (SELECT "key" FROM e)'
_SESSIONS_OF_MATCHES = 'b AS MATERIALIZED (SELECT "key">>24 AS "session", MAX(s) AS best FROM m GROUP BY 1),'
#: Every entry of named sessions.
_NAMED_POOL = """
pool AS MATERIALIZED (
    SELECT DISTINCT r."session"<<24|(r."seq"&16777215) AS "key", 0::float8 AS s FROM "entry_text" r WHERE TRUE{scope}),
"""


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
        self.has_rarest = bool(self.groups) and all(self.masks[number] for group in self.groups for number in group)
        #: Numbers of the phrases of several words that are counted by looking at entries.
        self.counted = [number for number, phrase in enumerate(self.phrases) if _is_counted(phrase, query, weights)]

    @property
    def listed(self) -> int:
        """How many entries of each word are read: the more words, the less one of them decides."""
        return max(LISTED * FULLY // max(len(self.words), FULLY), LISTED // FULLY)

    @property
    def needs_look(self) -> bool:
        """Whether an entry with a required word may still not match."""
        query = self.query
        return self.has_required_phrase or len(self.groups) > 1 or bool(self.groups and (query.without or query.fields))

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
    is_narrow = not query.groups and bool(scope.sessions or scope.messages or query.fields)
    looked_at = (most * VERIFIED if asked.needs_look else most) or _ANY
    listed = REQUIRED if asked.needs_look else asked.listed * (2 if is_narrow else 1)
    found = _gather(driver, asked, scope, _Bounds(most, looked_at, listed))
    if asked.has_required_phrase and not found.complete and len(found.entries) < FEW:
        # Common words that are hardly ever adjacent: more of them.
        found = _gather(driver, asked, scope, _Bounds(most, looked_at * VERIFIED, REACH))
    elif driver.is_limited and not query.groups and not found.complete and len(found.entries) < most // 2:
        # Common words, of which this person may see few: more of them.
        found = _gather(driver, asked, scope, _Bounds(most, looked_at, REACH))
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
        "best_sessions": max(most // PER_BEST, 1), "top_sessions": max(most // PER_SESSION, 1),
        "group_numbers": [number for number, group in enumerate(asked.groups) for _ in group],
        "group_masks": [asked.masks[number] for group in asked.groups for number in group],
        **_scope_parameters(scope),
    }  # fmt: skip
    statement, params = number_names(_gather_sql(driver, asked, scope, is_whole, most > 0), names)
    *rows, summary = driver.all_by_index(statement, params)
    found = _read_rows(asked, rows, summary)
    return replace(found, complete=True) if is_whole else found


def _gather_sql(
    driver: PostgresDriver, asked: _AskedPhrases, scope: IndexScope, is_whole: bool, is_bounded: bool
) -> str:
    in_scope = "".join(f" AND {condition}" for condition in _scope_conditions(scope))
    counted = asked.counted_masks()
    # Where entries are chosen one by one, the best sessions may have none of them.
    by_session = is_bounded and not asked.needs_look and scope.messages is None and scope.ranges is None
    entries, among = _SESSIONS + _ENTRIES + _MATCHES + _POOL, ""
    if is_whole:
        entries = _ENTRIES + _NAMED_POOL
    elif by_session:
        entries, among = _SESSIONS + _BEST_SESSIONS + _ENTRIES + _MATCHES + _POOL_OF_BEST, _AMONG_BEST
    elif asked.has_rarest:
        entries, among = _RAREST + _ENTRIES + _MATCHES + _SESSIONS_OF_MATCHES + _POOL, _AMONG_RAREST
    is_full = "(SELECT COUNT(*)>=:most FROM pool)"
    count = _COUNT_VISIBLE if driver.is_limited else _COUNT
    return _GATHER.format(
        total='SELECT "n" FROM h WHERE "o"=0' if driver.is_limited else _TOTAL,
        scoped=_scoped_sessions(scope),
        count=_COUNT_OPENED.format(count) if any(word.beyond for word in asked.words) else count,
        lists='"read_visible_lists"' if driver.is_limited else '"read_lists"',
        stems=(_VISIBLE_STEMS if driver.is_limited else _STEMS).format(seq=_SEQ.format('f."key"'), own=OWN),
        worth=_WORTH,
        pool=entries.format(
            worth=_WORTH,
            scope=in_scope,
            groups=asked.conditions(),
            seq=_SEQ.format('m."key"'),
            among=among,
        ),
        sampled=" UNION ALL ".join(f'(SELECT "key" FROM k WHERE {has} LIMIT {SAMPLED})' for has in counted)
        or _NO_SAMPLE,
        phrase_counts=",".join(f"(SELECT COUNT(*) FROM k WHERE {has})" for has in counted) or "''",
        is_cut="FALSE" if is_whole else "(SELECT cut<>0 FROM c)",
        is_full=f"{is_full} OR (SELECT COUNT(*)>=:top_sessions FROM top)" if by_session else is_full,
        in_scope=f"TRUE{in_scope}",
        own=OWN,
    )


#: What a word is worth, without a join for each place of a list.
_WORTH = '(SELECT ARRAY_AGG(g.worth ORDER BY w.o) FROM GENERATE_SERIES(1,CARDINALITY(:weights::float8[])) AS w(o) LEFT JOIN g ON g."o"=w.o)["o"]'
_NO_SAMPLE = 'SELECT "key" FROM k LIMIT 0'


def _is_counted(phrase: Phrase, query: IndexQuery, weights: dict[Phrase, float]) -> bool:
    """Whether a phrase of several words is counted: not a pair of words of the query with a low weight of its own."""
    if len(phrase_words(phrase)) < 2:
        return False
    is_pair = len(phrase) == 2 and weights[phrase] < 0.5 and all((term,) in weights for term in phrase)
    return not is_pair or any(phrase in group for group in query.groups)


# --- the words of a query ---


def _query_words(query: IndexQuery, weights: dict[Phrase, float]) -> dict[QueryWord, float]:
    """Return the words to look up, each with its weight: the required ones first, then those with a weight of their own."""
    found: dict[QueryWord, float] = {}
    required = {phrase for group in query.groups for phrase in group}
    ordered = sorted(weights, key=lambda phrase: (phrase not in required, len(phrase)))
    for phrase in ordered:
        words = phrase_words(phrase)
        for word in words:
            if len(words) == 1 or word not in found:
                found[word] = max(weights[phrase] / len(words), found.get(word, 0.0))
    return dict(list(found.items())[:_WORDS])


def _word_mask(phrase: Phrase, words: dict[QueryWord, float]) -> int:
    numbers = {word: number for number, word in enumerate(words)}
    return sum({1 << numbers[word] for word in phrase_words(phrase) if word in numbers})


def _any_mask(masks: Sequence[int]) -> str:
    """Return a condition: an entry has all words of one of the phrases, except those of which only the best entries were read."""
    return " OR ".join(f"({mask}::bigint & ~(k.has|c.cut))=0" for mask in dict.fromkeys(masks)) or "FALSE"


# --- what entries hold ---


def _read_rows(asked: _AskedPhrases, rows: list[tuple[Any, ...]], summary: tuple[Any, ...]) -> GatheredEntries:
    matcher = PhraseMatcher(asked.query, asked.phrases)
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
            if len(made := phrase_words(phrase)) == 1
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
