"""Find history files and read them: which session each passage belongs to, and which edit each result reports.

aider writes into the root of each repository, so it has no folder of its own. Searched are the file in the home folder, the
one named by AIDER_CHAT_HISTORY_FILE, and every repository below the folders that the user names. A history file elsewhere is
recognised by its content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, Message, ReadResult, fingerprint
from everturn.sources.aider.message import HEAD, AiderLineState, build, call_id, opens, speaker_of
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import find_files
from everturn.sources.toolkit.line_reader import Passages, ReadTally, SessionTally, text_of
from everturn.sources.toolkit.values import digest, message_digest, plain, state_of

HISTORY = ".aider.chat.history.md"

_SKIPPED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".cache", "site-packages"))
_HEAD = re.compile(rb"\s*(?:\xef\xbb\xbf)?# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*(?:\n|\Z)")
_ANY_HEAD = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.MULTILINE)
_PROMPT = re.compile(rb"^#### \S", re.MULTILINE)


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield the history files below a root, or the root itself where it is a file."""
    if root.is_file():
        return iter((SourceCandidate(root),))
    return find_files(root, _pick_history, skipped=_SKIPPED)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    usual = path.name == HISTORY and (_ANY_HEAD.search(head) or _PROMPT.search(head))
    return SourceCandidate(path) if usual or _HEAD.match(head) else None


def _pick_history(entry: os.DirEntry[str]) -> SourceCandidate | None:
    return SourceCandidate(Path(entry.path)) if entry.name == HISTORY and entry.is_file() else None


_CLIENT = re.compile(r"^> Aider v(\S+)", re.MULTILINE | re.IGNORECASE)
_MODEL = re.compile(r"^> (?:Main model|Model|Models?): (\S+)", re.MULTILINE)
_MOST_OPEN = 200


class AiderReaderState(Struct):
    known: AiderLineState = msgspec.field(default_factory=AiderLineState)
    native_id: str = ""
    started: str = ""
    same: int = 0  # sessions before this one that started in the same second
    index: int = 0  # messages of the session so far
    answers: int = 0
    client: str = ""
    model: str = ""
    waiting: dict[str, int] = {}  # file → edits requested and not yet applied


class AiderReader:
    """Reads one history file, which holds many sessions."""

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, AiderReaderState)
        self._passages = Passages(opens, self._state.known)
        path = candidate.path
        self._workspace = str(path.parent) if path.name == HISTORY and path.is_absolute() else ""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        tally, passages = ReadTally(), self._passages
        before = passages.state.speaker
        for start, raw in passages.split(data, base, last, whole_lines=True):
            continues = passages.continues and before not in ("", "gap")
            self._read_passage(tally, start, raw, before if continues else speaker_of(raw))
        self._state.known = passages.state
        if passages.tail is not None:
            tally.trouble("torn_tail", *passages.tail, is_record=False, provisional=True)
        return tally.reading(passages.consumed)

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self._state)

    def _read_passage(self, tally: ReadTally, start: int, raw: bytes, speaker: str) -> None:
        state = self._state
        if speaker == "gap" or not raw.strip():
            return
        text, is_utf8 = text_of(raw)
        if not is_utf8:
            tally.trouble("invalid_utf8", start, len(raw), is_record=False)
        head = HEAD.match(text.lstrip("\ufeff\r\n ")) if speaker == "head" else None
        if head:
            self._begin_session(f"{head[1]}_{head[2].replace(':', '-')}")
        elif not state.native_id:
            state.native_id = f"undated-{digest(text)}"
        session = tally.session(state.native_id)
        self._learn(session, speaker, text)
        message = self._add_context(build(speaker, text), speaker)
        identity = fingerprint(f"{state.native_id}/{state.index}", message_digest(message))
        session.messages.append(replace(message, start=start, size=len(raw), fingerprint=identity))
        state.index += 1
        tally.count(speaker, "message", state.client)

    def _begin_session(self, started: str) -> None:
        state = self._state
        state.same = state.same + 1 if started == state.started else 0
        state.started = started
        state.native_id = f"{started}-{state.same + 1}" if state.same else started
        state.index = state.answers = 0
        state.client = state.model = ""
        state.waiting = {}

    def _learn(self, session: SessionTally, speaker: str, text: str) -> None:
        if speaker in ("head", "notice"):
            client, model = _CLIENT.search(text), _MODEL.search(text)
            self._state.client = plain(client[1]) if client else self._state.client
            self._state.model = model[1][:200].replace("\0", "\ufffd") if model else self._state.model
        session.learn(client=self._state.client, workspace=self._workspace)

    def _add_context(self, message: Message, speaker: str) -> Message:
        """Return the message with the response it is part of, and its results with the call they answer."""
        state = self._state
        if speaker == "model":
            state.answers += 1
            message = replace(message, blocks=tuple(map(self._number_call, message.blocks)))
        if message.origin == "model":
            return replace(message, provider_id=f"{state.native_id}/{state.answers}", model=state.model)
        if speaker == "result":
            return replace(message, blocks=tuple(map(self._match_result, message.blocks)))
        return message

    def _number_call(self, block: Block) -> Block:
        """Number an edit of a file whose previous edit was never applied, so that its call id is unique."""
        if block.call is None:
            return block
        path, waiting = block.call.path, self._state.waiting
        n = waiting[path] = waiting.get(path, 0) + 1
        if len(waiting) > _MOST_OPEN:
            del waiting[next(iter(waiting))]
        return block if n == 1 else replace(block, call=replace(block.call, call_id=f"{call_id(path)} {n}"))

    def _match_result(self, block: Block) -> Block:
        """Give a result the id of the last edit of that file, whose path may be relative to another folder."""
        if block.result is None:
            return block
        waiting, path = self._state.waiting, block.result.path
        name = path if path in waiting else next((other for other in waiting if _is_same_file(path, other)), "")
        n = waiting.pop(name, 1)
        call = call_id(name or path)
        return replace(block, result=replace(block.result, call_id=call if n == 1 else f"{call} {n}"))


def _is_same_file(one: str, other: str) -> bool:
    return one.endswith("/" + other) or other.endswith("/" + one)
