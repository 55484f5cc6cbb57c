"""The analytics plane: counts of tool use and tokens without content, computed from the structure tables.

A recount subtracts a session's old counts from the totals and adds its new ones, in the caller's transaction. Triggers
mark the sessions that are out of date, so writers need not know about the plane, and finding them costs nothing when
nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from msgspec.structs import astuple, replace

from everturn.derive.trails import (
    RULES,
    TallyBuilder,
    activity_rows,
    pack,
    retry_rows,
    trail_of,
    turn_keys,
    unpack,
    usage_rows,
)
from everturn.model.analytics import (
    COUNTED_KINDS,
    SUBAGENT_KINDS,
    TALLIES,
    ActivityRow,
    PlaneTable,
    Tally,
    TallyTable,
    Trail,
    TurnKey,
    UsageRow,
    WorkSum,
)
from everturn.model.archive import ReportedWork, Session, Turn
from everturn.store.contract import EVERYTHING, AnalyticsScope, Store
from everturn.store.sql import (
    CALLS,
    REPORTED,
    SESSIONS,
    STEPS,
    TURNS,
    Conditions,
    Driver,
    Row,
    T,
    Table,
    add_sessions,
    query_in_lists,
    quote_name,
)

if TYPE_CHECKING:
    from everturn.store.sql_store import SqlStore

TURN_KEYS = Table("turn_key", TurnKey, ("session", "idx"))
USAGE = Table("usage", UsageRow, ("session", "slot", "model", "inherited", "prompt_size"))
ACTIVITY = Table("activity", ActivityRow, ("session", "slot"))

#: Tables of the plane: with rows per session, and with totals.
OF_SESSION = ("activity", "call_retry", "plane_session", "turn_key", "usage")
TOTALS = {table.name: table for table in TALLIES}

_RULES = "plane rules"
_FORGET_STALE = 'DELETE FROM "plane_stale" WHERE "session"=?'
_NOTE = 'INSERT INTO "plane_session" ("session","subagent","n_calls","trail") VALUES (?,?,?,?)'
_RETRY = 'INSERT INTO "call_retry" ("session","seq","idx","of_seq","of_idx") VALUES (?,?,?,?,?)'
_CHOSEN = '"{}" p JOIN "session" s ON s."id"=p."session" LEFT JOIN "session_text" x ON x."session"=s."id"'
_STALE = """
    INSERT INTO "plane_stale" ("session") SELECT s."id" FROM "session" s
    WHERE s."n_messages">0 AND NOT EXISTS (SELECT 1 FROM "plane_stale" t WHERE t."session"=s."id")
"""


#: A report counts once, in the session that owns the call, and only if the subagent's session is not in the archive: by
#: its id, or by the prompt that both sides have.
_KNOWN_BY_REPORT = """
    EXISTS (SELECT 1 FROM "call" c WHERE c."session"=p."session" AND c."seq"=p."seq" AND c."idx"=p."idx" AND c."inherited"=0)
    AND NOT EXISTS (SELECT 1 FROM "session" k WHERE k."agent"=s."agent" AND k."native_id"=p."child" AND k."n_messages">0)
    AND NOT EXISTS (
        SELECT 1 FROM "call" c
        JOIN "link" d ON d."session"=c."session" AND d."relation"='spawned' AND d."call_id"=c."call_id" AND d."hint"<>0
        JOIN "link" u ON u."native_id"=s."native_id" AND u."relation"='subagent_of' AND u."hint"=d."hint"
        WHERE c."session"=p."session" AND c."seq"=p."seq" AND c."idx"=p."idx"
    )
