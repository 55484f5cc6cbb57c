"""Who asks, and what it sees already.

A recall from within a session prefers what is near: the session itself, then the sessions it came from or started, then
its workspace, then everything else. All of them are searched together; nearness is a factor of the score (`NEARNESS`), so
that a good match far away still wins over a poor one nearby.

What the asker has in its context counts less than the rest of its session (`IN_VIEW`): the turns since the last compaction
of its session, all of them if there was none, also those it inherited.

What was said in the turn that asks is no hit at all; nor is that of a session that waits for this one, its subagent, with
the call that started it.
"""

from __future__ import annotations

import re
from functools import cached_property

from everturn.model.archive import MessageRow, Session, SessionText, Turn
from everturn.retrieval.scope import family_ids
from everturn.sessions.lineage import ancestors, find_session_by_id, origin_of
from everturn.store.contract import Store

#: Factors of a score, by where the message is.
NEARNESS = {"session": 3.0, "lineage": 3.0, "workspace": 1.8, "everything": 1.0}
#: Factor for what the asker sees already.
IN_VIEW = 0.6

#: Folders that hold projects and are none.
_NO_PROJECT = re.compile(
    r"(?:[A-Za-z]:)?(?:/(?:home|Users)(?:/[^/]+)?|/(?:root|tmp|work|workspace|workspaces|src|mnt|opt|srv|var))?"
)
_MAX_ORIGINS = 50

Key = tuple[int, int]  # session and seq


class AskingSession:
    """The session that asks.

    `turns_in_view` is how many of its last turns the asker sees, where the records do not tell; 0: it is a new session, which
    only stands near this one.
    """

    def __init__(self, store: Store, session: Session, turns_in_view: int | None = None) -> None:
        self._store, self.session = store, session
        self.workspace = _path(store.session(session.id)[1].workspace) if session.id else ""
        self.relatives = [store.session(one)[0] for one in family_ids(store, session)] if session.id else []
        self.family = frozenset(one.id for one in self.relatives)
        self._own = _origin_ids(store, session)
        turns = store.turns(session.id, max(session.n_turns - 1, 0)) if session.id else []
        self._last = turns[-1] if turns else None
        self._first_seen = self._first_seq_in_view(turns_in_view)
        self._is_outside = turns_in_view == 0
        self._inherited = self._inherited_in_view()

    def ring(self, session: Session, text: SessionText) -> str:
        """Return how near a session is: session, lineage, workspace or everything."""
        if session.id in self._own:
            return "session"
        if session.id in self.family:
            return "lineage"
        return "workspace" if is_same_project(self.workspace, _path(text.workspace)) else "everything"

    def sees(self, session: Session, row: MessageRow) -> bool:
        """Whether a message is in the context of the asker."""
        if session.id == self.session.id:
            return row.seq >= self._first_seen
        return row.fingerprint is not None and row.fingerprint in self._inherited

    @cached_property
    def open_turn(self) -> int | None:
        """The turn that asks: the last one, if it waits for something; None if it has ended."""
        return None if self._last is None or self._is_outside else _open_turn(self._store, self._last)

    @cached_property
    def asking(self) -> frozenset[Key]:
        """The messages that are part of the question: what was said or thought in the turn that asks, but for its calls.

        If the context was compacted during the turn, what was said before is none of it.
        """
        if self._last is None or self.open_turn is None:
            return frozenset()
        found = {key for key in _said_in(self._store, self._last) if key[1] >= self._first_seen}
        for elder in ancestors(self._store, self.session):
            if elder.relation == "subagent_of" and elder.session and elder.session.n_turns:
                found |= self._asking_in(elder.session)
        return frozenset(found)

    def _asking_in(self, elder: Session) -> set[Key]:
        """Return the same of a session that waits for this one, with its open calls."""
        turn = self._store.turns(elder.id, elder.n_turns - 1)[-1]
        if _open_turn(self._store, turn) is None:
            return set()
        calls = self._store.calls(elder.id, turn.idx)
        return _said_in(self._store, turn) | {(elder.id, call.seq) for call in calls if call.status == "open"}

    def _first_seq_in_view(self, turns_in_view: int | None) -> int:
        if turns_in_view is not None:
            first = self.session.n_turns - turns_in_view
            if turns_in_view == 0:
                return self.session.n_messages
            found = self._store.turns(self.session.id, first, first) if first > 0 else []
            return found[0].first_seq if found else 0
        compacted = [turn for turn in self._store.turns(self.session.id) if turn.compacted]
        return self._last_boundary(compacted[-1]) if compacted else 0

    def _last_boundary(self, turn: Turn) -> int:
        """Return the message where the context begins: the mark of the last compaction in a turn."""
        rows = self._store.messages(self.session.id, turn.first_seq, turn.last_seq)
        return max((row.seq for row in rows if row.kind == "compaction"), default=turn.first_seq)

    def _inherited_in_view(self) -> frozenset[int]:
        """Return the fingerprints of the messages in view that belong to another session."""
        if not self.session.n_inherited:
            return frozenset()
        rows = self._store.messages(self.session.id, self._first_seen)
        return frozenset(row.fingerprint for row in rows if row.inherited and row.fingerprint is not None)


def _open_turn(store: Store, turn: Turn) -> int | None:
    """Return the number of a last turn that waits for something; None if it has ended."""
    last = next(store.messages(turn.session, turn.last_seq, turn.last_seq), None)
    calls = store.calls(turn.session, turn.idx)
    is_open = last is None or last.origin != "model" or any(call.status == "open" for call in calls)
    return turn.idx if is_open else None


def _said_in(store: Store, turn: Turn) -> set[Key]:
    """Return the messages of a turn that hold no call, no result and nothing that the client inserted."""
    called = {seq for call in store.calls(turn.session, turn.idx) for seq in (call.seq, call.result_seq)}
    rows = store.messages(turn.session, turn.first_seq, turn.last_seq)
    said = [row for row in rows if row.origin != "injected" and row.kind not in ("summary", "compaction")]
    return {(turn.session, row.seq) for row in said if row.seq not in called}


def is_same_project(own: str, other: str) -> bool:
    """Whether two folders are the same, or one is in the other and that is a project."""
    if not own or not other:
        return False
    if own == other:
        return True
    outer, inner = sorted((own, other), key=len)
    return inner.startswith(f"{outer}/") and _NO_PROJECT.fullmatch(outer) is None


def _path(workspace: str) -> str:
    return workspace.replace("\\", "/").rstrip("/")


def _origin_ids(store: Store, session: Session) -> frozenset[int]:
    """Return the session and those it was made from: messages it inherited are indexed there."""
    found: dict[int, None] = {}
    elder: Session | None = session
    while elder is not None and elder.id not in found and len(found) < _MAX_ORIGINS:
        found[elder.id] = None
        descent = origin_of(store, elder) if elder.n_inherited else None
        elder = find_session_by_id(store, descent.agent, descent.native_id) if descent is not None else None
    return frozenset(found)
