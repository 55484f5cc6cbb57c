"""Finds sessions, recognises them by their content, and reads them record by record.

    <home>/projects/<project>/chats/<session>.jsonl                      one per session
    <home>/projects/<project>/subagents/<session>/agent-<id>.jsonl       subagents of that session

`<home>` is QWEN_RUNTIME_DIR, QWEN_HOME or `~/.qwen`. Folders behind symbolic links are not entered.

Builds the message of one record without the records around it, for the reader and for `view`.

A record holds the content that went to or came from the model (`message.parts`), or a note of the client (`systemPayload`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Link, Message, TokenUsage
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    listing,
    mapping,
    records,
    single_record,
    view_placed,
)
from everturn.sources.toolkit.message_reader import record_message
from everturn.sources.toolkit.values import (
    call_block,
    count,
    digest,
    error_class,
    plain,
    strings,
    text_blocks,
    unknown_block,
    word,
)

_TYPES = frozenset(("user", "assistant", "tool_result", "system"))
_MODEL_TITLE, _HUMAN_TITLE = 2, 3
#: So many turns can be taken back.
_TURNS = 200


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    found = [record for record in records(head) if _is_own(record)]
    if not found:
        return None
    session = word(found[0].get("sessionId"))
    agent = next((word(record.get("agentId")) for record in found if record.get("isSidechain") is True), "")
    if agent:
        return SourceCandidate(path, "subagent", f"{session}/{agent}", session)
    return SourceCandidate(path, "main", session)


find = finder(sniff, "*.jsonl", below="projects")


def workspace(head: bytes) -> str:
    return next((word(record.get("cwd")) for record in records(head) if _is_own(record) and record.get("cwd")), "")


def _is_own(record: Rec) -> bool:
    if word(record.get("type")) not in _TYPES or not (word(record.get("uuid")) and word(record.get("sessionId"))):
        return False
    return isinstance(mapping(record.get("message")).get("parts"), list) or isinstance(
        record.get("systemPayload"), dict
    )


class QwenReaderState(Struct, array_like=True):
    """The state from which a later reader continues."""

    open_line: bool = False
    told: list[str] = []  # facts that were told: they repeat in every record
    turns: list[str] = []  # a digest of the record before each turn, to count the turns that are taken back
    response: str = ""  # of a subagent: the first record of the response under way
    linked: bool = False
    forked: bool = False


class QwenReader(LineReader[QwenReaderState]):
    """Reads one session, or one subagent of a session."""

    kind = QwenReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        session = self._open_session()
        self._learn(session, record)
        message = build(record, place)
        if message is not None:
            message = self._in_context(session, record, message)
            add(self._gathering, session, message)
        name, is_known = record_kind(record)
        disposition = "unknown" if not is_known else "known" if message is None else "message"
        return "/".join(map(plain, name.split("/", 1))), disposition, plain(record.get("version"))

    # --- facts ---
    def _learn(self, session: SessionTally, record: Rec) -> None:
        facts = [word(record.get(key)) for key in ("cwd", "gitBranch", "version", "agentName")]
        if facts != self._state.told:
            self._state.told = facts
            session.learn(workspace=facts[0], branch=facts[1], client=facts[2], agent_name=facts[3])
        note = mapping(record.get("systemPayload"))
        if title := word(note.get("customTitle")):
            rank = _MODEL_TITLE if note.get("titleSource") == "auto" else _HUMAN_TITLE
            session.learn(title=title, title_rank=rank)
        if record.get("subtype") == "parent_session" and (parent := word(note.get("parentSessionId"))):
            session.links.append(Link("subagent_of", parent))
        origin = word(mapping(record.get("forkedFrom")).get("sessionId"))
        if origin and not self._state.forked:
            self._state.forked = True
            session.links.append(Link("forked_from", origin))

    # --- messages among others ---
    def _in_context(self, session: SessionTally, record: Rec, message: Message) -> Message:
        if self._candidate.kind == "subagent":
            return self._in_subagent(session, message)
        session.link_tasks(message)
        before = digest(word(record.get("parentUuid")))
        if message.starts_turn:
            self._state.turns = [*self._state.turns, before][-_TURNS:]
        elif record.get("type") == "system" and record.get("subtype") == "rewind" and before in self._state.turns:
            kept = self._state.turns.index(before)
            back = len(self._state.turns) - kept
            del self._state.turns[kept:]
            return replace(message, takes_back=back)
        return message

    def _in_subagent(self, session: SessionTally, message: Message) -> Message:
        """Link the subagent by its task, and join its records into responses: text and each call have records of their own."""
        state = self._state
        if message.starts_turn and not state.linked:
            state.linked = True
            task = next((block.text for block in message.blocks if block.field == "prompt"), "")
            session.link_parent(self._candidate.parent, task)
        if message.origin != "model":
            state.response = ""
            return message
        state.response = state.response or message.provider_id
        return replace(message, provider_id=state.response)


# --- Builds the message of one record without the records around it, for the reader and for `view` ---
#: Notes of the client that hold no messages, or repeat what other records say.
SILENT = frozenset(
    "ui_telemetry attribution_snapshot custom_title parent_session session_source session_model agent_bootstrap "
    "agent_launch_prompt agent_retry file_history_snapshot user_text_elements session_artifact_event "
    "session_artifact_snapshot branch_checkpoint goal_state turn_result".split()
)
_ENVELOPE = (
    "uuid parentUuid sessionId timestamp type subtype cwd version gitBranch agentId agentName agentColor forkedFrom "
    "provenance goalContext thoughtSignature"
).split()
_SHELL = "run_shell_command"
_EXIT = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_END = 2000
_ERROR_TYPES = {
    "file_not_found": "not_found",
    "permission_denied": "permission",
    "invalid_tool_params": "invalid_input",
    "execution_denied": "rejected",
    "tool_not_registered": "unknown_tool",
    "file_too_large": "too_large",
}
#: Origin and kind of the records that look like prompts and are none.
_INSERTED = {
    "mid_turn_user_message": ("human", "queued"),
    "notification": ("injected", "notification"),
    "cron": ("injected", "notification"),
    "goal_runtime": ("injected", "context"),
}


def original(raw: bytes) -> str | None:
    display = mapping(mapping((single_record(raw) or {}).get("toolCallResult")).get("resultDisplay"))
    if "originalContent" not in display or display.get("originalContentTruncated") is True:
        return None
    return word(display["originalContent"])


def build(record: Rec, place: RecordPlace) -> Message | None:
    """Return the message of a record; None for a note without one."""
    kind = word(record.get("type"))
    if kind == "system":
        subtype = word(record.get("subtype"))
        return None if subtype in SILENT else _NOTES.get(subtype, _unknown)(record, place)
    return _BUILDERS.get(kind, _unknown)(record, place)


view = partial(view_placed, build)


def record_kind(record: Rec) -> tuple[str, bool]:
    """Return the type of a record, with its subtype where it has one, and whether it is known."""
    kind, subtype = word(record.get("type")), word(record.get("subtype"))
    is_known = kind in _BUILDERS if kind != "system" else subtype in SILENT or subtype in _NOTES
    return f"{kind}/{subtype}" if subtype else kind, is_known


def usage(tokens: Any) -> TokenUsage | None:
    """Return the tokens of a response. The prompt includes cached tokens; the total tells whether the answer includes thoughts."""
    fields = mapping(tokens)
    given, answer, thoughts, cached, total = (
        count(fields.get(f"{key}TokenCount")) or 0
        for key in ("prompt", "candidates", "thoughts", "cachedContent", "total")
    )
    output = answer + thoughts if total >= given + answer + thoughts else answer
    return TokenUsage(max(given - cached, 0), output, cached) if given or output else None


# --- one builder per record type ---
def _prompt(record: Rec, place: RecordPlace) -> Message:
    subtype = word(record.get("subtype"))
    origin, kind = _INSERTED.get(subtype, ("human", "text"))
    if origin != "human":
        return _message(record, place, "user", origin, _parts(record, "meta"), kind)
    blocks = _parts(record, "prompt")
    shown = word(mapping(record.get("systemPayload")).get("displayText"))
    if shown:  # what was typed; the parts hold it with everything that the client added
        rest = (replace(block, field="meta") if block.field == "prompt" else block for block in blocks)
        blocks = (Block("text", shown, "prompt"), *(block for block in rest if block.text.strip() != shown.strip()))
    if record.get("isSidechain") is True:
        origin = "agent"
    return replace(_message(record, place, "user", origin, blocks, kind), starts_turn=kind == "text")


def _answer(record: Rec, place: RecordPlace) -> Message:
    message = _message(record, place, "assistant", "model", _parts(record, "answer"))
    return replace(
        message, provider_id=message.native_id or f"@{place.start}", model=word(record.get("model")),
        usage=usage(record.get("usageMetadata")),
    )  # fmt: skip


def _result(record: Rec, place: RecordPlace) -> Message:
    outcome = mapping(record.get("toolCallResult"))
    blocks = _parts(record, "tool_output", outcome)
    if outcome and not any(block.result is not None for block in blocks):
        blocks = (_result_block({"id": outcome.get("callId")}, outcome), *blocks)
    return _message(record, place, "tool", "tool", blocks, "result")


def _command(record: Rec, place: RecordPlace) -> Message:
    note = mapping(record.get("systemPayload"))
    if note.get("phase") == "result":
        text = "\n".join(strings(note.get("outputHistoryItems"), "type"))
        return _message(record, place, "system", "system", text_blocks(text, "meta"), "output")
    return _message(record, place, "user", "human", text_blocks(word(note.get("rawCommand")), "prompt"), "command")


def _references(record: Rec, place: RecordPlace) -> Message:
    note = mapping(record.get("systemPayload"))
    text = "\n".join(strings([note.get("filesRead"), note.get("message")]))
    return _message(record, place, "system", "injected", text_blocks(text, "meta"), "context")


def _compaction(record: Rec, place: RecordPlace) -> Message:
    """Return the mark of a compaction with its summary, the first content of the new history; the rest repeats records."""
    history = listing(mapping(record.get("systemPayload")).get("compressedHistory"))
    text = "\n".join(strings(mapping(history[0]).get("parts"), "thoughtSignature")) if history else ""
    return _message(record, place, "system", "system", text_blocks(text, "summary"), "compaction")


def _rewind(record: Rec, place: RecordPlace) -> Message:
    return _message(record, place, "system", "system", (), "notice")


def _unknown(record: Rec, place: RecordPlace) -> Message:
    text = "\n".join(strings(record, *_ENVELOPE))
    return _message(record, place, "system", "system", text_blocks(text, "meta", "unknown"), "unknown")


_Builder = Callable[[Rec, RecordPlace], Message]
_BUILDERS: dict[str, _Builder] = {"user": _prompt, "assistant": _answer, "tool_result": _result}
_NOTES: dict[str, _Builder] = {
    "slash_command": _command, "at_command": _references, "chat_compression": _compaction, "rewind": _rewind,
}  # fmt: skip


# --- parts ---
def _parts(record: Rec, field: str, outcome: Rec | None = None) -> tuple[Block, ...]:
    parts = listing(mapping(record.get("message")).get("parts"))
    return tuple(_part(part, field, number, outcome or {}) for number, part in enumerate(parts))


def _part(part: Any, field: str, number: int, outcome: Rec) -> Block:
    fields = mapping(part)
    if isinstance(part, str):
        return Block("text", part, field)
    if isinstance(text := fields.get("text"), str):
        if fields.get("thought") is True:
            return Block("thinking", text, "thinking", data=part)
        return Block("text", text, field, data=part)
    if isinstance(call := fields.get("functionCall"), dict):
        name = word(call.get("name"))
        return call_block(word(call.get("id")) or f"{name}#{number}", name, call.get("args"), part)
    if isinstance(response := fields.get("functionResponse"), dict):
        return _result_block(response, outcome)
    if "inlineData" in fields or "fileData" in fields:
        return Block("image", data=part)
    return unknown_block(part)


def _result_block(response: Rec, outcome: Rec) -> Block:
    """Return the result of a call: what the model got, else what was shown; the outcome tells how it ended."""
    name, given = word(response.get("name")), response.get("response")
    call_id = word(response.get("id")) or word(outcome.get("callId")) or f"{name}#0"
    told = outcome if word(outcome.get("callId")) in ("", call_id) else {}
    texts = strings(given) or strings(told.get("resultDisplay"), "originalContent", "newContent", "diffStat")
    text = "\n".join(texts)
    status = _exit_status(text) if name == _SHELL else None
    failed = word(told.get("status")) in ("error", "cancelled") or "error" in mapping(given)
    reason = _failure(told, text) if failed else "exit_status" if status else ""
    action, path = _changed_file(told) if not failed else ("", "")
    end = CallEnd(
        call_id, failed or bool(status), reason, status, count(told.get("durationMs")) or None, action, path,
    )  # fmt: skip
    return Block("result", text, "tool_output", result=end, data=response)


def _failure(outcome: Rec, text: str) -> str:
    if (reason := _ERROR_TYPES.get(word(outcome.get("errorType")))) is not None:
        return reason
    reason = error_class(text)
    return "interrupted" if reason == "other" and outcome.get("status") == "cancelled" else reason


def _exit_status(text: str) -> int | None:
    codes = [code for code in _EXIT.findall(text, max(len(text) - _END, 0)) if int(code) < 1 << 31]
    return int(codes[-1]) if codes else None


def _changed_file(outcome: Rec) -> tuple[str, str]:
    display = mapping(outcome.get("resultDisplay"))
    if not word(display.get("fileDiff")) or "originalContent" not in display:
        return "", ""
    return "created" if display["originalContent"] is None else "edited", ""


_message = partial(record_message, key="uuid")
