"""The records of a journal: one JSON object per line, distinguished by `type`, numbered by `n`.

`of` is the number of the response that a record refers to: providers repeat call ids, numbers are unique. `ResponseRecord`
keeps the reply of a provider verbatim. `record_line` and `parse_record` are inverse, lone surrogates included. A record of
an unknown type is an error, never skipped: continuing without it could repeat a call. The archive reads the same lines
through `everturn.sources`.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from everturn.errors import EverturnError
from everturn.llm.protocol import ChatPart, Reply, ToolSpec

#: Increased when an older everturn could misread a newer journal.
FORMAT = 1

#: Outcomes of a call. `settled`: reconciled, or decided by a human, after the process had died.
OUTCOMES = (
    "ok", "error", "timeout", "interrupted", "in_doubt", "not_started", "denied", "settled", "compensated", "unknown_tool",
    "invalid",
)  # fmt: skip
VERDICTS = ("approve", "deny", "settle")

#: Kind of a state that is text a program put into the conversation: `injected/PLACE/NUMBER`, after so many messages.
INJECTED = "injected/"
#: Reason of an injected text that asks the model for another answer.
ASK_AGAIN = "ask_again"


class JournalRecord(Struct, tag_field="type", kw_only=True, omit_defaults=True):
    """The fields of every record: its number, and its time."""

    n: int = 0
    at: int = 0


class SessionRecord(JournalRecord, tag="session", kw_only=True):
    """The first record: format, session and origin."""

    journal: int = 0  # the format; written, and so not the default
    id: str = ""
    workspace: str = ""
    model: str = ""
    client: str = ""
    title: str = ""
    parent: str = ""  # the session it continues
    relation: str = ""
    also: tuple[str, ...] = ()  # further sessions it continues, besides the parent
    token: int = 0
    holder: str = ""

    def __post_init__(self) -> None:
        if self.journal > FORMAT:
            raise ValueError(f"a journal of format {self.journal}")


class LeaseRecord(JournalRecord, tag="lease", kw_only=True):
    """Another process has taken the session over."""

    token: int = 0
    holder: str = ""


class SetupRecord(JournalRecord, tag="setup", kw_only=True):
    """The system prompt and the tools from here on."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()


class UserRecord(JournalRecord, tag="user", kw_only=True):
    """A message of the human."""

    parts: tuple[ChatPart, ...] = ()
    id: str = ""  # of a copy: session/number of the original


class Prefix(Struct, frozen=True):
    """Hashes of the system prompt, the tools and the messages before an answer."""

    system: str
    tools: str
    messages: str  # of all messages in order
    words: str  # of all messages without thoughts
    count: int
    start: str = ""  # of the newest compaction in it


class RequestRecord(Struct, frozen=True, omit_defaults=True):
    """A digest of the request that a response answers."""

    prefix: Prefix
    wire: str = ""  # the wire format of the prefix; "": the neutral form
    changed: tuple[str, ...] = ()  # parts that differ from the request before: see `RequestDigest.changed_parts`


class ResponseRecord(JournalRecord, tag="response", kw_only=True):
    """A response of the model, verbatim."""

    reply: Reply
    id: str = ""
    sent: RequestRecord | None = None
    foreign: bool = False  # written by a program with its own loop, which records no intents
    given_ids: dict[str, str] = {}  # the provider's id of each call that got one of ours


class PartialRecord(JournalRecord, tag="partial", kw_only=True):
    """The beginning of an answer that broke off. Not part of the history."""

    text: str = ""
    why: str = ""


class IntendedCall(Struct, omit_defaults=True):
    """One call that is about to run."""

    call_id: str
    name: str = ""
    attempt: int = 1
    purpose: str = "run"  # run | compensate


class IntentRecord(JournalRecord, tag="intent", kw_only=True):
    """Calls that are about to run: from here on they may have taken effect."""

    of: int = 0
    calls: tuple[IntendedCall, ...] = ()


class ResultRecord(JournalRecord, tag="result", kw_only=True):
    """The one result of a call, as the model gets it."""

    of: int = 0
    call_id: str = ""
    name: str = ""
    text: str = ""
    is_error: bool = False
    outcome: str = "ok"
    ms: int | None = None
    id: str = ""


class PauseRecord(JournalRecord, tag="pause", kw_only=True):
    """Calls that wait for a human."""

    of: int = 0
    why: str = ""  # approval | in_doubt
    calls: tuple[str, ...] = ()


class DecisionRecord(JournalRecord, tag="decision", kw_only=True):
    """The decision of a human about a waiting call."""

    of: int = 0
    call_id: str = ""
    verdict: str = ""
    text: str = ""
    by: str = ""
    arguments: Any = None  # with approve: those to run it with instead of the model's


class InterruptRecord(JournalRecord, tag="interrupt", kw_only=True):
    """The human stopped the turn here."""

    text: str = ""


class NoteRecord(JournalRecord, tag="note", kw_only=True):
    """A note beside the conversation. Of kind `title`, the name of the session."""

    kind: str = ""
    text: str = ""
    data: Any = None


class StateRecord(JournalRecord, tag="state", kw_only=True):
    """The state of a program that runs on the journal; the last of a kind is valid."""

    kind: str = ""
    data: Any = None


Record: TypeAlias = (
    SessionRecord | LeaseRecord | SetupRecord | UserRecord | ResponseRecord | PartialRecord | IntentRecord | ResultRecord
    | PauseRecord | DecisionRecord | InterruptRecord | NoteRecord | StateRecord
)  # fmt: skip

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def record_line(record: Record) -> bytes:
    try:
        return _encode(record) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate: kept as an escape
        return json.dumps(msgspec.to_builtins(record), separators=(",", ":")).encode() + b"\n"


def parse_record(raw: bytes, session: str) -> Record:
    """Decode a line. Raise EverturnError for a record that this version does not understand."""
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        record: Record = msgspec.convert(json.loads(raw), Record)  # known to msgspec since `_decoder` was made
    except (ValueError, RecursionError) as failure:
        raise EverturnError(
            f"session {session} has a record that this version cannot read ({type(failure).__name__}); "
            "it is kept as it is: go on with the everturn that wrote it, or a newer one"
        ) from failure
    return record
