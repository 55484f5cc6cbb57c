"""The kept layer: what cannot be derived from the sources, and the archive's own settings. A rebuild never touches it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import astuple

from everturn.model.archive import KeptRow, Tombstone
from everturn.store.conditions import Conditions
from everturn.store.driver import Driver
from everturn.store.tables import KEPT, TOMBSTONES


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
