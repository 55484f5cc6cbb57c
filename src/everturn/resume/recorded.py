"""The journal of the loop, kept in a recording instead of an archive.

The durable loop writes what it does into a `Journal`. Here the same records become messages of a `ConversationState`, so
that `evaluate` has the same loop, the same policies for calls in doubt and the same truth for the model, and whoever
holds the session decides where its snapshots go. `saved` is called after every write, before anything is acted upon.
A turn is closed by the next one: what is said about calls that were left open in it is not recorded, only told again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from everturn.clock import Clock
from everturn.llm import Reply
from everturn.resume import records
from everturn.resume.conversation import (
    ConversationMessage,
    ConversationState,
    ConversationTurn,
    StartedCall,
    aware_time,
    model_message,
    response_message,
    user_message,
)
from everturn.resume.journal import LAST, Journal
from everturn.resume.leases import TTL_MS
from everturn.resume.past import JournalState
from everturn.resume.recording import ConversationRecording
from everturn.resume.records import IntendedCall, Record, RequestRecord
from everturn.resume.tools import Tool

_SENT_KEY = "sent"


class RecordedJournal(Journal):
    """A journal in memory. Its responses are numbered as turns are, so that a call keeps its idempotency key for ever."""

    def __init__(  # it has no archive, and so nothing of what the other one sets up
        self,
        recording: ConversationRecording,
        state: ConversationState,
        tools: Sequence[Tool],
        clock: Clock,
        saved: Callable[[], None],
    ) -> None:
        self.session, self.clock, self.ttl = state.evaluation_id, clock, TTL_MS
        self.alone = threading.RLock()
        self.past = JournalState(state.evaluation_id, system=state.system_message.content)
        self.past.tools = tuple(tool.shown for tool in tools)
        self._recording, self._saved = recording, saved
        for record in _state_records(state):
            self._take(record)

    def write(self, *many: Record) -> None:
        """Record them, then say so."""
        with self.alone:
            staged: set[tuple[int, str]] = set()
            for record in many:
                self._number(record)
                self.past.check(record, staged)
                self._record(record)
                self._take(record)
            self._saved()

    def renew(self) -> None:
        """Nobody else can have it."""

    def close(self) -> None:
        """There is nothing to give up."""

    def _number(self, record: Record) -> None:
        record.at = record.at or self.clock()
        if isinstance(record, records.ResponseRecord):
            record.n = self.past.requests
        elif isinstance(
            record, records.IntentRecord | records.PauseRecord | records.ResultRecord | records.DecisionRecord
        ):
            record.of = self.past.response if record.of == LAST else record.of

    def _take(self, record: Record) -> None:
        self.past.take(record)
        self.past.count = self.past.requests

    def _record(self, record: Record) -> None:
        when, recording = aware_time(record.at), self._recording
        if isinstance(record, records.UserRecord):
            recording.user(user_message(record.parts, when))
        elif isinstance(record, records.ResponseRecord):
            message, payload = response_message(record.reply, when)
            recording.response(message, {**payload, **_sent_payload(record)})
        elif isinstance(record, records.IntentRecord):
            for call in record.calls:
                recording.started(StartedCall(call.call_id, call.attempt, call.purpose))
        elif isinstance(record, records.ResultRecord) and record.of == self.past.response:
            name = self.past.calls[record.call_id].part.name
            recording.result(
                ConversationMessage(
                    "tool", record.text, (), record.call_id, name, created_at=when, is_error=record.is_error
                )
            )


def _state_records(state: ConversationState) -> Iterator[Record]:
    """What a journal of this conversation would hold."""
    for number, turn in enumerate(state.turns):
        for message in turn.user_messages:
            yield records.UserRecord(parts=model_message(message).parts)
        yield records.ResponseRecord(
            n=number, reply=Reply(model_message(turn.assistant_message)), sent=_read_sent(turn)
        )
        yield from _call_records(number, turn)
    for message in state.unanswered:
        yield records.UserRecord(parts=model_message(message).parts)


def _sent_payload(record: records.ResponseRecord) -> dict[str, Any]:
    return {_SENT_KEY: msgspec.to_builtins(record.sent)} if record.sent is not None else {}


def _read_sent(turn: ConversationTurn) -> RequestRecord | None:
    """What the response answers. A state from elsewhere may say anything there."""
    try:
        found: RequestRecord | None = msgspec.convert(
            (turn.provider_payload or {}).get(_SENT_KEY), RequestRecord | None
        )
        return found
    except msgspec.ValidationError:
        return None


def _call_records(number: int, turn: ConversationTurn) -> Iterator[Record]:
    names = {call.call_id: call.name for call in turn.assistant_message.tool_calls}
    for call in turn.started:
        intended = IntendedCall(call.call_id, names.get(call.call_id, ""), call.attempt, call.purpose)
        yield records.IntentRecord(of=number, calls=(intended,))
    for message in turn.tool_messages:
        yield records.ResultRecord(
            of=number, call_id=message.tool_call_id or "", name=message.name or "", text=message.content,
            is_error=message.is_error,
        )  # fmt: skip
