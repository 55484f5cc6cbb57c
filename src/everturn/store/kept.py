"""The kept layer: rows that cannot be derived from the sources, hook events, and lists of frameworks.

A rebuild never touches it. The archive's own settings are here too.

Hook events are what agents reported to the hook while they worked: one row for each event of each call, without content.
Adding the same event again changes nothing, so an interrupted drain may start over. A row finds its call in the archive
by the native id of the session and the id of the call; from then on the transcript counts and not the row. Rows without
a match are calls that only the hook has seen.

A list belongs to a family (which integration) and an owner (which session, conversation or stream). Its items are numbered
from 1 in the order they were added and keep their numbers; an item with a key exists once. An owner may have a row of its
own with a revision that is checked before it is replaced. The bytes are opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import astuple, replace

from everturn.errors import Conflict
from everturn.model.archive import HookEvent, KeptRow, Tombstone
from everturn.store.sql import KEPT, TOMBSTONES, Conditions, Driver, Table, query_in_lists


class KeptStore:
    """The part of a store that holds kept rows and settings."""

    driver: Driver
    mask: Callable[[str], str] | None = None  # applied to the values of new rows, for capture mode `redacted`

    def keep(self, row: KeptRow) -> None:
        row = row if self.mask is None else replace(row, value=self.mask(row.value))
        self.driver.run(KEPT.upsert, astuple(row))

    def kept(self, kind: str = "", subject: str | None = None) -> list[KeptRow]:
        conditions = Conditions()
        if kind:
            conditions.add('"kind"=?', kind)
        if subject is not None:
            conditions.add('"subject"=?', subject)
        sql = f'{KEPT.select}{conditions.where()} ORDER BY "kind","agent","subject","key"'
        return KEPT.read(self.driver.all(sql, conditions.params))

    def drop_kept(self, agent: str, subject: str, kinds: Sequence[str] = ()) -> None:
        conditions = Conditions()
        conditions.add('"subject"=?', subject)
        conditions.add_one_of('"agent"', (agent, ""))
        conditions.add_one_of('"kind"', tuple(kinds))
        self.driver.run(f'DELETE FROM "{KEPT.name}"{conditions.where()}', conditions.params)

    def bury(self, rows: list[Tombstone]) -> None:
        """Add tombstones: what must not be captured again."""
        self.driver.many(TOMBSTONES.upsert, map(astuple, rows))

    def tombstones(self) -> list[Tombstone]:
        return TOMBSTONES.read(self.driver.all(f'{TOMBSTONES.select} ORDER BY "kind","agent","key"'))

    def setting(self, key: str) -> str:
        row = self.driver.one('SELECT "value" FROM "setting" WHERE "key"=?', (key,))
        return str(row[0]) if row else ""

    def set_setting(self, key: str, value: str) -> None:
        sql = 'INSERT INTO "setting" ("key","value") VALUES (?,?) ON CONFLICT ("key") DO UPDATE SET "value"=excluded."value"'
        self.driver.run(sql, (key, value))


_HOOKED = Table("hooked", HookEvent, ("session", "ref", "event"))
_ADD = f'{_HOOKED.insert} ON CONFLICT ("session","ref","event") DO NOTHING'
#: Of the session or one of its subagents, whose ids begin with its id and `/`; `0` is the character after `/`.
_FIND = """
    UPDATE "hooked" SET "own"=(
        SELECT c."session" FROM "session" s JOIN "call" c ON c."session"=s."id" AND c."call_id"="hooked"."call_id"
        WHERE (s."native_id"=? OR (s."native_id">? AND s."native_id"<?)) AND c."status"<>'orphan'
        ORDER BY c."inherited",c."session" LIMIT 1)
    WHERE "session"=? AND "own" IS NULL AND "call_id"<>''
