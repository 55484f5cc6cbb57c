"""Looking through the text itself, newest first, for what the index cannot say: signs, parts of words, patterns.

The work is bounded by the bytes of the records looked at, and the answer says how far it went. Where a match must hold
certain characters, records without them are passed over at memory speed, so that much more can be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from everturn.model.archive import MessageRow, Session
from everturn.model.words import SESSION_KINDS
from everturn.recall.reading import Records, Sources, has_words, records_end
from everturn.recall.scope import SearchFilters
from everturn.recall.snippets import hit_texts
from everturn.store import IndexHit, SessionFilter, Store

#: Bytes of records looked at for one request: when most can be passed over, and when each has to be taken apart.
SKIMMED = 8_000_000
READ = 8_000_000
#: Matches after which the newest are enough.
ENOUGH = 200
_ROWS = 100
_SESSIONS = 50
#: Characters that stand in every encoding of a text as they are: never escaped, the same in all cases but by case.
_PLAIN = re.compile(rb"[a-z0-9_ .,:;=()\[\]{}+-]+")


class ScanHits(Struct, frozen=True):
    """What was found, newest first, and how far was looked."""

    hits: list[IndexHit]
    messages: int  # looked at
    back_to: int | None  # time of the oldest of them, when there is more that was not looked at


def scan_text(
    store: Store, sources: Sources, filters: SearchFilters, fits: Callable[[str], bool], holds: tuple[str, ...] = ()
) -> ScanHits:
    """Messages with a text that fits. `holds` is text that each match has in it, in any case."""
    return _TextScan(store, sources, filters, fits, holds).run()


class _TextScan:
    def __init__(
        self,
        store: Store,
        sources: Sources,
        filters: SearchFilters,
        fits: Callable[[str], bool],
        holds: tuple[str, ...],
    ) -> None:
        self._store, self._sources, self._filters, self._fits = store, sources, filters, fits
        given = [one.lower().encode("utf-8", "surrogatepass") for one in holds]
        self._holds = [one for one in given if _PLAIN.fullmatch(one)]
        self._left = SKIMMED if self._holds else READ
        self._hits: list[IndexHit] = []
        self._messages = 0

    def run(self) -> ScanHits:
        oldest: int | None = None
        for session in self._sessions():
            for row in self._rows(session):
                oldest = min(oldest or row.at or 0, row.at or oldest or 0)
                if self._left <= 0 or len(self._hits) >= ENOUGH:
                    return ScanHits(self._hits, self._messages, oldest)
        return ScanHits(self._hits, self._messages, None)

    def _sessions(self) -> Iterator[Session]:
        filters = self._filters
        if filters.session is not None:
            yield filters.session
            return
        if filters.within:
            yield from sorted((self._store.session(one)[0] for one in filters.within), key=_newest_first_key)
            return
        wanted = SessionFilter(
            agent=filters.agent, workspace=filters.workspace, branch=filters.branch, kinds=SESSION_KINDS,
            since=filters.since, until=filters.until,
        )  # fmt: skip
        cursor = ""
        while True:
            rows, cursor = self._store.sessions(wanted, _SESSIONS, cursor)
            yield from (session for session, _ in rows)
            if not cursor:
                return

    def _rows(self, session: Session) -> Iterator[MessageRow]:
        """The messages of a session, newest first, each looked at."""
        if not has_words(session):
            return
        among = _messages_with_calls(self._store, session, self._filters)
        for last in range(session.n_messages - 1, -1, -_ROWS):
            rows = list(self._store.messages(session.id, max(0, last - _ROWS + 1), last))
            if not rows:
                return
            records = Records(self._store, self._sources, session, records_end(rows))
            found = [row.seq for row in rows if self._is_in_filters(row, among) and self._matches(records, row)]
            for row in reversed(rows):
                if row.seq in found:
                    self._hits.append(IndexHit(session.id, row.seq, 1 / (1 + len(self._hits))))
                yield row

    def _is_in_filters(self, row: MessageRow, among: set[int] | None) -> bool:
        filters = self._filters
        if row.inherited and not filters.session:  # looked at where it was first said
            return False
        if (row.origin == "injected" and filters.hides_injected) or (
            filters.origins and row.origin not in filters.origins
        ):
            return False
        if filters.turns and not filters.turns[0] <= row.turn <= filters.turns[1]:
            return False
        return (among is None or row.seq in among) and _is_between(row.at, filters.since, filters.until)

    def _matches(self, records: Records, row: MessageRow) -> bool:
        if self._left <= 0:
            return False
        self._left -= row.size
        self._messages += 1
        record = records.record(row)
        if self._holds:
            lower = record.lower()
            if not all(one in lower for one in self._holds):
                return False
        found = hit_texts(records.view(row, record), self._filters.fields)
        return any(self._fits(text) for _, text in found)


def _newest_first_key(session: Session) -> tuple[int, int]:
    return -(session.ended or 0), -session.id


def _is_between(at: int | None, since: int | None, until: int | None) -> bool:
    if since is None and until is None:
        return True
    return at is not None and (since is None or at >= since) and (until is None or at < until)


def _messages_with_calls(store: Store, session: Session, filters: SearchFilters) -> set[int] | None:
    """The messages with calls, or results of calls, of the sort that is asked for; None when none is."""
    if not filters.tools and not filters.path and filters.errors is None:
        return None
    tools = {name.lower() for name in filters.tools}
    touching = None
    if filters.path:
        part = filters.path.lower()
        touching = {(one.seq, one.idx) for one in store.artifacts(session.id) if part in one.path.lower()}
    found: set[int] = set()
    failed: set[int] = set()
    for call in store.calls(session.id):
        seqs = {call.seq} if call.result_seq is None else {call.seq, call.result_seq}
        if call.status == "error":
            failed |= seqs
        if (not tools or call.name.lower() in tools) and (touching is None or (call.seq, call.idx) in touching):
            found |= seqs
    if filters.errors is None:
        return found
    return found & failed if filters.errors else found - failed
