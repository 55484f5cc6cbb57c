"""Reads a history file piece by piece: which session each passage belongs to, and what passages say together.

Finds history files, and knows them by their content wherever else they lie.

aider writes into the root of each repository, so there is no folder to look in by itself: the home folder's own file,
the one named by AIDER_CHAT_HISTORY_FILE, and every repository below the folders that the user names.
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
from everturn.sources.contract import SearchPlaces, SourceCandidate, existing_folders
from everturn.sources.toolkit.line_reader import Passages, ReadTally, SessionTally, text_of
from everturn.sources.toolkit.values import digest, plain, state_of

NAME = "aider"
HISTORY = ".aider.chat.history.md"

_DEEPEST = 8
_SKIPPED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".cache", "site-packages"))
_HEAD = re.compile(rb"\s*(?:\xef\xbb\xbf)?# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*(?:\n|\Z)")
_ANY_HEAD = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.MULTILINE)
_PROMPT = re.compile(rb"^#### \S", re.MULTILINE)


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders named by the user; and single files: the one the environment names, the one in the home folder."""
    wanted = list(places.extra.get(NAME, ()))
    named = places.env.get("AIDER_CHAT_HISTORY_FILE", "").strip()
    if named:
        wanted.append(places.home / named[2:] if named.startswith("~/") else Path(named))
    wanted.append(places.home / HISTORY)
    return existing_folders(wanted, files=True)


def find(root: Path) -> Iterator[SourceCandidate]:
    """The history files below a root, or the root itself where it is a file."""
    if root.is_file():
        yield SourceCandidate(root)
        return
    failures: list[OSError] = []
    yield from _walk(str(root), failures, 0)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    usual = path.name == HISTORY and (_ANY_HEAD.search(head) or _PROMPT.search(head))
    return SourceCandidate(path) if usual or _HEAD.match(head) else None


def _walk(folder: str, failures: list[OSError], depth: int) -> Iterator[SourceCandidate]:
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        folders.append(entry.path)
                elif entry.name == HISTORY and entry.is_file():
                    yield SourceCandidate(Path(entry.path))
    except OSError as failure:
        failures.append(failure)
    if depth < _DEEPEST:
        for path in folders:
            yield from _walk(path, failures, depth + 1)


_CLIENT = re.compile(r"^> Aider v(\S+)", re.MULTILINE | re.IGNORECASE)
_MODEL = re.compile(r"^> (?:Main model|Model|Models?): (\S+)", re.MULTILINE)
_MOST_OPEN = 200


class AiderReaderState(Struct):
    """What a later reader needs to go on."""

    known: AiderLineState = msgspec.field(default_factory=AiderLineState)
    native_id: str = ""
    started: str = ""
    same: int = 0  # sessions before this one that started in the same second
    index: int = 0  # messages of the session so far
    answers: int = 0
    client: str = ""
    model: str = ""
    waiting: dict[str, int] = {}  # file → edits asked for and not yet applied


class AiderReader:
    """One history file: many sessions."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, AiderReaderState)
        self._passages = Passages(opens, self._state.known)
        usual = found.path.name == HISTORY
        self._workspace = str(found.path.parent) if usual and found.path.is_absolute() else ""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering, passages = ReadTally(), self._passages
        before = passages.state.speaker
        for start, raw in passages.split(data, base, last, whole_lines=True):
            goes_on = passages.continues and before not in ("", "gap")
            self._passage(gathering, start, raw, before if goes_on else speaker_of(raw))
        self._state.known = passages.state
        if passages.tail is not None:
            gathering.trouble("torn_tail", *passages.tail, is_record=False, provisional=True)
        return gathering.reading(passages.consumed)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        return msgspec.msgpack.encode(self._state)

    def _passage(self, gathering: ReadTally, start: int, raw: bytes, speaker: str) -> None:
        state = self._state
        if speaker == "gap" or not raw.strip():
            return
        text, is_fine = text_of(raw)
        if not is_fine:
            gathering.trouble("invalid_utf8", start, len(raw), is_record=False)
        if speaker == "head" and HEAD.match(text.lstrip("\ufeff\r\n ")):
            self._begin(text)
        elif not state.native_id:
            state.native_id = f"undated-{digest(text)}"
        talk = gathering.session(state.native_id)
        self._learn(talk, speaker, text)
        message = self._placed(build(speaker, text), speaker)
        talk.messages.append(
            replace(message, start=start, size=len(raw), fingerprint=self._fingerprint_message(message))
        )
        state.index += 1
        gathering.count(speaker, "message", state.client)

    def _begin(self, text: str) -> None:
        state, found = self._state, HEAD.match(text.lstrip("\ufeff\r\n "))
        started = f"{found[1]}_{found[2].replace(':', '-')}" if found else ""
        state.same = state.same + 1 if started == state.started else 0
        state.started = started
        state.native_id = f"{started}-{state.same + 1}" if state.same else started
        state.index = state.answers = 0
        state.client = state.model = ""
        state.waiting = {}

    def _learn(self, talk: SessionTally, speaker: str, text: str) -> None:
        if speaker in ("head", "notice"):
            client, model = _CLIENT.search(text), _MODEL.search(text)
            self._state.client = plain(client[1]) if client else self._state.client
            self._state.model = model[1][:200].replace("\0", "\ufffd") if model else self._state.model
        talk.learn(client=self._state.client, workspace=self._workspace)

    def _placed(self, message: Message, speaker: str) -> Message:
        """The message with what only its place tells: which response it is, and which edit a result is of."""
        state = self._state
        if speaker == "model":
            state.answers += 1
            message = replace(message, blocks=tuple(map(self._asked, message.blocks)))
        if message.origin == "model":
            return replace(message, provider_id=f"{state.native_id}/{state.answers}", model=state.model)
        if speaker == "result":
            return replace(message, blocks=tuple(map(self._answered, message.blocks)))
        return message

    def _asked(self, block: Block) -> Block:
        """An edit of a file whose last one was never applied gets a name of its own."""
        if block.call is None:
            return block
        path, waiting = block.call.path, self._state.waiting
        n = waiting[path] = waiting.get(path, 0) + 1
        if len(waiting) > _MOST_OPEN:
            del waiting[next(iter(waiting))]
        return block if n == 1 else replace(block, call=replace(block.call, call_id=f"{call_id(path)} {n}"))

    def _answered(self, block: Block) -> Block:
        """The result of the last edit of that file; aider may give its path from another folder."""
        if block.result is None:
            return block
        waiting, path = self._state.waiting, block.result.path
        name = path if path in waiting else next((other for other in waiting if _same_file(path, other)), "")
        n = waiting.pop(name, 1)
        asked = call_id(name or path)
        return replace(block, result=replace(block.result, call_id=asked if n == 1 else f"{asked} {n}"))

    def _fingerprint_message(self, message: Message) -> int:
        words = digest(message.role, *(block.text for block in message.blocks))
        return fingerprint(f"{self._state.native_id}/{self._state.index}", words)


def _same_file(one: str, other: str) -> bool:
    return one.endswith("/" + other) or other.endswith("/" + one)
