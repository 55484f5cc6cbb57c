"""Shared SQL: the `Driver` contract of an engine, a `Table` for each row struct, and filters as conditions.

Shared SQL is written once, with `?` for parameters, in the subset that SQLite and PostgreSQL both understand: upserts by
ON CONFLICT, every column in double quotes (several names are reserved words somewhere), no literal `?` or `%` (patterns
are parameters). Values are None, int, float, str and bytes, both ways; there are no booleans and no dates.

The columns of a table are the fields of its struct in `model.archive`, in order: a row becomes a struct by
`Struct(*row)`, and a struct becomes a row by `astuple`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from everturn.model.archive import (
    Artifact,
    Call,
    CensusRow,
    Chunk,
    EditRow,
    KeptRow,
    LinkRow,
    MessageRow,
    MessageText,
    ProblemRow,
    ReportedWork,
    Session,
    SessionText,
    SourceFile,
    Step,
    Tombstone,
    Turn,
    Version,
)
from everturn.store.contract import IndexQuery, SessionFilter
from everturn.text.folders import folder_filter

Row = tuple[Any, ...]

#: Longest list of values one statement may hold.
MANY = 500


class Driver(Protocol):
    """One connection to one database. Not shared between threads."""

    name: str  # sqlite | postgres
    url: str  # for messages

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Return all rows."""

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        """Return the first row, or None."""

    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows. Other statements may run meanwhile."""

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Run a statement; return the number of changed rows."""

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of parameters. `rows` may be a generator."""

    def insert(self, sql: str, params: Sequence[Any]) -> int:
        """Run an INSERT (without RETURNING) into a table with an `id`; return the new id."""

    def write(self) -> AbstractContextManager[None]:
        """Run one write transaction: committed when the block ends, rolled back when it raises.

        A nested block joins the outer one. Raises Busy, NoSpace.
        """

    def reading(self) -> AbstractContextManager[None]:
        """Read from one snapshot for the whole block, whatever others write meanwhile. The block must not write.

        A block inside another one, reading or writing, joins it.
        """

    @property
    def is_writing(self) -> bool:
        """Whether a write transaction is open."""

    def close(self) -> None:
        """Close the database. May be called twice."""


def parameter_marks(n: int) -> str:
    """Return `?,?,?` for n values."""
    return ",".join("?" * n)


def substring_pattern(text: str) -> str:
    r"""Return the pattern for `LOWER(x) LIKE LOWER(?) ESCAPE '\'` that finds `text` anywhere, literally."""
    return f"%{_escape_wildcards(text)}%"


def prefix_pattern(text: str) -> str:
    r"""Return the pattern for `x LIKE ? ESCAPE '\'` that finds `text` at the start."""
    return f"{_escape_wildcards(text)}%"


def query_in_lists(
    ask: Callable[[str, Sequence[Any]], list[Row]],
    sql: str,
    values: Sequence[Any],
    before: Sequence[Any] = (),
    after: Sequence[Any] = (),
) -> Iterator[Row]:
    """Run a query with `{}` in `sql` replaced by a list of values, as many at a time as one statement allows."""
    for first in range(0, len(values), MANY):
        part = values[first : first + MANY]
        # Rounded up to a power of two, so that only a few different statements are prepared.
        size = 1 << (len(part) - 1).bit_length()
        padded = [*part, *[part[-1]] * (size - len(part))]
        yield from ask(sql.format(parameter_marks(size)), [*before, *padded, *after])


def query_pairs(
    ask: Callable[[str, Sequence[Any]], list[Row]], sql: str, pairs: Sequence[tuple[int, int]]
) -> Iterator[Row]:
    """Run a query with `{}` in `sql` replaced by a list of pairs, as many at a time as one statement allows."""
    for first in range(0, len(pairs), MANY // 2):
        part = list(pairs[first : first + MANY // 2])
        # Rounded up to a power of two, so that only a few different statements are prepared.
        part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))
        yield from ask(sql.format(",".join(["(?,?)"] * len(part))), [number for pair in part for number in pair])


def _escape_wildcards(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


T = TypeVar("T", bound=Struct)


class Table(Generic[T]):
    """A table and its statements. With `numbered`, the database assigns the first column, an id."""

    def __init__(self, name: str, struct: type[T], key: tuple[str, ...], numbered: bool = False) -> None:
        self.name = name
        self.struct = struct
        self.key = key
        self.columns: tuple[str, ...] = struct.__struct_fields__
        self.given = self.columns[1:] if numbered else self.columns
        self.select = f'SELECT {self.fields()} FROM "{name}"'
        self.insert = f'INSERT INTO "{name}" ({quote_name(self.given)}) VALUES ({",".join("?" * len(self.given))})'
        self.upsert = f"{self.insert} ON CONFLICT ({quote_name(key)}) {self._replace()}"
        self._updates: dict[tuple[str, ...], str] = {}  # few, and each is asked for thousands of times in a sync

    def fields(self, alias: str = "") -> str:
        """Return all columns for a SELECT, with the alias of the table."""
        return quote_name(self.columns, alias)

    def read(self, rows: Iterable[Sequence[Any]]) -> list[T]:
        """Convert rows of `select` to structs."""
        return [self.struct(*row) for row in rows]

    def values(self, row: T) -> tuple[Any, ...]:
        """Return the parameters of `insert` and `upsert`."""
        values: tuple[Any, ...] = astuple(row)
        return values[len(self.columns) - len(self.given) :]

    def update(self, changes: Iterable[str]) -> str:
        """Return `UPDATE … SET` for some columns, without WHERE. Raises TypeError for a name that is no column."""
        names = tuple(changes)
        if (known := self._updates.get(names)) is not None:
            return known
        unknown = [name for name in names if name not in self.columns]
        if unknown or not names:
            raise TypeError(f"{self.name} has no column {', '.join(unknown) or '(none given)'}")
        assignments = ",".join(f'"{name}"=?' for name in names)
        known = self._updates[names] = f'UPDATE "{self.name}" SET {assignments}'
        return known

    def _replace(self) -> str:
        rest = [name for name in self.given if name not in self.key]
        if not rest:
            return "DO NOTHING"
        return "DO UPDATE SET " + ",".join(f'"{name}"=excluded."{name}"' for name in rest)


def quote_name(names: Iterable[str], alias: str = "") -> str:
    """Return the names quoted: `a."x",a."y"`."""
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
WORDS = Table("message_text", MessageText, ("session", "seq"))
ARTIFACTS = Table("artifact", Artifact, ("session", "seq", "idx", "n"))
EDITS = Table("edit", EditRow, ("session", "seq", "idx", "n"))
REPORTED = Table("reported", ReportedWork, ("session", "seq", "idx"))
LINKS = Table("link", LinkRow, ("session", "relation", "native_id", "call_id", "hint"))
PROBLEMS = Table("problem", ProblemRow, ())
CENSUS = Table("census", CensusRow, ("version", "type", "client", "disposition"))
TOMBSTONES = Table("tombstone", Tombstone, ("kind", "agent", "key"))
KEPT = Table("kept", KeptRow, ("kind", "agent", "subject", "key"))

#: Tables whose rows belong to a session and are deleted with it.
OF_SESSION: tuple[Table[Any], ...] = (ARTIFACTS, CALLS, EDITS, LINKS, MESSAGES, REPORTED, STEPS, TEXTS, TURNS, WORDS)

#: A session without a time sorts and compares as the oldest.
ENDED = 'COALESCE({}."ended",0)'


class Conditions:
    """SQL conditions that must all hold, and their parameters."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.params: list[Any] = []

    def add(self, sql: str, *params: Any) -> None:
        self._parts.append(sql)
        self.params += params

    def add_one_of(self, column: str, values: tuple[str, ...]) -> None:
        """Require one of these values; without values, add nothing."""
        if values:
            self.add(f"{column} IN ({parameter_marks(len(values))})", *values)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def together(self) -> str:
        """Return the conditions joined by AND."""
        return " AND ".join(self._parts)

    def where(self) -> str:
        """Return ` WHERE …`, or "" without conditions."""
        return f" WHERE {self.together()}" if self._parts else ""


