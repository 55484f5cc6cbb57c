"""What part of the archive a search is about: filters of a query as entries of the index, and back again.

A message is in the index once, in the session that owns it. It is reported where the asker expects it: when the owner is
an older version of a file, in the current one that holds the same message; when certain sessions are asked for, in those,
also if they only inherited the message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from everturn.store import IndexEntry, IndexQuery
from everturn.store.conditions import Conditions, add_messages, add_sessions
from everturn.store.driver import Driver, query_in_lists
from everturn.store.index import LAST_SEQ, Range

Place = tuple[int, int]  # session, seq

_IDS = 'SELECT t."id" FROM "session" t LEFT JOIN "session_text" x ON x."session"=t."id"'
#: Older versions whose current one fits: what of theirs the current one holds is reported there.
_OLDER_IDS = """
    SELECT o."id" FROM "session" o JOIN "session" t ON t."agent"=o."agent" AND t."native_id"=o."native_id"
        AND t."machine"=o."machine" AND t."state"='current'
    LEFT JOIN "session_text" x ON x."session"=t."id"
"""
_INHERITED = """
    SELECT o."session", o."seq", m."seq" FROM "message" m
    CROSS JOIN "message" o CROSS JOIN "session" a CROSS JOIN "session" b
    WHERE m."session"=? AND m."inherited"=1 AND m."seq" BETWEEN ? AND ?
    AND o."fingerprint"=m."fingerprint" AND o."inherited"=0 AND a."id"=o."session" AND b."id"=m."session"
    AND a."agent"=b."agent" ORDER BY m."seq" DESC
"""
_CURRENT = """
    SELECT m."session", m."seq", c."id", MIN(cm."seq") FROM "message" m CROSS JOIN "session" s CROSS JOIN "session" c
    CROSS JOIN "message" cm
    WHERE m."session"=? AND m."seq" IN ({}) AND s."id"=m."session" AND c."agent"=s."agent"
    AND c."native_id"=s."native_id" AND c."machine"=s."machine" AND c."state"='current'
    AND cm."session"=c."id" AND cm."fingerprint"=m."fingerprint" GROUP BY m."session", m."seq", c."id"
"""


class IndexScope(Struct, frozen=True):
    """Where to look, and where to report what is found."""

    ranges: tuple[Range, ...] | None
    sessions: tuple[str, tuple[Any, ...]] | None
    messages: tuple[str, tuple[Any, ...]] | None
    moves: dict[Place, Place] | None  # of entries owned by others; when given, others outside `named` do not count
    named: frozenset[int] = frozenset()
    has_older: bool = False


def resolve_scope(driver: Driver, query: IndexQuery) -> IndexScope:
    """The filters of a query."""
    named = _named_sessions(query)
    conditions = Conditions()
    add_messages(conditions, query, turns=named is None)
    messages = (conditions.together(), tuple(conditions.params)) if conditions else None
    if named is None:
        has_older = driver.one("""SELECT 1 FROM "session" WHERE "state"='superseded' LIMIT 1""") is not None
        return IndexScope(None, _sessions_sql(query, has_older), messages, None, has_older=has_older)
    ids = _sessions_that_fit(driver, query, named)
    ranges = [part for session in ids if (part := _turn_range(driver, query, session))]
    moves = _inherited_places(driver, ranges, set(ids))
    by_owner: dict[int, list[int]] = defaultdict(list)
    for owner, seq in moves:
        by_owner[owner].append(seq)
    ranges += [Range(owner, min(seqs), max(seqs)) for owner, seqs in by_owner.items()]
    return IndexScope(tuple(ranges), None, messages, moves, frozenset(ids))


def report_hits(
    driver: Driver, query: IndexQuery, scope: IndexScope, entries: Iterable[IndexEntry]
) -> list[IndexEntry]:
    """The entries where the asker expects them; those that turn out to be outside are left out."""
    if scope.moves is not None:
        placed = ((scope.moves.get((e.session, e.seq)), e) for e in entries)
        moved = [(to or (e.session, e.seq), e) for to, e in placed if to or e.session in scope.named]
    elif scope.has_older:
        moved = _move_to_current(driver, query, list(entries))
    else:
        return list(entries)
    return [IndexEntry(*place, entry.held) for place, entry in dict(moved).items()]


def _named_sessions(query: IndexQuery) -> list[int] | None:
    if query.session is None:
        return sorted(set(query.within)) if query.within else None
    return [query.session] if not query.within or query.session in query.within else []


def _sessions_sql(query: IndexQuery, has_older: bool) -> tuple[str, tuple[Any, ...]] | None:
    if query.sessions is None:
        return None
    conditions, older = Conditions(), Conditions()
    add_sessions(conditions, query.sessions, s="t")
    sql, params = _IDS + conditions.where(), tuple(conditions.params)
    if has_older:
        older.add("""o."state"='superseded'""")
        add_sessions(older, query.sessions, s="t")
        sql, params = f"{sql} UNION {_OLDER_IDS}{older.where()}", (*params, *older.params)
    return sql, params


def _sessions_that_fit(driver: Driver, query: IndexQuery, ids: Sequence[int]) -> list[int]:
    """Those of the sessions that fit the filter."""
    if query.sessions is None:
        return list(ids)
    conditions = Conditions()
    add_sessions(conditions, query.sessions, s="t")
    conditions.add('t."id" IN ({})')
    sql = _IDS + conditions.where()
    return [row[0] for row in query_in_lists(driver.all, sql, ids, conditions.params)]


def _turn_range(driver: Driver, query: IndexQuery, session: int) -> Range | None:
    if query.turns is None:
        return Range(session)
    sql = 'SELECT MIN("first_seq"), MAX("last_seq") FROM "turn" WHERE "session"=? AND "idx" BETWEEN ? AND ?'
    row = driver.one(sql, (session, *query.turns))
    return Range(session, row[0], row[1]) if row and row[0] is not None else None


def _inherited_places(driver: Driver, ranges: Sequence[Range], named: set[int]) -> dict[Place, Place]:
    """What these sessions inherited from others, by where it is indexed."""
    moves: dict[Place, Place] = {}
    for session, first, last in ranges:
        if driver.one('SELECT 1 FROM "session" WHERE "id"=? AND "n_inherited">0', (session,)):
            for owner, seq, here in driver.all(_INHERITED, (session, max(first, 0), min(last, LAST_SEQ))):
                if owner not in named:
                    moves[owner, seq] = session, here
    return moves


def _move_to_current(driver: Driver, query: IndexQuery, entries: list[IndexEntry]) -> list[tuple[Place, IndexEntry]]:
    sql = """SELECT "id" FROM "session" WHERE "state"='superseded' AND "id" IN ({})"""
    older: set[int] = {row[0] for row in query_in_lists(driver.all, sql, list({entry.session for entry in entries}))}
    seqs: dict[int, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.session in older and entry.seq >= 0:
            seqs[entry.session].append(entry.seq)
    moves = {
        (row[0], row[1]): (row[2], row[3])
        for session, of_session in seqs.items()
        for row in query_in_lists(driver.all, _CURRENT, of_session, (session,))
    }
    staying = set(_sessions_that_fit(driver, query, sorted(older)))
    placed = ((moves.get((e.session, e.seq)), e) for e in entries)
    return [(to or (e.session, e.seq), e) for to, e in placed if to or e.session not in older or e.session in staying]
