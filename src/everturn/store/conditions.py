"""Filters as SQL: of sessions, the same for lists, counts and searches; and of the messages of a search."""

from __future__ import annotations

from typing import Any

from everturn.store import IndexQuery, SessionFilter
from everturn.store.driver import parameter_marks, substring_pattern

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
