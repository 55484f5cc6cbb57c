"""Reads a session piece by piece: a document, or lines in which a message may be written again with more in it.

In lines, the first record of a message gives the message. A later record with the same id gives a further message of the
same response with only the new calls; its byte range is that of these calls. A patch that rewrites all messages gives those
never seen before: the client's replacement for older ones.

The reader state makes reading in any pieces give the same as reading at once. It is bounded: everything that grows with the
file forgets its oldest entries. `view` recognizes by their shape which bytes it was given.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, ReadResult, fingerprint
from everturn.sources.contract import SourceCandidate
from everturn.sources.gemini.files import workspace
from everturn.sources.gemini.message import (
    HEADER,
    TYPES,
    answers_a_call,
    build,
    calls_message,
    is_done,
    plain_text,
    rewind_message,
    scratchpad_message,
    unknown,
    usage,
)
from everturn.sources.toolkit.json_document import DocumentItem, DocumentReader, DocumentWalk, decode_item
from everturn.sources.toolkit.line_reader import Counted, ReadTally, Rec, listing, mapping, read_walk, walker
from everturn.sources.toolkit.values import decode_value, plain, word

_MOST_IDS = 20_000
_MOST_RECENT = 64
_MOST_LINKS = 2000
_FORMS = {".jsonl": "lines", ".json": "document"}
_LINES_LOOKED_AT = 8


class GeminiSeenMessage(Struct, array_like=True):
    """The known parts of a message that may be written again."""

    words: int = 0  # a hash of its text
    calls: dict[str, bool] = {}  # call id → whether it had its result
    counted: bool = False  # it had its tokens


class GeminiReaderState(Struct, array_like=True):
    form: str = ""  # "lines" or "document", once that is known
    open_line: bool = False
    stage: str = ""  # of a document
    workspace: bool = False  # it is known
    linked: bool = False  # to its parent session
    ids: dict[int, bool] = {}  # messages seen, as hashes
    recent: dict[str, GeminiSeenMessage] = {}  # by id, the latest ones
    links: dict[int, bool] = {}  # links made

    def is_new(self, record: dict[str, Any]) -> bool:
        """Note a message; return whether its id is new. Messages without an id are always new."""
        if not (key := _key(record)) or key not in self.ids:
            _put(self.ids, key, True, _MOST_IDS)
            return True
        return False

    def note(self, record: dict[str, Any]) -> GeminiSeenMessage:
        """Remember a record of a message; return what was known before."""
        name = word(record.get("id"))
        before = self.recent.pop(name, None) or GeminiSeenMessage()
        calls = {word(call.get("id")): is_done(call) for call in map(mapping, listing(record.get("toolCalls")))}
        counted = before.counted or usage(record.get("tokens")) is not None
        _put(self.recent, name, GeminiSeenMessage(hash_text(record), before.calls | calls, counted), _MOST_RECENT)
        return before

    def is_new_link(self, key: int) -> bool:
        """Return true once per key."""
        if key in self.links:
            return False
        _put(self.links, key, True, _MOST_LINKS)
        return True


def hash_text(record: dict[str, Any]) -> int:
    """Return a hash that changes with the text of a message."""
    return fingerprint("words", plain_text(record.get("content")))


def _key(record: dict[str, Any]) -> int:
    return fingerprint("id", name) if (name := word(record.get("id"))) else 0


def _put(entries: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    entries[key] = value
    if len(entries) > most:  # half at once: finding a dict's first key is slow after many deletions before it
        for old in list(islice(entries, most // 2)):
            del entries[old]


class GeminiReader(DocumentReader[GeminiReaderState]):
    """Reads one session, in either form."""

    key, kind = "messages", GeminiReaderState

    def __init__(self, candidate: SourceCandidate, packed: bytes) -> None:
        super().__init__(candidate, packed)
        self._helper = candidate.kind == "subagent"
        self._lines = walker(self._state.open_line)

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        state = self._state
        state.form = state.form or _form(data, last, self._candidate.path.suffix.lower())
        if state.form == "document":
            return super().feed(data, base, last)
        self._tally = ReadTally()
        if not state.form:
            return self._tally.defer_read(data, base, last)
        return read_walk(self._tally, self._lines, data, base, last, self._take)

    def state(self) -> bytes:
        self._state.open_line = self._lines.open_line
        return super().state()

    def _read_item(self, item: DocumentItem, value: Any) -> None:
        if item.key:
            self._learn({item.key: value})
            self._tally.count(f"({plain(item.key)})", "known")
        else:
            disposition = self._add_message(build(value, item.start, len(item.raw), self._helper), value)
            self._tally.count(plain(value.get("type")), disposition)

    # --- records ---
    def _take(self, record: Rec, start: int, raw: bytes | memoryview) -> Counted:
        """Read one line: a message, written for the first time or again, a patch, a mark, or the header."""
        if "$set" in record:
            return "$set", self._read_patch(mapping(record["$set"]), raw, start), ""
        if "$rewindTo" in record:
            return "$rewindTo", self._add_message(rewind_message(record, start, len(raw))), ""
        if "type" not in record and "sessionId" in record:
            self._learn(record)
            return "(header)", "known", ""
        if self._state.is_new(record):
            self._state.note(record)
            disposition = self._add_message(build(record, start, len(raw), self._helper), record)
        else:
            disposition = self._read_again(record, raw, start)
        return plain(record.get("type")), disposition, ""

    def _read_again(self, record: dict[str, Any], raw: bytes | memoryview, start: int) -> str:
        """Add the new parts of a message that was written before."""
        if word(record.get("type")) != "gemini":
            return "known"
        is_recent = word(record.get("id")) in self._state.recent
        before = self._state.note(record)
        if not is_recent:
            return "known"
        if before.words != hash_text(record):
            return self._add_message(build(record, start, len(raw)), record)
        if items := _new_calls(record, before, raw, start):
            first, last = items[0], items[-1]
            calls = [decode_item(item.raw)[0] for item in items]
            return self._add_message(
                calls_message(record, calls, first.start, last.start + len(last.raw) - first.start), record
            )
        if usage(record.get("tokens")) is None or before.counted:
            return "known"
        where = next(item for item in DocumentWalk("").split(bytes(raw), start, True) if item.key == "tokens")
        return self._add_message(calls_message(record, [], where.start, len(where.raw)), record)

    def _read_patch(self, patch: dict[str, Any], raw: bytes | memoryview, start: int) -> str:
        self._learn(patch)
        disposition = self._read_rewrite(raw, start) if "messages" in patch else "known"
        if "memoryScratchpad" in patch:
            return self._add_message(scratchpad_message(patch, start, len(raw)))
        if patch.keys() - HEADER:
            self._add_message(
                unknown({key: value for key, value in patch.items() if key not in HEADER}, start, len(raw))
            )
            return "unknown"
        return disposition

    def _read_rewrite(self, raw: bytes | memoryview, start: int) -> str:
        """Read all messages written anew: those never seen replace what was compacted."""
        whole = next((item for item in DocumentWalk("").split(bytes(raw), start, True) if item.key == "$set"), None)
        if whole is None:
            return "known"
        fresh = []
        for item in DocumentWalk("messages").split(whole.raw, whole.start, True):
            value = mapping(decode_item(item.raw)[0]) if not item.key else {}
            if value and self._state.is_new(value) and not answers_a_call(value.get("content")):
                fresh.append((item, value))
        if not fresh:
            return "known"
        self._add_message(Message("system", "system", "compaction", start=start, size=len(raw)))
        for item, value in fresh:
            message = build(value, item.start, len(item.raw))
            kind = "summary" if message.role == "user" else "context"
            self._add_message(
                replace(message, origin="injected", kind=kind, starts_turn=False, provider_id="", usage=None)
            )
        return "message"

    # --- messages and facts ---
    def _add_message(self, message: Message, record: dict[str, Any] | None = None) -> str:
        """Add a message; return the disposition of its record."""
        state, session = self._state, self._open_session()
        session.messages.append(message)
        if self._candidate.parent and not state.linked:
            state.linked = True
            session.links.append(Link("subagent_of", self._candidate.parent))
        for block in message.blocks:
            if block.result is not None and block.result.child:
                self._link(Link("spawned", block.result.child, block.result.call_id))
        if record is not None and not state.workspace:
            said = _call_descriptions(record) if message.origin == "model" else _listed_folders(message)
            self._set_workspace(workspace("\n".join(said).encode("utf-8", "replace")))
        return "unknown" if record is not None and word(record.get("type")) not in TYPES else "message"

    def _link(self, link: Link) -> None:
        if self._state.is_new_link(fingerprint(f"{link.relation}\0{link.native_id}", link.call_id)):
            self._open_session().links.append(link)

    def _learn(self, header: dict[str, Any]) -> None:
        if summary := word(header.get("summary")):
            self._open_session().learn(summary=summary, title=summary.split("\n", 1)[0], title_rank=2)
        folders = [word(folder) for folder in listing(header.get("directories"))]
        if folders and not self._state.workspace:
            self._set_workspace(folders[0])

    def _set_workspace(self, folder: str) -> None:
        if folder:
            self._state.workspace = True
            self._open_session().learn(workspace=folder)


def _listed_folders(message: Message) -> list[str]:
    """Return the texts of the context that the client puts before the first prompt, which names the working folder."""
    return [block.text for block in message.blocks if "**Workspace Directories:**" in block.text]


def _form(data: bytes, last: bool, suffix: str) -> str:
    """Return "lines" or "document" by the content, and by the name where damage hides it; "" for too few bytes."""
    line, end, rest = data.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not end and not last:
        return ""
    walk = DocumentWalk("messages")
    for _ in walk.split(line.rstrip(), 0, False):
        if walk.stage == "{[":
            return "document"
    if walk.stage == ".":
        return "lines"
    if not end:
        return "document" if walk.stage == "{[" else _FORMS.get(suffix, "")
    if line.strip() == b"{":
        return "document"
    is_lines = any(isinstance(decode_value(other), dict) for other in rest.splitlines()[:_LINES_LOOKED_AT])
    return "lines" if is_lines else _FORMS.get(suffix, "document")


def _new_calls(
    record: dict[str, Any], before: GeminiSeenMessage, raw: bytes | memoryview, start: int
) -> list[DocumentItem]:
    """Return the calls that are new, or had no result before."""
    calls = [mapping(call) for call in listing(record.get("toolCalls"))]
    fresh = [n for n, call in enumerate(calls) if not before.calls.get(word(call.get("id")), False)]
    if not fresh:
        return []
    items = [item for item in DocumentWalk("toolCalls").split(bytes(raw), start, True) if not item.key]
    return items[fresh[0] : fresh[-1] + 1]


def _call_descriptions(record: dict[str, Any]) -> list[str]:
    return [word(mapping(call).get("description")) for call in listing(record.get("toolCalls"))]


_TOKENS = frozenset(("input", "output", "total"))


def view(record_bytes: bytes) -> Message | None:
    """Return the message of a record, of calls without the brackets around them, or of tokens; None if it is no JSON."""
    value, _ = decode_item(record_bytes)
    if value is None:
        calls, _ = decode_item(b"[" + record_bytes + b"]")
        return calls_message({}, calls, 0, len(record_bytes)) if calls else None
    if not isinstance(value, dict):
        return calls_message({}, [value], 0, len(record_bytes))
    return _view_record(value, len(record_bytes))


def _view_record(record: dict[str, Any], size: int) -> Message:
    if "$set" in record:
        return _view_patch(mapping(record["$set"]), size)
    if "$rewindTo" in record:
        return rewind_message(record, 0, size)
    if "type" not in record and "name" in record and "args" in record:
        return calls_message({}, [record], 0, size)
    if "type" not in record and record.keys() >= _TOKENS:
        return calls_message({"tokens": record}, [], 0, size)
    return build(record, 0, size)


def _view_patch(patch: dict[str, Any], size: int) -> Message:
    if "memoryScratchpad" in patch:
        return scratchpad_message(patch, 0, size)
    if "messages" in patch:
        return Message("system", "system", "compaction", size=size)
    return unknown({key: value for key, value in patch.items() if key not in HEADER}, 0, size)
