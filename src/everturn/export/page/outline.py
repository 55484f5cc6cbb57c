"""The outline of a session: each turn with the beginning of its prompt, its failures and its edits.

Only the first messages of a turn are read, so that an outline does not grow with the length of the turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.export.page.turn import words_of
from everturn.model.archive import Session, Turn
from everturn.sessions.messages import Passage, Sources, TurnView, passages
from everturn.store.contract import Store
from everturn.text.printable import Clean, one_line

WORDS = 70
_OPENING = 12  # messages of a turn among which its prompt is
_EDITS = ("edit", "create", "delete")


class OutlineEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn in the outline of a session."""

    turn: int  # counted from 1
    words: str
    started: int | None
    calls: int
    errors: int
    edits: int
    compacted: bool
    interrupted: bool
    inherited: bool
    taken_back: bool


def read_outline(
    store: Store, sources: Sources, session: Session, clean: Clean, first: int = 0, last: int | None = None
) -> list[OutlineEntry]:
    """Return the entries of the turns from `first` to `last`, counted from 0, both included."""
    edits = Counter[int]()
    for idx, kind, n in store.work(session.id):
        if kind in _EDITS:
            edits[idx] += n
    return [
        OutlineEntry(
            turn.idx + 1,
            _prompt_of(store, sources, session, turn, clean),
            turn.started,
            turn.n_calls,
            turn.n_errors,
            edits[turn.idx],
            bool(turn.compacted),
            bool(turn.interrupted),
            bool(turn.inherited),
            bool(turn.taken_back),
        )
        for turn in store.turns(session.id, first, last)
    ]


def prompt_words(told: Iterable[Passage]) -> str:
    """Return the first prompt among these passages; of typed commands alone the last."""
    words = ""
    for passage in told:
        if passage.kind != "prompt" or passage.row is None:
            continue
        if passage.row.kind != "command":
            return words_of(passage)
        words = words_of(passage)
    return words


def _prompt_of(store: Store, sources: Sources, session: Session, turn: Turn, clean: Clean) -> str:
    last = min(turn.last_seq, turn.first_seq + _OPENING - 1)
    rows = [row for row in store.messages(session.id, turn.first_seq, last) if row.role == "user"]
    view = TurnView(replace(turn, last_seq=last), [], [], rows)
    return one_line(clean(prompt_words(passages(store, sources, session, view))), WORDS) or "…"
