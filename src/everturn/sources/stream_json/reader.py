"""Recognise captures of stream-json output and read them record by record.

    {"type":"system","subtype":"init","cwd","session_id","model","tools",…}
    {"type":"user"|"assistant","message":{…},"parent_tool_use_id":null|ID,"session_id","uuid"}
    {"type":"result","subtype","duration_ms","result","is_error","session_id",…}
    {"type":"stream_event","event":{…}}     a part of a message that follows whole in its own record

Records with `ts` and `event` are log records of a tool server that the same client called: they name the client, and hold no
messages. `view` converts one record into a message, independently of the others; `StreamReader` adds the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import sniff_files
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
from everturn.sources.toolkit.values import (
    MessageSpeaker,
    blocks_of,
    count,
    digest,
    has_results,
    milliseconds,
    plain,
    strings,
    text_blocks,
    texts_in,
    usage_of,
    word,
)

_TYPES = re.compile(rb'"type"\s*:\s*"(system|assistant|user|result|stream_event)"')
_SESSION = re.compile(rb'"session_id"\s*:\s*"([\w-]{1,100})"')

#: Records about the run that hold no messages.
_SILENT = frozenset(
    "stream_event tool_progress keep_alive control_request control_response control_cancel_request rate_limit_event "
    "auth_status prompt_suggestion tool_use_summary".split()
)
_SPOKEN = ("user", "assistant")
_ENVELOPE = ("type", "subtype", "uuid", "session_id", "parent_tool_use_id", "tools", "apiKeySource")


_PROMPT = MessageSpeaker("human", "text", True, "prompt")
_CONTEXT = MessageSpeaker("injected", "context", False, "meta")
_BEGINNINGS = (
    ("<command-name>", MessageSpeaker("human", "command", True, "prompt")),
    ("<command-message>", MessageSpeaker("human", "command", True, "prompt")),
    ("<local-command-stdout>", MessageSpeaker("system", "output", False, "tool_output")),
    ("<local-command-caveat>", _CONTEXT),
    ("<system-reminder>", _CONTEXT),
    ("[Request interrupted by user", MessageSpeaker("system", "interrupt", False, "meta")),
    ("<task-notification>", MessageSpeaker("agent", "notification", False, "meta")),
    ("This session is being continued from a previous", MessageSpeaker("injected", "summary", False, "summary")),
)


def find(root: Path) -> Iterator[SourceCandidate]:
    return sniff_files(root, sniff, ".jsonl", ".ndjson", ".json", ".log")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    if not (_TYPES.search(head) and _SESSION.search(head)) and b'"clientVersion"' not in head:
        return None
    session = _find_session(head)
    return SourceCandidate(path, "main", session or path.stem) if session is not None else None


def workspace(head: bytes) -> str:
    return next((word(record["cwd"]) for record in records(head) if isinstance(record.get("cwd"), str)), "")


def view(record: bytes) -> Message | None:
    return _build(value) if (value := single_record(record)) is not None else None


def _find_session(head: bytes) -> str | None:
    """Return the session of a capture that begins like this; "" when it names none, None when it is no capture."""
    first = next((record for record in records(head) if _is_capture_record(record)), None)
    if first is None:
        logs = [record for record in records(head) if _is_server_log(record)]
        clients = (mapping(record.get("clientVersion")).get("name") for record in logs)
        return "" if "claude-code" in clients else None
    return word(first.get("session_id"))


def _is_capture_record(record: Rec) -> bool:
    """Return whether a record is of a capture: transcripts have the same types, but name the session `sessionId`."""
    if not isinstance(record.get("session_id"), str) or "sessionId" in record or "timestamp_ms" in record:
        return False
    kind = word(record.get("type"))
    if kind in _SPOKEN:
        return isinstance(record.get("message"), dict) and "parent_tool_use_id" in record
    if kind == "system":
        return isinstance(record.get("subtype"), str) and ("cwd" in record or "uuid" in record)
    return kind == "result" and isinstance(record.get("subtype"), str) and "duration_ms" in record


def _is_server_log(record: Rec) -> bool:
    return isinstance(record.get("event"), str) and isinstance(record.get("ts"), str) and "type" not in record


# --- messages ---
def _build(record: Rec) -> Message | None:
    kind = word(record.get("type"))
    if kind in _SILENT:
        return None
    if kind in _SPOKEN and isinstance(record.get("message"), dict):
        return _answer_message(record) if kind == "assistant" else _user_message(record)
    if kind == "result":
        return _result_message(record)
    if kind == "system":
        kind = "compaction" if record.get("subtype") == "compact_boundary" else "notice"
        return _message(record, "system", "system", kind, _meta_blocks("text", record))
    if _is_server_log(record):
        return _log_message(record)
    return _message(record, "system", "system", "unknown", _meta_blocks("unknown", record))


def _answer_message(record: Rec) -> Message:
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
    speaker = next((one for begin, one in _BEGINNINGS if texts and texts[0].startswith(begin)), _PROMPT)
    if record.get("isSynthetic") is True and speaker is _PROMPT:
        speaker = _CONTEXT
    if record.get("parent_tool_use_id") and speaker.origin == "human":
        speaker = speaker._replace(origin="agent")
    blocks = tuple(blocks_of(content, speaker.field))
    return _message(record, "user", speaker.origin, speaker.kind, blocks, speaker.starts_turn and bool(blocks))


def _result_message(record: Rec) -> Message:
    """Return how a run ended. Its text mostly repeats the last answer: the reader then takes it out of the index."""
    text = "\n".join(filter(None, [word(record.get("result")), *strings(record.get("errors"))]))
    blocks = text_blocks(text, "meta" if record.get("is_error") else "answer")
    return _message(record, "system", "system", "notice", blocks, reported_ms=count(record.get("duration_ms")))


def _log_message(record: Rec) -> Message:
    at, precision = milliseconds(record.get("ts"))
    blocks = _meta_blocks("text", {key: value for key, value in record.items() if key not in ("ts", "runtime")})
    return Message("system", "system", "notice", at, precision, blocks=blocks)


def _meta_blocks(kind: str, record: Rec) -> tuple[Block, ...]:
    return text_blocks("\n".join(strings(record, *_ENVELOPE)), "meta", kind)


def _message(
    record: Rec, role: str, origin: str, kind: str, blocks: tuple[Block, ...], starts_turn: bool = False,
    reported_ms: int | None = None,
) -> Message:  # fmt: skip
    message: dict[str, Any] = mapping(record.get("message")) if origin == "model" else {}
    uuid = word(record.get("uuid"))
    at, precision = milliseconds(record.get("timestamp"))
    return Message(
        role, origin, kind, at, precision, uuid, word(message.get("id")), word(message.get("model")), blocks,
        usage_of(message.get("usage")), starts_turn, fingerprint=fingerprint(uuid, "") if uuid else None,
        reported_ms=reported_ms,
    )  # fmt: skip


_MOST_LINKED = 1000


class StreamReaderState(Struct):
    session: str = ""
    client: str = ""
    said: str = ""  # digest of the last answer
    index: int = 0
    linked: list[str] = []  # subagent sessions that are linked
    open_line: bool = False


class StreamReader(LineReader[StreamReaderState]):
    """Reads one capture: mostly one session, interleaved with its subagents."""

    kind = StreamReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        state = self._state
        state.session = word(record.get("session_id")) or state.session or self._name
        kind = word(record.get("type"))
        session = self._session(record)
        self._learn(session, record, kind)
        if (message := _build(record)) is None:
            return plain(kind), "known", state.client
        message = self._add_context(message, session, kind)
        add(self._gathering, session, replace(message, start=place.start, size=place.size))
        state.index += 1
        disposition = "unknown" if message.kind == "unknown" else "message"
        record_type = f"event/{record['event']}" if _is_server_log(record) else kind
        return plain(record_type), disposition, state.client

    def _session(self, record: Rec) -> SessionTally:
        """Return the session of a record: the main one, or that of the subagent which a call started."""
        state, call = self._state, word(record.get("parent_tool_use_id"))
        if not call or word(record.get("type")) in _SILENT:
            return self._gathering.session(state.session)
        name = f"{state.session}/{call}"
        session = self._gathering.session(name, "subagent", state.session)
        if name not in state.linked:
            state.linked = [*state.linked[-_MOST_LINKED:], name]
            session.links.append(Link("subagent_of", state.session))
            self._gathering.session(state.session).links.append(Link("spawned", name, call))
        return session

    def _learn(self, session: SessionTally, record: Rec, kind: str) -> None:
        state = self._state
        if kind == "system" and record.get("subtype") == "init":
            version = word(record.get("claude_code_version"))
            session.learn(workspace=word(record.get("cwd")))
        elif _is_server_log(record) and isinstance(record.get("clientVersion"), dict):
            version = word(record["clientVersion"].get("version"))
        else:
            return
        state.client = plain(version) if version else state.client
        session.learn(client=state.client)

    def _add_context(self, message: Message, session: SessionTally, kind: str) -> Message:
        """Return the message with a fingerprint; a result that repeats the last answer leaves the index."""
        text_digest = digest(*(block.text for block in message.blocks))
        if message.origin == "model" and any(block.field == "answer" for block in message.blocks):
            self._state.said = text_digest
        elif kind == "result" and text_digest == self._state.said:
            message = replace(message, blocks=tuple(replace(block, field="") for block in message.blocks))
        if message.fingerprint is None:
            identity = fingerprint(f"{session.native_id}/{self._state.index}", f"{message.role}{text_digest}")
            message = replace(message, fingerprint=identity)
        return message
