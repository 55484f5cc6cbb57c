"""One `Table` for each row struct of `model.archive`, and the SQL that follows from it.

The columns of a table are the fields of its struct, in order, so that a row becomes a struct by `Struct(*row)` and a
struct becomes a row by `astuple`. Every name is quoted: several are reserved words somewhere.

Filters as SQL: of sessions, the same for lists, counts and searches; and of the messages of a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from everturn.model.archive import (
    Artifact,
    Call,
    CensusRow,
    Chunk,
    KeptRow,
    LinkRow,
    MessageRow,
    ProblemRow,
    Session,
    SessionText,
    SourceFile,
    Step,
    Tombstone,
    Turn,
    Version,
)
from everturn.store.contract import IndexQuery, SessionFilter
from everturn.store.driver import parameter_marks, substring_pattern

T = TypeVar("T", bound=Struct)


class Table(Generic[T]):
    """A table and its statements. With `numbered`, the first column is an id that the database gives out."""

    def __init__(self, name: str, struct: type[T], key: tuple[str, ...], numbered: bool = False) -> None:
        self.name = name
        self.struct = struct
        self.key = key
        self.columns: tuple[str, ...] = struct.__struct_fields__
        self.given = self.columns[1:] if numbered else self.columns
        self.select = f'SELECT {self.fields()} FROM "{name}"'
        self.insert = f'INSERT INTO "{name}" ({quote_name(self.given)}) VALUES ({",".join("?" * len(self.given))})'
        self.upsert = f"{self.insert} ON CONFLICT ({quote_name(key)}) {self._replace()}"

    def fields(self, alias: str = "") -> str:
        """All columns for a SELECT, each with the alias of the table."""
        return quote_name(self.columns, alias)

    def read(self, rows: Iterable[Sequence[Any]]) -> list[T]:
        """Rows of `select` as structs."""
        return [self.struct(*row) for row in rows]

    def values(self, row: T) -> tuple[Any, ...]:
        """The parameters of `insert` and `upsert`."""
        values: tuple[Any, ...] = astuple(row)
        return values[len(self.columns) - len(self.given) :]

    def update(self, changes: Iterable[str]) -> str:
        """`UPDATE … SET` for some columns, without its WHERE. A name that is not a column is an error of the caller."""
        names = list(changes)
        unknown = [name for name in names if name not in self.columns]
        if unknown or not names:
            raise TypeError(f"{self.name} has no column {', '.join(unknown) or '(none given)'}")
        assignments = ",".join(f'"{name}"=?' for name in names)
        return f'UPDATE "{self.name}" SET {assignments}'

    def _replace(self) -> str:
        rest = [name for name in self.given if name not in self.key]
        if not rest:
            return "DO NOTHING"
        return "DO UPDATE SET " + ",".join(f'"{name}"=excluded."{name}"' for name in rest)


def quote_name(names: Iterable[str], alias: str = "") -> str:
    """`a."x",a."y"`."""
    prefix = f"{alias}." if alias else ""
    return ",".join(f'{prefix}"{name}"' for name in names)


FILES = Table("source_file", SourceFile, ("machine", "path"), numbered=True)
VERSIONS = Table("version", Version, ("source", "number"), numbered=True)
CHUNKS = Table("chunk", Chunk, ("version", "start"))
SESSIONS = Table("session", Session, ("version", "native_id"), numbered=True)
TEXTS = Table("session_text", SessionText, ("session",))
TURNS = Table("turn", Turn, ("session", "idx"))
STEPS = Table("step", Step, ("session", "idx"))
CALLS = Table("call", Call, ("session", "seq", "idx"))
MESSAGES = Table("message", MessageRow, ("session", "seq"))
ARTIFACTS = Table("artifact", Artifact, ("session", "seq", "idx", "n"))
LINKS = Table("link", LinkRow, ("session", "relation", "native_id", "call_id", "hint"))
PROBLEMS = Table("problem", ProblemRow, ())
CENSUS = Table("census", CensusRow, ("version", "type", "client", "disposition"))
TOMBSTONES = Table("tombstone", Tombstone, ("kind", "agent", "key"))
KEPT = Table("kept", KeptRow, ("kind", "agent", "subject", "key"))

#: What belongs to a session and goes with it.
OF_SESSION: tuple[Table[Any], ...] = (ARTIFACTS, CALLS, LINKS, MESSAGES, STEPS, TEXTS, TURNS)


#: `NULL` when it has no time: sorts and compares as the oldest.
ENDED = 'COALESCE({}."ended",0)'


class Conditions:
    """Conditions that must all hold, and their parameters."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.params: list[Any] = []

    def add(self, sql: str, *params: Any) -> None:
        """One more."""
        self._parts.append(sql)
        self.params += params

    def add_one_of(self, column: str, values: tuple[str, ...]) -> None:
        """The column has one of these values; no values, no condition."""
        if values:
            self.add(f"{column} IN ({parameter_marks(len(values))})", *values)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def together(self) -> str:
        """All of them, joined."""
        return " AND ".join(self._parts)

    def where(self) -> str:
        """`WHERE …`, or nothing."""
        return f" WHERE {self.together()}" if self._parts else ""