#: Whether a session is listed: not if another file holds the same session with all of its messages.
IS_NO_COPY = """NOT EXISTS (SELECT 1 FROM "session" c WHERE c."agent"={s}."agent" AND c."native_id"={s}."native_id"
    AND c."id"<>{s}."id" AND c."state"='current' AND {s}."n_messages">0 AND (
        ({s}."n_inherited"={s}."n_messages" AND c."n_messages">={s}."n_messages" AND c."id"<{s}."id")
        OR (c."n_messages">{s}."n_messages" AND c."n_inherited">={s}."n_messages")))"""


def add_sessions(conditions: Conditions, session_filter: SessionFilter, s: str = "s", x: str = "x") -> None:
    """Add a session filter, for `session` under alias `s` and `session_text` under alias `x`."""
    _add_origin(conditions, session_filter, s, x)
    conditions.add_one_of(f'{s}."kind"', session_filter.kinds)
    conditions.add_one_of(f'{s}."state"', session_filter.states)
    _leave_out_copies(conditions, session_filter, s)
    if session_filter.since is not None:
        conditions.add(f"{ENDED.format(s)}>=?", session_filter.since)
    if session_filter.until is not None:
        conditions.add(f'{s}."started"<?', session_filter.until)
    if session_filter.workspace:
        _add_workspace(conditions, session_filter.workspace, s, x)
    if session_filter.branch:
        conditions.add(_like_sql(f'{x}."branch"'), substring_pattern(session_filter.branch))
    if session_filter.text:
        columns = ("title", "first_prompt", "summary", "slug")
        anywhere = " OR ".join(_like_sql(f'{x}."{column}"') for column in columns)
        conditions.add(f"({anywhere})", *[substring_pattern(session_filter.text)] * len(columns))


