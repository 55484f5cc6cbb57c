"""Which earlier session is meant: the list of a workspace, and a number, an id or `last` out of it."""

from __future__ import annotations

from msgspec import Struct

from everturn.derive.printable import one_line
from everturn.derive.times import iso
from everturn.errors import SessionNotFound, UnknownSession
from everturn.model.archive import Session, SessionText
from everturn.recall.sessions import resolve_session, short_ids
from everturn.resume import leases
from everturn.resume.journal import AGENT
from everturn.store import SessionFilter, Store

MOST = 20
_PAGE = 100
_PAGES = 10  # looked through for sessions of one workspace


class EarlierSession(Struct, frozen=True):
    """One earlier session of the list."""

    number: int  # from 1, the newest first
    session: Session
    text: SessionText
    short: str
    state: str  # open (somebody runs it now) | crashed (its process ended without closing it) | closed

    def line(self, width: int = 100) -> str:
        """`1. 2026-01-31 10:00  47 turns  model  first words…`."""
        row = self.session
        date = iso(row.ended or row.started)[:16].replace("T", " ")
        turns = f"{row.n_prompts} quer{'y' if row.n_prompts == 1 else 'ies'}"
        head = f"{self.number:>3}. {date}  {self.short}  {turns}  {row.model or '-'}  {self.state}  "
        return head + one_line(self.text.title or self.text.first_prompt, max(20, width - len(head)))


def list_earlier(
    store: Store, workspace: str, now: int, machine: str = "", without: str = "", most: int = MOST
) -> list[EarlierSession]:
    """The conversations held in a workspace, the newest first. Those in which nothing was said are left out."""
    found: list[tuple[Session, SessionText]] = []
    cursor = ""
    for _ in range(_PAGES):
        rows, cursor = store.sessions(SessionFilter(agent=AGENT, workspace=workspace), _PAGE, cursor)
        found += [
            (row, text)
            for row, text in rows
            if text.workspace == workspace and row.n_prompts and row.native_id != without
        ]
        if len(found) >= most or not cursor:
            break
    shorts = short_ids((row for row, _ in found[:most]), store)
    return [
        EarlierSession(number, row, text, shorts[row.id], _lease_state(store, row, now, machine))
        for number, (row, text) in enumerate(found[:most], 1)
    ]


def find_earlier(store: Store, wanted: str, listed: list[EarlierSession]) -> Session:
    """The session that a number of the list, an id, any unique beginning of one, or `last` means.

    Raises SessionNotFound, AmbiguousSession. A number that is on the list is meant as one.
    """
    wanted = wanted.strip()
    if wanted.isdigit() and 1 <= int(wanted) <= len(listed):
        return listed[int(wanted) - 1].session
    if wanted in ("last", "@last") and listed:
        return listed[0].session
    try:
        return resolve_session(store, wanted)
    except UnknownSession:
        raise SessionNotFound(wanted) from None


def _lease_state(store: Store, session: Session, now: int, machine: str) -> str:
    held = leases.current_lease(store, session.native_id)
    if not held.until:
        return "closed"
    is_gone = held.until <= now or leases.is_gone(held, leases.this_process(machine))
    return "crashed" if is_gone else "open"
