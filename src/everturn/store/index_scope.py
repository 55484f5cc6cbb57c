"""Which entries of the index a query covers, and where they are reported.

A message is indexed once, in the session that owns it, and reported where the caller expects it: if the owner is an older
version of a file, in the current version that holds the same message; if certain sessions are searched, in those, even
if they only inherited the message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from everturn.store.contract import IndexEntry, IndexQuery
from everturn.store.index import LAST_SEQ, EntryKey, IndexScope, Range
from everturn.store.sql import Conditions, Driver, add_messages, add_sessions, query_in_lists, query_pairs

_IDS = 'SELECT t."id" FROM "session" t LEFT JOIN "session_text" x ON x."session"=t."id"'
#: Older versions whose current version matches the filter; shared messages are reported in the current one.
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
    WHERE (m."session",m."seq") IN (VALUES {}) AND s."id"=m."session" AND c."agent"=s."agent"
    AND c."native_id"=s."native_id" AND c."machine"=s."machine" AND c."state"='current'
    AND cm."session"=c."id" AND cm."fingerprint"=m."fingerprint" GROUP BY m."session", m."seq", c."id"
"""


def resolve_scope(driver: Driver, query: IndexQuery, has_older: bool | None = None) -> IndexScope:
    """Return the scope of a query. `has_older`: whether there may be superseded sessions; None: look."""
    named = _named_sessions(query)
    conditions = Conditions()
    add_messages(conditions, query, turns=named is None)
    messages = (conditions.together(), tuple(conditions.params)) if conditions else None
    if named is None:
        if has_older is None:
            has_older = driver.one("""SELECT 1 FROM "session" WHERE "state"='superseded' LIMIT 1""") is not None
        return IndexScope(None, _sessions_sql(query, has_older), messages, None, has_older=has_older)
    ids = _matching_sessions(driver, query, named)
    ranges = [part for session in ids if (part := _turn_range(driver, query, session))]
    moves = _inherited_entries(driver, ranges, set(ids))
    by_owner: dict[int, list[int]] = defaultdict(list)
    for owner, seq in moves:
        by_owner[owner].append(seq)
    ranges += [Range(owner, min(seqs), max(seqs)) for owner, seqs in by_owner.items()]
    return IndexScope(tuple(ranges), None, messages, moves, frozenset(ids))


def report_entries(
    driver: Driver,
    query: IndexQuery,
    scope: IndexScope,
    entries: Iterable[IndexEntry],
    older: Collection[int] | None = None,
) -> list[IndexEntry]:
    """Return the entries where the caller expects them, without those out of scope. `older`: superseded sessions, if known."""
    if scope.moves is not None:
        targets = ((scope.moves.get((e.session, e.seq)), e) for e in entries)
        moved = [(to or (e.session, e.seq), e) for to, e in targets if to or e.session in scope.named]
    elif scope.has_older:
        moved = _move_to_current(driver, query, list(entries), older)
    else:
        return list(entries)
    return [IndexEntry(*key, entry.held) for key, entry in dict(moved).items()]


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


def _matching_sessions(driver: Driver, query: IndexQuery, ids: Sequence[int]) -> list[int]:
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


def _inherited_entries(driver: Driver, ranges: Sequence[Range], named: set[int]) -> dict[EntryKey, EntryKey]:
    """Map the entries that these sessions inherited from others to their own."""
    moves: dict[EntryKey, EntryKey] = {}
    for session, first, last in ranges:
        if driver.one('SELECT 1 FROM "session" WHERE "id"=? AND "n_inherited">0', (session,)):
            for owner, seq, here in driver.all(_INHERITED, (session, max(first, 0), min(last, LAST_SEQ))):
                if owner not in named:
                    moves[owner, seq] = session, here
    return moves


def _move_to_current(
    driver: Driver, query: IndexQuery, entries: list[IndexEntry], older: Collection[int] | None
) -> list[tuple[EntryKey, IndexEntry]]:
    if older is None:
        sql = """SELECT "id" FROM "session" WHERE "state"='superseded' AND "id" IN ({})"""
        ids = list({entry.session for entry in entries})
        older = {row[0] for row in query_in_lists(driver.all, sql, ids)}
    keys = [(entry.session, entry.seq) for entry in entries if entry.session in older and entry.seq >= 0]
    moves = {(row[0], row[1]): (row[2], row[3]) for row in query_pairs(driver.all, _CURRENT, keys)}
    staying = set(_matching_sessions(driver, query, sorted(older))) if older else set()
    targets = ((moves.get((e.session, e.seq)), e) for e in entries)
    return [(to or (e.session, e.seq), e) for to, e in targets if to or e.session not in older or e.session in staying]
