"""The derived layer: sessions with their turns, steps, messages, calls, artifacts and links; problems and census.

Rows come in batches (`SessionGrowth`). The result of any number of batches equals the result of a single batch with all
rows. A batch adds rows and replaces a few (the last turn and step, calls that got their result); counters change by the
difference, so the work is proportional to the batch and not to the session.

Forked and resumed files begin with copies of older messages, recognised by their fingerprint. The session with the
lowest id owns such a message; in all others it is *inherited*: shown, but neither indexed nor counted again. Sessions
are compared within one agent, and those without stored text only with each other: otherwise a message could become
unfindable because its first copy was read in a mode that stores no text.

Ownership depends only on the sessions' ids and messages, not on the order in which they arrived: a session with a lower
id that arrives later takes over (`_claim_messages`), and when it is deleted the next one does (`_release_messages`).
Each message costs one lookup in the index of fingerprints. Messages that everturn itself put into a new session
(`HANDED_OVER`) arrive marked and stay so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple, replace

from everturn.errors import UnknownSession
from everturn.model.archive import (
    HANDED_OVER,
    RECENT_STEPS,
    Call,
    CensusRow,
    JournalTail,
    MessageRow,
    ProblemRow,
    Session,
    SessionGrowth,
    SessionText,
    Step,
    Turn,
)
from everturn.store.analytics import AnalyticsStore
from everturn.store.edits import EditStore
from everturn.store.index import Index
from everturn.store.sql import (
    ARTIFACTS,
    CALLS,
    CENSUS,
    MANY,
    MESSAGES,
    OF_SESSION,
    PROBLEMS,
    REPORTED,
    SESSIONS,
    STEPS,
    TEXTS,
    TURNS,
    WORDS,
    Driver,
    T,
    Table,
    query_in_lists,
)

#: (session, owner) → change in the number of messages that the session inherits from the owner.
Shares = Counter[tuple[int, int]]

_DOMAIN = """s."agent"=? AND CASE s."mode" WHEN 'structure' THEN 1 ELSE 0 END=? AND (?='' OR s."owner"=?)"""
_OWNERS = f"""
    WITH m AS MATERIALIZED (SELECT "fingerprint", "session" FROM "message" WHERE "session"<>? AND "fingerprint" IN ({{}}))
    SELECT m."fingerprint", MIN(m."session") FROM m CROSS JOIN "session" s WHERE s."id"=m."session" AND {_DOMAIN} GROUP BY m."fingerprint"
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
    """A message with a given fingerprint."""

    fingerprint: int
    session: int
    seq: int
    inherited: int


