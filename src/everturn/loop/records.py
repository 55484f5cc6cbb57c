"""The records of a journal, as they are written: one JSON object per line, told apart by `type`, numbered by `n`.

`of` is the number of the response a record is about: providers repeat call ids, numbers never do. Whatever a provider
sent is in `Reply` verbatim. `record_line` and `parse_record` are each other's inverse, also for text that is not quite Unicode.
A record of a type this version does not know is an error here, never skipped: going on without it could repeat a call.
The archive reads the same lines through `everturn.sources`.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from everturn.errors import EverturnError
from everturn.llm.protocol import ChatPart, Reply, ToolSpec

#: Raised when an older everturn could go wrong on what a newer one writes.
FORMAT = 1

#: What became of a call. `settled`: found out, or said by a human, after the process had died.
OUTCOMES = (
    "ok", "error", "timeout", "interrupted", "in_doubt", "not_started", "denied", "settled", "compensated", "unknown_tool",
    "invalid",
)  # fmt: skip
VERDICTS = ("approve", "deny", "settle")

#: Kind of a state that is words put into the conversation by a program: `injected/PLACE/NUMBER`, behind so many messages.
INJECTED = "injected/"


class SessionRecord(Struct, tag_field="type", tag="session", kw_only=True, omit_defaults=True):
    """The first record: what is being written, and about what."""

    n: int = 0
    at: int = 0
    journal: int = 0  # the format; written, and so not the default
    id: str = ""
    workspace: str = ""
    model: str = ""
    client: str = ""
    title: str = ""
    parent: str = ""  # the session it goes on from
    relation: str = ""
    also: tuple[str, ...] = ()  # further sessions it goes on from, told to it together with the parent
    token: int = 0
    holder: str = ""

    def __post_init__(self) -> None:
        if self.journal > FORMAT:
            raise ValueError(f"a journal of format {self.journal}")


class LeaseRecord(Struct, tag_field="type", tag="lease", kw_only=True, omit_defaults=True):
    """Another process has taken the session up."""

    n: int = 0
    at: int = 0
    token: int = 0
    holder: str = ""


class SetupRecord(Struct, tag_field="type", tag="setup", kw_only=True, omit_defaults=True):
    """The system prompt and the tools that hold from here on."""

    n: int = 0
    at: int = 0
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()


class UserRecord(Struct, tag_field="type", tag="user", kw_only=True, omit_defaults=True):
    """What the human said."""

    n: int = 0
    at: int = 0
    parts: tuple[ChatPart, ...] = ()
    id: str = ""  # of a copy: session/number of the original


class Prefix(Struct, frozen=True):
    """Hashes of what was sent; small, whatever the length of the history."""

    system: str
    tools: str
    messages: str  # of all of them, one after the other
    words: str  # the same without thoughts
    count: int
    start: str = ""  # of the newest compaction in it


class RequestRecord(Struct, frozen=True, omit_defaults=True):
    """The request that a response answers: small, whatever was in it."""

    prefix: Prefix
    wire: str = ""  # the format it is the prefix in; none: the neutral one
    changed: tuple[str, ...] = ()  # what was not as it had been before the last response: see `llm.prefix.changed`


class ResponseRecord(Struct, tag_field="type", tag="response", kw_only=True, omit_defaults=True):
    """What the model answered, verbatim."""

    n: int = 0
    at: int = 0
    reply: Reply
    id: str = ""
    sent: RequestRecord | None = None
    foreign: bool = False  # told by a program with a loop of its own, which writes no intents down


class PartialRecord(Struct, tag_field="type", tag="partial", kw_only=True, omit_defaults=True):
    """The beginning of an answer that broke off. No part of the history."""

    n: int = 0
    at: int = 0
    text: str = ""
    why: str = ""


class IntendedCall(Struct, omit_defaults=True):
    """One call that is about to run."""

    call_id: str
    name: str = ""
    attempt: int = 1
    purpose: str = "run"  # run | compensate


class IntentRecord(Struct, tag_field="type", tag="intent", kw_only=True, omit_defaults=True):
    """These calls are about to run: from here on they may have had their effect."""

    n: int = 0
    at: int = 0
    of: int = 0
    calls: tuple[IntendedCall, ...] = ()


class ResultRecord(Struct, tag_field="type", tag="result", kw_only=True, omit_defaults=True):
    """What the model is told about one call. There is one for each call, and never a second."""

    n: int = 0
    at: int = 0
    of: int = 0
    call_id: str = ""
    name: str = ""
    text: str = ""
    is_error: bool = False
    outcome: str = "ok"
    ms: int | None = None
    id: str = ""


class PauseRecord(Struct, tag_field="type", tag="pause", kw_only=True, omit_defaults=True):
    """These calls wait for a human."""

    n: int = 0
    at: int = 0
    of: int = 0
    why: str = ""  # approval | in_doubt
    calls: tuple[str, ...] = ()


class DecisionRecord(Struct, tag_field="type", tag="decision", kw_only=True, omit_defaults=True):
    """What a human said about a call that waits."""

    n: int = 0
    at: int = 0
    of: int = 0
    call_id: str = ""
    verdict: str = ""
    text: str = ""
    by: str = ""


class InterruptRecord(Struct, tag_field="type", tag="interrupt", kw_only=True, omit_defaults=True):
    """The human stopped it here."""

    n: int = 0
    at: int = 0
    text: str = ""


class NoteRecord(Struct, tag_field="type", tag="note", kw_only=True, omit_defaults=True):
    """Something to be kept beside the conversation. Of kind `title`, the name of the session."""

    n: int = 0
    at: int = 0
    kind: str = ""
    text: str = ""
    data: Any = None


class StateRecord(Struct, tag_field="type", tag="state", kw_only=True, omit_defaults=True):
    """The state of a program that runs on the journal; the last of a kind is the one that holds."""

    n: int = 0
    at: int = 0
    kind: str = ""
    data: Any = None


Record: TypeAlias = (
    SessionRecord
    | LeaseRecord
    | SetupRecord
    | UserRecord
    | ResponseRecord
    | PartialRecord
    | IntentRecord
    | ResultRecord
    | PauseRecord
    | DecisionRecord
    | InterruptRecord
    | NoteRecord
    | StateRecord
)

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def record_line(record: Record) -> bytes:
    """The record with its line end."""
    try:
        return _encode(record) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair: kept as the escape it came as
        return json.dumps(msgspec.to_builtins(record), separators=(",", ":")).encode() + b"\n"


def parse_record(raw: bytes, session: str) -> Record:
    """The record of a line. Raises EverturnError for one that this version does not understand."""
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        found: Record = msgspec.convert(json.loads(raw), Record)
    except (ValueError, RecursionError) as failure:
        raise EverturnError(
            f"session {session} has a record that this version cannot read ({type(failure).__name__}); "
            "it is kept as it is: go on with the everturn that wrote it, or a newer one"
        ) from failure
    return found
