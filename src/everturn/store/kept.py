"""The kept layer: what cannot be derived from the sources, and the archive's own settings. A rebuild never touches it.

What agents told the hook while they worked, in the kept layer: one row for each event of each call, without content.

The same event again changes nothing, so whoever brings it may be interrupted and begin anew. A row finds its call in the
archive by the native id of the session and the id of the call; from then on the transcript is the truth and the row no
longer counts. Rows that never find one are calls that only the hook has seen.

Lists of things that frameworks put into the archive, in the kept layer: items of a session, entries, events.

A list is named by its family (which integration) and its owner (which session, conversation or stream). Its items are
numbered upwards from 1 in the order they were added and keep their numbers; one with a key is there once. An owner may
have a row of its own with a revision that is checked before it is replaced. Bytes are the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import astuple

from everturn.errors import Conflict
from everturn.model.archive import HookEvent, KeptRow, Tombstone
from everturn.store.sql import KEPT, TOMBSTONES, Conditions, Driver, Table, query_in_lists


class KeptStore:
    """The kept part of a store over a driver."""

    driver: Driver

    def keep(self, row: KeptRow) -> None:
        """Insert or replace by (kind, agent, subject, key)."""
        self.driver.run(KEPT.upsert, astuple(row))

    def kept(self, kind: str = "", subject: str | None = None) -> list[KeptRow]:
        """What is kept of a kind ("" = every kind), or about one subject."""
        conditions = Conditions()
        if kind:
            conditions.add('"kind"=?', kind)
        if subject is not None:
            conditions.add('"subject"=?', subject)
        sql = f'{KEPT.select}{conditions.where()} ORDER BY "kind","agent","subject","key"'
        return KEPT.read(self.driver.all(sql, conditions.params))

    def drop_kept(self, agent: str, subject: str, kinds: Sequence[str] = ()) -> None:
        """Give up what is kept about a session, of some kinds or all; also what is kept whichever agent it is of."""
        conditions = Conditions()
        conditions.add('"subject"=?', subject)
        conditions.add_one_of('"agent"', (agent, ""))
        conditions.add_one_of('"kind"', tuple(kinds))
        self.driver.run(f'DELETE FROM "{KEPT.name}"{conditions.where()}', conditions.params)

    def bury(self, rows: list[Tombstone]) -> None:
        """Note what must not come back."""
        self.driver.many(TOMBSTONES.upsert, map(astuple, rows))

    def tombstones(self) -> list[Tombstone]:
        """What must not come back."""
        return TOMBSTONES.read(self.driver.all(f'{TOMBSTONES.select} ORDER BY "kind","agent","key"'))

    def setting(self, key: str) -> str:
        """A setting of the archive itself; "" when it was never set."""
        row = self.driver.one('SELECT "value" FROM "setting" WHERE "key"=?', (key,))
        return str(row[0]) if row else ""

    def set_setting(self, key: str, value: str) -> None:
        """Set it."""
        sql = 'INSERT INTO "setting" ("key","value") VALUES (?,?) ON CONFLICT ("key") DO UPDATE SET "value"=excluded."value"'
        self.driver.run(sql, (key, value))


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


class ListItem(Struct, frozen=True):
    """One thing of a list. `key` may be empty; `n` is given out when it is added."""

    family: str
    owner: str
    n: int
    key: str
    data: bytes
    at: int


class ItemOwner(Struct, frozen=True):
    """What a list has one of. `scope` is what owners are listed by."""

    family: str
    owner: str
    revision: str
    scope: str
    data: bytes
    at: int  # owners are listed by it, newest first


_ITEMS = Table("item", ListItem, ("owner", "family", "n"))
_OWNERS = Table("item_owner", ItemOwner, ("owner", "family"))
_LIST = 'WHERE "owner"=? AND "family"=?'


class ListStore:
    """The part of a store over a driver that keeps lists. Whoever writes does so inside `write()`."""

    driver: Driver

    def add_items(self, family: str, owner: str, things: Sequence[tuple[str, bytes]], at: int) -> list[int]:
        """Put (key, data) at the end, each key once; the number of each, also of those that were there already."""
        known = self.items_by_key(family, owner, [key for key, _ in things if key])
        numbers, fresh, n = [], [], self.last_item(family, owner)
        given = {key: item.n for key, item in known.items()}
        for key, data in things:
            if not key or key not in given:
                n += 1
                fresh.append((family, owner, n, key, data, at))
                if key:
                    given[key] = n
                numbers.append(n)
            else:
                numbers.append(given[key])
        self.driver.many(_ITEMS.insert, fresh)
        return numbers

    def items(
        self, family: str, owner: str, last: int | None = None, after: int = 0, until: int | None = None
    ) -> list[ListItem]:
        """In order: those after one number, until another, of these the last so many."""
        sql, given = f'{_ITEMS.select} {_LIST} AND "n">?', [owner, family, after]
        if until is not None:
            sql, given = f'{sql} AND "n"<=?', [*given, until]
        if last is None:
            return _ITEMS.read(self.driver.all(f'{sql} ORDER BY "n"', given))
        return _ITEMS.read(reversed(self.driver.all(f'{sql} ORDER BY "n" DESC LIMIT {max(last, 0)}', given)))

    def items_by_key(self, family: str, owner: str, keys: Sequence[str]) -> dict[str, ListItem]:
        """Those of the keys that are there."""
        sql = f"""{_ITEMS.select} {_LIST} AND "key" <> '' AND "key" IN ({{}})"""
        rows = query_in_lists(self.driver.all, sql, keys, [owner, family])
        return {item.key: item for item in _ITEMS.read(rows)}

    def last_item(self, family: str, owner: str) -> int:
        """The highest number; 0 when there is none."""
        row = self.driver.one(f'SELECT MAX("n") FROM "item" {_LIST}', (owner, family))
        return int(row[0] or 0) if row else 0

    def delete_items(self, family: str, owner: str, first: int = 0, last: int | None = None) -> None:
        """From one number to another, both included; all of them unless said."""
        sql, given = f'DELETE FROM "item" {_LIST} AND "n">=?', [owner, family, first]
        if last is not None:
            sql, given = f'{sql} AND "n"<=?', [*given, last]
        self.driver.run(sql, given)

    def item_owner(self, family: str, owner: str) -> ItemOwner | None:
        """The row of a list."""
        row = self.driver.one(f"{_OWNERS.select} {_LIST}", (owner, family))
        return ItemOwner(*row) if row else None

    def item_owners(self, family: str, scope: str | None = None, limit: int | None = None) -> list[ItemOwner]:
        """Newest first: all of a family, or those of a scope."""
        conditions = Conditions()
        conditions.add('"family"=?', family)
        if scope is not None:
            conditions.add('"scope"=?', scope)
        most = "" if limit is None else f" LIMIT {max(limit, 0)}"
        sql = f'{_OWNERS.select}{conditions.where()} ORDER BY "at" DESC,"owner"{most}'
        return _OWNERS.read(self.driver.all(sql, conditions.params))

    def set_item_owner(self, row: ItemOwner, expected: str | None = None) -> None:
        """Insert or replace it. With `expected`, raises Conflict unless that is its revision now ("" = there is none)."""
        if expected is not None:
            self._check_revision(row.family, row.owner, expected)
        self.driver.run(_OWNERS.upsert, astuple(row))

    def delete_item_owner(self, family: str, owner: str, expected: str | None = None) -> None:
        """The row, not its items. With `expected`, raises Conflict unless that is its revision now."""
        if expected is not None:
            self._check_revision(family, owner, expected)
        self.driver.run(f'DELETE FROM "item_owner" {_LIST}', (owner, family))

    def drop_lists(self, owner: str) -> None:
        """Everything kept under a name, whichever family it is of."""
        for table in (_ITEMS.name, _OWNERS.name):
            self.driver.run(f'DELETE FROM "{table}" WHERE "owner"=?', (owner,))

    def _check_revision(self, family: str, owner: str, expected: str) -> None:
        now = self.item_owner(family, owner)
        if (now.revision if now else "") != expected:
            raise Conflict(f"{family} {owner}")
