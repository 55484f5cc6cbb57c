"""Find, recognise and read threads of Amp.

    <data>/amp/threads/T-<id>.json                                       a thread
    <editor>/User/globalStorage/sourcegraph.amp/threads3/T-<id>.json     the same, of older versions of the extension

A message of the human may hold results of calls; it is a prompt only if it holds none. A message with role `info` holds
a summary or a notice. Where answers have no tokens of their own, `usageLedger` gives them by message: before the
messages it is remembered, after them it adds the tokens to the response of that message.
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
from everturn.sources.toolkit.json_document import (
    DocumentItem,
    DocumentReader,
    DocumentState,
    DocumentWalk,
    decode_item,
    first_object,
)
from everturn.sources.toolkit.line_reader import add, listing, mapping
from everturn.sources.toolkit.message_reader import view_element
from everturn.sources.toolkit.values import (
    blocks_of,
    count,
    counted_usage,
    error_class,
    exit_code,
    is_result,
    milliseconds,
    plain,
    strings,
    text_blocks,
    unknown_message,
    uri_path,
    word,
)

_THREAD = re.compile(rb'"id"\s*:\s*"(T-[0-9A-Za-z-]{8,80})"')
_MESSAGES = re.compile(rb'"messages"\s*:\s*\[')
_TOKENS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_REFUSED = {"cancelled": "interrupted", "rejected-by-user": "rejected"}
_DONE = frozenset(("done", "error", *_REFUSED))
_LEDGER = "usageLedger"


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{") or not _MESSAGES.search(start):
        return None
    first = first_object(head)
    thread = word(first.get("id"))
    if "id" not in first and "messages" not in first and path.name.startswith("T-"):
        found = _THREAD.findall(read_end(path))
        thread = found[-1].decode() if found else ""
    return SourceCandidate(path, "main", thread) if thread.startswith("T-") else None


find = finder(sniff, "T-*.json", deepest=3)


def workspace(head: bytes) -> str:
    """Return the folder that the first bytes of a thread name; it may come after the messages."""
    return _folder(first_object(head).get("env"))


def resume_command(native_id: str) -> list[str]:
    return ["amp", "threads", "continue", native_id]


def _folder(env: Any) -> str:
    """Return the working folder of a thread's environment: its own, or that of its first tree."""
    initial = mapping(mapping(env).get("initial"))
    for uri in (initial.get("cwd"), *(mapping(tree).get("uri") for tree in listing(initial.get("trees")))):
        about = mapping(uri)
        if folder := uri_path(uri) or word(about.get("fsPath")) or word(about.get("path")):
            return folder
    return ""


# --- messages ---
def build(value: dict[str, Any]) -> Message:
    """Return the message of an element, or of an event of the ledger."""
    role, content = word(value.get("role")), value.get("content")
    if role == "assistant":
        return _answer(value)
    if role == "user" and isinstance(content, str | list):
        return _user_message(value, content)
    if role == "info":
        return _info(value)
    if "toMessageId" in value and "role" not in value:
        return Message("assistant", "model", "text", *milliseconds(value.get("timestamp")), usage=_ledger_usage(value))
    return unknown_message(value)


view = partial(view_element, build)


def _user_message(value: dict[str, Any], content: str | list[Any]) -> Message:
    at, precision = milliseconds(mapping(value.get("meta")).get("sentAt"))
    native_id = _message_id(value)
    if isinstance(content, list) and any(map(is_result, content)):
        blocks = [_result(one) if is_result(one) else blocks_of([one], "meta") for one in content]
        return Message("tool", "tool", "result", at, precision, native_id, blocks=_flat(blocks))
    blocks = [blocks_of(content, "prompt"), _attached_files(value.get("userState"))]
    return Message("user", "human", "text", at, precision, native_id, blocks=_flat(blocks), starts_turn=True)


def _answer(value: dict[str, Any]) -> Message:
    usage = mapping(value.get("usage"))
    at, precision = milliseconds(usage.get("timestamp"))
    if at is None:
        at, precision = milliseconds(mapping(value.get("meta")).get("sentAt"))
    return Message(
        "assistant", "model", "text", at, precision, _message_id(value), model=word(usage.get("model")),
        blocks=tuple(blocks_of(value.get("content"), "answer")), usage=_own_usage(usage),
    )  # fmt: skip


def _info(value: dict[str, Any]) -> Message:
    """Return a summary of the thread so far, or a notice."""
    for one in listing(value.get("content")):
        about = mapping(mapping(one).get("summary"))
        if text := word(about.get("summary")):
            return Message("system", "system", "summary", blocks=text_blocks(text, "summary"))
    blocks = text_blocks("\n".join(strings(value.get("content"), "type")), "meta")
    return Message("system", "system", "notice", blocks=blocks)


