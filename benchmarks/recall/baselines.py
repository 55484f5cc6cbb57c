"""The simple methods ours is measured beside: SQL LIKE with the whole request, LIKE by words, and plain FTS5.

All see the same texts, one per message, and give the newest first where nothing else decides. Each scope has an index of
its own, as in the published measurements: words are rare or common within what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import apsw

from benchmarks.recall.archive import DEPTH
from benchmarks.recall.questions import Place

Ask = Callable[[str, str, int | None], list[Place]]  # (text, scope, until) → best first

_WORD = re.compile(r"[^\W_]+")
STOP_WORDS = frozenset(
    "a about after all also am an and any are as at be been before being but by can could did do does doing done for "
    "from get got had has have having he her hers him his how i if in into is it its just like me more most my no not "
    "of on or other our out over own s she should so some such t than that the their them then there these they this "
    "those to too up us was we were what when where which while who whom whose why will with would you your yours".split()
)


class Baselines:
    """One database with the texts, as rows and in plain indexes."""

    def __init__(self, documents: Iterable[tuple[str, Place, str, int]]) -> None:
        """Each document: its scope, its place, its text, and when it was said."""
        self._db = apsw.Connection(":memory:")
        self._db.execute(
            "CREATE TABLE doc (id INTEGER PRIMARY KEY, scope TEXT, session TEXT, seq INTEGER, text TEXT, at INTEGER)"
        )
        self._indexes: dict[str, str] = {}
        self.size = 0
        with self._db:
            for scope, place, text, at in documents:
                self._add(scope, place, text, at)

    @property
    def methods(self) -> dict[str, Ask]:
        """By name, the weakest first."""
        return {"LIKE": self.like, "LIKE by words": self.words, "FTS5": self.fts5}

    @property
    def scopes(self) -> int:
        """How many parts the texts are in."""
        return max(1, len(self._indexes))

    def like(self, text: str, scope: str, until: int | None = None) -> list[Place]:
        """Messages that hold the request as it stands."""
        where, given = _scoped(scope, until)
        sql = f"SELECT session, seq FROM doc WHERE {where}text LIKE ? ORDER BY id DESC LIMIT {DEPTH}"
        return list(self._db.execute(sql, (*given, f"%{text}%")))

    def words(self, text: str, scope: str, until: int | None = None) -> list[Place]:
        """Messages by how many of the words they hold."""
        wanted = keywords(text)
        if not wanted:
            return []
        where, given = _scoped(scope, until)
        count = " + ".join("(text LIKE ?)" for _ in wanted)
        sql = f"SELECT session, seq, {count} AS n FROM doc WHERE {where}n > 0 ORDER BY n DESC, id DESC LIMIT {DEPTH}"
        rows = self._db.execute(sql, (*(f"%{word}%" for word in wanted), *given))
        return [(session, seq) for session, seq, _ in rows]

    def fts5(self, text: str, scope: str, until: int | None = None) -> list[Place]:
        """Messages by bm25 over any of the words."""
        wanted = " OR ".join(f'"{word}"' for word in keywords(text))
        if not wanted or scope not in self._indexes:
            return []
        index = self._indexes[scope]
        if until is None:
            sql = f"SELECT rowid FROM {index} WHERE {index} MATCH ? ORDER BY rank LIMIT {DEPTH}"
            ids = [row for (row,) in self._db.execute(sql, (wanted,))]
            return [next(self._db.execute("SELECT session, seq FROM doc WHERE id=?", (row,))) for row in ids]
        sql = (
            f"SELECT session, seq FROM {index} JOIN doc ON doc.id={index}.rowid "
            f"WHERE {index} MATCH ? AND at < ? ORDER BY rank LIMIT {DEPTH}"
        )
        return list(self._db.execute(sql, (wanted, until)))

    def _add(self, scope: str, place: Place, text: str, at: int) -> None:
        self._db.execute(
            "INSERT INTO doc (scope, session, seq, text, at) VALUES (?,?,?,?,?)", (scope, *place, text, at)
        )
        row = self._db.last_insert_rowid()
        if scope not in self._indexes:
            name = self._indexes[scope] = f"words_{len(self._indexes)}"
            options = "content='', tokenize='porter unicode61'"
            self._db.execute(f"CREATE VIRTUAL TABLE {name} USING fts5 (text, {options})")
        self._db.execute(f"INSERT INTO {self._indexes[scope]} (rowid, text) VALUES (?,?)", (row, text))
        self.size += len(text)


def keywords(text: str) -> list[str]:
    """The words that are not in every sentence; all of them when there are no others."""
    found = list(dict.fromkeys(_WORD.findall(text.lower())))
    return [word for word in found if word not in STOP_WORDS] or found


def _scoped(scope: str, until: int | None) -> tuple[str, tuple[str | int, ...]]:
    """The conditions of a question, and what is filled in."""
    where, given = ("scope = ? AND ", (scope,)) if scope else ("", ())
    return (where, given) if until is None else (f"{where}at < ? AND ", (*given, until))
