"""What a reader remembers between pieces of a file, so that reading in any pieces gives the same as reading at once.

Bounded: whatever grows with the file forgets its oldest entries.

Prompts typed while the agent works: they wait in a queue, and some are never written down anywhere else.

What leaves the queue by `dequeue` becomes an ordinary record. What leaves it by `remove` was put into the running turn:
older clients note it nowhere but in the queue, newer ones as an attachment too. `popAll` takes it back into the editor.
Most queue records do not say which item they mean, and items leave without one, so a word heard elsewhere counts more
than the order. No human's words are ever dropped in doubt.

What one reading has found so far: messages and facts by session, problems, and a count of everything.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from everturn.model.conversation import (
    Census,
    Link,
    Message,
    Problem,
    ReadResult,
    SessionFacts,
    SessionPart,
    fingerprint,
)
from everturn.sources.claude_code.blocks import guess_speaker
from everturn.sources.claude_code.records import ClaudeRecord, word
from everturn.sources.toolkit.json_lines import BLANK, REASONS

_MOST_ITEMS = 1000
_MOST_TEXT = 100_000
_REMEMBERED = 64

_NO_TIME = 1 << 60  # no moment is as late as this, and no state can hold much larger numbers


class QueuedPrompt(Struct, array_like=True, gc=False):
    """One thing in the queue; the text is kept of what a human typed."""

    key: int
    start: int
    size: int
    at: str | int | float | None = None
    text: str = ""


class Queue(Struct, array_like=True):
    """What waits, what was taken out and has not been heard since, and what was put into a turn lately."""

    waiting: list[QueuedPrompt] = []
    taken: list[QueuedPrompt] = []
    said: list[int] = []

    def enqueue(self, item: QueuedPrompt) -> list[QueuedPrompt]:
        """Add an item; human ones there is no more room for are said at once."""
        self.waiting.append(item)
        crowded = []
        while len(self.waiting) > _MOST_ITEMS or sum(len(one.text) for one in self.waiting) > _MOST_TEXT:
            oldest = self.waiting.pop(0)
            if oldest.text:
                crowded.append(self._say(oldest))
        return crowded

    def dequeue(self) -> None:
        """Take the oldest; if another is heard next, it was that one."""
        if self.waiting:
            item = self.waiting.pop(0)
            if not item.text.startswith("/"):  # a command is heard in other words
                self.taken = [*self.taken, item][-_REMEMBERED:]

    def remove(self, text: str | None) -> QueuedPrompt | None:
        """An item was put into the turn: the one named, else the oldest prompt, else the oldest. Given if human."""
        if text is not None:
            item = _pop(self.waiting, key_of(text))
        else:
            item = min(self.waiting, key=_rank, default=None)
            if item is not None:
                self.waiting.remove(item)
        return self._say(item) if item is not None and item.text else None

    def pop_all(self) -> None:
        """Everything went back into the editor."""
        self.waiting = []

    def note_heard(self, text: str) -> None:
        """The words stand in a record of their own."""
        if not self.waiting and not self.taken:
            return
        key = key_of(text)
        if _pop(self.taken, key) is None and _pop(self.waiting, key) is not None and self.taken:
            self.waiting.insert(0, self.taken.pop(0))

    def repeats(self, text: str) -> bool:
        """The words were taken from the queue already."""
        key = key_of(text)
        if key not in self.said:
            return False
        self.said.remove(key)
        return True

    def _say(self, item: QueuedPrompt) -> QueuedPrompt:
        self.said = [*self.said, item.key][-_REMEMBERED:]
        return item


def item_of(text: str, start: int, size: int, at: str | int | float | None) -> QueuedPrompt:
    """An item for some words."""
    if isinstance(at, int) and abs(at) >= _NO_TIME:
        at = None
    return QueuedPrompt(key_of(text), start, size, at, text if guess_speaker(text).origin == "human" else "")


def key_of(text: str) -> int:
    """Words to be known again by."""
    return fingerprint("queued", text.strip())


def _rank(item: QueuedPrompt) -> int:
    if not item.text:
        return 1
    return 2 if item.text.startswith("/") else 0


def _pop(items: list[QueuedPrompt], key: int) -> QueuedPrompt | None:
    for number, item in enumerate(items):
        if item.key == key:
            return items.pop(number)
    return None


_K = TypeVar("_K")
_V = TypeVar("_V")

_MOST_SESSIONS = 1000
_MOST_LINKS = 4000
_MOST_UUIDS = 2000
_MOST_LEAVES = 32
_MOST_RECENT = 64
_LONGEST_TITLE = 300


class ClaudeSeen(Struct, array_like=True, gc=False):
    """What was already said of one session."""

    workspace: bool = False
    title_rank: int = 0
    linked: bool = False  # to the session it hangs on


class ClaudeReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    open_line: bool = False
    native_id: str = ""  # of the file's own session
    top: str = ""  # the session that subagents hang on
    client: str = ""
    own: ClaudeSeen = msgspec.field(default_factory=ClaudeSeen)
    sessions: dict[str, ClaudeSeen] = {}  # the others in the file
    queue: Queue = msgspec.field(default_factory=Queue)
    links: dict[int, bool] = {}  # those already made
    chains: dict[str, str] = {}  # uuid of a sidechain's record → the sidechain
    chain: str = ""  # the latest one
    recent: list[str] = []  # short uuids of the latest records
    leaves: dict[str, str] = {}  # short uuid of a record not seen yet → the title that names it
    form: str = ""  # lines | document; "" when too little was seen to tell
    stage: str = ""  # of the walk through a document

    def seen(self, native_id: str) -> ClaudeSeen:
        """What was said of a session."""
        found = self.own if native_id == self.native_id else self.sessions.get(native_id)
        if found is None:
            found = ClaudeSeen()
            _put(self.sessions, native_id, found, _MOST_SESSIONS)
        return found

    def is_new_link(self, key: int) -> bool:
        """True once per key."""
        if key in self.links:
            return False
        _put(self.links, key, True, _MOST_LINKS)
        return True

    def chain_of(self, uuid: str, parent: str, start: int) -> str:
        """The sidechain a record belongs to: its parent's; a record without one starts the next."""
        name = self.chains.get(parent, "") if parent else ""
        if not name:
            name = self.chain if parent and self.chain else (uuid or str(start))[:8]
        self.chain = name
        if uuid:
            _put(self.chains, uuid, name, _MOST_UUIDS)
        return name

    def title_for(self, leaf: str, title: str) -> str:
        """The title, if the record it names is of this file; else it is kept in case that comes yet."""
        if short_uuid(leaf) in self.recent:
            return title
        if leaf and title:
            _put(self.leaves, short_uuid(leaf), title[:_LONGEST_TITLE], _MOST_LEAVES)
        return ""

    def title_at(self, uuid: str) -> str:
        """Note a record; a title that was waiting for it."""
        name = short_uuid(uuid)
        recent = self.recent
        recent.append(name)
        if len(recent) > 2 * _MOST_RECENT:
            del recent[:_MOST_RECENT]
        return self.leaves.pop(name, "") if self.leaves else ""


