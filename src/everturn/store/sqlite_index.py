"""The full-text index in SQLite: one FTS5 table without content, its columns the field groups.

An entry's row is `session << 24 | seq`, so entries of a session stand together and a session is a range of rows; the
highest seq is the session's own entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.derive.analysis import fold
from everturn.model.archive import IndexRow
from everturn.model.words import FIELDS
from everturn.store import Query
from everturn.store.driver import Driver
from everturn.store.index import WEIGHTS

_OWN = 0xFFFFFF  # seq of the session's own entry
_ADD = f"INSERT INTO fts (rowid, {', '.join(FIELDS)}) VALUES ({','.join('?' * (len(FIELDS) + 1))})"
_MATCHING = f"""
    SELECT rowid >> 24 AS "session", CASE rowid & {_OWN} WHEN {_OWN} THEN -1 ELSE rowid & {_OWN} END AS "seq",
    -rank AS "score" FROM fts WHERE fts MATCH ? AND rank MATCH 'bm25({", ".join(str(WEIGHTS[name]) for name in FIELDS)})'
"""


class SqliteIndex:
    """The index of one archive. The methods are those of `index.Index`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Enter messages. One beyond the 16 millionth of a session is kept, but not indexed."""
        base = session << 24
        self._driver.many(
            _ADD,
            (
                (base | row.seq, *[None if text is None else fold(text) for text in row.texts])
                for row in rows
                if row.seq < _OWN
            ),
        )

    def add_session(self, session: int, text: str) -> None:
        """Replace the session's own entry."""
        own = session << 24 | _OWN
        self._driver.run("DELETE FROM fts WHERE rowid=?", (own,))
        if text:
            self._driver.run("INSERT INTO fts (rowid, summary) VALUES (?,?)", (own, fold(text)))

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Take messages out."""
        base = session << 24
        self._driver.many("DELETE FROM fts WHERE rowid=?", ((base | seq,) for seq in seqs))

    def remove_session(self, session: int) -> None:
        """Take everything of a session out."""
        base = session << 24
        self._driver.run("DELETE FROM fts WHERE rowid BETWEEN ? AND ?", (base, base | _OWN))

    def matching(self, query: Query) -> tuple[str, list[Any]]:
        """Entries that fit the words."""
        return _MATCHING, [expression(query)]


def expression(query: Query) -> str:
    """The words of a query as FTS5 wants them; every term is quoted, so none of its syntax can come from outside."""
    wanted = " AND ".join(_any_of(group) for group in query.groups)
    if query.without:
        wanted = f"({wanted}) NOT {_any_of(query.without)}"
    if not query.fields:
        return wanted
    return f"{{{' '.join(name for name in FIELDS if name in query.fields)}}} : ({wanted})"


def _any_of(phrases: Sequence[Sequence[str]]) -> str:
    return "(" + " OR ".join(_phrase(phrase) for phrase in phrases) + ")"


def _phrase(terms: Sequence[str]) -> str:
    words = " ".join(terms)
    by_prefix = words.endswith("*")
    quoted = words.rstrip("*").replace('"', '""')
    return f'"{quoted}"{" *" if by_prefix else ""}'