class OwnershipStore:
    """The part of a store that maintains `inherited` flags, what depends on them, and `forked_from` links."""

    driver: Driver
    index: Index

    @cached_property
    def _keeps_owners_apart(self) -> bool:
        """Whether people share this archive: then no message belongs to a session of another owner."""
        return self.driver.one("""SELECT 1 FROM "setting" WHERE "key"='shared' AND "value"<>''""") is not None

    def _sharing_domain(self, session: Session) -> tuple[str, int, str, str]:
        owner = session.owner if self._keeps_owners_apart else ""
        return session.agent, int(session.mode == "structure"), owner, owner

    def _claim_messages(self, session: Session, messages: Sequence[MessageRow]) -> None:
        """Mark the new messages that are inherited. Sessions with higher ids that owned some of them lose these."""
        prints = list({message.fingerprint for message in messages if message.fingerprint is not None})
        domain = self._sharing_domain(session)
        rows = query_in_lists(self.driver.all, _OWNERS, prints, (session.id,), domain)
        owners: dict[int | None, int] = dict(rows)
        if not owners:
            return
        shares: Shares = Counter()
        first_here = []
        for message in messages:
            if (owner := owners.get(message.fingerprint)) is None or message.inherited == HANDED_OVER:
                continue
            if owner < session.id:
                message.inherited = 1
                shares[session.id, owner] += 1
            else:
                first_here.append(MessageHolder(message.fingerprint or 0, session.id, message.seq, 0))
        self._take_over(session, first_here)
        self._change_shares(shares)

    def _release_messages(self, session: Session) -> None:
        """Pass the messages of a session that is about to be emptied on to their next holders.

        These have no index text for what they now own. Their versions get parser 0 (derived rows out of date), so the
        next sync derives them again.
        """
        shared = [row[0] for row in self.driver.all(_SHARED, (session.id,))]
        for first in range(0, len(shared), MANY):
            before = self._holders(session, shared[first : first + MANY])
            after = [holder for holder in before if holder.session != session.id]
            for heir in sorted(self._settle(before, after)):
                sql = 'UPDATE "version" SET "parser"=0 WHERE "id"=(SELECT "version" FROM "session" WHERE "id"=?)'
                self.driver.run(sql, (heir,))

    def _take_over(self, session: Session, new: list[MessageHolder]) -> None:
        if not new:
            return
        before = self._holders(session, list({holder.fingerprint for holder in new}))
        self._settle(before, before + new)

    def _holders(self, session: Session, prints: Sequence[int]) -> list[MessageHolder]:
        return [
            MessageHolder(*row)
            for row in query_in_lists(self.driver.all, _HOLDERS, prints, self._sharing_domain(session))
        ]

    def _settle(self, before: Sequence[MessageHolder], after: Sequence[MessageHolder]) -> set[int]:
        """Update flags and links from one set of holders to another; return the sessions that gained messages."""
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
        self._change_shares(shares)
        return {session for session, inherited in changed if not inherited}

    def _set_inherited_flag(self, session: int, seqs: list[int], inherited: int) -> None:
        """Set the flag of messages and of the turns, steps and calls that begin with them; update the counters."""
        run = self.driver
        if inherited:
            self.index.remove(session, seqs)
        rows = [(inherited, session, seq) for seq in seqs]
        turns = query_in_lists(
            run.all, 'SELECT "turn","seq" FROM "message" WHERE "session"=? AND "seq" IN ({})', seqs, (session,)
        )
        tokens = self._sum_tokens(session, seqs)
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

    def _sum_tokens(self, session: int, seqs: list[int]) -> list[int]:
        sql = (
            'SELECT "idx","tokens_in","tokens_out","tokens_cache_read","tokens_cache_write" FROM "step"'
            ' WHERE "session"=? AND "first_seq" IN ({})'
        )
        steps = {row[0]: row[1:] for row in query_in_lists(self.driver.all, sql, seqs, (session,))}
        return [sum(column) for column in zip(*steps.values(), strict=True)] or [0, 0, 0, 0]

    def _change_shares(self, shares: Shares) -> None:
        """Update the counts of `forked_from` links. An older version of the same session is not a fork."""
        changed = {pair: n for pair, n in shares.items() if n}
        if not changed:
            return
        ids = sorted({session for pair in changed for session in pair})
        names: dict[int, str] = dict(
            query_in_lists(self.driver.all, 'SELECT "id","native_id" FROM "session" WHERE "id" IN ({})', ids)
        )
        rows = [(session, names[owner], n) for (session, owner), n in sorted(changed.items())]
        rows = [row for row in rows if row[1] != names[row[0]]]
        self.driver.many(_SHARE, rows)
        self.driver.many(
            """DELETE FROM "link" WHERE "session"=? AND "relation"='forked_from' AND "n"=0 AND "stated"=0""",
            [(session,) for session in sorted({row[0] for row in rows if row[2] < 0})],
        )


def _owners(holders: Iterable[MessageHolder]) -> dict[int, int]:
    owners: dict[int, int] = {}
    for holder in holders:
        owners[holder.fingerprint] = min(holder.session, owners.get(holder.fingerprint, holder.session))
    return owners


def _count_shares(holders: Sequence[MessageHolder]) -> Shares:
    owners = _owners(holders)
    pairs = ((holder.session, owners[holder.fingerprint]) for holder in holders)
    return Counter(pair for pair in pairs if pair[0] != pair[1])


class CounterChange(Struct):
    """Amounts to add to the counters of a session."""

    n_messages: int = 0
    n_inherited: int = 0
    n_turns: int = 0
    n_steps: int = 0
    n_calls: int = 0
    n_errors: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cache_read: int = 0
    tokens_cache_write: int = 0

    def apply_to(self, before: Session) -> dict[str, Any]:
        """Return the session's counters with these added."""
        return {name: getattr(before, name) + getattr(self, name) for name in self.__struct_fields__}

    def add_calls(self, calls: Iterable[Call], sign: int) -> None:
        """Add calls, or subtract them with sign -1. An orphan is a result, not a call."""
        for call in calls:
            self.n_calls += sign * (call.status != "orphan")
            self.n_errors += sign * (call.status == "error")

    def add_steps(self, steps: Iterable[Step], sign: int) -> None:
        """Add the tokens of own steps, or subtract them with sign -1."""
        for step in steps:
            if not step.inherited:
                self.tokens_in += sign * step.tokens_in
                self.tokens_out += sign * step.tokens_out
                self.tokens_cache_read += sign * step.tokens_cache_read
                self.tokens_cache_write += sign * step.tokens_cache_write


