"""Find, recognise and read sessions of Continue.

    ~/.continue/sessions/<session>.json     a session: `history`, `sessionId`, `title`, `workspaceDirectory`
    ~/.continue/sessions/sessions.json      a list of all sessions; it holds no conversation

An item of the history is a message with the context that was sent along. The calls of an answer are in the message; what
became of each is in the item (`toolCallStates`, in older sessions one `toolCallState`): its status and its output, if it has
ended. Such an answer is followed by messages with role `tool` that repeat the output; a call keeps its first result, so the
repetition is known and not read again. Sessions record no times, except the start and end of reasoning.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Message, TokenUsage
from everturn.sources.contract import SourceCandidate, read_end
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import DocumentItem, DocumentReader, DocumentState, first_object
from everturn.sources.toolkit.line_reader import add, listing, mapping
from everturn.sources.toolkit.message_reader import view_element
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    count,
    error_class,
    exit_status,
    milliseconds,
    plain,
    result_block,
    text_blocks,
    tool_kind,
    unknown_block,
    unknown_message,
    uri_path,
    word,
)

_HISTORY = re.compile(rb'"history"\s*:\s*\[')
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_MESSAGE = re.compile(rb'"(?:message|contextItems)"\s*:\s*[\[{]')
_FOLDER = "workspaceDirectory"

#: Kinds of the tools whose names the toolkit does not know.
_KINDS = {
    "builtin_edit_existing_file": "edit",
    "edit_existing_file": "edit",
    "single_find_and_replace": "edit",
    "create_new_file": "create",
    "read_currently_open_file": "read",
    "read_file_range": "read",
    "view_diff": "read",
    "view_repo_map": "read",
    "view_subdirectory": "read",
    "fetch_url_content": "fetch",
    "Checklist": "plan",
}
_PATHS = ("filepath", "path", "dirPath")
_STATES = {"errored": "", "canceled": "rejected"}


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{") or not _HISTORY.search(start):
        return None
    first = first_object(head)
    is_whole = "history" in first
    if is_whole and not (_FOLDER in first and "sessionId" in first):
        return None
    if not is_whole and not (_MESSAGE.search(start) and ("sessionId" in first or _SESSION.search(read_end(path)))):
        return None
    name = word(first.get("sessionId"))
    if not name and not is_whole:
        named = _SESSION.findall(read_end(path))  # the member in the head may hold no text
        name = named[-1].decode("utf-8", "replace") if named else ""
    return SourceCandidate(path, "main", name or path.stem)


find = finder(sniff, "*.json", without="sessions.json", deepest=2)


def workspace(head: bytes) -> str:
    """Return the folder that the first bytes of a session name; it may come after the history."""
    return uri_path(first_object(head).get(_FOLDER))


# --- messages ---
def build(item: dict[str, Any]) -> Message:
    """Return the message of an item of the history."""
    message = mapping(item.get("message"))
    role, content = word(message.get("role")), message.get("content")
    if role == "user":
        blocks = [*_parts(content, "prompt"), *_context(item)]
        return Message(
            "user", "human", "text", native_id=word(message.get("id")), blocks=tuple(blocks), starts_turn=True
        )
    if role in ("assistant", "thinking"):
        return _answer(item, message, role)
    if role == "tool":
        result = result_block(word(message.get("toolCallId")), "\n".join(_texts(content)), data=message)
        return Message("tool", "tool", "result", native_id=word(message.get("id")), blocks=(result,))
    if role == "system":
        return Message("system", "injected", "context", blocks=tuple(_parts(content, "meta")))
    return unknown_message(item)


view = partial(view_element, build)


def _answer(item: dict[str, Any], message: dict[str, Any], role: str) -> Message:
    reasoning = mapping(item.get("reasoning"))
    at, precision = milliseconds(reasoning.get("startAt"))
    blocks = list(text_blocks(word(reasoning.get("text")), "thinking", "thinking"))
    if role == "thinking":
        blocks += text_blocks("\n".join(_texts(content := message.get("content"))), "thinking", "thinking")
        blocks += [] if content else text_blocks(word(message.get("redactedThinking")), "meta")
    else:
        blocks += _parts(message.get("content"), "answer")
    blocks += _calls(item, message)
    logs = [mapping(log) for log in listing(item.get("promptLogs"))]
    model = next((name for log in logs if (name := word(log.get("modelTitle")))), "")
    return Message(
        "assistant", "model", "text", at, precision, word(message.get("id")), model=model, blocks=tuple(blocks),
        usage=_usage(message.get("usage")),
    )  # fmt: skip


def _calls(item: dict[str, Any], message: dict[str, Any]) -> list[Block]:
    """Return the calls of an answer, and the results of those that have ended."""
    states = listing(item.get("toolCallStates")) or [item.get("toolCallState")]
    by_call = {word(state.get("toolCallId")): state for state in map(mapping, states) if state}
    calls = listing(message.get("toolCalls")) or [state.get("toolCall") for state in by_call.values()]
    blocks = []
    for call in calls:
        function = mapping(mapping(call).get("function"))
        call_id, name = word(mapping(call).get("id")), word(function.get("name"))
        if not function:
            blocks.append(unknown_block(call))
            continue
        state = by_call.get(call_id, {})
        blocks.append(_call(call_id, name, function.get("arguments"), state, call))
        blocks += _result(call_id, state)
    return blocks


def _call(call_id: str, name: str, given: Any, state: dict[str, Any], data: Any) -> Block:
    parsed = state.get("parsedArgs")
    bare = name.removeprefix("builtin_")
    block = call_block(call_id, name, given or parsed, data, _KINDS.get(bare) or tool_kind(bare))
    arguments = block.call.input if block.call is not None else None
    path = (
        next((word(arguments.get(key)) for key in _PATHS if arguments.get(key)), "")
        if isinstance(arguments, dict)
        else ""
    )
    return replace(block, call=replace(block.call, path=path)) if path and block.call is not None else block


def _result(call_id: str, state: dict[str, Any]) -> list[Block]:
    status, output = word(state.get("status")), listing(state.get("output"))
    if status not in ("done", *_STATES):
        return []
    text = "\n".join(filter(None, (word(mapping(one).get("content")) for one in output)))
    code = exit_status(text)
    failure = _STATES[status] or error_class(text) if status in _STATES else "exit_status" if code else ""
    return [Block("result", text, "tool_output", result=CallEnd(call_id, bool(failure), failure, code), data=output)]


def _context(item: dict[str, Any]) -> list[Block]:
    """Return the files and texts that were sent along with a prompt."""
    blocks = []
    for one in listing(item.get("contextItems")):
        about = mapping(one)
        text = "\n".join(filter(None, (word(about.get(key)) for key in ("name", "description", "content"))))
        blocks.append(Block("document", text, "meta", data=one) if text else unknown_block(one))
    return blocks


def _parts(content: Any, field: str) -> list[Block]:
    if not isinstance(content, list):
        return blocks_of(content, field)
    pictures = ("imageUrl", "image_url")
    return [
        Block("image", data=part) if mapping(part).get("type") in pictures else block
        for part in content
        for block in blocks_of([part], field)
    ]


def _texts(content: Any) -> list[str]:
    return [block.text for block in _parts(content, "meta") if block.text]


def _usage(usage: Any) -> TokenUsage | None:
    """Return the tokens of an answer; those read from the cache are part of the prompt's."""
    about = mapping(usage)
    details = mapping(about.get("promptTokensDetails"))
    given, output = (count(about.get(key)) or 0 for key in ("promptTokens", "completionTokens"))
    read, written = (count(details.get(key)) or 0 for key in ("cachedTokens", "cacheWriteTokens"))
    return TokenUsage(max(given - read - written, 0), output, read, written) if given or output else None