def add_sessions(conditions: Conditions, wanted: SessionFilter, s: str = "s", x: str = "x") -> None:
    """The filter, for `session` under alias `s` and `session_text` under alias `x`."""
    for name in ("agent", "machine", "owner"):
        if value := getattr(wanted, name):
            conditions.add(f'{s}."{name}"=?', value)
    conditions.add_one_of(f'{s}."kind"', wanted.kinds)
    conditions.add_one_of(f'{s}."state"', wanted.states)
    if wanted.since is not None:
        conditions.add(f"{ENDED.format(s)}>=?", wanted.since)
    if wanted.until is not None:
        conditions.add(f'{s}."started"<?', wanted.until)
    if wanted.workspace:
        conditions.add(_like_sql(f'{x}."workspace"'), substring_pattern(wanted.workspace))
    if wanted.branch:
        conditions.add(_like_sql(f'{x}."branch"'), substring_pattern(wanted.branch))
    if wanted.text:
        columns = ("title", "first_prompt", "summary")
        anywhere = " OR ".join(_like_sql(f'{x}."{column}"') for column in columns)
        conditions.add(f"({anywhere})", *[substring_pattern(wanted.text)] * len(columns))


def add_messages(conditions: Conditions, query: IndexQuery, turns: bool = True) -> None:
    """What a query asks of a message, which is `message` under alias `m`; its turn only if `turns` is set."""
    conditions.add_one_of('m."origin"', query.origins)
    conditions.add_one_of('m."role"', query.roles)
    if query.since is not None:
        conditions.add('m."at">=?', query.since)
    if query.until is not None:
        conditions.add('m."at"<?', query.until)
    if turns and query.turns is not None:
        conditions.add('m."turn" BETWEEN ? AND ?', *query.turns)
    if query.tools:
        named = f'LOWER(c."name") IN ({parameter_marks(len(query.tools))})'
        conditions.add(_has_call_sql(named), *[name.lower() for name in query.tools] * 2)
    if query.path:
        of_call = 'a."session"=c."session" AND a."seq"=c."seq" AND a."idx"=c."idx"'
        path = 'a."path"'
        touched = f'EXISTS (SELECT 1 FROM "artifact" a WHERE {of_call} AND {_like_sql(path)})'
        conditions.add(_has_call_sql(touched), *[substring_pattern(query.path)] * 2)
    if query.errors is not None:
        failed = _has_call_sql("""c."status"='error'""")
        conditions.add(failed if query.errors else f"NOT {failed}")


def _has_call_sql(condition: str) -> str:
    """The message makes such a call, or holds its result. Two look-ups: each has its index."""
    calls = f'SELECT 1 FROM "call" c WHERE c."session"=m."session" AND c."{{}}"=m."seq" AND {condition}'
    return f"(EXISTS ({calls.format('seq')}) OR EXISTS ({calls.format('result_seq')}))"


def _like_sql(column: str) -> str:
    return f"LOWER({column}) LIKE LOWER(?) ESCAPE '\\'"
