"""Which session owns a message that several hold.

Forked and resumed files begin with copies of older messages. Copies are known by their fingerprint; the session with the
lowest id owns the message, in all others it is *inherited*: shown, but neither indexed nor counted again. Sessions are
compared within one agent, and those that kept no text only with their like: a message must not be unfindable because
its first copy was read in a mode that keeps no words.

What is stored is a function of the sessions' ids and messages alone, not of the order in which they came: a session
with a lower id that comes later takes over (`claim`), and when it goes the next one takes its place (`release`).
The work follows the messages at hand, each one look-up in the index of fingerprints. What everturn itself put into a new
session (`HANDED_OVER`) comes in marked and stays so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from everturn.model.archive import HANDED_OVER, MessageRow, Session
from everturn.store.driver import MANY, Driver, query_in_lists
from everturn.store.index import Index

#: (session, owner) → how many messages the session has inherited from the owner, as a difference.
Shares = Counter[tuple[int, int]]

_DOMAIN = """s."agent"=? AND CASE s."mode" WHEN 'structure' THEN 1 ELSE 0 END=?"""
_OWNERS = f"""
    SELECT m."fingerprint", MIN(m."session") FROM "message" m CROSS JOIN "session" s
    WHERE s."id"=m."session" AND {_DOMAIN} AND m."session"<>? AND m."fingerprint" IN ({{}}) GROUP BY m."fingerprint"
"""  # CROSS JOIN: SQLite must not start from the sessions
_HOLDERS = f"""
    SELECT m."fingerprint", m."session", m."seq", m."inherited" FROM "message" m CROSS JOIN "session" s
    WHERE s."id"=m."session" AND {_DOMAIN} AND m."fingerprint" IN ({{}})
"""
_SHARED = """
    SELECT DISTINCT a."fingerprint" FROM "message" a CROSS JOIN "message" b
    WHERE a."session"=? AND a."inherited"=0 AND b."fingerprint"=a."fingerprint" AND b."session"<>a."session"
"""
_SHARE = """
    INSERT INTO "link" ("session","relation","native_id","call_id","hint","n","stated") VALUES (?,'forked_from',?,'',0,?,0)
    ON CONFLICT ("session","relation","native_id","call_id","hint") DO UPDATE SET "n"="link"."n"+excluded."n"
