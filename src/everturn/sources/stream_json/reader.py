"""Reads a capture line by line: which session each record belongs to, and what records say together.

One record → one message, without knowing the records around it: used by the reader and by `view` alike.

    {"type":"system","subtype":"init","cwd","session_id","model","tools",…}
    {"type":"user"|"assistant","message":{…},"parent_tool_use_id":null|ID,"session_id","uuid"}
    {"type":"result","subtype","duration_ms","result","is_error","session_id",…}
    {"type":"stream_event","event":{…}}     parts of what comes whole in a record of its own

Records with `ts` and `event` are what a server of tools noted of the same client: they tell who called, not what was said.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.blocks import blocks_of, has_results, texts_in, usage_of
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    mapping,
    records,
    single_record,
)
from everturn.sources.toolkit.values import count, digest, milliseconds, plain, state_of, strings, word

#: Records about the run, not of the conversation.
KNOWN = frozenset(
    "stream_event tool_progress keep_alive control_request control_response control_cancel_request rate_limit_event "
    "auth_status prompt_suggestion tool_use_summary".split()
)
_SPOKEN = ("user", "assistant")
_ENVELOPE = ("type", "subtype", "uuid", "session_id", "parent_tool_use_id", "tools", "apiKeySource")


class StreamSpeaker(NamedTuple):
    """What a record of a user really is."""

    origin: str
    kind: str
    starts_turn: bool
    field: str


PROMPT = StreamSpeaker("human", "text", True, "prompt")
_CONTEXT = StreamSpeaker("injected", "context", False, "meta")
_BEGINNINGS = (
    ("<command-name>", StreamSpeaker("human", "command", True, "prompt")),
    ("<command-message>", StreamSpeaker("human", "command", True, "prompt")),
    ("<local-command-stdout>", StreamSpeaker("system", "output", False, "tool_output")),
    ("<local-command-caveat>", _CONTEXT),
    ("<system-reminder>", _CONTEXT),
    ("[Request interrupted by user", StreamSpeaker("system", "interrupt", False, "meta")),
    ("<task-notification>", StreamSpeaker("agent", "notification", False, "meta")),
    ("This session is being continued from a previous", StreamSpeaker("injected", "summary", False, "summary")),
)


def view(record: bytes) -> Message | None:
    """The message of a record, judged by itself; None when it holds none."""
    found = single_record(record)
    return build(found) if found is not None else None


def build(record: Rec) -> Message | None:
    """The message of a record; None when it is known to hold none."""
    kind = word(record.get("type"))
    if kind in KNOWN:
        return None
    if kind in _SPOKEN and isinstance(record.get("message"), dict):
        return _answer(record) if kind == "assistant" else _user_message(record)
    if kind == "result":
        return _result(record)
    if kind == "system":
        return _system(record)
    if is_note(record):
        return _note(record)
    return _message(record, "system", "system", "unknown", _words("unknown", record))


def is_note(record: Rec) -> bool:
    """A record of a server that the client called."""
    return isinstance(record.get("event"), str) and isinstance(record.get("ts"), str) and "type" not in record


def session_in(head: bytes) -> str | None:
    """The session of a capture that begins like this; "" when it names none, None when it is no capture."""
    found = [record for record in records(head) if _is_ours(record)]
    if not found:
        notes = [record for record in records(head) if is_note(record)]
        named = (mapping(record.get("clientVersion")).get("name") for record in notes)
        return "" if "claude-code" in named else None
    return word(found[0].get("session_id"))


def folder_in(head: bytes) -> str:
    """The working folder that a capture names first."""
    return next((word(record["cwd"]) for record in records(head) if isinstance(record.get("cwd"), str)), "")


def _is_ours(record: Rec) -> bool:
    """The session has another name in transcripts, which have the same types."""
    if not isinstance(record.get("session_id"), str) or "sessionId" in record or "timestamp_ms" in record:
        return False
    kind = word(record.get("type"))
    if kind in _SPOKEN:
        return isinstance(record.get("message"), dict) and "parent_tool_use_id" in record
    if kind == "system":
        return isinstance(record.get("subtype"), str) and ("cwd" in record or "uuid" in record)
    return kind == "result" and isinstance(record.get("subtype"), str) and "duration_ms" in record


# what each type becomes ---------------------------------------------------------------------------------------------
def _answer(record: Rec) -> Message:
    message = mapping(record["message"])
    blocks = tuple(blocks_of(message.get("content"), "answer"))
    if message.get("model") == "<synthetic>" or record.get("error"):
        return _message(record, "assistant", "system", "notice", blocks)
    return _message(record, "assistant", "model", "text", blocks)


def _user_message(record: Rec) -> Message:
    content = mapping(record["message"]).get("content")
    if has_results(content):
        return _message(record, "tool", "tool", "result", tuple(blocks_of(content, "meta")))
    texts = texts_in(content)
    found = next((one for begin, one in _BEGINNINGS if texts and texts[0].startswith(begin)), PROMPT)
    if record.get("isSynthetic") is True and found is PROMPT:
        found = _CONTEXT
    if record.get("parent_tool_use_id") and found.origin == "human":
        found = found._replace(origin="agent")
    blocks = tuple(blocks_of(content, found.field))
    return _message(record, "user", found.origin, found.kind, blocks, found.starts_turn and bool(blocks))


def _result(record: Rec) -> Message:
    """How a run ended. What it printed last was mostly said before: then it is shown, but not found twice."""
    text = "\n".join(filter(None, [word(record.get("result")), *strings(record.get("errors"))]))
    field = "meta" if record.get("is_error") else "answer"
    blocks = (Block("text", text, field),) if text else ()
    return _message(record, "system", "system", "notice", blocks, took=count(record.get("duration_ms")))


def _system(record: Rec) -> Message:
    subtype = record.get("subtype")
    if subtype == "compact_boundary":
        return _message(record, "system", "system", "compaction", _words("text", record))
    return _message(record, "system", "system", "notice", _words("text", record))


def _note(record: Rec) -> Message:
    at, precision = milliseconds(record.get("ts"))
    blocks = _words("text", {key: value for key, value in record.items() if key not in ("ts", "runtime")})
    return Message("system", "system", "notice", at, precision, blocks=blocks)


def _words(kind: str, record: Rec) -> tuple[Block, ...]:
    text = "\n".join(strings(record, *_ENVELOPE))
    return (Block(kind, text, "meta"),) if text else ()


def _message(
    record: Rec, role: str, origin: str, kind: str, blocks: tuple[Block, ...], starts_turn: bool = False,
    took: int | None = None,
) -> Message:  # fmt: skip
    message: dict[str, Any] = mapping(record.get("message")) if origin == "model" else {}
    uuid = word(record.get("uuid"))
    at, precision = milliseconds(record.get("timestamp"))
    return Message(
        role, origin, kind, at, precision, uuid, word(message.get("id")), word(message.get("model")), blocks,
        usage_of(message.get("usage")), starts_turn, fingerprint=fingerprint(uuid, "") if uuid else None, reported_ms=took,
    )  # fmt: skip


_MOST_LINKED = 1000


class StreamReaderState(Struct):
    """What a later reader needs to go on."""

    session: str = ""
    client: str = ""
    said: str = ""  # what the model said last, in short
    index: int = 0
    linked: list[str] = []  # calls whose subagents are known
    open_line: bool = False


class StreamReader(LineReader[StreamReaderState]):
    """One capture: mostly one session, its subagents in between."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, StreamReaderState))
        self._state.session = self._state.session or found.native_id or found.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        state = self._state
        state.session = word(record.get("session_id")) or state.session
        kind = word(record.get("type"))
        talk = self._talk(record)
        self._learn(talk, record, kind)
        message = build(record)
        if message is None:
            return plain(kind), "known", state.client
        message = self._placed(message, talk, kind)
        add(self._gathering, talk, replace(message, start=place.start, size=place.size))
        state.index += 1
        disposition = "unknown" if message.kind == "unknown" else "message"
        counted = plain(f"event/{record['event']}") if is_note(record) else plain(kind)
        return counted, disposition, state.client

    def _talk(self, record: Rec) -> SessionTally:
        """The session of a record: that of the call whose subagent it is of, or the main one."""
        state, call = self._state, word(record.get("parent_tool_use_id"))
        if not call or word(record.get("type")) in KNOWN:
            return self._gathering.session(state.session)
        name = f"{state.session}/{call}"
        talk = self._gathering.session(name, "subagent", state.session)
        if name not in state.linked:
            state.linked = [*state.linked[-_MOST_LINKED:], name]
            talk.links.append(Link("subagent_of", state.session))
            self._gathering.session(state.session).links.append(Link("spawned", name, call))
        return talk

    def _learn(self, talk: SessionTally, record: Rec, kind: str) -> None:
        state = self._state
        if kind == "system" and record.get("subtype") == "init":
            version = word(record.get("claude_code_version"))
            state.client = plain(version) if version else state.client
            talk.learn(workspace=word(record.get("cwd")), client=state.client)
        elif is_note(record) and isinstance(record.get("clientVersion"), dict):
            version = word(record["clientVersion"].get("version"))
            state.client = plain(version) if version else state.client
            talk.learn(client=state.client)

    def _placed(self, message: Message, talk: SessionTally, kind: str) -> Message:
        """The message with what only its place tells: its number, and whether its words were said before."""
        words = digest(*(block.text for block in message.blocks))
        if message.origin == "model" and any(block.field == "answer" for block in message.blocks):
            self._state.said = words
        elif kind == "result" and words == self._state.said:
            message = replace(message, blocks=tuple(replace(block, field="") for block in message.blocks))
        if message.fingerprint is None:
            prints = fingerprint(f"{talk.native_id}/{self._state.index}", f"{message.role}{words}")
            message = replace(message, fingerprint=prints)
        return message
