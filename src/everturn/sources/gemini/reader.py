"""Reads a session piece by piece: a document, or lines in which a message may be written again with more in it.

In lines the first record of a message gives the message. A later record with the same id gives a further message of the
same response with only what is new in it, the calls; its byte range is that of those calls. A patch that rewrites all
messages gives those that were never seen: what the client put in the place of older ones.

What a reader remembers between pieces of a file, so that reading in any pieces gives the same as reading at once.

Bounded: whatever grows with the file forgets its oldest entries.

The bytes of a message → the message, for whoever shows or exports it. Their own shape says what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, ReadResult, fingerprint
from everturn.sources.contract import SourceCandidate, SourceReader
from everturn.sources.gemini.files import workspace
from everturn.sources.gemini.message import (
    HEADER,
    TYPES,
    answers_a_call,
    build,
    is_done,
    only_calls,
    rewind_message,
    scratchpad,
    unknown,
    usage,
    words_of,
)
from everturn.sources.toolkit.json_document import (
    DocumentItem,
    DocumentWalk,
    decode_item,
    entries,
    record,
    settle,
    value_of,
)
from everturn.sources.toolkit.json_lines import JsonLines
from everturn.sources.toolkit.line_reader import ReadTally, SessionTally
from everturn.sources.toolkit.values import plain, word

_MOST_IDS = 20_000
_MOST_RECENT = 64
_MOST_LINKS = 2000


class GeminiSeenMessage(Struct, array_like=True):
    """What was read of a message that may be written again."""

    words: int = 0  # a hash of its text
    calls: dict[str, bool] = {}  # call id → whether its result was there
    counted: bool = False  # it had its tokens


class GeminiReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    form: str = ""  # "lines" or "document", once that is known
    open_line: bool = False
    stage: str = ""  # of a document
    workspace: bool = False  # it was told
    linked: bool = False  # to the session it hangs on
    ids: dict[int, bool] = {}  # messages seen, as hashes
    recent: dict[str, GeminiSeenMessage] = {}  # by id, the latest ones
    links: dict[int, bool] = {}  # links made

    def is_new(self, found: dict[str, Any]) -> bool:
        """Whether no message with this id was seen; it is noted. Messages without an id are always new."""
        key = _key(found)
        if not key or key not in self.ids:
            _put(self.ids, key, True, _MOST_IDS)
            return True
        return False

    def note(self, found: dict[str, Any]) -> GeminiSeenMessage:
        """Remember what a record said; what was known before of its message."""
        name = word(found.get("id"))
        before = self.recent.pop(name, None) or GeminiSeenMessage()
        calls = {word(call.get("id")): is_done(call) for call in map(record, entries(found.get("toolCalls")))}
        counted = before.counted or usage(found.get("tokens")) is not None
        _put(self.recent, name, GeminiSeenMessage(words_hash(found), before.calls | calls, counted), _MOST_RECENT)
        return before

    def is_new_link(self, key: int) -> bool:
        """True once per key."""
        if key in self.links:
            return False
        _put(self.links, key, True, _MOST_LINKS)
        return True


def words_hash(found: dict[str, Any]) -> int:
    """Tells whether the text of a message has changed."""
    return fingerprint("words", words_of(found.get("content")))


def pack(state: GeminiReaderState) -> bytes:
    """The state as bytes."""
    return msgspec.msgpack.encode(state)


def unpack(data: bytes) -> GeminiReaderState:
    """The state in some bytes; a fresh one when they are not ours."""
    try:
        return msgspec.msgpack.decode(data, type=GeminiReaderState) if data else GeminiReaderState()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return GeminiReaderState()


def _key(found: dict[str, Any]) -> int:
    name = word(found.get("id"))
    return fingerprint("id", name) if name else 0


def _put(found: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    found[key] = value
    if len(found) > most:  # half of them at once: the first of a dict is found slowly when many before it were deleted
        for old in list(islice(found, most // 2)):
            del found[old]


_decode: Callable[[bytes | memoryview], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


def reader(found: SourceCandidate, state: bytes) -> SourceReader:
    """The reader of a file."""
    return GeminiReader(found, unpack(state))


class GeminiReader:
    """One session, in either form."""

    def __init__(self, found: SourceCandidate, state: GeminiReaderState) -> None:
        self._found, self._state = found, state
        self._helper = found.kind == "subagent"
        self._gathering = ReadTally()
        if not state.form:
            state.form = {".jsonl": "lines", ".json": "document"}.get(found.path.suffix.lower(), "")
        self._lines = JsonLines[dict[str, Any]](_decode, lambda value: value, state.open_line)
        self._walk = DocumentWalk("messages", state.stage)

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        state = self._state
        self._gathering = ReadTally()
        if not state.form:
            state.form = _form(data, last)
        if not state.form:
            if last and data.strip():
                self._gathering.trouble("torn_tail", base, len(data), is_record=False, provisional=True)
            return self._gathering.reading(0)
        return self._feed_lines(data, base, last) if state.form == "lines" else self._feed_document(data, base, last)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line, self._state.stage = self._lines.open_line, self._walk.stage
        return pack(self._state)

    # the two forms ----------------------------------------------------------------------------------------------------
    def _feed_lines(self, data: bytes, base: int, last: bool) -> ReadResult:
        gathering, lines = self._gathering, self._lines
        for start, raw, found, trouble in lines.split(data, base, last):
            if trouble:
                gathering.trouble(trouble, start, len(raw), is_record=found is None)
            if found is not None:
                self._record(found, raw, start)
        if lines.tail is not None:
            start, size, trouble = lines.tail
            gathering.trouble(trouble, start, size, is_record=False, provisional=True)
        return gathering.reading(lines.consumed, lines.lines, lines.glued)

    def _feed_document(self, data: bytes, base: int, last: bool) -> ReadResult:
        gathering, walk = self._gathering, self._walk
        for item in walk.split(data, base, last):
            value, trouble = value_of(item)
            if trouble:
                gathering.trouble(trouble, item.start, len(item.raw), is_record=value is None)
            if not trouble or value is not None:
                self._item(item, value)
        settle(walk, gathering)
        return gathering.reading(walk.consumed)

    def _item(self, item: DocumentItem, value: Any) -> None:
        if item.key:
            self._learn({item.key: value})
            self._gathering.count(f"({plain(item.key)})", "known")
        else:
            said = self._say(build(value, item.start, len(item.raw), self._helper), value)
            self._gathering.count(plain(value.get("type")), said)

    # records ------------------------------------------------------------------------------------------------------------
    def _record(self, found: dict[str, Any], raw: bytes | memoryview, start: int) -> None:
        """One line: a message, written for the first time or again, a patch, a mark, or the header."""
        count = self._gathering.count
        if "$set" in found:
            count("$set", self._patch(record(found["$set"]), raw, start))
        elif "$rewindTo" in found:
            count("$rewindTo", self._say(rewind_message(found, start, len(raw))))
        elif "type" not in found and "sessionId" in found:
            self._learn(found)
            count("(header)", "known")
        elif self._state.is_new(found):
            self._state.note(found)
            count(plain(found.get("type")), self._say(build(found, start, len(raw), self._helper), found))
        else:
            count(plain(found.get("type")), self._again(found, raw, start))

    def _again(self, found: dict[str, Any], raw: bytes | memoryview, start: int) -> str:
        """A message that was written before: what is new in it."""
        if word(found.get("type")) != "gemini":
            return "known"
        remembered = word(found.get("id")) in self._state.recent
        before = self._state.note(found)
        if not remembered:
            return "known"
        if before.words != words_hash(found):
            return self._say(build(found, start, len(raw)), found)
        items = _new_calls(found, before, raw, start)
        if items:
            first, last = items[0], items[-1]
            calls = [decode_item(item.raw)[0] for item in items]
            return self._say(only_calls(found, calls, first.start, last.start + len(last.raw) - first.start), found)
        if usage(found.get("tokens")) is None or before.counted:
            return "known"
        where = next(item for item in DocumentWalk("").split(bytes(raw), start, True) if item.key == "tokens")
        return self._say(only_calls(found, [], where.start, len(where.raw)), found)

    def _patch(self, patch: dict[str, Any], raw: bytes | memoryview, start: int) -> str:
        self._learn(patch)
        said = "known"
        if "messages" in patch:
            said = self._rewrite(raw, start)
        if "memoryScratchpad" in patch:
            return self._say(scratchpad(patch, start, len(raw)))
        if patch.keys() - HEADER:
            self._say(unknown({key: value for key, value in patch.items() if key not in HEADER}, start, len(raw)))
            return "unknown"
        return said

    def _rewrite(self, raw: bytes | memoryview, start: int) -> str:
        """All messages written anew: those never seen stand for what was compacted."""
        whole = next((item for item in DocumentWalk("").split(bytes(raw), start, True) if item.key == "$set"), None)
        if whole is None:
            return "known"
        fresh = []
        for item in DocumentWalk("messages").split(whole.raw, whole.start, True):
            value = record(decode_item(item.raw)[0]) if not item.key else {}
            if value and self._state.is_new(value) and not answers_a_call(value.get("content")):
                fresh.append((item, value))
        if not fresh:
            return "known"
        self._say(Message("system", "system", "compaction", start=start, size=len(raw)))
        for item, value in fresh:
            made = build(value, item.start, len(item.raw))
            kind = "summary" if made.role == "user" else "context"
            self._say(replace(made, origin="injected", kind=kind, starts_turn=False, provider_id="", usage=None))
        return "message"

    def _talk(self) -> SessionTally:
        found = self._found
        return self._gathering.session(found.native_id or found.path.stem, found.kind, found.parent)

    # what records say ---------------------------------------------------------------------------------------------------
    def _say(self, message: Message, found: dict[str, Any] | None = None) -> str:
        """Add a message; what became of its record."""
        state, talk = self._state, self._talk()
        talk.messages.append(message)
        if self._found.parent and not state.linked:
            state.linked = True
            talk.links.append(Link("subagent_of", self._found.parent))
        for block in message.blocks:
            if block.result is not None and block.result.child:
                self._link(Link("spawned", block.result.child, block.result.call_id))
        if found is not None and not state.workspace and message.origin == "model":
            self._place(workspace("\n".join(_descriptions(found)).encode("utf-8", "replace")))
        return "unknown" if found is not None and word(found.get("type")) not in TYPES else "message"

    def _link(self, link: Link) -> None:
        if self._state.is_new_link(fingerprint(f"{link.relation}\0{link.native_id}", link.call_id)):
            self._talk().links.append(link)

    def _learn(self, header: dict[str, Any]) -> None:
        summary = word(header.get("summary"))
        if summary:
            self._talk().learn(summary=summary, title=summary.split("\n", 1)[0], title_rank=2)
        folders = [word(folder) for folder in entries(header.get("directories"))]
        if folders and not self._state.workspace:
            self._place(folders[0])

    def _place(self, folder: str) -> None:
        if folder:
            self._state.workspace = True
            self._talk().learn(workspace=folder)


def _form(data: bytes, last: bool) -> str:
    """Lines or a document, seen from the beginning of a file whose name does not tell; "" when it cannot be told yet."""
    line, end, _ = data.lstrip().partition(b"\n")
    if not end and not last:
        return ""
    walk = DocumentWalk("messages")
    for _ in walk.split(line.rstrip(), 0, False):
        if walk.stage == "{[":
            return "document"
    if walk.stage == ".":
        return "lines"
    return "document" if end or walk.stage == "{[" else ""


def _new_calls(
    found: dict[str, Any], before: GeminiSeenMessage, raw: bytes | memoryview, start: int
) -> list[DocumentItem]:
    """The calls that were not there before, or had no result."""
    calls = [record(call) for call in entries(found.get("toolCalls"))]
    fresh = [n for n, call in enumerate(calls) if not before.calls.get(word(call.get("id")), False)]
    if not fresh:
        return []
    items = [item for item in DocumentWalk("toolCalls").split(bytes(raw), start, True) if not item.key]
    return items[fresh[0] : fresh[-1] + 1]


def _descriptions(found: dict[str, Any]) -> list[str]:
    return [word(record(call).get("description")) for call in entries(found.get("toolCalls"))]


_TOKENS = frozenset(("input", "output", "total"))


def view(record_bytes: bytes) -> Message | None:
    """A record, the calls of one (without brackets around them), or its tokens; None when it is no JSON."""
    value, _ = decode_item(record_bytes)
    if value is None:
        calls, _ = decode_item(b"[" + record_bytes + b"]")
        return only_calls({}, calls, 0, len(record_bytes)) if calls else None
    if not isinstance(value, dict):
        return only_calls({}, [value], 0, len(record_bytes))
    return _view_record(value, len(record_bytes))


def _view_record(found: dict[str, Any], size: int) -> Message:
    if "$set" in found:
        return _view_patch(record(found["$set"]), size)
    if "$rewindTo" in found:
        return rewind_message(found, 0, size)
    if "type" not in found and "name" in found and "args" in found:
        return only_calls({}, [found], 0, size)
    if "type" not in found and found.keys() >= _TOKENS:
        return only_calls({"tokens": found}, [], 0, size)
    return build(found, 0, size)


def _view_patch(patch: dict[str, Any], size: int) -> Message:
    if "memoryScratchpad" in patch:
        return scratchpad(patch, 0, size)
    if "messages" in patch:
        return Message("system", "system", "compaction", size=size)
    return unknown({key: value for key, value in patch.items() if key not in HEADER}, 0, size)