def _add_origin(conditions: Conditions, session_filter: SessionFilter, s: str, x: str) -> None:
    """Require an agent, an owner, a machine and a project."""
    for name in ("agent", "owner"):
        if value := getattr(session_filter, name):
            conditions.add(f'{s}."{name}"=?', value)
    if session_filter.machine:
        conditions.add(
            f"""({s}."machine"=? OR {s}."machine" LIKE ? ESCAPE '\\')""", *_end_patterns(session_filter.machine)
        )
    if session_filter.project:
        _add_project(conditions, session_filter.project, s, x)


def _leave_out_copies(conditions: Conditions, session_filter: SessionFilter, s: str) -> None:
    if session_filter.states == ("current",) and not (session_filter.machine or session_filter.owner):
        conditions.add(IS_NO_COPY.format(s=s))


def _end_patterns(name: str) -> tuple[str, str]:
    """Return a name, and the pattern of a longer one whose last parts it is."""
    return name, f"%/{_escape_wildcards(name)}"


def _add_project(conditions: Conditions, project: str, s: str, x: str) -> None:
    """Require a repository, as far as the machine that pushed has named one, or a folder of that name."""
    folder = Conditions()
    _add_folder(folder, f'{x}."workspace"', project.rpartition("/")[2])
    named = (
        f'{s}."version" IN (SELECT v."id" FROM "version" v JOIN "file_project" p ON p."source"=v."source" '
        f"""WHERE p."name"=? OR p."name" LIKE ? ESCAPE '\\')"""
    )
    if "/" in project:
        conditions.add(named, *_end_patterns(project))
    else:
        conditions.add(f"({named} OR ({folder.together()}))", *_end_patterns(project), *folder.params)


def _add_workspace(conditions: Conditions, folder: str, s: str, x: str) -> None:
    """Require a folder or one below it, or another place of a repository that was there: before a move, or a worktree."""
    here, there = Conditions(), Conditions()
    _add_folder(here, f'{x}."workspace"', folder)
    _add_folder(there, 'xx."workspace"', folder)
    names = (
        'SELECT pp."name" FROM "file_project" pp JOIN "version" vv ON vv."source"=pp."source" '
        'JOIN "session" ss ON ss."version"=vv."id" JOIN "session_text" xx ON xx."session"=ss."id" '
        f"""WHERE pp."name" LIKE 'commit/%' AND {there.together()}"""
    )
    same = f'SELECT v."id" FROM "version" v JOIN "file_project" p ON p."source"=v."source" WHERE p."name" IN ({names})'
    conditions.add(f'(({here.together()}) OR {s}."version" IN ({same}))', *here.params, *there.params)


def _add_folder(conditions: Conditions, column: str, folder: str) -> None:
    """Require a folder or one below it: `FolderFilter.matches` in SQL."""
    wanted = folder_filter(folder)
    path = f"RTRIM(REPLACE({column},'\\','/'),'/') || '/'"
    if wanted.beginnings:
        length = len(wanted.beginnings[0])
        marks = parameter_marks(len(wanted.beginnings))
        conditions.add(f"{column}<>'' AND SUBSTR({path},1,{length}) IN ({marks})", *wanted.beginnings)
    else:
        named = _like_sql(f"('/' || {path})")
        conditions.add(f"{column}<>'' AND {named}", substring_pattern(wanted.names))


def add_messages(conditions: Conditions, query: IndexQuery, turns: bool = True) -> None:
    """Add the message filters of a query, for `message` under alias `m`; the turn filter only with `turns`."""
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
    """Return SQL for "the message makes such a call or holds its result": two lookups, each with an index."""
    calls = f'SELECT 1 FROM "call" c WHERE c."session"=m."session" AND c."{{}}"=m."seq" AND {condition}'
    return f"(EXISTS ({calls.format('seq')}) OR EXISTS ({calls.format('result_seq')}))"


def _like_sql(column: str) -> str:
    return f"LOWER({column}) LIKE LOWER(?) ESCAPE '\\'"
