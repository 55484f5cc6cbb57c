"""Search in PostgreSQL: everything that ranking needs to know about a query, in one statement and one round trip.

The statement counts every word, finds the entries worth ranking and reports what they hold. A rare word is looked up in the
index of `search_row`, all of its rows up to RARE; of a common one the best entries are listed already (`common_words`), and the
rows that are not listed yet are read. The
entries with the highest sums are looked at exactly, by the `tsvector`s of their rows, and with them all matches of the
best sessions, since neighbours raise a hit's score. Where every match fits, the result is complete and the same
as SQLite's.

The number of occurrences of a word in a row is derived from `ts_rank`, which for a single word of equal weights is a
known function of that number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry, IndexQuery
from everturn.store.index import (
    BY_FIELD,
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
from everturn.text.terms import terms

LONGEST = 500  # characters of a term, at most 2,000 bytes
OVERLAP = 64  # terms that two rows of a long text share

COMMON = 1500  # entries in lists that make a word common
RARE = 8000  # rows of a word that is not common
LISTED = 8000  # entries of a common word
CHEAP = 15_000  # an optional phrase whose rarest word is more common than this is not looked for
VERIFIED = 5  # entries looked at for each one wanted where words are required, since many will not hold all of them
PER_NEAR = 8  # entries wanted for each one whose neighbours are looked at too, if only the best of a word are listed
PER_BEST = 200  # entries wanted for each session that is searched completely
_ANY = 1 << 40  # no bound
_OWN = 0xFFFFFF

#: `ts_rank` of a word that occurs 1, 2, 3 … times.
_RANKS = [total / 1.64493406685 for total in accumulate(1 / (n * n) for n in range(1, 101))]
_RANK = "CASE WHEN t @@ {0}::tsquery THEN ts_rank('{{1,1,1,1}}',t,{0}::tsquery) ELSE 0 END"
_TOTAL = """SELECT COALESCE(SUM("n_messages"-"n_inherited"),0) FROM "session" WHERE "mode"<>'structure'"""

#: Parameters by name; `number_names` turns them into numbers. "space" in lists and rows is checked by the server's policies.
_GATHER = """
WITH w AS MATERIALIZED (
    SELECT o, q::tsquery AS q, term, beyond, parts, weight, grp, is_driver FROM
    UNNEST(:queries::text[], :terms::text[], :beyond::text[], :parts::text[], :weights::float8[], :groups::int[], :drivers::bool[])
    WITH ORDINALITY AS x(q, term, beyond, parts, weight, grp, is_driver, o)),
sizes AS MATERIALIZED (SELECT ARRAY_AGG(DISTINCT "space") AS spaces, COUNT(*) AS segs FROM "common_segment"),
listed AS MATERIALIZED (
    SELECT v.term, p.n FROM
    (SELECT DISTINCT UNNEST(STRING_TO_ARRAY(parts, ' ')) AS term FROM w WHERE parts<>'') v CROSS JOIN sizes
    CROSS JOIN LATERAL (SELECT SUM("n") AS n FROM "common_word" WHERE "space"=ANY(sizes.spaces) AND "term"=v.term) p WHERE p.n IS NOT NULL),
opened AS MATERIALIZED (
    SELECT w.o, p.n FROM w CROSS JOIN sizes CROSS JOIN LATERAL (
        SELECT SUM("n") AS n FROM "common_word" WHERE "space"=ANY(sizes.spaces) AND "term">=w.term AND "term"<w.beyond) p
    WHERE w.beyond IS NOT NULL AND p.n IS NOT NULL),
f AS MATERIALIZED (
    SELECT w.*, COALESCE(l.least, 0) AS listed,
    COALESCE(l.least, 0) > (CASE WHEN w.term IS NOT NULL THEN :common ELSE :cheap END)::bigint AND (w.term IS NOT NULL OR w.grp=0) AS is_common
    FROM w LEFT JOIN LATERAL (
        SELECT MIN(COALESCE(listed.n, 0)) AS least FROM UNNEST(STRING_TO_ARRAY(w.parts, ' ')) AS y(term) LEFT JOIN listed USING (term)
        WHERE w.parts<>'' UNION ALL SELECT opened.n FROM opened WHERE opened.o=w.o
        ORDER BY 1 DESC NULLS LAST LIMIT 1
    ) l ON TRUE),
