"""The full-text index in PostgreSQL: the hits of SQLite's FTS5, from the same terms.

The server's own parser plays no role. Terms come from `derive.analysis` and are written as `tsvector` literals, one row
for each field of a message, so that a limit on fields is exact and no phrase runs from one field into the next. Groups
of a query are matched by message: each may be found in another field.

A `tsvector` has limits (1 MB, 16,383 positions, 255 places and 2 kB a term) and drops silently what is beyond some of
them. So a long text becomes several rows, cut before a limit is reached, each beginning with the last terms of the one
before: a phrase of up to OVERLAP + 1 terms is found wherever it stands, of a longer one the first that many terms count.
A term longer than LONGEST characters is known by its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from everturn.derive.analysis import each_term, terms
from everturn.model.archive import IndexRow
from everturn.model.words import FIELDS
from everturn.store import Query
from everturn.store.index import WEIGHTS
from everturn.store.postgres_driver import PostgresDriver

PART = 8_000  # terms in a row at most
OVERLAP = 64
LONGEST = 500  # characters, at most 2,000 bytes
REPEATS = 250  # of one term in a row
CHARACTERS = 200_000  # of different terms in a row, at most 800,000 bytes

_TARGET = '"search_row" ("session","seq","field","part","tsv")'
_SUMMARY = FIELDS.index("summary")
_WEIGHT = f'(ARRAY[{",".join(str(WEIGHTS[field]) for field in FIELDS)}]::float8[])["field" + 1]'
_NUMBERS = tuple(map(str, range(1, PART + 1)))


class PostgresIndex:
    """The entries of one archive. The methods are those of `store.index.Index`."""

    def __init__(self, driver: PostgresDriver) -> None:
        self.driver = driver

    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Enter the text of messages."""
        self.driver.copy(_TARGET, _entries(session, rows))

    def add_session(self, session: int, text: str) -> None:
        """Replace the session's own entry."""
        self.remove(session, [-1])
        rows = ((session, -1, _SUMMARY, part, tsv) for part, tsv in enumerate(vectors(text)))
        self.driver.copy(_TARGET, rows)

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Take entries of messages out."""
        self.driver.run('DELETE FROM "search_row" WHERE "session"=? AND "seq"=ANY(?)', [session, list(seqs)])

    def remove_session(self, session: int) -> None:
        """Take out every entry of a session."""
        self.driver.run('DELETE FROM "search_row" WHERE "session"=?', [session])

    def matching(self, query: Query) -> tuple[str, list[Any]]:
        """A SELECT of session, seq and score."""
        fields, numbers = _field_filter(query.fields)
        rows = f'SELECT "session","seq" FROM "search_row" WHERE "tsv" @@ ?::tsquery{fields}'
        groups = [_any_of(group) for group in query.groups]
        every = " | ".join(group for group in groups if group)
        params: list[Any] = [every, every, *numbers]
        sql = f'SELECT "session","seq",SUM({_WEIGHT}*ts_rank("tsv",?::tsquery)) AS "score" FROM "search_row" '
        sql += f'WHERE "tsv" @@ ?::tsquery{fields}'
        if len(groups) > 1:
            sql += f' AND ("session","seq") IN ({" INTERSECT ".join([rows] * len(groups))})'
            params += [value for group in groups for value in (group, *numbers)]
        if query.without:
            sql += f' AND ("session","seq") NOT IN ({rows})'
            params += [_any_of(query.without), *numbers]
        return f'{sql} GROUP BY "session","seq"', params


def vectors(text: str) -> Iterator[str]:
    """The `tsvector` literals that together hold the terms of a text."""
    cut = (term[:LONGEST] for term in each_term(text))
    part = list(islice(cut, PART))
    while part:
        yield from _literals(part)
        fresh = list(islice(cut, PART - OVERLAP))
        part = part[-OVERLAP:] + fresh if fresh else []


def _literals(part: list[str]) -> Iterator[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for term, number in zip(part, _NUMBERS, strict=False):
        places[term].append(number)
    if max(map(len, places.values())) > REPEATS or sum(map(len, places)) > CHARACTERS:
        half = len(part) // 2
        yield from _literals(part[:half])
        yield from _literals(part[half - OVERLAP :])
    else:
        yield " ".join([f"{term}:{','.join(numbers)}" for term, numbers in places.items()])


def _entries(session: int, rows: Sequence[IndexRow]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        for field, text in enumerate(row.texts):
            if text:
                for part, tsv in enumerate(vectors(text)):
                    yield session, row.seq, field, part, tsv


def _field_filter(fields: Sequence[str]) -> tuple[str, list[Any]]:
    if not fields:
        return "", []
    return ' AND "field"=ANY(?)', [[FIELDS.index(field) for field in fields if field in FIELDS]]


def _any_of(phrases: Sequence[Sequence[str]]) -> str:
    """A `tsquery` literal that any one of the phrases satisfies; nothing satisfies the empty one."""
    return " | ".join(f"({literal})" for literal in map(_side_by_side, phrases) if literal)


def _side_by_side(phrase: Sequence[str]) -> str:
    # Analysed once more, which changes no term and leaves nothing that could be syntax.
    words = [f"'{word[:LONGEST]}'" for term in phrase for word in terms(term)]
    if words and phrase[-1].endswith("*"):
        words[-1] += ":*"
    return " <-> ".join(words[: OVERLAP + 1])
