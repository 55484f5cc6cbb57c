"""What a reader remembers between pieces of a file, so that reading in any pieces gives the same as reading at once.

Bounded: whatever grows with the file forgets its oldest entries.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from everturn.sources.claude_code.queue import Queue

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
