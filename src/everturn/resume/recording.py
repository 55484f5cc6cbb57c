"""Conversations recorded message by message, as they happen.

`enable_conversation_recording(session)` is all a program does; `evaluate` then records into the session: each message is
there as soon as it was said, each result as soon as it is known, and the call before it runs. Recording a message costs
the same however long the conversation is; the `ConversationState` is put together when somebody asks for it. One state is
held for each evaluation, the newest last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from everturn.errors import UsageError
from everturn.resume.conversation import (
    ConversationMessage,
    ConversationState,
    ConversationTurn,
    JSONValue,
    StartedCall,
)
from everturn.resume.slices import EvaluationSession, Slice


def enable_conversation_recording(session: EvaluationSession) -> None:
    """From now on evaluations in this session are recorded in it. A second time changes nothing."""
    with session.lock:
        if not isinstance(session.slice(ConversationState), ConversationRecording):
            session.install(ConversationRecording())


def settle(session: EvaluationSession, call_id: str, text: str, is_error: bool = False) -> None:
    """Say what became of a call of the last turn that is in doubt, so that it need not run again."""
    enable_conversation_recording(session)
    recording = session.slice(ConversationState)
    assert isinstance(recording, ConversationRecording)
    state = session.query(ConversationState).latest()
    open_calls = state.turns[-1].pending if state is not None and state.turns else ()
    name = next((call.name for call in open_calls if call.call_id == call_id), None)
    if name is None:
        raise UsageError(f"there is no open call {call_id!r} in the last turn")
    with session.lock:
        recording.result(ConversationMessage("tool", text, (), call_id, name, is_error=is_error))


class _GrowingTurn:
    """A turn that may still grow."""

    def __init__(self, begun: ConversationTurn) -> None:
        self._begun = begun
        self.started, self.results = list(begun.started), list(begun.tool_messages)

    def current_turn(self) -> ConversationTurn:
        """As it is now."""
        return replace(self._begun, tool_messages=tuple(self.results), started=tuple(self.started))


class ConversationRecording(Slice[ConversationState]):
    """The slice of conversations: the earlier ones as they are, the last one in pieces."""

    def __init__(self) -> None:
        super().__init__(ConversationState)
        self._head: ConversationState | None = None  # without its turns
        self._turns: list[ConversationTurn] = []  # all but the last
        self._last: _GrowingTurn | None = None
        self._asked: list[ConversationMessage] = []  # not answered yet
        self._built: ConversationState | None = None
        self.register(ConversationState, lambda items, event: None)

    # as a slice -------------------------------------------------------------------------------------------------------
    def items(self) -> tuple[ConversationState, ...]:
        """The conversations; the last one is put together if it has grown."""
        return (*self._items, self._state()) if self._head is not None else tuple(self._items)

    def seed(self, items: Iterable[ConversationState]) -> None:
        """Hold these; the last one is the one that goes on."""
        given = list(items)
        self._items, self._head, self._built = given[:-1], None, None
        if given:
            self._load_state(given[-1])

    def take(self, event: ConversationState) -> None:
        """A state given as a whole replaces the one of its evaluation and is the one that goes on."""
        self.begin(event)

    # as a record ------------------------------------------------------------------------------------------------------
    def begin(self, state: ConversationState) -> None:
        """Go on with this one."""
        self._items = [one for one in self.items() if one.evaluation_id != state.evaluation_id]
        self._load_state(state)

    def user(self, message: ConversationMessage) -> None:
        """The user said this."""
        self._require_begun()
        self._asked.append(message)

    def response(self, message: ConversationMessage, payload: Mapping[str, JSONValue] | None = None) -> None:
        """The model said this; a new turn."""
        head = self._require_begun()
        if self._last is not None:
            self._turns.append(self._last.current_turn())
        self._last = _GrowingTurn(
            ConversationTurn(
                len(self._turns) + 1, message, (), payload, head.evaluation_id, message.created_at, tuple(self._asked)
            )
        )
        self._asked = []

    def started(self, call: StartedCall) -> None:
        """This call is about to run."""
        self._require_begun()
        self._require_turn().started.append(call)

    def result(self, message: ConversationMessage) -> None:
        """This is what a call gave."""
        self._require_begun()
        self._require_turn().results.append(message)

    def _require_turn(self) -> _GrowingTurn:
        if self._last is None:
            raise UsageError("there is no response yet that could have called a tool")
        return self._last

    def _require_begun(self) -> ConversationState:
        if self._head is None:
            raise UsageError("no conversation has begun")
        self._built = None
        return self._head

    def _load_state(self, state: ConversationState) -> None:
        self._head, self._built = replace(state, turns=(), unanswered=()), state
        self._turns, self._asked = list(state.turns[:-1]), list(state.unanswered)
        self._last = _GrowingTurn(state.turns[-1]) if state.turns else None

    def _state(self) -> ConversationState:
        assert self._head is not None
        if self._built is None:
            last = [self._last.current_turn()] if self._last is not None else []
            self._built = replace(self._head, turns=(*self._turns, *last), unanswered=tuple(self._asked))
        return self._built