c AS MATERIALIZED (
    SELECT f.o, r.* FROM (SELECT * FROM f WHERE is_driver AND NOT is_common) f CROSS JOIN LATERAL (
        SELECT "session", "seq", MAX(b.x/(b.x+1.6*(0.4+0.0075*z."size"))){in_fields} AS s FROM (
            SELECT "session", "seq", "field", "size" FROM {rare_rows}) z
        CROSS JOIN LATERAL (SELECT (:by_field::float8[])[z."field"+1] AS x) b
        GROUP BY "session", "seq") r),
total AS MATERIALIZED ({total}),
n AS MATERIALIZED (
    SELECT f.o, CASE WHEN f.is_common THEN CASE WHEN f.term IS NULL THEN 0 ELSE f.listed END
        ELSE (SELECT COUNT(*) FROM c WHERE c.o=f.o AND (f.term IS NOT NULL OR f.parts='' OR c.s IS NOT NULL)) END::float8 AS n FROM f),
g AS MATERIALIZED (
    SELECT f.*, f.weight*LN(1+(GREATEST(total.total-n.n,0)+0.5)/(n.n+0.5)) AS worth,
    CASE WHEN f.grp>0 AND NOT BOOL_OR(f.is_common) OVER (PARTITION BY f.grp) THEN f.grp END AS needed
    FROM f JOIN n USING (o) CROSS JOIN (SELECT * FROM total) AS total(total)),
{pool}
final AS MATERIALIZED (
    SELECT "session", "seq" FROM pool
    UNION
    SELECT r."session", r."seq" FROM (
        SELECT "session" FROM pool GROUP BY "session" ORDER BY MAX(s) DESC, "session" DESC LIMIT :best_sessions) b
    JOIN "search_row" r ON r."session"=b."session" AND r."tsv" @@ :any::tsquery{only}{scope_r}
    WHERE (SELECT COUNT(*) FROM pool)>=:most OR EXISTS (SELECT 1 FROM f WHERE is_common)
    UNION
    SELECT r."session", r."seq" FROM (SELECT "session", "seq" FROM pool WHERE "seq">=0 ORDER BY s DESC LIMIT :near) b
    JOIN "search_row" r ON r."session"=b."session" AND r."seq" BETWEEN GREATEST(b."seq"-2, 0) AND b."seq"+2
        AND r."tsv" @@ :any::tsquery{only}{scope_r}
    WHERE EXISTS (SELECT 1 FROM f WHERE is_common))
SELECT u.*, s."started", s."ended", s."state" FROM (
    SELECT "session", "seq", "field", "size", ARRAY[{ranks}]::float4[], t @@ :without::tsquery FROM (
        SELECT r."session", r."seq", r."field", r."size", r."tsv" || ''::tsvector AS t FROM final
        JOIN "search_row" r ON r."session"=final."session" AND r."seq"=final."seq"{only} OFFSET 0) v
) u LEFT JOIN "session" s ON s."id"=u."session"
UNION ALL
SELECT NULL, total.total, (SELECT COUNT(*) FROM pool), NULL, (SELECT ARRAY_AGG(n::float4 ORDER BY o) FROM n),
    (SELECT COALESCE(BOOL_OR(is_common AND term IS NOT NULL), FALSE) FROM f), NULL, NULL, NULL FROM (SELECT * FROM total) AS total(total)
