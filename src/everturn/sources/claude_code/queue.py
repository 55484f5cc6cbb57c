"""Prompts typed while the agent works: they wait in a queue, and some are never written down anywhere else.

What leaves the queue by `dequeue` becomes an ordinary record. What leaves it by `remove` was put into the running turn:
older clients note it nowhere but in the queue, newer ones as an attachment too. `popAll` takes it back into the editor.
Most queue records do not say which item they mean, and items leave without one, so a word heard elsewhere counts more
than the order. No human's words are ever dropped in doubt.
"""

from __future__ import annotations

from msgspec import Struct

from everturn.model.conversation import fingerprint
from everturn.sources.claude_code.speaker import guess_speaker

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
