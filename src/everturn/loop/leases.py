"""Leases: one process runs a session at a time.

A lease says who runs a session and until when; it is a row of the kept layer. Taking a lease also writes a record into the
journal, in the same transaction, and from then on every write of an earlier holder fails: a journal is only extended from
the end its writer knows. That is the fence: the intent of a call is such a write, so a holder that lost its session begins
no call. The lease only keeps people from running into it.

On one system no clock decides: a process that died is known to be gone at once, and one that lives keeps its session, even
if it is stopped and its lease has run out. On another machine a lease must expire, by the clock of the database if it is a
server (`Store.server_time`), so that the clocks of the machines need not agree.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from everturn.clock import new_id
from everturn.errors import Busy, Conflict
from everturn.model.archive import KeptRow
from everturn.model.conversation import prepared
from everturn.store.contract import Store

KIND = "lease"
AGENT = "journal"

#: Lifetime of a lease without renewal. A running loop renews it after a third of that.
TTL_MS = 60_000


@dataclass(frozen=True)
class LeaseHolder:
    """The process that runs a session, with a unique name."""

    machine: str = ""
    pid: int = 0
    started: str = ""  # start time of the process, since process ids are reused
    name: str = ""
    where: str = ""  # the running system that the process id belongs to, if known

    def __str__(self) -> str:
        return f"{self.machine}/{self.pid}/{self.started}/{self.name}"


class Lease(Struct):
    """The kept row: holder and expiry. `token` increases each time the session changes hands."""

    token: int = 0
    machine: str = ""
    pid: int = 0
    started: str = ""
    name: str = ""
    until: int = 0
    where: str = ""


def this_process(machine: str = "") -> LeaseHolder:
    return LeaseHolder(machine, os.getpid(), _process_start(os.getpid()), new_id()[:12], _boot_id())


def current_lease(store: Store, session: str) -> Lease:
    """Return the lease of a session; an expired one if there is none."""
    rows = [row for row in store.kept(KIND, session) if row.agent == AGENT]
    return msgspec.json.decode(rows[0].value, type=prepared(Lease)) if rows else Lease()


_LIVE: WeakValueDictionary[str, object] = WeakValueDictionary()  # the owners of leases in this process, by holder name


def register_owner(holder: LeaseHolder, owner: object) -> None:
    """Note that an object of this process uses the lease of this holder. A discarded object does not keep a lease."""
    _LIVE[holder.name] = owner


def discard_owner(holder: LeaseHolder | None) -> None:
    """Note that nobody uses the lease of this holder any more."""
    if holder is not None:
        _LIVE.pop(holder.name, None)


def is_held(lease: Lease, holder: LeaseHolder, now: int) -> bool:
    """Whether another holder has the session. A lease with `until` 0 was released."""
    if not lease.until or lease.name == holder.name:
        return False
    return not is_gone(lease, holder) and (lease.until > now or _is_alive(lease, holder))


def take_lease(store: Store, session: str, holder: LeaseHolder, now: int, until: int, force: bool = False) -> int:
    """Take the lease inside a write transaction and return the new token. Raise Busy if another process holds it."""
    lease = current_lease(store, session)
    if not force and is_held(lease, holder, now):
        raise Busy(f"session {session}", is_here=lease.name in _LIVE)
    new = Lease(lease.token + 1, holder.machine, holder.pid, holder.started, holder.name, until, holder.where)
    _write_lease(store, session, new, now)
    return new.token


def renew_lease(store: Store, session: str, token: int, now: int, until: int) -> None:
    """Renew the lease inside a write transaction; a past `until` releases it. Raise Conflict if it changed hands."""
    lease = current_lease(store, session)
    if lease.token != token:
        raise Conflict(f"session {session}")
    lease.until = until
    _write_lease(store, session, lease, now)


def is_gone(lease: Lease, holder: LeaseHolder) -> bool:
    """Whether the process is certainly dead. Only a process of the same system can be checked."""
    if not _is_same_system(lease, holder):
        return False
    try:
        os.kill(lease.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    if lease.started and (lease.pid, lease.started) == (os.getpid(), holder.started):
        return lease.name not in _LIVE
    return bool(lease.started) and _process_start(lease.pid) not in ("", lease.started)


def _is_alive(lease: Lease, holder: LeaseHolder) -> bool:
    """Whether the process is certainly alive: one of the same system with the same start time."""
    return _is_same_system(lease, holder) and bool(lease.started) and _process_start(lease.pid) == lease.started


def _is_same_system(lease: Lease, holder: LeaseHolder) -> bool:
    same = (lease.machine, lease.where) == (holder.machine, holder.where) and bool(holder.machine or holder.where)
    return same and bool(lease.pid) and os.name != "nt"


def _write_lease(store: Store, session: str, lease: Lease, now: int) -> None:
    store.keep(KeptRow(KIND, AGENT, session, "", msgspec.json.encode(lease).decode(), now))


def _process_start(pid: int) -> str:
    """Return the start time of a process as the system counts it; "" if unknown. A zombie has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[:1] == ["Z"] else fields[19] if len(fields) > 19 else ""


def _boot_id() -> str:
    """Identify one boot of one system and its process namespace; "" if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
