"""Recovery: find the sessions whose process died, and resume them. Any number of workers may do that at the same time.

A process that ends in order releases its session; one that was killed leaves its lease behind. On this system such a session
is found at once, on another machine when the lease has run out. Each session is resumed by one worker: the others find it
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from everturn.clock import Clock, now
from everturn.errors import Busy, Conflict, EverturnError
from everturn.loop import leases, records
from everturn.loop.journal import Journal
from everturn.loop.journal_state import JournalState, find_journal
from everturn.loop.leases import LeaseHolder
from everturn.loop.loop import Loop, Outcome
from everturn.model.conversation import prepared
from everturn.sessions.messages import stored_lines
from everturn.store.contract import Store


@dataclass(frozen=True)
class UnfinishedSession:
    """A session whose process died."""

    session: str
    machine: str
    pid: int
    at: int  # the last renewal of its lease, ms UTC
    workspace: str = ""
    in_doubt: tuple[str, ...] = ()  # tools whose calls were begun and have no result
    not_started: tuple[str, ...] = ()
    is_answered: bool = False  # it died after the last answer: nothing is left to do


@dataclass(frozen=True)
class RecoveredSession:
    """The outcome of one recovered session."""

    session: str
    outcome: Outcome
    waiting: tuple[str, ...] = field(default=())


def unfinished_sessions(
    store: Store, holder: LeaseHolder | None = None, clock: Clock = now
) -> Iterator[UnfinishedSession]:
    """Yield the sessions whose process died."""
    holder = holder or leases.this_process()
    at = store.server_time() or clock()
    for row in store.kept(leases.KIND):
        lease = msgspec.json.decode(row.value, type=prepared(leases.Lease))
        if row.agent != leases.AGENT or not lease.until or leases.is_held(lease, holder, at):
            continue
        past = _read_past(store, row.subject)
        if past is not None:
            yield _describe(row.subject, lease, past, row.at)


def recover(
    store: Store, loop_for: Callable[[JournalState], Loop | None], holder: LeaseHolder | None = None
) -> Iterator[RecoveredSession]:
    """Resume each unfinished session with the loop that `loop_for` returns for it; None leaves it alone.

    A session that cannot be resumed yields an outcome `failed`, and the next one follows.
    """
    for found in list(unfinished_sessions(store, holder)):
        if not leases.current_lease(store, found.session).until:
            continue  # another worker has finished it
        try:
            with Journal.open(store, found.session) as journal:
                loop = loop_for(journal.past)
                if loop is None:
                    journal.abandon()
                    continue
                outcome = loop.resume(journal)
        except (Busy, Conflict):  # another worker has it
            continue
        except EverturnError as error:
            outcome = Outcome("failed", error=error)
        yield RecoveredSession(found.session, outcome, tuple(call.name for call in outcome.waiting))


def _read_past(store: Store, session: str) -> JournalState | None:
    """Return the state of a session without taking it; None if there is no such journal."""
    place = find_journal(store, session, "")
    if place.file is None:
        return None
    past = JournalState(session)
    for raw in stored_lines(store, place.version):
        if raw.strip():
            past.take(records.parse_record(raw, session))
    return past


def _describe(session: str, lease: leases.Lease, past: JournalState, at: int) -> UnfinishedSession:
    in_doubt = tuple(call.part.name for call in past.open_calls if call.intents or call.foreign)
    rest = tuple(call.part.name for call in past.open_calls if not (call.intents or call.foreign))
    is_answered = not past.open_calls and not past.awaits_model
    return UnfinishedSession(session, lease.machine, lease.pid, at, past.workspace, in_doubt, rest, is_answered)
