"""The state of a reader between pieces of a file: reading in any pieces gives the same as reading at once.

The state is bounded: everything that grows with the file forgets its oldest entries.

Prompts typed while the agent works wait in a queue, and some are recorded nowhere else. A prompt that leaves the queue by
`dequeue` becomes an ordinary record. One that leaves by `remove` went into the running turn: older clients record it
only in the queue, newer ones as an attachment too. `popAll` returns all prompts to the editor. Most queue records do not
name their item, and items leave without a record, so a text seen in another record counts more than the order. When in
doubt, a human's prompt is kept.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from everturn.model.conversation import fingerprint
from everturn.sources.claude_code.blocks import guess_speaker
from everturn.sources.toolkit.values import remember

_MOST_SESSIONS = 1000
_MOST_LINKS = 4000
_MOST_UUIDS = 2000
_MOST_LEAVES = 32
_MOST_RECENT = 64
_LONGEST_TITLE = 300
_MOST_ITEMS = 1000
_MOST_TEXT = 100_000
_REMEMBERED = 64

_NO_TIME = 1 << 60  # later than any real time; msgpack cannot hold much larger numbers


class QueuedPrompt(Struct, array_like=True, gc=False):
    """One item of the queue; `text` is set only for what a human typed."""

    key: int
    start: int
    size: int
    at: str | int | float | None = None
    text: str = ""


class Queue(Struct, array_like=True):
    """Items that wait, items taken out but not yet seen in a record, and keys of items lately put into a turn."""

    waiting: list[QueuedPrompt] = []
    taken: list[QueuedPrompt] = []
    said: list[int] = []

    def enqueue(self, item: QueuedPrompt) -> list[QueuedPrompt]:
        """Add an item; return human prompts that no longer fit, to be shown now."""
        self.waiting.append(item)
        crowded = []
        while len(self.waiting) > _MOST_ITEMS or sum(len(one.text) for one in self.waiting) > _MOST_TEXT:
            oldest = self.waiting.pop(0)
            if oldest.text:
                crowded.append(self._note_said(oldest))
        return crowded

    def dequeue(self) -> None:
        """Remove the oldest item; if the next record holds another one, `note_heard` corrects this."""
        if self.waiting:
            item = self.waiting.pop(0)
            if not item.text.startswith("/"):  # a command is recorded in other words
                self.taken = [*self.taken, item][-_REMEMBERED:]

    def remove(self, text: str | None) -> QueuedPrompt | None:
        """Remove the item put into the turn: the named one, else the oldest prompt, else the oldest; return it if human."""
        if text is not None:
            item = _pop(self.waiting, key_of(text))
        else:
            item = min(self.waiting, key=_rank, default=None)
            if item is not None:
                self.waiting.remove(item)
        return self._note_said(item) if item is not None and item.text else None

    def pop_all(self) -> None:
        """Remove all items: they went back into the editor."""
        self.waiting = []

    def note_heard(self, text: str) -> None:
        """Note that a record of its own holds this text."""
        if not self.waiting and not self.taken:
            return
        key = key_of(text)
        if _pop(self.taken, key) is None and _pop(self.waiting, key) is not None and self.taken:
            self.waiting.insert(0, self.taken.pop(0))

    def repeats(self, text: str) -> bool:
        """Return whether this text was already taken from the queue; true once."""
        key = key_of(text)
        if key not in self.said:
            return False
        self.said.remove(key)
        return True

    def _note_said(self, item: QueuedPrompt) -> QueuedPrompt:
        self.said = [*self.said, item.key][-_REMEMBERED:]
        return item


def item_of(text: str, start: int, size: int, at: str | int | float | None) -> QueuedPrompt:
    """Return the queue item for a text."""
    if isinstance(at, int) and abs(at) >= _NO_TIME:
        at = None
    return QueuedPrompt(key_of(text), start, size, at, text if guess_speaker(text).origin == "human" else "")


def key_of(text: str) -> int:
    """Return the key by which a queued text is recognized."""
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


class ReportedFacts(Struct, array_like=True, gc=False):
    """Facts already reported of one session."""

    workspace: bool = False
    title_rank: int = 0
    linked: bool = False  # to its parent session


class ClaudeReaderState(Struct, array_like=True):
    """Everything a later reader of the file needs."""

    open_line: bool = False
    native_id: str = ""  # of the file's own session
    top: str = ""  # the session that subagents belong to
    client: str = ""
    own: ReportedFacts = msgspec.field(default_factory=ReportedFacts)
    sessions: dict[str, ReportedFacts] = {}  # the others in the file
    queue: Queue = msgspec.field(default_factory=Queue)
    links: dict[int, bool] = {}  # keys of links already reported
    chains: dict[str, str] = {}  # uuid of a sidechain's record → the sidechain
    chain: str = ""  # the latest one
    recent: list[str] = []  # short uuids of the latest records
    leaves: dict[str, str] = {}  # short uuid of a record not seen yet → the title that names it
    form: str = ""  # lines | document; "" when too little was seen to tell
    stage: str = ""  # of the walk through a document
    prompts: dict[int, int] = {}  # mark of a prompt's parent → offset of the latest prompt under it

    def reported_facts(self, native_id: str) -> ReportedFacts:
        """Return the facts already reported of a session."""
        found = self.own if native_id == self.native_id else self.sessions.get(native_id)
        if found is None:
            found = ReportedFacts()
            remember(self.sessions, native_id, found, _MOST_SESSIONS)
        return found

    def is_new_link(self, key: int) -> bool:
        """Return true once per key."""
        if key in self.links:
            return False
        remember(self.links, key, True, _MOST_LINKS)
        return True

    def chain_of(self, uuid: str, parent: str, start: int) -> str:
        """Return the sidechain of a record: its parent's; a record without a parent starts a new one."""
        name = self.chains.get(parent, "") if parent else ""
        if not name:
            name = self.chain if parent and self.chain else (uuid or str(start))[:8]
        self.chain = name
        if uuid:
            remember(self.chains, uuid, name, _MOST_UUIDS)
        return name

    def replaced_prompt(self, parent: str, start: int) -> int | None:
        """Note a prompt, and return the offset of the one under the same parent that it replaces; None if there is none.

        A person who goes back before a prompt and types another one leaves two prompts under one parent. Prompts without a
        parent do not tell: a program may have appended them.
        """
        if not parent:
            return None
        key = fingerprint("parent", parent)
        before = self.prompts.pop(key, None)
        remember(self.prompts, key, start, _MOST_UUIDS)
        return before

    def title_for(self, leaf: str, title: str) -> str:
        """Return the title if the record it names is in this file; otherwise remember it until that record comes."""
        if short_uuid(leaf) in self.recent:
            return title
        if leaf and title:
            remember(self.leaves, short_uuid(leaf), title[:_LONGEST_TITLE], _MOST_LEAVES)
        return ""

    def title_at(self, uuid: str) -> str:
        """Note a record, and return the title that waited for it."""
        name = short_uuid(uuid)
        recent = self.recent
        recent.append(name)
        if len(recent) > 2 * _MOST_RECENT:
            del recent[:_MOST_RECENT]
        return self.leaves.pop(name, "") if self.leaves else ""


def short_uuid(uuid: str) -> str:
    """Return enough of a uuid to recognize it among a few hundred."""
    return uuid[:8] if len(uuid) == len("00000000-0000-0000-0000-000000000000") else uuid[:64]
