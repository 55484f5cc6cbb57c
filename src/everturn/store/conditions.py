"""A `SessionFilter` as SQL: the same conditions for lists of sessions, for counts and for searches."""

from __future__ import annotations

from typing import Any

from everturn.store import SessionFilter
from everturn.store.driver import contains, marks

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
            self.add(f"{column} IN ({marks(len(values))})", *values)

    def where(self) -> str:
        """`WHERE …`, or nothing."""
        return " WHERE " + " AND ".join(self._parts) if self._parts else ""


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
        conditions.add(_like(f'{x}."workspace"'), contains(wanted.workspace))
    if wanted.text:
        columns = ("title", "first_prompt", "summary")
        anywhere = " OR ".join(_like(f'{x}."{column}"') for column in columns)
        conditions.add(f"({anywhere})", *[contains(wanted.text)] * len(columns))


def needs_text(wanted: SessionFilter) -> bool:
    """Does the filter look at `session_text`?"""
    return bool(wanted.workspace or wanted.text)


def _like(column: str) -> str:
    return f"LOWER({column}) LIKE LOWER(?) ESCAPE '\\'"