ORDER BY 1 DESC NULLS FIRST, 2 DESC
"""
#: The entries with the highest sums that hold something of every required group whose words are all rare.
_POOL = """
h AS (
    SELECT g.o, c."session", c."seq", g.worth*c.s AS s, g.needed FROM c JOIN g USING (o) WHERE c.s IS NOT NULL
    UNION ALL
    SELECT g.o, x>>32, CASE x>>8&16777215 WHEN 16777215 THEN -1 ELSE x>>8&16777215 END, g.worth*(x&255)/255.0, NULL
    FROM g CROSS JOIN sizes CROSS JOIN LATERAL (
        SELECT "best" FROM "common_word"
        WHERE "space"=ANY(sizes.spaces) AND "term">=g.term AND "term"<COALESCE(g.beyond, g.term || CHR(1)) OFFSET 0) p
    CROSS JOIN LATERAL UNNEST(p."best"[1: GREATEST(:listed/GREATEST(sizes.segs,1),8)::int]) AS x WHERE g.is_common AND g.is_driver
    UNION ALL
    SELECT g.o, r."session", r."seq", g.worth*b.x/(b.x+1.6*(0.4+0.0075*r."size")), NULL
    FROM (SELECT DISTINCT "session", "first_seq", "last_seq" FROM "unlisted" WHERE EXISTS (SELECT 1 FROM g WHERE is_common)) u
    JOIN "search_row" r ON r."session"=u."session" AND r."seq" BETWEEN u."first_seq" AND u."last_seq" AND r."tsv" @@ :any::tsquery{only}
    JOIN g ON g.is_common AND g.term IS NOT NULL AND r."tsv" @@ g.q
    CROSS JOIN LATERAL (SELECT (:by_field::float8[])[r."field"+1] AS x) b
    UNION ALL
    SELECT 0, r."session", r."seq", (SELECT SUM(worth)/2 FROM g WHERE grp>0), NULL FROM (
        SELECT "session", "seq" FROM {group_rows}) r
    WHERE (SELECT COUNT(*) FROM g WHERE needed IS NOT NULL)=0),
pool AS MATERIALIZED (
    SELECT r."session", r."seq", SUM(s) AS s FROM h r WHERE TRUE{scope_r} GROUP BY r."session", r."seq"
    HAVING COUNT(DISTINCT needed)=(SELECT COUNT(DISTINCT needed) FROM g)
    ORDER BY 3 DESC, 1 DESC, 2 DESC LIMIT :most),
"""
#: Rows by their words: from the table, or for a connection that reads for a person by a function that uses the index.
_RARE_ROWS = ('"search_row" WHERE "tsv" @@ f.q LIMIT :rare', '"find_rows"(f.q, :rare)')
_GROUP_ROWS = (
    """"search_row" WHERE "tsv" @@ NULLIF(:all_groups,'')::tsquery{only_bare} LIMIT :rare""",
    """"find_rows"(NULLIF(:all_groups,'')::tsquery, :rare) WHERE TRUE{only_bare}""",
)
#: The entries of named sessions.
_NAMED_POOL = """
pool AS MATERIALIZED (
    SELECT DISTINCT r."session", r."seq", 0::float8 AS s FROM "search_row" r WHERE r."tsv" @@ :any::tsquery{only}{scope_r}
    ORDER BY 1 DESC, 2 DESC LIMIT :most),
