"""What a reader remembers between pieces of a file, so that reading in any pieces gives the same as reading at once.

Bounded: whatever grows with the file forgets its oldest entries.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from everturn.model.conversation import TokenUsage, fingerprint
from everturn.sources.foreign import count, word
from everturn.sources.linewise import Rec, RecordPlace, mapping

_MOST_SAID = 32
_MOST_UNHEARD = 8
_MOST_SPAWNED = 200
_LONGEST_UNHEARD = 8000

#: Shorter ids are not random enough to be taken for the same wherever they appear.
_SURE_ID = 20


class CodexUnheard(Struct, array_like=True):
    """An event that repeats an item which has not come yet."""

    start: int
    size: int
    mark: int
    kind: str
    text: str
    at: str


class CodexReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    open_line: bool = False
    met: bool = False  # the session has said who it is
    kind: str = ""
    parent: str = ""
    client: str = ""
    model: str = ""
    placed: bool = False  # the working folder is known
    linked: bool = False  # to the session it hangs on
    task: bool = False  # a turn is running
    prompted: bool = False  # … and has its prompt
    response: int = 0
    answering: bool = False
    counted: bool = False  # the tokens of this response are known
    total: list[int] = []  # tokens so far: input, cached input, output
    chain: str = ""  # the session whose items these are: in a fork first the other's
    anchor: int = 0
    since: int = 0
    said: list[int] = []  # marks of the latest texts in items
    unheard: list[CodexUnheard] = []
    spawned: dict[str, bool] = {}  # calls that start an agent

    # responses --------------------------------------------------------------------------------------------------------
    def open_response(self) -> str:
        """The name of the model response an item belongs to: consecutive items of the model are one."""
        if not self.answering:
            self.answering, self.counted = True, False
            self.response += 1
        return f"#{self.response}"

    def count_response(self) -> str:
        """The response that a count of tokens belongs to. Older clients write it before the items, newer ones after."""
        if not self.response or self.counted:
            self.answering = False
            self.open_response()
        self.counted = True
        return f"#{self.response}"

    def spend(self, info: Rec) -> TokenUsage | None:
        """The tokens of the latest response, from counters that only grow; None when there is nothing new."""
        total, last = _tokens(info.get("total_token_usage")), _tokens(info.get("last_token_usage"))
        if not any(total):
            return None
        before, self.total = self.total, total
        spent = [new - old for new, old in zip(total, before, strict=False)]
        if len(before) != len(total) or min(spent) < 0:  # the first of a fork, or counted anew
            spent = last if any(last) else total
        return _usage(spent) if any(spent) else None

    def close(self) -> None:
        """A turn ends: what is counted later belongs to the next one."""
        self.answering, self.counted = False, True

    # copies in forks --------------------------------------------------------------------------------------------------
    def follow(self, native_id: str) -> None:
        """The items from here on were first written by this session."""
        if native_id and native_id != self.chain:
            self.chain, self.anchor, self.since = native_id, fingerprint(native_id, ""), 0

    def mark_item(self, item: Rec, text: str) -> int:
        """A fingerprint that copies of an item have too. Forked files copy items with new times and mostly without ids,
        so an item is known by a long id of its own, or by its words and the way from the last one that has an id."""
        name = item.get("call_id") or item.get("id") or item.get("encrypted_content")
        if isinstance(name, str) and len(name) >= _SURE_ID:
            self.anchor, self.since = fingerprint(name, word(item.get("type"))), 0
            return self.anchor
        self.since += 1
        return fingerprint(f"{self.anchor}/{self.since}", text)

    def mark_event(self, text: str) -> int:
        """The same for what is no item."""
        return fingerprint(f"{self.anchor}/{self.since}/", text)

    # events that repeat items -----------------------------------------------------------------------------------------
    def say(self, texts: list[str]) -> None:
        """Note the texts of an item; what waited for them has been heard."""
        marks = [fingerprint("said", text.strip()) for text in [*texts, "".join(texts)]]
        self.said = [*self.said, *marks][-_MOST_SAID:]
        if self.unheard:
            self.unheard = [one for one in self.unheard if one.mark not in marks]

    def is_new_letter(self, text: str, is_item: bool) -> bool:
        """A letter may be written in two forms: False for the second one of the same words."""
        own, other = (fingerprint(form, text) for form in (("item", "letter") if is_item else ("letter", "item")))
        if other in self.said:
            self.said.remove(other)
            return False
        self.said = [*self.said, own][-_MOST_SAID:]
        return True

    def hear(self, kind: str, text: str, at: object, place: RecordPlace) -> None:
        """Note an event that repeats an item, unless the item has come."""
        mark = fingerprint("said", text.strip())
        if text.strip() and mark not in self.said and len(text) <= _LONGEST_UNHEARD:
            self.unheard = [*self.unheard, CodexUnheard(*place, mark, kind, text, word(at))][-_MOST_UNHEARD:]

    def take_unheard(self) -> list[CodexUnheard]:
        """The events whose items did not come."""
        found, self.unheard = self.unheard, []
        return found

    def note_spawn(self, call_id: str) -> None:
        """Note a call that starts an agent."""
        self.spawned[call_id] = True
        if len(self.spawned) > _MOST_SPAWNED:
            del self.spawned[next(iter(self.spawned))]


def pack(state: CodexReaderState) -> bytes:
    """The state as bytes."""
    return msgspec.msgpack.encode(state)


def unpack(data: bytes) -> CodexReaderState:
    """The state in some bytes; a fresh one when they are not ours."""
    try:
        return msgspec.msgpack.decode(data, type=CodexReaderState) if data else CodexReaderState()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return CodexReaderState()


def _tokens(counted: object) -> list[int]:
    found = mapping(counted)
    return [count(found.get(key)) or 0 for key in ("input_tokens", "cached_input_tokens", "output_tokens")]


def _usage(spent: list[int]) -> TokenUsage:
    given, cached, said = spent
    return TokenUsage(max(given - cached, 0), said, cached)
