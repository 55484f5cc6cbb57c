"""Full-text search: the engine's index says which entries match, the rest is the same SQL everywhere.

A message is in the index once, in the session that owns it. It is reported where the asker expects it: when the owner is
an older version of a file, in the current one that holds the same message; when one session is asked for, in that one,
also if it only inherited the message.
"""

from __future__ import annotations

from everturn.errors import Usage
from everturn.model.words import FIELDS
from everturn.store import Hit, Query
from everturn.store.conditions import Conditions, add_sessions, needs_text
from everturn.store.driver import Driver
from everturn.store.index import Index

#: Where else the session `s` of a hit lives: in `c`, and there the same message is `cm`.
_CURRENT_COPY = """
    LEFT JOIN "session" c ON s."state"='superseded' AND c."agent"=s."agent" AND c."native_id"=s."native_id"
        AND c."machine"=s."machine" AND c."state"='current'
"""
_COPY_ASKED_FOR = ' LEFT JOIN "session" c ON c."id"=? AND c."id"<>s."id" AND c."agent"=s."agent"'
_COPIED = ' LEFT JOIN "message" cm ON cm."session"=c."id" AND cm."fingerprint"=m."fingerprint"'
_MESSAGE = ' LEFT JOIN "message" m ON m."session"=h."session" AND m."seq"=h."seq"'


class Searching:
    """The full-text part of a store over a driver and an index."""

    driver: Driver
    index: Index

    def search(self, query: Query) -> list[Hit]:
        """The best hits first."""
        unknown = [name for name in query.fields if name not in FIELDS]
        if unknown:
            raise Usage(f"no field {', '.join(unknown)} to search in; there are {', '.join(FIELDS)}")
        if not query.groups:
            return []
        matching, params = self.index.matching(query)
        joins, target, seq = "", 'h."session"', 'h."seq"'
        if self._has_copies(query):
            joins = f' JOIN "session" s ON s."id"=h."session"{_MESSAGE}'
            joins += _CURRENT_COPY if query.session is None else _COPY_ASKED_FOR
            joins += _COPIED
            target, seq = 'COALESCE(cm."session",h."session")', 'COALESCE(cm."seq",h."seq")'
            params = params if query.session is None else [*params, query.session]
        elif query.origins or query.since is not None or query.until is not None:
            joins = _MESSAGE
        joins += _sessions_join(query, target)
        conditions = _conditions(query, target)
        sql = (
            f'SELECT {target}, {seq}, MAX(h."score") FROM ({matching}) h{joins}{conditions.where()}'
            f" GROUP BY {target}, {seq} ORDER BY 3 DESC, 1 DESC, 2 LIMIT ? OFFSET ?"
        )
        rows = self.driver.all(sql, [*params, *conditions.params, query.limit, query.offset])
        return [Hit(session, seq, float(score)) for session, seq, score in rows]

    def _has_copies(self, query: Query) -> bool:
        """Can a hit be in another place than where it is to be reported?"""
        if query.session is None:
            sql, params = """SELECT 1 FROM "session" WHERE "state"='superseded' LIMIT 1""", []
        else:
            sql, params = 'SELECT 1 FROM "session" WHERE "id"=? AND "n_inherited">0', [query.session]
        return self.driver.one(sql, params) is not None


def _sessions_join(query: Query, target: str) -> str:
    if query.sessions is None:
        return ""
    join = f' JOIN "session" t ON t."id"={target}'
    return join + ' LEFT JOIN "session_text" x ON x."session"=t."id"' if needs_text(query.sessions) else join


def _conditions(query: Query, target: str) -> Conditions:
    conditions = Conditions()
    if query.session is not None:
        conditions.add(f"{target}=?", query.session)
    if query.sessions is not None:
        add_sessions(conditions, query.sessions, s="t")
    conditions.add_one_of('m."origin"', query.origins)
    if query.since is not None:
        conditions.add('m."at">=?', query.since)
    if query.until is not None:
        conditions.add('m."at"<?', query.until)
    return conditions
