"""Find the files of tasks, recognise them by their content, read them, and view the bytes of one message.

    <user>/globalStorage/<extension>/tasks/<task>/api_conversation_history.json   the history sent to the model
    …                                            /ui_messages.json                the panel shown to the human
    …                                            /task_metadata.json              files and models used

`<user>` is the user folder of an editor of the VS Code family. Folders behind symbolic links are not entered.

The shape of an element shows whether it is of the history, of the panel or a note; the kind of the file decides which of its
elements become messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Link, Message, TokenUsage
from everturn.sources.cline.calls import find_folder
from everturn.sources.cline.message import (
    COMPACTED,
    KNOWN,
    NOTICES,
    REQUEST,
    THOUGHT,
    answer_message,
    element_time,
    environment_details,
    is_summary,
    panel_kind,
    panel_message,
    request_tokens,
    segment_message,
    split_segments,
    summary_message,
    unknown_element,
)
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import (
    DocumentItem,
    DocumentReader,
    DocumentState,
    DocumentWalk,
    decode_item,
    first_object,
)
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.values import milliseconds, plain, text_blocks, word

HISTORY, PANEL, METADATA = "api_conversation_history.json", "ui_messages.json", "task_metadata.json"

_ROLE = re.compile(rb'"role"\s*:\s*"(?:user|assistant)"')
_MARKS = re.compile(rb"<task>|<environment_details>|\[TASK RESUMPTION\]|<user_message>")
_TIME = re.compile(rb'"ts"\s*:\s*\d{1,15}')
_FOLDER = re.compile(rb"# Current (?:Working|Workspace) Directory \(((?:[^()\\\"]|\\\\)+)\)")


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    task = path.parent.name if path.name in (HISTORY, PANEL, METADATA) else path.stem
    first = first_object(head)
    if isinstance(first.get("files_in_context"), list):
        return SourceCandidate(path, "meta", f"{task}/{METADATA.removesuffix('.json')}", task)
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return None
    if first.get("type") in ("say", "ask") and (first.get("type") in first or _TIME.search(head)):
        if path.name == PANEL and path.with_name(HISTORY).is_file():
            return SourceCandidate(path, "meta", f"{task}/{PANEL.removesuffix('.json')}", task)
        return SourceCandidate(path, "main", task)
    if _is_history(first, head) and (path.name == HISTORY or _MARKS.search(head)):
        return SourceCandidate(path, "main", task)
    return None


def _is_history(first: dict[str, Any], head: bytes) -> bool:
    """Return whether a list begins with a message; the first one may be longer than the bytes at hand."""
    return first.get("role") in ("user", "assistant") or (not first and _ROLE.search(head) is not None)


def workspace(head: bytes) -> str:
    match = _FOLDER.search(head)
    return match[1].replace(b"\\\\", b"\\").decode("utf-8", "replace") if match else ""


find = finder(sniff, HISTORY, PANEL, METADATA, deepest=10)


# --- task_metadata.json ---
_DATES = ("cline_edit_date", "user_edit_date", "cline_read_date", "roo_edit_date", "roo_read_date")


def file_message(element: dict[str, Any]) -> Message:
    """Return the message of a file that the task read or edited."""
    times = [milliseconds(element.get(key)) for key in _DATES]
    at, precision = max((one for one in times if one[0] is not None), default=(None, ""))
    blocks = text_blocks(word(element.get("path")), "meta")
    return Message("system", "system", "context", at, precision, blocks=blocks)


def is_file_note(element: dict[str, Any]) -> bool:
    return "path" in element and "record_state" in element


def find_version(key: str, value: Any) -> str:
    """Return the latest version of the extension that a member of the outer object names; "" when it names none."""
    if key != "environment_history":
        return ""
    versions = [word(mapping(one).get("cline_version")) for one in listing(value)]
    return next((version for version in reversed(versions) if version), "")


# --- a whole document ---
_RANGE = "conversationHistoryDeletedRange"

#: Panel elements that become messages even where the history has the conversation.
_NOT_IN_HISTORY = NOTICES | COMPACTED | {THOUGHT}


class ClineReaderState(DocumentState, array_like=True):
    waiting: list[str] = []  # calls of the last answer
    request: int = 0  # number of the last request, in a panel
    tokens: list[int] = []  # of it, not yet given to an answer
    deleted: str = ""  # the last range that was deleted from the history
    workspace: bool = False
    linked: bool = False


class ClineReader(DocumentReader[ClineReaderState]):
    key = "files_in_context"
    kind = ClineReaderState

    def _read_item(self, item: DocumentItem, value: Any) -> None:
        if item.key:
            self._open_session().learn(client=find_version(item.key, value))
            self._tally.count(f"({plain(item.key)})", "known")
            return
        if "role" in value or value.get("type") == "reasoning":
            self._tally.count(plain(value.get("role")), self._read_history(item, value))
        elif kind := panel_kind(value):
            self._tally.count(f"{plain(value.get('type'))}/{plain(kind)}", self._read_panel(item, value, kind))
        elif is_file_note(value):
            self._tally.count("(file)", self._add(file_message(value), item))
        else:
            self._add(unknown_element(value), item)
            self._tally.count("?", "unknown")
        self._state.index += 1

    # --- the history ---
    def _read_history(self, item: DocumentItem, value: dict[str, Any]) -> str:
        role, content = word(value.get("role")), value.get("content")
        if is_summary(value):
            return self._add(summary_message(value), item)
        if role == "assistant" or word(value.get("type")) == "reasoning":
            return self._add_answer(answer_message(value), item)
        if role != "user" or not isinstance(content, (str, list)):
            self._add(unknown_element(value), item)
            return "unknown"
        blocks = [content] if isinstance(content, str) else content
        at, precision = element_time(value, blocks)
        self._learn_folder(environment_details(blocks))
        items = _content_items(item) if isinstance(content, list) else [item]
        for number, segment in enumerate(split_segments(blocks)):
            message = segment_message(blocks[segment.first : segment.last + 1], segment.kind)
            message = replace(self._match_result(message), at=at, precision=precision)
            self._add(message, _join_items(item, items[segment.first], items[segment.last]), number)
        return "message" if blocks else "known"

    def _add_answer(self, message: Message, item: DocumentItem) -> str:
        self._state.waiting = [block.call.call_id for block in message.blocks if block.call is not None]
        return self._add(replace(message, provider_id=f"{self._name}/{self._state.index}"), item)

    def _match_result(self, message: Message) -> Message:
        """Give a result whose head quotes its call in other words the id of the only waiting call of that tool."""
        end = message.blocks[0].result if message.blocks else None
        waiting = self._state.waiting
        if end is None or end.call_id in waiting:
            return message
        tool = end.call_id.partition(":")[0]
        calls = [call for call in waiting if call.partition(":")[0] == tool]
        if len(calls) != 1:
            return message
        first = replace(message.blocks[0], result=replace(end, call_id=calls[0]))
        return replace(message, blocks=(first, *message.blocks[1:]))

    # --- the panel ---
    def _read_panel(self, item: DocumentItem, value: dict[str, Any], kind: str) -> str:
        state = self._state
        self._note_truncation(item, value)
        if kind == REQUEST:
            state.request, state.tokens = state.index + 1, request_tokens(value)
        has_history = self._candidate.kind == "meta"
        if has_history and kind in KNOWN and kind not in _NOT_IN_HISTORY:
            return self._add_request_tokens(item, value)
        if (message := panel_message(value, state.index == 0 or _is_task(value))) is None:
            return "known"
        if message.origin == "model":
            tokens, state.tokens = state.tokens, []
            usage = TokenUsage(*tokens) if tokens else None
            message = replace(message, provider_id=f"{self._name}/{state.request}", usage=usage)
        else:
            self._learn_folder(next((block.text for block in message.blocks if block.field == "meta"), ""))
        self._add(message, item)
        return "message" if kind in KNOWN else "unknown"

    def _add_request_tokens(self, item: DocumentItem, value: dict[str, Any]) -> str:
        """Add the tokens of a request beside the history, unless the history has them itself."""
        tokens, self._state.tokens = self._state.tokens, []
        text = next((one for one in _members(item) if one.key == "text"), None)
        if not tokens or text is None or "modelInfo" in value:
            return "known"
        at, precision = milliseconds(value.get("ts"))
        name = f"{self._name}/{self._state.request}"
        message = Message("assistant", "model", "text", at, precision, provider_id=name, usage=TokenUsage(*tokens))
        return self._add(message, text)

    def _note_truncation(self, item: DocumentItem, value: dict[str, Any]) -> None:
        """Add a compaction when another range of the history is no longer sent to the model."""
        if not (deleted := str(value.get(_RANGE) or "")) or deleted == self._state.deleted:
            return
        self._state.deleted = deleted
        for one in _members(item):
            if one.key == _RANGE:
                self._add(Message("system", "system", "compaction", *milliseconds(value.get("ts"))), one, 1)

    def _add(self, message: Message, item: DocumentItem, number: int = 0) -> str:
        """Add the message of these bytes to the session; `number` tells messages of one element apart."""
        session, parent = self._open_session(), self._candidate.parent
        if parent and not self._state.linked:
            self._state.linked = True
            session.links.append(Link("about", parent))
        session.messages.append(self._identify(message, item, f"{self._state.index}/{number}"))
        return "message"

    def _learn_folder(self, details: str) -> None:
        if (folder := find_folder(details)) and not self._state.workspace:
            self._state.workspace = True
            self._open_session().learn(workspace=folder)


def _members(item: DocumentItem) -> Iterator[DocumentItem]:
    return DocumentWalk("").split(item.raw, item.start, True)


def _content_items(item: DocumentItem) -> list[DocumentItem]:
    return [one for one in DocumentWalk("content").split(item.raw, item.start, True) if not one.key]


def _join_items(item: DocumentItem, first: DocumentItem, last: DocumentItem) -> DocumentItem:
    """Return the bytes of an element from the first content block to the last."""
    end = last.start + len(last.raw)
    return DocumentItem("", first.start, item.raw[first.start - item.start : end - item.start])


def _is_task(value: dict[str, Any]) -> bool:
    return value.get("conversationHistoryIndex") == -1


def view(record_bytes: bytes) -> Message | None:
    """Return the message of an element, of some of its content blocks (without brackets), or of a note in it."""
    value, _ = decode_item(record_bytes)
    if value is None:
        value, _ = decode_item(b"[" + record_bytes + b"]")
        return _blocks_message(value) if isinstance(value, list) and value else None
    if isinstance(value, dict):
        return _element_message(value)
    if isinstance(value, list):
        return Message("system", "system", "compaction")
    return Message("assistant", "model")


def _element_message(value: dict[str, Any]) -> Message:
    if panel_kind(value):
        return panel_message(value, _is_task(value)) or Message("system", "system", "notice")
    if is_file_note(value):
        return file_message(value)
    if "role" not in value and word(value.get("type")) != "reasoning":
        return _blocks_message([value]) if "type" in value else unknown_element(value)
    return _history_message(value)


def _history_message(value: dict[str, Any]) -> Message:
    if is_summary(value):
        return summary_message(value)
    if value.get("role") == "assistant" or word(value.get("type")) == "reasoning":
        return answer_message(value)
    content = value.get("content")
    if value.get("role") != "user" or not isinstance(content, (str, list)):
        return unknown_element(value)
    return _blocks_message([content] if isinstance(content, str) else content)


def _blocks_message(blocks: list[Any]) -> Message:
    segments = split_segments(blocks)
    message = segment_message(blocks, segments[0].kind if segments else "context")
    at, precision = element_time({}, blocks)
    return replace(message, at=at, precision=precision)
