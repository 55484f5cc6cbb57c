"""The result of reading a source: messages with their blocks, calls and results, facts about sessions, problems.

All structs are frozen. Byte ranges count from the start of the stored bytes of one source version: together with that
version they are the evidence for everything derived from the message.
"""

from __future__ import annotations

import threading
from hashlib import blake2b
from typing import Any, TypeVar

from msgspec import Struct, msgpack

_T = TypeVar("_T")
_prepared: set[Any] = set()
_preparing = threading.Lock()
_EMPTY_HASH = blake2b(digest_size=8)


def prepared(kind: type[_T]) -> type[_T]:
    """Return a type to decode to, once msgspec knows its fields.

    msgspec reads the fields of a struct when it first decodes to it, and publishes them before they are complete: a second
    thread that decodes to the same struct meanwhile ends the process (msgspec 0.22). So one thread at a time does that.
    """
    if kind not in _prepared:
        with _preparing:
            msgpack.Decoder(kind)
            _prepared.add(kind)
    return kind


class CallStart(Struct, frozen=True, gc=False):
    """A tool call as the model wrote it."""

    call_id: str
    name: str
    kind: str = "other"
    path: str = ""  # the file it is about, as given
    command: str = ""  # the shell command, as given
    input: Any = None  # verbatim arguments
    prompt: str = ""  # what a task call asks of a subagent
    asked_in: str = ""  # native id of the message that makes the call, where its result names it


class CallEnd(Struct, frozen=True, gc=False):
    """The result of a tool call."""

    call_id: str
    is_error: bool = False
    error_class: str = ""
    exit_status: int | None = None
    duration_ms: int | None = None  # when the client reported it
    action: str = ""  # created | edited | deleted when the result itself says so
    path: str = ""  # normalised path the result names
    child: str = ""  # native id of the subagent session it started
    others: tuple[tuple[str, str], ...] = ()  # (action, path) of further files, when one call touched several
    reported_tokens: int = 0  # what the subagent it started used, as the result says
    reported_calls: int = 0
    asked_in: str = ""  # native id of the message that made the call, where the result says so


class Block(Struct, frozen=True, gc=False):
    """One content block. `text` is what is shown and indexed under `field`; `data` is the block as found."""

    kind: str  # text thinking call result image document unknown
    text: str = ""
    field: str = ""
    call: CallStart | None = None
    result: CallEnd | None = None
    data: Any = None


class TokenUsage(Struct, frozen=True, gc=False):
    """Tokens of one model response, as reported by the provider."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0  # of the cache writes: those with a lifetime of one hour


class Message(Struct, frozen=True, gc=False):
    """The smallest verbatim unit of a conversation."""

    role: str
    origin: str
    kind: str = "text"
    at: int | None = None  # milliseconds, UTC
    precision: str = ""
    native_id: str = ""
    provider_id: str = ""  # id of the model response: the same for every part of one response
    model: str = ""
    blocks: tuple[Block, ...] = ()
    usage: TokenUsage | None = None
    starts_turn: bool = False
    start: int = 0
    size: int = 0
    fidelity: str = "exact"
    fingerprint: int | None = None  # see fingerprint(); None when the source gives no id
    reported_ms: int | None = None  # a turn duration the client reported here
    tokens: int = 0  # of this message, where its source counts each one
    speaker: str = ""  # the name of the agent that said it, where its source records that
    takes_back: int | str = 0  # the human took back so many turns, or all from the message with this native id on
    takes_back_at: int | None = (
        None  # the same by the place of the first message that was taken back: the offset of its record
    )


class Link(Struct, frozen=True):
    """A statement about another session, made from this one."""

    relation: str
    native_id: str = ""
    call_id: str = ""
    hint: int = 0  # fingerprint of a prompt, to join what has no id


class SessionFacts(Struct, frozen=True):
    """Facts about a session. Empty values are ignored; the last non-empty one wins."""

    kind: str = ""
    parent: str = ""
    workspace: str = ""
    branch: str = ""
    client: str = ""
    title: str = ""
    title_rank: int = 0  # a title given by the human outranks one written by a model
    summary: str = ""
    team: str = ""
    agent_name: str = ""
    slug: str = ""  # a short name that the agent made up for the session


class SessionPart(Struct, frozen=True):
    """Additions to one session."""

    native_id: str
    facts: SessionFacts
    messages: list[Message]
    links: list[Link] = []


class Problem(Struct, frozen=True):
    """Something that could not be read. The bytes are kept; `reason` never quotes them."""

    kind: str  # torn_tail invalid_json nul_block not_an_object too_long …
    reason: str
    start: int
    size: int
    provisional: bool = False  # a torn tail: read again when the file grows


class Census(Struct, frozen=True):
    """How many records of a type there were and what became of them."""

    type: str
    client: str
    disposition: str
    n: int


class ProgramReply(Struct, frozen=True):
    """The output of an agent's program that was run as a model."""

    text: str = ""
    model: str = ""
    input: int = 0  # tokens; 0 where the program does not report them
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    failure: str = ""  # the program's own error message


class ReadResult(Struct, frozen=True):
    """The result of reading bytes. After `consumed` bytes, the rest must be passed again with more."""

    consumed: int
    parts: list[SessionPart]
    problems: list[Problem]
    census: list[Census]
    lines: int = 0
    glued: int = 0  # records beyond the first on one line


def fingerprint(native_id: str, at_text: str) -> int:
    """Return a 63-bit number that is equal for copies of one message in forked files and differs otherwise.

    Vendor ids alone repeat and collide, so the original text of the time is part of it.
    """
    made = _EMPTY_HASH.copy()  # a new one would take twice the time
    made.update(f"{native_id}\0{at_text}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(made.digest(), "big") >> 1
