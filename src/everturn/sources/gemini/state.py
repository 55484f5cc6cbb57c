"""What a reader remembers between pieces of a file, so that reading in any pieces gives the same as reading at once.

Bounded: whatever grows with the file forgets its oldest entries.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from everturn.model.conversation import fingerprint
from everturn.sources.foreign import word
from everturn.sources.gemini.calls import is_done
from everturn.sources.gemini.message import usage, words_of
from everturn.sources.wholefile import entries, record

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
