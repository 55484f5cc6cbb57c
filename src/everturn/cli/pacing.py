"""A session read out step by step, each when its time has come: what `replay` adds to `show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from everturn.analyse.replay import Pace
from everturn.cli.output import Output
from everturn.cli.reader import PrintOptions, TranscriptPrinter
from everturn.derive.times import iso
from everturn.model.archive import Session
from everturn.recall.reading import Sources, TurnView, has_words
from everturn.recall.transcript import Passage
from everturn.store import Store


class PacedPrinter(TranscriptPrinter):
    """Waits before each passage. A call is shown when it was made."""

    def __init__(
        self, out: Output, store: Store, sources: Sources, session: Session, wanted: PrintOptions, pace: Pace
    ) -> None:
        super().__init__(out, store, sources, session, wanted)
        self._pace = pace

    def moments(self, views: Iterable[TurnView]) -> Iterator[dict[str, Any]]:
        """The same for a program: each step with the time since the one before."""
        before: int | None = None
        for view in views:
            if has_words(self.session):
                told = self.turn_facts(view)["passages"]
            else:
                told = [{"kind": "call", "tool": call.name, "at": iso(call.started) or None} for call in view.calls]
            times = [row.at for row in view.rows if row.at is not None]
            start = min(times, default=None)
            wait = max(0, start - before) if start is not None and before is not None else 0
            before = max(times, default=before)
            yield {"turn": view.turn.idx + 1, "after_ms": wait, "steps": told}

    def _tell(self, passage: Passage) -> None:
        if passage.kind not in ("call", "result"):  # those come through `_tell_call` in any case
            self._wait(passage.row.at if passage.row is not None else None)
        super()._tell(passage)

    def _tell_call(self, passage: Passage) -> None:
        call = passage.call
        self._wait(call.started if call is not None else passage.row.at if passage.row is not None else None)
        super()._tell_call(passage)

    def _wait(self, at: int | None) -> None:
        self.out.stdout.flush()
        self._pace.wait_for(at)
