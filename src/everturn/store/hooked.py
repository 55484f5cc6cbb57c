"""What agents told the hook while they worked, in the kept layer: one row for each event of each call, without content.

The same event again changes nothing, so whoever brings it may be interrupted and begin anew. A row finds its call in the
archive by the native id of the session and the id of the call; from then on the transcript is the truth and the row no
longer counts. Rows that never find one are calls that only the hook has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import astuple

from everturn.model.hooked import HookEvent
from everturn.store.conditions import Conditions
from everturn.store.driver import Driver
from everturn.store.tables import Table

_HOOKED = Table("hooked", HookEvent, ("session", "ref", "event"))
_ADD = f'{_HOOKED.insert} ON CONFLICT ("session","ref","event") DO NOTHING'
#: Of the session or of one of its subagents, whose ids begin with it and `/`; `0` is what comes after `/`.
_FIND = """
    UPDATE "hooked" SET "own"=(
        SELECT c."session" FROM "session" s JOIN "call" c ON c."session"=s."id" AND c."call_id"="hooked"."call_id"
        WHERE (s."native_id"=? OR (s."native_id">? AND s."native_id"<?)) AND c."status"<>'orphan'
        ORDER BY c."inherited",c."session" LIMIT 1)
    WHERE "session"=? AND "own" IS NULL AND "call_id"<>''
"""
#: What has no call id cannot be told from what the transcript has: it counts only where there is none.
_FIND_NAMELESS = """
    UPDATE "hooked" SET "own"=(
        SELECT MIN(s."id") FROM "session" s WHERE s."native_id"="hooked"."session" AND s."n_messages">0)
    WHERE "session"=? AND "own" IS NULL AND "call_id"='' AND "phase"<>'session'
"""
_ALONE = """
    SELECT "session",COUNT(DISTINCT "ref") FROM "hooked"
    WHERE "own" IS NULL AND "phase"<>'session' AND ("call_id"<>'' OR "phase"<>'begun') AND "at">=?
    GROUP BY "session" ORDER BY "session"
"""


class HookEventStore:
    """The part of a store over a driver that keeps what hooks have heard. Whoever writes does so inside `write()`."""

    driver: Driver

    def add_hooked(self, rows: Iterable[HookEvent]) -> int:
        """Add what is not there yet; how many that were."""
        return sum(self.driver.run(_ADD, astuple(row)) for row in rows)

    def hooked(self, session: str = "") -> list[HookEvent]:
        """In order of time: of one session by its native id, or all."""
        conditions = Conditions()
        if session:
            conditions.add('"session"=?', session)
        sql = f'{_HOOKED.select}{conditions.where()} ORDER BY "at","session","batch_index","ref","event"'
        return _HOOKED.read(self.driver.all(sql, conditions.params))

    def hooked_alone(self, since: int = 0) -> dict[str, int]:
        """Native ids of sessions with calls, heard since then, that were not found in the archive; how many each."""
        return {str(session): int(calls) for session, calls in self.driver.all(_ALONE, (since,))}

    def find_hooked(self, sessions: Iterable[str]) -> None:
        """Look in the archive for the calls of these sessions that were not found before."""
        for name in sessions:
            self.driver.run(_FIND, (name, f"{name}/", f"{name}0", name))
            self.driver.run(_FIND_NAMELESS, (name,))

    def drop_hooked(self, sessions: Sequence[str]) -> None:
        """Give up what was heard of sessions."""
        self.driver.many('DELETE FROM "hooked" WHERE "session"=?', [(name,) for name in sessions])