"""


def gather_entries(driver: PostgresDriver, query: IndexQuery, scope: IndexScope, most: int) -> GatheredEntries:
    """Return the entries worth ranking, with the counts of all phrases."""
    weights = weigh_phrases(query)
    phrases = tuple(weights)
    required = dict.fromkeys(phrase for group in query.groups for phrase in group)
    looked_at = (most * VERIFIED if query.groups else most) or _ANY
    only = ' AND r."field"=ANY(:fields)' if query.fields else ""
    scope_r = "".join(f" AND {condition}" for condition in _scope_conditions(scope))
    names: dict[str, Any] = {
        "queries": [phrase_tsquery(phrase) for phrase in phrases],
        "terms": [_single_term(phrase) or _single_prefix(phrase) for phrase in phrases],
        "beyond": [f"{beginning}\U0010ffff" if (beginning := _single_prefix(phrase)) else None for phrase in phrases],
        "parts": [" ".join(_phrase_terms(phrase)) for phrase in phrases],
        "weights": list(weights.values()),
        "groups": [_group_number(query, phrase) for phrase in phrases],
        "drivers": [_is_driver(phrase, weights, required) for phrase in phrases],
        "common": COMMON if most else _ANY, "cheap": CHEAP if most else _ANY, "rare": RARE if most else _ANY,
        "listed": LISTED * (4 if scope_r or only else 1), "by_field": list(BY_FIELD), "best_sessions": most // PER_BEST, "near": most // PER_NEAR,
        "any": any_of_tsquery(phrases), "most": looked_at, "without": any_of_tsquery(query.without),
        "all_groups": " & ".join(f"({any_of_tsquery(group)})" for group in query.groups),
        "fields": [FIELDS.index(name) for name in query.fields], **_scope_parameters(scope),
    }  # fmt: skip
    names |= {f"q{number}": text for number, text in enumerate(names["queries"])}
    group_rows = _GROUP_ROWS[driver.is_limited].format(only_bare=only.replace('r."field"', '"field"'))
    sql = _GATHER.format(
        pool=(_POOL if scope.ranges is None else _NAMED_POOL).format(only=only, group_rows=group_rows, scope_r=scope_r),
        rare_rows=_RARE_ROWS[driver.is_limited],
        in_fields=' FILTER (WHERE z."field"=ANY(:fields))' if query.fields else "",
        ranks=",".join(_RANK.format(f":q{number}") for number in range(len(phrases))),
        total=_TOTAL, only=only, scope_r=scope_r,
    )  # fmt: skip
    statement, params = number_names(sql, names)
    summary, *rows = driver.all_by_index(statement, params)
    found = _read_rows(query, phrases, rows, summary, looked_at, names["drivers"])
    return _keep_best(found, list(weights.values()), most) if query.groups and 0 < most < len(found.entries) else found


def _keep_best(found: GatheredEntries, weights: Sequence[float], most: int) -> GatheredEntries:
    worth = [weight * rareness(n, found.total) for weight, n in zip(weights, found.counts, strict=True)]
    scored = [
        (sum(worth[number] * share for number, share in one.held), one.session, one.seq, one) for one in found.entries
    ]
    return replace(found, entries=[one for *_, one in nlargest(most, scored)], complete=False)


def _read_rows(
    query: IndexQuery,
    phrases: Sequence[Phrase],
    rows: list[tuple[Any, ...]],
    summary: tuple[Any, ...],
    looked_at: int,
    drivers: Sequence[bool],
) -> GatheredEntries:
    counts = [float(n) for n in summary[4] or ()]
    # A phrase that was looked for and not found is too common to be worth it, or in rows beyond the bound.
    absent = {number for number, n in enumerate(counts) if not n and drivers[number]}
    numbered = [(number, phrase) for number, phrase in enumerate(phrases) if number not in absent]
    groups = [{phrases.index(phrase) for phrase in group} for group in query.groups]
    entries, times, older = [], {}, set()
    for (session, seq), some in groupby(rows, key=itemgetter(0, 1)):
        parts = list(some)
        held = _held_phrases(parts, numbered)
        numbers = {number for number, _ in held}
        if not held or any(numbers.isdisjoint(group) for group in groups) or any(part[5] for part in parts):
            continue
        entries.append(IndexEntry(session, seq, held))
        times[session] = parts[0][6], parts[0][7]
        if parts[0][8] == "superseded":
            older.add(session)
    complete = summary[2] < looked_at and not summary[5]
    return GatheredEntries(entries, tuple(counts), int(summary[1]), complete, times, frozenset(older))


def _held_phrases(
    rows: Sequence[tuple[Any, ...]], numbered: Sequence[tuple[int, Phrase]]
) -> tuple[tuple[int, float], ...]:
    factor = length_factor(sum(row[3] for row in rows))
    shares = []
    for number, phrase in numbered:
        seen = sum(BY_FIELD[row[2]] * _phrase_count(row[4][number], phrase) for row in rows if row[4][number])
        if seen:
            shares.append((number, phrase_share(seen, factor, len(phrase))))
    return tuple(shares)


def _phrase_count(rank: float, phrase: Phrase) -> int:
    """Return how often a phrase occurs in a row; more than once is known for single words only."""
    return bisect_left(_RANKS, rank - 1e-6) + 1 if len(phrase) == 1 else 1


# --- the query ---


def _single_term(phrase: Phrase) -> str | None:
    """Return the stem of a phrase of one whole word."""
    stems = _phrase_terms(phrase)
    return stems[0] if len(phrase) == len(stems) == 1 else None


def _single_prefix(phrase: Phrase) -> str | None:
    """Return the beginning of a phrase of one word that matches by prefix."""
    beginnings = [word[:LONGEST] for word in terms(phrase[0])] if len(phrase) == 1 and phrase[0].endswith("*") else []
    return beginnings[0] if len(beginnings) == 1 else None


def _phrase_terms(phrase: Phrase) -> list[str]:
    """Return the stems of a phrase, without a prefix at its end."""
    whole = phrase[:-1] if phrase[-1].endswith("*") else phrase
    return [stem_word(word)[:LONGEST] for term in whole for word in terms(term)]


def _group_number(query: IndexQuery, phrase: Phrase) -> int:
    return next((number for number, group in enumerate(query.groups, 1) if phrase in group), 0)


def _is_driver(phrase: Phrase, weights: dict[Phrase, float], required: dict[Phrase, None]) -> bool:
    """Whether a phrase is looked up by itself: not a pair of words of the query with a low weight of its own."""
    if phrase in required:
        return True
    is_pair = len(phrase) == 2 and weights[phrase] < 0.5
    return not (is_pair and all((term,) in weights for term in phrase))


def any_of_tsquery(phrases: Iterable[Phrase]) -> str:
    """Return a `tsquery` literal that any of the phrases satisfies; an empty one matches nothing."""
    literals = dict.fromkeys(map(phrase_tsquery, phrases))
    return " | ".join(f"({literal})" for literal in literals if literal)


def phrase_tsquery(phrase: Sequence[str]) -> str:
    # Analysed again, which changes no term and leaves no syntax.
    words = [word for term in phrase for word in terms(term)]
    literals = [f"'{stem_word(word)[:LONGEST]}'" for word in words]
    if literals and phrase[-1].endswith("*"):
        literals[-1] = f"'{words[-1][:LONGEST]}':*"  # a prefix has no stem
    return " <-> ".join(literals[: OVERLAP + 1])


# --- the scope ---


def _scope_conditions(scope: IndexScope) -> Iterator[str]:
    """Yield conditions on `r`, with the parameters of `_scope_parameters`."""
    if scope.ranges is not None:
        ranges = "UNNEST(:range_sessions::bigint[],:firsts::bigint[],:lasts::bigint[]) AS g(s,a,b)"
        yield 'r."session"=ANY(:range_sessions::bigint[])'
        yield f'EXISTS (SELECT 1 FROM {ranges} WHERE g.s=r."session" AND r."seq" BETWEEN g.a AND g.b)'
    if scope.sessions is not None:
        yield f'r."session" IN ({_name_marks(scope.sessions[0], "session")})'
    if scope.messages is not None:
        of_row = 'm."session"=r."session" AND m."seq"=r."seq"'
        yield f'EXISTS (SELECT 1 FROM "message" m WHERE {of_row} AND {_name_marks(scope.messages[0], "message")})'


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
    """Replace `:name` by `?`, and return the parameters in their order. `::type` and `[1: n]` stay."""
    parts = sql.replace("::", "\0").split(":")
    made, params = [parts[0]], []
    for part in parts[1:]:
        size = next((n for n, sign in enumerate(part) if not (sign.isalnum() or sign == "_")), len(part))
        if size:
            params.append(names[part[:size]])
            made.append(part[size:])
        else:  # of an array slice
            made[-1] += f":{part}"
    return "?".join(made).replace("\0", "::"), params
