"""One process runs a session at a time.

A lease says who, and until when; it is a row of the kept layer. Whoever takes a lease also writes a record into the
journal, in the same transaction, and from then on every write of an earlier holder fails: a journal is only ever
extended from the place its writer knows to be its end. That is the fence; the lease itself only keeps people from
running into it. A holder that died on this machine is known to be gone at once; on another one its time must run out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from everturn.clock import new_id
from everturn.errors import Busy, Conflict
from everturn.model.archive import KeptRow
from everturn.store.contract import Store

KIND = "lease"
AGENT = "journal"

#: How long a lease holds when nobody renews it. A running loop renews it after a third of that.
TTL_MS = 60_000


@dataclass(frozen=True)
class LeaseHolder:
    """Who runs a session: a process, and a name that no other has."""

    machine: str = ""
    pid: int = 0
    started: str = ""  # of the process, as the system tells it: numbers of processes are used again
    name: str = ""
    where: str = ""  # the running system whose processes have such numbers, where it can be told

    def __str__(self) -> str:
        return f"{self.machine}/{self.pid}/{self.started}/{self.name}"


class Lease(Struct):
    """What is kept: who holds a session until when. `token` is one higher each time it changes hands."""

    token: int = 0
    machine: str = ""
    pid: int = 0
    started: str = ""
    name: str = ""
    until: int = 0
    where: str = ""


def this_process(machine: str = "") -> LeaseHolder:
    """The process we are."""
    return LeaseHolder(machine, os.getpid(), _process_start(os.getpid()), new_id()[:12], _boot_id())


def current_lease(store: Store, session: str) -> Lease:
    """The lease of a session; one that nobody holds when there is none."""
    rows = [row for row in store.kept(KIND, session) if row.agent == AGENT]
    return msgspec.json.decode(rows[0].value, type=Lease) if rows else Lease()


def take_lease(store: Store, session: str, holder: LeaseHolder, now: int, until: int, force: bool = False) -> int:
    """Inside a write transaction: the new token. Raises Busy when somebody else holds it."""
    held = current_lease(store, session)
    if held.until > now and held.name != holder.name and not force and not is_gone(held, holder):
        raise Busy(f"session {session}")
    new = Lease(
        held.token + 1, holder.machine, holder.pid, holder.started, holder.name, until, holder.where
    )  # fmt: skip
    _keep_lease(store, session, new, now)
    return new.token


def renew_lease(store: Store, session: str, token: int, now: int, until: int) -> None:
    """Inside a write transaction. Raises Conflict when it has changed hands. `until` in the past gives it up."""
    held = current_lease(store, session)
    if held.token != token:
        raise Conflict(f"session {session}")
    held.until = until
    _keep_lease(store, session, held, now)


def is_gone(held: Lease, holder: LeaseHolder) -> bool:
    """Is it sure that the process is dead? Only a process of the same system can be asked for."""
    if (held.machine, held.where) != (holder.machine, holder.where) or not held.pid or os.name == "nt":
        return False
    try:
        os.kill(held.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(held.started) and _process_start(held.pid) not in ("", held.started)


def _keep_lease(store: Store, session: str, lease: Lease, now: int) -> None:
    store.keep(KeptRow(KIND, AGENT, session, "", msgspec.json.encode(lease).decode(), now))


def _process_start(pid: int) -> str:
    """When a process began, in the system's own count; "" where it does not tell. A zombie has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[:1] == ["Z"] else fields[19] if len(fields) > 19 else ""


def _boot_id() -> str:
    """One boot of one system, and the processes in it that see each other; "" where it does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