def _result(block: dict[str, Any]) -> list[Block]:
    """Return the result of a call; nothing for one that is still running."""
    call_id = word(block.get("toolUseID")) or word(block.get("tool_use_id"))
    run = mapping(block.get("run"))
    status = word(run.get("status"))
    if run and status not in _DONE:
        return []
    if not run:
        return blocks_of([block], "meta")
    given = run.get("error") if status == "error" else run.get("reason") if status in _REFUSED else run.get("result")
    text = _run_text(given)
    code = exit_code(mapping(given).get("exitCode"))
    failure = _REFUSED.get(status) or (error_class(text) if status == "error" else "exit_status" if code else "")
    end = CallEnd(call_id, bool(failure), failure, code)
    return [Block("result", text, "tool_output", result=end, data=block)]


def _run_text(given: Any) -> str:
    """Return the text of a result: its output where it names one."""
    output = mapping(given).get("output", mapping(given).get("message"))
    return output if isinstance(output, str) else "\n".join(strings(given, "type"))


def _attached_files(state: Any) -> list[Block]:
    """Return the files that were open or visible when the human asked."""
    about = mapping(state)
    names = dict.fromkeys(strings([about.get("activeEditor"), about.get("currentlyVisibleFiles")]))
    return [Block("document", "\n".join(uri_path(name) for name in names), "meta", data=state)] if names else []


def _flat(lists: list[list[Block]]) -> tuple[Block, ...]:
    return tuple(block for blocks in lists for block in blocks)


def _message_id(value: dict[str, Any]) -> str:
    number = value.get("messageId")
    return str(number) if type(number) is int and 0 <= number < 1 << 53 else word(number)


def _own_usage(usage: dict[str, Any]) -> TokenUsage | None:
    """Return the tokens of an answer. A stated total decides what was neither read from the cache nor written to it."""
    counted = counted_usage(usage, *_TOKENS)
    total = count(usage.get("totalInputTokens"))
    if counted is None or not total:
        return counted
    return replace(counted, input=max(total - counted.cache_read - counted.cache_write, 0))


def _ledger_usage(event: dict[str, Any]) -> TokenUsage | None:
    return counted_usage(event.get("tokens"), "input", "output", "cacheReadInputTokens", "cacheCreationInputTokens")


# --- threads ---
class AmpReaderState(DocumentState, array_like=True):
    counted: bool = False  # an answer has tokens of its own
    ledger: dict[str, list[int]] = {}  # tokens by message, where the ledger comes first


class AmpReader(DocumentReader[AmpReaderState]):
    """Reads one thread."""

    key = "messages"
    kind = AmpReaderState

    def _read_item(self, item: DocumentItem, value: Any) -> None:
        if item.key:
            self._learn(item, value)
            self._tally.count("(about)", "known")
            return
        message = build(value)
        if message.origin == "model":
            message = self._with_tokens(message)
        self._add(message, item)
        known = message.kind != "unknown"
        self._tally.count(plain(value.get("role")) if known else "?", "message" if known else "unknown")
        self._state.index += 1

    def _with_tokens(self, message: Message) -> Message:
        name = message.native_id or str(self._state.index)
        tokens = self._state.ledger.pop(name, None)
        self._state.counted = self._state.counted or message.usage is not None
        usage = message.usage or (TokenUsage(*tokens[:4]) if tokens else None)
        return replace(message, provider_id=f"{self._name}/{name}", usage=usage)

    def _learn(self, item: DocumentItem, value: Any) -> None:
        session = self._open_session()
        if item.key == "title":
            session.learn(title=word(value), title_rank=1 if word(value) else 0)
        elif item.key == "env":
            platform = mapping(mapping(mapping(value).get("initial")).get("platform"))
            session.learn(workspace=_folder(value), client=word(platform.get("clientVersion")))
        elif item.key == _LEDGER:
            self._read_ledger(item)

    def _read_ledger(self, item: DocumentItem) -> None:
        for event in DocumentWalk("events").split(item.raw, item.start, True):
            value, _ = decode_item(event.raw)
            usage = _ledger_usage(value) if not event.key and isinstance(value, dict) else None
            if usage is None or count(value.get("toMessageId")) is None:
                continue
            name = str(count(value["toMessageId"]))
            if not self._state.index:
                self._state.ledger[name] = [usage.input, usage.output, usage.cache_read, usage.cache_write]
            elif not self._state.counted:
                model = word(value.get("model"))
                self._add(replace(build(value), provider_id=f"{self._name}/{name}", model=model), event)

    def _add(self, message: Message, item: DocumentItem) -> None:
        name = str(item.start if item.key else self._state.index)
        add(self._tally, self._open_session(), self._identify(message, item, name))
