"""Group commit: what several threads write at the same time shares one transaction and one sync."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

#: Writes several items as one; returns for each the refusal, or None. Raises if nothing was written.
Commit = Callable[[Sequence[T]], Sequence[Exception | None]]


class _Ticket(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item
        self.done = False
        self.failure: BaseException | None = None


class GroupCommit(Generic[T]):
    """Merges the writes of several threads. The first writes; later arrivals share the next transaction."""

    def __init__(self, commit: Commit[T]) -> None:
        self._commit = commit
        self._arrivals = threading.Lock()
        self.turn = threading.RLock()  # held while writing; other users of the connection take it too
        self._waiting: list[_Ticket[T]] = []

    def submit(self, item: T) -> None:
        """Return when `item` is written; raise if it is not."""
        ticket = _Ticket(item)
        with self._arrivals:
            self._waiting.append(ticket)
        with self.turn:
            if not ticket.done:
                self._write()
        if ticket.failure is not None:
            raise ticket.failure

    def _write(self) -> None:
        with self._arrivals:
            batch, self._waiting = self._waiting, []
        try:
            for ticket, refusal in zip(batch, self._commit([one.item for one in batch]), strict=True):
                ticket.failure = refusal
        except BaseException as failure:
            for ticket in batch:
                ticket.failure = failure
        for ticket in batch:
            ticket.done = True