def count_changes(driver: Driver, before: Session, growth: SessionGrowth, n_inherited: int) -> CounterChange:
    """Return the difference a batch makes. Call it when the flags of its rows are set and before they are written."""
    result = CounterChange(len(growth.messages), n_inherited)
    result.n_turns = sum(row.idx >= before.n_turns for row in growth.turns)
    result.n_steps = sum(row.idx >= before.n_steps for row in growth.steps)
    result.add_calls(growth.calls, 1)
    result.add_steps(growth.steps, 1)
    result.add_calls(_calls_before(driver, before, growth.calls), -1)
    result.add_steps(_steps_before(driver, before, growth.steps), -1)
    return result


def _calls_before(driver: Driver, before: Session, calls: list[Call]) -> list[Call]:
    keys = {(call.seq, call.idx) for call in calls if call.seq < before.n_messages}
    seqs = sorted({seq for seq, _ in keys})
    rows = query_in_lists(driver.all, f'{CALLS.select} WHERE "session"=? AND "seq" IN ({{}})', seqs, (before.id,))
    return [old for old in CALLS.read(rows) if (old.seq, old.idx) in keys]


def _steps_before(driver: Driver, before: Session, steps: list[Step]) -> list[Step]:
    numbers = [step.idx for step in steps if step.idx < before.n_steps]
    return STEPS.read(
        query_in_lists(driver.all, f'{STEPS.select} WHERE "session"=? AND "idx" IN ({{}})', numbers, (before.id,))
    )


SESSION_STAYS = ("id", "agent", "native_id", "version", "mode", "state", "machine", "owner")

#: A subquery, because SQLite uses the small index only where that alone gives the answer.
_UNPAIRED = f"""
    {CALLS.select} WHERE ("session","seq","idx") IN
    (SELECT "session","seq","idx" FROM "call" WHERE "status" IN ('open','orphan') AND "session"=?) ORDER BY "seq","idx"
"""
_SUPERSEDED = """
    SELECT 1 FROM "version" v JOIN "source_file" f ON f."id"=v."source" WHERE v."id"=? AND f."version"<>v."id"
"""
_STATE_LINK = """
    INSERT INTO "link" ("session","relation","native_id","call_id","hint","n","stated") VALUES (?,?,?,?,?,0,1)
    ON CONFLICT ("session","relation","native_id","call_id","hint") DO UPDATE SET "stated"=1
"""
_RECOUNT_TURN = """
    UPDATE "turn" SET
    "n_calls"=(SELECT COUNT(*) FROM "call" c WHERE c."session"="turn"."session" AND c."turn"="turn"."idx"
        AND c."seq" BETWEEN "turn"."first_seq" AND "turn"."last_seq" AND c."status"<>'orphan'),
    "n_errors"=(SELECT COUNT(*) FROM "call" c WHERE c."session"="turn"."session" AND c."turn"="turn"."idx"
        AND c."seq" BETWEEN "turn"."first_seq" AND "turn"."last_seq" AND c."status"='error')
    WHERE "session"=? AND "idx"=?
"""
_TAKE_BACK = 'UPDATE "message" SET "taken_back"=? WHERE "session"=? AND "seq" BETWEEN ? AND ? AND "taken_back"=0'
_TAKE_BACK_TURNS = """
    UPDATE "turn" SET "taken_back"=(SELECT CASE WHEN COUNT(*)>0 AND MIN(m."taken_back")>0 THEN 1 ELSE 0 END
        FROM "message" m WHERE m."session"="turn"."session" AND m."seq" BETWEEN "turn"."first_seq" AND "turn"."last_seq"
        AND m."origin" IN ('human','agent','model'))
    WHERE "session"=? AND {}
"""
_COUNT_TYPE = (
    f'{CENSUS.insert} ON CONFLICT ("version","type","client","disposition") DO UPDATE SET "n"="census"."n"+excluded."n"'
)
#: An emptied session has no kind, so no list shows it. Opening it again sets the kind.
_EMPTY_SESSION = {name: getattr(Session(kind=""), name) for name in SESSIONS.columns if name not in SESSION_STAYS}
_UNREAD = {"parsed": 0, "parser": 0, "state": b"", "lines": 0, "glued": 0}