# --- sessions ---
class ContinueReaderState(DocumentState, array_like=True):
    answers: int = 0
    thought: bool = False  # the last item was a thought, so the next is of the same response
    ended: list[str] = []  # calls whose result the answer had


class ContinueReader(DocumentReader[ContinueReaderState]):
    """Reads one session."""

    key = "history"
    kind = ContinueReaderState

    def _read_item(self, item: DocumentItem, value: Any) -> None:
        session = self._open_session()
        if item.key:
            title = word(value) if item.key == "title" else ""
            folder = uri_path(value) if item.key == _FOLDER else ""
            session.learn(title=title, title_rank=1 if title else 0, workspace=folder)
            self._tally.count("(about)", "known")
            return
        kind = plain(mapping(value.get("message")).get("role"))
        message = self._in_context(build(value))
        if message is None:
            self._tally.count(kind, "known")
        else:
            add(self._tally, session, self._identify(message, item, str(self._state.index)))
            is_known = message.kind != "unknown"
            self._tally.count(kind if is_known else "?", "message" if is_known else "unknown")
        self._state.index += 1

    def _in_context(self, message: Message) -> Message | None:
        """Return a message with its response; None for a result that the answer before it has already."""
        state = self._state
        results = [block.result.call_id for block in message.blocks if block.result is not None]
        if message.role == "tool" and any(call in state.ended for call in results):
            return None
        if message.origin == "model":
            state.answers += not state.thought
            state.ended = results or state.ended
            message = replace(message, provider_id=f"{self._name}/{state.answers}")
        state.thought = message.origin == "model" and all(block.kind == "thinking" for block in message.blocks)
        return message
