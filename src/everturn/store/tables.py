"""One `Table` for each row struct of `model.archive`, and the SQL that follows from it.

The columns of a table are the fields of its struct, in order, so that a row becomes a struct by `Struct(*row)` and a
struct becomes a row by `astuple`. Every name is quoted: several are reserved words somewhere.
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