"""
#: An event without call id cannot be matched with a call: it counts only if there is no transcript.
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
    """The part of a store that holds hook events. Write inside `write()`."""

    driver: Driver

    def add_hook_events(self, rows: Iterable[HookEvent]) -> int:
        return sum(self.driver.run(_ADD, astuple(row)) for row in rows)

    def hook_events(self, session: str = "") -> list[HookEvent]:
        conditions = Conditions()
        if session:
            conditions.add('"session"=?', session)
        sql = f'{_HOOKED.select}{conditions.where()} ORDER BY "at","session","batch_index","ref","event"'
        return _HOOKED.read(self.driver.all(sql, conditions.params))

    def last_hook_event(self, agent: str) -> int | None:
        sql = 'SELECT MAX(h."at") FROM "hooked" h JOIN "session" s ON s."native_id"=h."session" WHERE s."agent"=?'
        row = self.driver.one(sql, (agent,))
        return None if row is None or row[0] is None else int(row[0])

    def unmatched_hook_calls(self, since: int = 0) -> dict[str, int]:
        return {str(session): int(calls) for session, calls in self.driver.all(_ALONE, (since,))}

    def match_hook_events(self, sessions: Iterable[str]) -> None:
        for name in sessions:
            self.driver.run(_FIND, (name, f"{name}/", f"{name}0", name))
            self.driver.run(_FIND_NAMELESS, (name,))

    def drop_hook_events(self, sessions: Sequence[str]) -> None:
        self.driver.many('DELETE FROM "hooked" WHERE "session"=?', [(name,) for name in sessions])


class ListItem(Struct, frozen=True):
    """An item of a list. `key` may be empty; `n` is assigned when it is added."""

    family: str
    owner: str
    n: int
    key: str
    data: bytes
    at: int


class ItemOwner(Struct, frozen=True):
    """The row of a list itself. Owners are listed by `scope`."""

    family: str
    owner: str
    revision: str
    scope: str
    data: bytes
    at: int  # owners are listed newest first


_ITEMS = Table("item", ListItem, ("owner", "family", "n"))
_OWNERS = Table("item_owner", ItemOwner, ("owner", "family"))
_LIST = 'WHERE "owner"=? AND "family"=?'


class ListStore:
    """The part of a store that holds lists. Write inside `write()`."""

    driver: Driver

    def add_items(self, family: str, owner: str, things: Sequence[tuple[str, bytes]], at: int) -> list[int]:
        """Append (key, data), each key once; return the numbers, also of existing items."""
        existing = self.items_by_key(family, owner, [key for key, _ in things if key])
        numbers, fresh, n = [], [], self.last_item(family, owner)
        given = {key: item.n for key, item in existing.items()}
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
        """Return items in order: after one number, until another, of these the last so many."""
        sql, given = f'{_ITEMS.select} {_LIST} AND "n">?', [owner, family, after]
        if until is not None:
            sql, given = f'{sql} AND "n"<=?', [*given, until]
        if last is None:
            return _ITEMS.read(self.driver.all(f'{sql} ORDER BY "n"', given))
        return _ITEMS.read(reversed(self.driver.all(f'{sql} ORDER BY "n" DESC LIMIT {max(last, 0)}', given)))

    def items_by_key(self, family: str, owner: str, keys: Sequence[str]) -> dict[str, ListItem]:
        sql = f"""{_ITEMS.select} {_LIST} AND "key" <> '' AND "key" IN ({{}})"""
        rows = query_in_lists(self.driver.all, sql, keys, [owner, family])
        return {item.key: item for item in _ITEMS.read(rows)}

    def last_item(self, family: str, owner: str) -> int:
        """Return the highest number, or 0."""
        row = self.driver.one(f'SELECT MAX("n") FROM "item" {_LIST}', (owner, family))
        return int(row[0] or 0) if row else 0

    def delete_items(self, family: str, owner: str, first: int = 0, last: int | None = None) -> None:
        """Delete items from one number to another, both included, by default all."""
        sql, given = f'DELETE FROM "item" {_LIST} AND "n">=?', [owner, family, first]
        if last is not None:
            sql, given = f'{sql} AND "n"<=?', [*given, last]
        self.driver.run(sql, given)

    def item_owner(self, family: str, owner: str) -> ItemOwner | None:
        """Return the row of a list."""
        row = self.driver.one(f"{_OWNERS.select} {_LIST}", (owner, family))
        return ItemOwner(*row) if row else None

    def item_owners(self, family: str, scope: str | None = None, limit: int | None = None) -> list[ItemOwner]:
        """Return the owners of a family or of a scope, newest first."""
        conditions = Conditions()
        conditions.add('"family"=?', family)
        if scope is not None:
            conditions.add('"scope"=?', scope)
        most = "" if limit is None else f" LIMIT {max(limit, 0)}"
        sql = f'{_OWNERS.select}{conditions.where()} ORDER BY "at" DESC,"owner"{most}'
        return _OWNERS.read(self.driver.all(sql, conditions.params))

    def set_item_owner(self, row: ItemOwner, expected: str | None = None) -> None:
        """Insert or replace the row. With `expected`, raise Conflict unless that is its revision ("" = no row)."""
        if expected is not None:
            self._check_revision(row.family, row.owner, expected)
        self.driver.run(_OWNERS.upsert, astuple(row))

    def delete_item_owner(self, family: str, owner: str, expected: str | None = None) -> None:
        """Delete the row, not its items. With `expected`, raise Conflict unless that is its revision."""
        if expected is not None:
            self._check_revision(family, owner, expected)
        self.driver.run(f'DELETE FROM "item_owner" {_LIST}', (owner, family))

    def drop_lists(self, owner: str) -> None:
        """Delete all lists of an owner."""
        for table in (_ITEMS.name, _OWNERS.name):
            self.driver.run(f'DELETE FROM "{table}" WHERE "owner"=?', (owner,))

    def drop_list_items(self, matches: Callable[[bytes], bool]) -> int:
        """Delete the items and owners of lists with matching content; return how many."""
        items = [
            (owner, family, n)
            for owner, family, n, data in self.driver.each('SELECT "owner","family","n","data" FROM "item"')
            if matches(bytes(data))
        ]
        self.driver.many(f'DELETE FROM "item" {_LIST} AND "n"=?', items)
        owners = [
            (owner, family)
            for owner, family, data in self.driver.each('SELECT "owner","family","data" FROM "item_owner"')
            if matches(bytes(data))
        ]
        self.driver.many(f'DELETE FROM "item_owner" {_LIST}', owners)
        return len(items) + len(owners)

    def _check_revision(self, family: str, owner: str, expected: str) -> None:
        row = self.item_owner(family, owner)
        if (row.revision if row else "") != expected:
            raise Conflict(f"{family} {owner}")