"""


class MessageHolder(NamedTuple):
    """A message that has a certain fingerprint."""

    fingerprint: int
    session: int
    seq: int
    inherited: int


class OwnershipStore:
    """Keeps the `inherited` flags, what hangs on them, and the `forked_from` links."""

    def __init__(self, driver: Driver, index: Index) -> None:
        self._driver = driver
        self._index = index

    def claim(self, session: Session, messages: Sequence[MessageRow]) -> None:
        """Mark which of these new messages are inherited. Later sessions that had them first hand them over."""
        prints = list({message.fingerprint for message in messages if message.fingerprint is not None})
        found = query_in_lists(self._driver.all, _OWNERS, prints, (*_sharing_domain(session), session.id))
        owners: dict[int | None, int] = dict(found)
        if not owners:
            return
        shares: Shares = Counter()
        first_here = []
        for message in messages:
            owner = owners.get(message.fingerprint)
            if owner is None or message.inherited == HANDED_OVER:
                continue
            if owner < session.id:
                message.inherited = 1
                shares[session.id, owner] += 1
            else:
                first_here.append(MessageHolder(message.fingerprint or 0, session.id, message.seq, 0))
        self._take_over(session, first_here)
        self._share(shares)

    def release(self, session: Session) -> None:
        """The messages of a session are about to go: the next holders become their owners.

        These have no index text for what they now own. Their versions get parser 0, which means that derived rows are
        out of date: the next sync derives them again.
        """
        shared = [row[0] for row in self._driver.all(_SHARED, (session.id,))]
        for first in range(0, len(shared), MANY):
            before = self._holders(session, shared[first : first + MANY])
            after = [holder for holder in before if holder.session != session.id]
            for heir in sorted(self._settle(before, after)):
                sql = 'UPDATE "version" SET "parser"=0 WHERE "id"=(SELECT "version" FROM "session" WHERE "id"=?)'
                self._driver.run(sql, (heir,))

    def _take_over(self, session: Session, new: list[MessageHolder]) -> None:
        if not new:
            return
        before = self._holders(session, list({holder.fingerprint for holder in new}))
        self._settle(before, before + new)

    def _holders(self, session: Session, prints: Sequence[int]) -> list[MessageHolder]:
        return [
            MessageHolder(*row) for row in query_in_lists(self._driver.all, _HOLDERS, prints, _sharing_domain(session))
        ]

    def _settle(self, before: Sequence[MessageHolder], after: Sequence[MessageHolder]) -> set[int]:
        """Bring flags and links from one set of holders to another; returns the sessions that own more than before."""
        owners = _owners(after)
        changed: dict[tuple[int, int], list[int]] = defaultdict(list)
        for holder in after:
            inherited = int(holder.session != owners[holder.fingerprint])
            if holder.inherited not in (inherited, HANDED_OVER):
                changed[holder.session, inherited].append(holder.seq)
        for (session, inherited), seqs in sorted(changed.items()):
            self._set_inherited_flag(session, seqs, inherited)
        shares = _count_shares(after)
        shares.subtract(_count_shares(before))
        self._share(shares)
        return {session for session, inherited in changed if not inherited}

    def _set_inherited_flag(self, session: int, seqs: list[int], inherited: int) -> None:
        """Set the flag of messages and of the turns, steps and calls that begin with them; count again."""
        run = self._driver
        if inherited:
            self._index.remove(session, seqs)
        rows = [(inherited, session, seq) for seq in seqs]
        turns = query_in_lists(
            run.all, 'SELECT "turn","seq" FROM "message" WHERE "session"=? AND "seq" IN ({})', seqs, (session,)
        )
        tokens = self._tokens(session, seqs)
        run.many('UPDATE "message" SET "inherited"=? WHERE "session"=? AND "seq"=?', rows)
        run.many('UPDATE "call" SET "inherited"=? WHERE "session"=? AND "seq"=?', rows)
        run.many('UPDATE "step" SET "inherited"=? WHERE "session"=? AND "first_seq"=?', rows)
        run.many(
            'UPDATE "turn" SET "inherited"=? WHERE "session"=? AND "idx"=? AND "first_seq"=?',
            [(inherited, session, turn, seq) for turn, seq in sorted(set(turns))],
        )
        sign = 1 if inherited else -1
        run.run(
            'UPDATE "session" SET "n_inherited"="n_inherited"+?,"tokens_in"="tokens_in"-?,"tokens_out"="tokens_out"-?,'
            '"tokens_cache_read"="tokens_cache_read"-?,"tokens_cache_write"="tokens_cache_write"-? WHERE "id"=?',
            (sign * len(seqs), *(sign * count for count in tokens), session),
        )

    def _tokens(self, session: int, seqs: list[int]) -> list[int]:
        sql = (
            'SELECT "idx","tokens_in","tokens_out","tokens_cache_read","tokens_cache_write" FROM "step"'
            ' WHERE "session"=? AND "first_seq" IN ({})'
        )
        steps = {row[0]: row[1:] for row in query_in_lists(self._driver.all, sql, seqs, (session,))}
        return [sum(column) for column in zip(*steps.values(), strict=True)] or [0, 0, 0, 0]

    def _share(self, shares: Shares) -> None:
        """Change the counts of `forked_from` links. An older version of the same session is not a fork."""
        changed = {pair: n for pair, n in shares.items() if n}
        if not changed:
            return
        ids = sorted({session for pair in changed for session in pair})
        names: dict[int, str] = dict(
            query_in_lists(self._driver.all, 'SELECT "id","native_id" FROM "session" WHERE "id" IN ({})', ids)
        )
        rows = [(session, names[owner], n) for (session, owner), n in sorted(changed.items())]
        rows = [row for row in rows if row[1] != names[row[0]]]
        self._driver.many(_SHARE, rows)
        self._driver.many(
            """DELETE FROM "link" WHERE "session"=? AND "relation"='forked_from' AND "n"=0 AND "stated"=0""",
            [(session,) for session in sorted({row[0] for row in rows if row[2] < 0})],
        )


def _sharing_domain(session: Session) -> tuple[str, int]:
    return session.agent, int(session.mode == "structure")


def _owners(holders: Iterable[MessageHolder]) -> dict[int, int]:
    owners: dict[int, int] = {}
    for holder in holders:
        owners[holder.fingerprint] = min(holder.session, owners.get(holder.fingerprint, holder.session))
    return owners


def _count_shares(holders: Sequence[MessageHolder]) -> Shares:
    owners = _owners(holders)
    pairs = ((holder.session, owners[holder.fingerprint]) for holder in holders)
    return Counter(pair for pair in pairs if pair[0] != pair[1])