class DerivedStore(OwnershipStore, AnalyticsStore, EditStore):
    """The part of a store that holds derived rows."""

    def open_session(self, row: Session) -> Session:
        sql = f'{SESSIONS.select} WHERE "version"=? AND "native_id"=?'
        if (found := self.driver.one(sql, (row.version, row.native_id))) is None:
            superseded = self.driver.one(_SUPERSEDED, (row.version,)) is not None
            session = replace(row, state="superseded") if superseded else row
            return replace(session, id=self.driver.insert(SESSIONS.insert, SESSIONS.values(session)))
        session = Session(*found)
        if not session.kind:
            session.kind, session.parent, session.client = row.kind, row.parent, row.client
            self.set_session(session.id, kind=row.kind, parent=row.parent, client=row.client)
        return session

    def tail(self, session: int) -> JournalTail:
        """Return the end of a session, where its derivation continues."""
        numbers = self.driver.one('SELECT "n_messages","n_turns","n_steps" FROM "session" WHERE "id"=?', (session,))
        if numbers is None or not numbers[0]:
            return JournalTail()
        turn = self.driver.one(f'{TURNS.select} WHERE "session"=? ORDER BY "idx" DESC LIMIT 1', (session,))
        unpaired: dict[str, list[Call]] = {}
        for row in self.driver.all(_UNPAIRED, (session,)):
            call = Call(*row)
            unpaired.setdefault(call.call_id, []).append(call)
        recent = self.driver.all(
            f'{STEPS.select} WHERE "session"=? ORDER BY "idx" DESC LIMIT ?', (session, RECENT_STEPS)
        )
        return JournalTail(
            next_seq=numbers[0], next_turn=numbers[1], next_step=numbers[2], turn=Turn(*turn) if turn else None,
            step=Step(*recent[0]) if recent else None, open_calls=unpaired, recent=STEPS.read(reversed(recent)),
        )  # fmt: skip

    def append(self, session: int, growth: SessionGrowth) -> None:
        before = self._session(session)
        for message in growth.messages:
            message.session = session
        self._claim_messages(before, growth.messages)
        inherited = {message.seq for message in growth.messages if message.inherited}
        self._set_inherited(before, growth, inherited)
        change = count_changes(self.driver, before, growth, len(inherited))
        self._write_rows(before, growth)
        own = [row for row in growth.index if row.seq not in inherited] if inherited else growth.index
        self.index.add(session, own)
        self._update_session(before, growth, change)

    def set_session(self, session: int, **changes: Any) -> None:
        self.driver.run(f'{SESSIONS.update(changes)} WHERE "id"=?', (*changes.values(), session))

    def set_text(self, row: SessionText) -> None:
        old = self.driver.one(f'{TEXTS.select} WHERE "session"=?', (row.session,))
        self.driver.run(TEXTS.upsert, astuple(row))
        text = _session_index_text(row)
        if text != (_session_index_text(SessionText(*old)) if old else ""):
            self.index.add_session(row.session, text)

    def add_problems(self, rows: list[ProblemRow]) -> None:
        """Record what could not be read."""
        self.driver.many(PROBLEMS.insert, map(astuple, rows))

    def clear_provisional(self, version: int) -> None:
        """Delete problems that may have come from a file still being written."""
        self.driver.run('DELETE FROM "problem" WHERE "version"=? AND "provisional"=1', (version,))

    def add_census(self, rows: list[CensusRow]) -> None:
        """Add to the counts of record types."""
        self.driver.many(_COUNT_TYPE, map(astuple, rows))

    def drop_derived(self, version: int) -> None:
        """Delete everything derived from a version, index included. Session rows stay, emptied, with their ids.

        The version's `parsed`, `parser`, `state`, `lines` and `glued` are reset. Sessions of other versions that
        inherited from these own the messages until they are derived again (see `_release_messages`), so a rebuild of
        several versions proceeds from the lowest id up.
        """
        for session in self._sessions_downwards(version):
            self._empty_session(session)
            self.set_session(session.id, **_EMPTY_SESSION)
        for table in ("problem", "census"):
            self.driver.run(f'DELETE FROM "{table}" WHERE "version"=?', (version,))
        columns = ",".join(f'"{name}"=?' for name in _UNREAD)
        self.driver.run(f'UPDATE "version" SET {columns} WHERE "id"=?', (*_UNREAD.values(), version))

    # helpers ------------------------------------------------------------------------------------------------------
    def _session(self, session: int) -> Session:
        if (row := self.driver.one(f'{SESSIONS.select} WHERE "id"=?', (session,))) is None:
            raise UnknownSession(str(session))
        return Session(*row)

    def _sessions_downwards(self, version: int) -> list[Session]:
        """Return the highest id first: a session inherits from lower ones, so few messages change owner on the way."""
        return SESSIONS.read(self.driver.all(f'{SESSIONS.select} WHERE "version"=? ORDER BY "id" DESC', (version,)))

    def _empty_session(self, session: Session) -> None:
        self.drop_counts(session.id)
        self._release_messages(session)
        self.index.remove_session(session.id)
        for table in OF_SESSION:
            self.driver.run(f'DELETE FROM "{table.name}" WHERE "session"=?', (session.id,))

    def _set_inherited(self, before: Session, growth: SessionGrowth, inherited: set[int]) -> None:
        """Set session ids and inherited flags of the rows that depend on messages, new and earlier ones."""
        session, next_seq = before.id, before.n_messages
        rows: list[Turn | Step] = [*growth.turns, *growth.steps]
        begins = {row.first_seq for row in rows} | {call.seq for call in growth.calls}
        earlier = [seq for seq in begins if seq < next_seq]
        sql = 'SELECT "seq" FROM "message" WHERE "session"=? AND "inherited"<>0 AND "seq" IN ({})'
        flagged = inherited.union(seq for (seq,) in query_in_lists(self.driver.all, sql, earlier, (session,)))
        for row in rows:
            row.session, row.inherited = session, int(row.first_seq in flagged)
        for call in growth.calls:
            call.session, call.inherited = session, int(call.seq in flagged)
        for artifact in growth.artifacts:
            artifact.session = session

    def _put_rows(self, table: Table[T], rows: Sequence[T], by: str, first_new: int) -> None:
        """Write rows; those with a number `by` from `first_new` on are new. A key that comes twice counts as it is last."""
        last = dict(zip(map(attrgetter(*table.key), rows), rows, strict=True)).values()
        number = attrgetter(by)
        self.driver.many(table.insert, [astuple(row) for row in last if number(row) >= first_new])
        if first_new:
            self.driver.many(table.upsert, [astuple(row) for row in last if number(row) < first_new])

    def _write_rows(self, before: Session, growth: SessionGrowth) -> None:
        many, session = self.driver.many, before.id
        many(MESSAGES.insert, map(astuple, growth.messages))
        many(WORDS.insert, [astuple(replace(one, session=session)) for one in growth.words])
        self._put_rows(TURNS, growth.turns, "idx", before.n_turns)
        self._put_rows(STEPS, growth.steps, "idx", before.n_steps)
        if growth.dropped_calls:
            gone = [(session, seq, idx) for seq, idx in growth.dropped_calls]
            many('DELETE FROM "call" WHERE "session"=? AND "seq"=? AND "idx"=?', gone)
        self._put_rows(CALLS, growth.calls, "seq", before.n_messages)
        self._put_rows(ARTIFACTS, growth.artifacts, "seq", before.n_messages)
        self.add_edits(session, growth.edits)
        many(REPORTED.upsert, [astuple(replace(one, session=session)) for one in growth.reported])
        many(_STATE_LINK, [(session, row.relation, row.native_id, row.call_id, row.hint) for row in growth.links])
        many(_RECOUNT_TURN, [(session, idx) for idx in growth.stale_turns])
        many(_TAKE_BACK, [(one.by, session, one.first, one.last) for one in growth.taken_back])
        first = min((one.first for one in growth.taken_back), default=None)
        if first is not None:
            self.driver.run(_TAKE_BACK_TURNS.format('"last_seq">=?'), (session, first))
        elif again := [(session, turn.idx) for turn in growth.turns if turn.taken_back]:
            many(_TAKE_BACK_TURNS.format('"idx"=?'), again)  # a prompt without an answer may be followed by another one

    def _update_session(self, before: Session, growth: SessionGrowth, change: CounterChange) -> None:
        times = [at for at in (before.started, growth.started) if at is not None]
        ends = [at for at in (before.ended, growth.ended) if at is not None]
        changes = change.apply_to(before)
        changes["n_prompts"] = before.n_prompts + growth.n_prompts
        changes["started"] = min(times, default=None)
        changes["ended"] = max(ends, default=None)
        changes["model"] = growth.model or before.model
        self.set_session(before.id, **changes)


def _session_index_text(row: SessionText) -> str:
    return f"{row.title}\n{row.summary}".strip()