def pack(state: ClaudeReaderState) -> bytes:
    """The state as bytes."""
    return msgspec.msgpack.encode(state)


def unpack(data: bytes) -> ClaudeReaderState:
    """The state in some bytes; a fresh one when they are not ours."""
    try:
        return msgspec.msgpack.decode(data, type=ClaudeReaderState) if data else ClaudeReaderState()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ClaudeReaderState()


def short_uuid(uuid: str) -> str:
    """Enough of a uuid to know it again among a few hundred."""
    return uuid[:8] if len(uuid) == len("00000000-0000-0000-0000-000000000000") else uuid[:64]


def _put(found: dict[_K, _V], key: _K, value: _V, most: int) -> None:
    found[key] = value
    if len(found) > most:
        del found[next(iter(found))]


class ClaudeSessionTally:
    """One session, as far as this reading adds to it."""

    __slots__ = ("_facts", "kind", "links", "messages", "native_id", "parent", "seen")

    def __init__(self, native_id: str, kind: str, parent: str, seen: ClaudeSeen) -> None:
        self.native_id, self.kind, self.parent, self.seen = native_id, kind, parent, seen
        self.messages: list[Message] = []
        self.links: list[Link] = []
        self._facts: dict[str, str | int] = {}

    def learn(self, event: ClaudeRecord) -> None:
        """Take the facts that a record of the session states."""
        facts = self._facts
        if event.version:
            facts["client"] = event.version
        if event.git_branch:
            facts["branch"] = event.git_branch
        if event.cwd and not self.seen.workspace:
            facts["workspace"] = event.cwd
            self.seen.workspace = True
        if event.team_name:
            facts["team"] = event.team_name
        if event.agent_name:
            facts["agent_name"] = event.agent_name

    def entitle(self, title: str, rank: int) -> None:
        """Take a title, unless there was one of higher rank."""
        if title and rank >= self.seen.title_rank:
            self.seen.title_rank = rank
            self._facts.update(title=title, title_rank=rank)

    def part(self) -> SessionPart | None:
        """What to hand on; None when there is nothing."""
        if not (self.messages or self.links or self._facts):
            return None
        facts = {name: word(value) if isinstance(value, str) else value for name, value in self._facts.items()}
        return SessionPart(self.native_id, SessionFacts(self.kind, self.parent, **facts), self.messages, self.links)  # type: ignore[arg-type]


class ClaudeTally:
    """The whole of it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._sessions: dict[str, ClaudeSessionTally] = {}
        self._census: dict[tuple[str, str, str], int] = {}

    def session(self, native_id: str) -> ClaudeSessionTally | None:
        """A session this reading has added to."""
        return self._sessions.get(native_id)

    def open(self, native_id: str, kind: str, parent: str, seen: ClaudeSeen) -> ClaudeSessionTally:
        """Start adding to a session."""
        session = self._sessions[native_id] = ClaudeSessionTally(native_id, kind, parent, seen)
        return session

    def count(self, kind: str, client: str, disposition: str) -> None:
        """Count one record."""
        key = kind, client, disposition
        self._census[key] = self._census.get(key, 0) + 1

    def trouble(self, start: int, size: int, trouble: str, is_record: bool) -> None:
        """Note a trouble; one that is all there is of a record is counted as such."""
        if trouble == BLANK:
            self.count(f"({BLANK})", "", "known")
            return
        self.problems.append(Problem(trouble, REASONS[trouble], start, size))
        if is_record:
            self.count(f"({trouble})", "", "problem")

    def reading(self, consumed: int, lines: int, glued: int) -> ReadResult:
        """The result."""
        parts = [part for session in self._sessions.values() if (part := session.part()) is not None]
        census = [Census(*key, n) for key, n in self._census.items()]
        return ReadResult(consumed, parts, self.problems, census, lines, glued)
