"""What the shared SQL needs of a database: a handful of calls, the same for every engine.

Shared SQL is written once, with `?` for parameters, in the subset that SQLite and PostgreSQL both understand: upserts by
ON CONFLICT, every column in double quotes, no literal `?` or `%` (patterns are parameters). Values are None, int, float,
str and bytes, both ways; there are no booleans and no dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]

#: Longest list of values one statement may hold.
MANY = 500


class Driver(Protocol):
    """One connection to one database. Not shared between threads."""

    name: str  # sqlite | postgres
    url: str  # for messages

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Every row."""

    def one(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""

    def each(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows one by one, streamed. Other statements may run meanwhile."""

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Run a statement; returns how many rows it changed."""

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of parameters. `rows` may be a generator and is read once."""

    def insert(self, sql: str, params: Sequence[Any]) -> int:
        """Run an INSERT into a table with an `id` (no RETURNING in it: it is added here); returns the new id."""

    def write(self) -> AbstractContextManager[None]:
        """One write transaction: there as a whole when the block ends well, gone when it raises.

        A block inside another joins it. Raises Busy, NoSpace.
        """

    def reading(self) -> AbstractContextManager[None]:
        """One view of the database for the whole block, whatever others write meanwhile. Nothing is written in it.

        Inside another block, reading or writing, it is part of that.
        """

    def close(self) -> None:
        """Let go of the database. May be called twice."""


def parameter_marks(n: int) -> str:
    """`?,?,?` for a list of n values."""
    return ",".join("?" * n)


def substring_pattern(text: str) -> str:
    r"""The pattern for `LOWER(x) LIKE LOWER(?) ESCAPE '\'`: `text` anywhere, its own wildcards taken literally."""
    return f"%{_literal(text)}%"


def prefix_pattern(text: str) -> str:
    r"""The pattern for `x LIKE ? ESCAPE '\'`: `text` at the start."""
    return f"{_literal(text)}%"


def query_in_lists(
    ask: Callable[[str, Sequence[Any]], list[Row]], sql: str, values: Sequence[Any], before: Sequence[Any] = ()
) -> Iterator[Row]:
    """Ask with `{}` in `sql` standing for a list of values, as many at a time as one statement may hold."""
    for first in range(0, len(values), MANY):
        some = values[first : first + MANY]
        # Rounded up to a power of two, so that few different statements are ever prepared.
        room = 1 << (len(some) - 1).bit_length()
        padded = [*some, *[some[-1]] * (room - len(some))]
        yield from ask(sql.format(parameter_marks(room)), [*before, *padded])


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