"""


class AnalyticsStore:
    """The part of a store that counts, and answers questions about the counts."""

    driver: Driver

    # --- counting ---
    def recount(self, sessions: Sequence[int]) -> None:
        gone, came = _TrailTallies(), _TrailTallies()
        for number in sessions:
            before = self._delete_session_rows(number)
            after = self._count_session(number)
            if before != after:
                gone.add(before)
                came.add(after)
            self.driver.run(_FORGET_STALE, (number,))
        self._apply_difference(came.tally(), gone.tally())

    def drop_counts(self, session: int) -> None:
        """Remove a session from the plane, because it is deleted or about to be read again."""
        gone = _TrailTallies()
        gone.add(self._delete_session_rows(session))
        self._apply_difference({}, gone.tally())

    def reset_counts(self) -> None:
        """Empty the plane and mark every session as out of date."""
        for name in (*OF_SESSION, *TOTALS):
            self.driver.run(f'DELETE FROM "{name}"')
        self.driver.run(_STALE)

    def _delete_session_rows(self, session: int) -> _CountedTrail | None:
        row = self.driver.one('SELECT "subagent","trail" FROM "plane_session" WHERE "session"=?', (session,))
        if row is None:
            return None
        for name in OF_SESSION:
            self.driver.run(f'DELETE FROM "{name}" WHERE "session"=?', (session,))
        return _CountedTrail(int(row[0]), bytes(row[1]))

    def _count_session(self, number: int) -> _CountedTrail | None:
        run = self.driver
        row = run.one(f'{SESSIONS.select} WHERE "id"=?', (number,))
        if row is None or not (session := Session(*row)).n_messages:
            return None
        if session.kind not in COUNTED_KINDS:
            return self._count_tokens(session)
        of_session = ' WHERE "session"=? ORDER BY '
        calls = CALLS.read(run.all(f'{CALLS.select}{of_session}"seq","idx"', (number,)))
        turns = TURNS.read(run.all(f'{TURNS.select}{of_session}"idx"', (number,)))
        steps = STEPS.read(run.all(f'{STEPS.select}{of_session}"idx"', (number,)))
        trail = trail_of(calls)
        counted = _CountedTrail(int(session.kind in SUBAGENT_KINDS), pack(trail))
        run.run(_NOTE, (number, counted.subagent, len(trail.tools), counted.trail))
        run.many(_RETRY, [(number, *row) for row in retry_rows(calls)])
        run.many(TURN_KEYS.insert, map(astuple, turn_keys(session, turns)))
        run.many(USAGE.insert, map(astuple, usage_rows(number, steps)))
        run.many(ACTIVITY.insert, map(astuple, activity_rows(number, turns, calls)))
        return counted

    def _count_tokens(self, session: Session) -> _CountedTrail | None:
        """Count the tokens of notes beside a conversation, which hold them for some agents; nothing else in them counts."""
        if not (session.tokens_in or session.tokens_out):
            return None
        steps = STEPS.read(self.driver.all(f'{STEPS.select} WHERE "session"=? ORDER BY "idx"', (session.id,)))
        counted = _CountedTrail(0, pack(Trail()))
        self.driver.run(_NOTE, (session.id, counted.subagent, 0, counted.trail))
        self.driver.many(USAGE.insert, map(astuple, usage_rows(session.id, steps)))
        return counted

    def _apply_difference(self, came: Tally, gone: Tally) -> None:
        for name, table in TOTALS.items():
            change = sorted(_subtract_rows(came.get(name, {}), gone.get(name, {})).items())
            self.driver.many(_upsert_sql(table), [(*key, *row) for key, row in change])
            less = [key for key, row in change if row[0] < 0]
            keys = " AND ".join(f'"{column}"=?' for column in ("subagent", *table.key))
            self.driver.many(f'DELETE FROM "{name}" WHERE {keys} AND "n"=0', less)

    # --- questions ---
    def stale_sessions(self, limit: int = 100) -> list[tuple[int, int]]:
        sql = """
            SELECT t."session", COALESCE(s."n_calls",0) FROM "plane_stale" t LEFT JOIN "session" s ON s."id"=t."session"
            ORDER BY t."session" LIMIT ?
        """
        return [(int(session), int(calls)) for session, calls in self.driver.all(sql, (limit,))]

    def check_rules(self) -> bool:
        row = self.driver.one('SELECT "value" FROM "setting" WHERE "key"=?', (_RULES,))
        if row is not None and row[0] == str(RULES):
            return True
        with self.driver.write():
            self.reset_counts()
            self.driver.run('DELETE FROM "setting" WHERE "key"=?', (_RULES,))
            self.driver.run('INSERT INTO "setting" ("key","value") VALUES (?,?)', (_RULES, str(RULES)))
        return False

    def totals(self, table: str, subagents: bool = True, least: int = 1) -> dict[tuple[int | str, ...], list[int]]:
        layout = TOTALS[table]
        sums = ",".join(f'CAST(SUM("{name}") AS BIGINT)' for name in layout.counters)
        conditions = Conditions()
        if not subagents:
            conditions.add('"subagent"=0')
        if table == "tool_path" and least > 2:
            # Of two summands, one is at least half of the sum. A small index covers those rows.
            half = f'("length","path") IN (SELECT "length","path" FROM "{table}" WHERE "n">1 AND "n">=?)'
            conditions.add(half, (least + 1) // 2)
        key = quote_name(layout.key)
        chosen = f'FROM "{table}"{conditions.where()} GROUP BY {key} HAVING SUM("n")>=? ORDER BY {key}'
        sql = f"SELECT {key},{sums} {chosen}"
        width = len(layout.key)
        return {row[:width]: list(row[width:]) for row in self.driver.all(sql, [*conditions.params, least])}

    def trails(self, scope: AnalyticsScope = EVERYTHING) -> Iterator[tuple[int, Trail]]:
        for session, data in self._select_rows("plane_session", 'p."session",p."trail"', 'p."session"', scope):
            yield int(session), unpack(data)

    def usage(self, scope: AnalyticsScope = EVERYTHING) -> list[UsageRow]:
        return self._read_rows(USAGE, scope)

    def activity(self, scope: AnalyticsScope = EVERYTHING) -> list[ActivityRow]:
        return self._read_rows(ACTIVITY, scope)

    def reported(self, scope: AnalyticsScope = EVERYTHING) -> list[ReportedWork]:
        return self._read_rows(REPORTED, scope, _KNOWN_BY_REPORT)

    def taken_back_turns(self, scope: AnalyticsScope = EVERYTHING) -> list[Turn]:
        return self._read_rows(TURNS, scope, 'p."taken_back"=1 AND p."inherited"=0')

    def plane_rows(self, table: PlaneTable) -> Iterator[Row]:
        yield from self.driver.each(
            f'SELECT {quote_name(table.columns)} FROM "{table.name}" ORDER BY {quote_name(table.order)}'
        )

    def _read_rows(self, table: Table[T], scope: AnalyticsScope, also: str = "") -> list[T]:
        key = quote_name(table.key, "p")
        return table.read(self._select_rows(table.name, table.fields("p"), key, scope, also))

    def _select_rows(
        self, table: str, columns: str, order: str, scope: AnalyticsScope, also: str = ""
    ) -> Iterator[Row]:
        conditions = Conditions()
        if also:
            conditions.add(also)
        if scope.sessions is not None:
            add_sessions(conditions, replace(scope.sessions, kinds=(), states=()))
        if not scope.subagents:
            conditions.add(f"""s."kind" NOT IN ({",".join(f"'{kind}'" for kind in SUBAGENT_KINDS)})""")
        sql = f"SELECT {columns} FROM {_CHOSEN.format(table)}"
        if scope.only is None:
            yield from self.driver.each(f"{sql}{conditions.where()} ORDER BY {order}", conditions.params)
            return
        where = f"{conditions.where()} AND" if conditions else " WHERE"
        ids = sorted(set(scope.only))
        yield from query_in_lists(
            self.driver.all, f'{sql}{where} p."session" IN ({{}}) ORDER BY {order}', ids, conditions.params
        )


class _CountedTrail(NamedTuple):
    """A session as it was counted."""

    subagent: int
    trail: bytes


class _TrailTallies:
    """Tallies of trails, separately for main sessions and subagents."""

    def __init__(self) -> None:
        self._parts: dict[int, TallyBuilder] = {}

    def add(self, counted: _CountedTrail | None) -> None:
        if counted is not None:
            self._parts.setdefault(counted.subagent, TallyBuilder()).add(unpack(counted.trail))

    def tally(self) -> Tally:
        result: Tally = {name: {} for name in TOTALS}
        for subagent, part in self._parts.items():
            for name, rows in part.tally(subagent).items():
                result[name].update(rows)
        return result


Rows = dict[tuple[int | str, ...], list[int]]


def _subtract_rows(came: Rows, gone: Rows) -> Rows:
    """Return the difference of two tallies, without unchanged rows."""
    change = dict(came)
    for key, row in gone.items():
        now = came.get(key)
        left = [a - b for a, b in zip(now, row, strict=True)] if now else [-n for n in row]
        if any(left):
            change[key] = left
        else:
            change.pop(key, None)
    return change


def _upsert_sql(table: TallyTable) -> str:
    key = ("subagent", *table.key)
    columns = (*key, *table.counters)
    sums = ",".join(f'"{name}"="{table.name}"."{name}"+excluded."{name}"' for name in table.counters)
    values = ",".join("?" * len(columns))
    there = f"ON CONFLICT ({quote_name(key)}) DO UPDATE SET {sums}"
    return f'INSERT INTO "{table.name}" ({quote_name(columns)}) VALUES ({values}) {there}'


# --- sums of what a connection may see, without the plane, which counts everybody's ---
_MONTH = {
    "postgres": """TO_CHAR(TO_TIMESTAMP(t."ended"/1000) AT TIME ZONE 'UTC','YYYY-MM')""",
    "sqlite": """STRFTIME('%Y-%m',t."ended"/1000,'unixepoch')""",
}
#: What the sums of a team can be grouped by.
WORK_KEYS = ("owner", "project", "agent", "model", "month")
_WORK = """
    SELECT COALESCE({0},''), SUM(CASE WHEN t."kind" IN ({1}) THEN 0 ELSE 1 END), SUM(t."n_turns"), SUM(t."n_calls"), SUM(t."n_errors"),
    SUM(t."tokens_in"), SUM(t."tokens_out"), SUM(t."tokens_cache_read"), SUM(t."tokens_cache_write")
    FROM "session" t LEFT JOIN "version" v ON v."id"=t."version" LEFT JOIN "file_project" p ON p."source"=v."source"
    WHERE t."state"='current' AND t."kind"<>'' AND t."n_messages">0 AND COALESCE(t."ended",0)>=? GROUP BY 1 ORDER BY 1
"""


def sum_work(store: Store, by: str, since: int) -> list[WorkSum]:
    """Return what the sessions that this connection sees did, by one of WORK_KEYS, of those that ended at `since` or later."""
    driver = cast("SqlStore", store).driver
    key = {"project": 'p."name"', "month": _MONTH[driver.name]}.get(by, f't."{WORK_KEYS[WORK_KEYS.index(by)]}"')
    kinds = ",".join(f"'{kind}'" for kind in SUBAGENT_KINDS)
    return [WorkSum(*row) for row in driver.all(_WORK.format(key, kinds), [since])]
