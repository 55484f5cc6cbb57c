"""The prefix an answer is bound to: hashes of everything before it in its request, computed for new messages only.

`digest_body` hashes a whole request body. `HistoryDigest` computes the same for a history that grows: the messages that
cannot change any more are repaired, put into the wire format, encoded and hashed once. Its parts end where no rule of a wire
format looks across: before an answer, or before a prompt that follows an answer, with every call answered. A history that
needs a repair, uses an id twice or was compacted has no such parts, and is hashed as a whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import structs

from everturn.llm.history_repair import repair_history
from everturn.llm.protocol import ChatMessage, ChatPart, ModelRequest
from everturn.loop.records import Prefix

_MARKS = "cache_control"
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


@dataclass
class RequestDigest:
    """The prefix of the answer to a request. That of `HistoryDigest` is valid until it computes the next."""

    prefix: Prefix
    _hashes_after: Callable[[int], tuple[str, str]]  # of the first lines: of all, and of those without thoughts

    def changed_parts(self, before: Prefix) -> list[str]:
        """Return the parts of an earlier prefix that this request changes; empty if the provider will accept it.

        Parts: system, tools, thinking (thoughts of earlier messages were changed or left out), messages.
        """
        mine = self.prefix
        changed = ["system"] if mine.system != before.system else []
        changed += ["tools"] if mine.tools != before.tools else []
        if mine.start != before.start and mine.start:  # compacted since: the earlier thoughts are gone
            return changed
        if mine.count < before.count:
            return [*changed, "messages"]
        lines, words = self._hashes_after(before.count)
        if words != before.words:
            changed.append("messages")
        elif lines != before.messages:
            changed.append("thinking")
        return changed


def digest_body(body: Mapping[str, Any]) -> RequestDigest:
    """Return the digest of a request body of any wire format. Each message is encoded once."""
    messages, start = _messages_after_compaction(body)
    encoded, words = _encode_messages(messages)
    prefix = Prefix(*_head_hashes(body), _hash_lines(encoded), _hash_lines(words), len(encoded), start)
    return RequestDigest(prefix, lambda count: (_hash_lines(encoded[:count]), _hash_lines(words[:count])))


def _head_hashes(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the hashes of the system prompt and of the tools."""
    return _hash(body.get("system", body.get("instructions"))), _hash(body.get("tools"))


def _messages_after_compaction(body: Mapping[str, Any]) -> tuple[list[Any], str]:
    messages = _body_messages(body)
    for place in range(len(messages) - 1, -1, -1):
        if _is_compaction(messages[place]):
            return messages[place:], _hash(messages[place])
    return messages, ""


def _is_compaction(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return any(isinstance(one, dict) and one.get("type") == "compaction" for one in [message, *blocks])


def _hash_lines(lines: Sequence[bytes]) -> str:
    value = hashlib.sha256()
    for line in lines:
        value.update(line)
    return value.hexdigest()


def _without_thoughts(message: Any) -> Any:
    if not isinstance(message, dict) or message.get("type") == "reasoning":
        return None if isinstance(message, dict) else message
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kept = [one for one in content if not (isinstance(one, dict) and one.get("type") in _THOUGHTS)]
    return message if len(kept) == len(content) else {**message, "content": kept}


def _hash(value: Any) -> str:
    return hashlib.sha256(_encode_value(value)).hexdigest()


def _encode_value(value: Any) -> bytes:
    try:
        made = msgspec.json.encode(value, order="deterministic")
        return (
            made
            if _MARKS.encode() not in made
            else msgspec.json.encode(_without_cache_marks(value), order="deterministic")
        )
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(_without_cache_marks(value), sort_keys=True).encode()


def _without_cache_marks(value: Any) -> Any:
    """Return the value without marks for caching; the same object if there are none."""
    if isinstance(value, dict):
        return {name: _without_cache_marks(one) for name, one in value.items() if name != _MARKS}
    return [_without_cache_marks(one) for one in value] if isinstance(value, list) else value


# --- a history that grows ---
#: Returns the body of a request.
Body = Callable[[ModelRequest], Mapping[str, Any]]
_OUTPUT = "_output"  # the end of the type of a result that only its provider can write


class _Indivisible(Exception):
    """This history has to be prepared as a whole."""


@dataclass
class _Part:
    """Some messages that are sent unchanged, encoded."""

    messages: list[ChatMessage]
    ids: set[str]  # of its calls and items
    lines: list[bytes]
    words: list[bytes]  # without thoughts


@dataclass
class HistoryDigest:
    """The hashes of the requests of one session. Holds the encoded messages of the last one."""

    _form: tuple[Any, ...] = ()  # what else the form of a message depends on
    _wires: set[str] = field(default_factory=set)  # of the answers
    _messages: list[ChatMessage] = field(default_factory=list)  # of all parts
    _parts: list[_Part] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _lead: list[bytes] = field(default_factory=list)  # the lines before the messages: the system prompt of some formats
    _hashes: tuple[Any, Any] = field(default_factory=lambda: (hashlib.sha256(), hashlib.sha256()))
    _count: int = 0  # lines in the hashes
    _is_stale: bool = False  # the parts are others than those in the hashes
    _ends: dict[int, tuple[str, str]] = field(default_factory=dict)  # hashes after so many lines, the newest few

    def digest(self, request: ModelRequest, body: Body, wire: str, owner: object) -> RequestDigest | None:
        """Return the digest of a request whose history needs no repair; None if it has to be prepared as a whole.

        `owner` is the backend of `body`; another one forms messages anew.
        """
        try:
            return self._digest(request, body, wire, owner)
        except _Indivisible:
            self._clear()
            return None

    def _digest(self, request: ModelRequest, body: Body, wire: str, owner: object) -> RequestDigest:
        if not request.messages:
            raise _Indivisible
        head = body(structs.replace(request, messages=()))
        self._align(request.messages, (owner, wire, request.model, request.temperature, request.extra))
        lead = [_encode_value(one) + b"\n" for one in _body_messages(head)]
        make = _PartMaker(structs.replace(request, system="", tools=()), body, wire)
        fresh = list(request.messages[len(self._messages) :])
        self._wires |= set() if wire else {one.wire for one in fresh if one.role == "assistant" and one.wire}
        if len(self._wires) > 1 or repair_history(fresh, wire=wire).mended:
            raise _Indivisible
        *done, last = make.parts(fresh)
        if lead != self._lead or self._is_stale:
            self._hash_again(lead)
        for part in done:
            self._check_ids(part)
            self._add(part)
        self._check_ids(last)
        return self._finish(head, last)

    def _align(self, messages: Sequence[ChatMessage], form: tuple[Any, ...]) -> None:
        """Keep the parts that are at the beginning of these messages, also if earlier ones are not sent any more."""
        if form != self._form:
            self._clear()
            self._form = form
        if self._messages and self._messages[0] is not messages[0]:
            self._drop_before(messages[0])
        if list(messages[: len(self._messages)]) == self._messages and len(messages) > len(self._messages):
            return
        self._clear()
        self._form = form

    def _drop_before(self, first: ChatMessage) -> None:
        place = next((n for n, part in enumerate(self._parts) if part.messages[0] is first), None)
        if place is None:
            self._clear()
            return
        del self._parts[:place]
        self._messages = [message for part in self._parts for message in part.messages]
        self._ids = {one for part in self._parts for one in part.ids}
        self._is_stale = True

    def _clear(self) -> None:
        self._messages, self._parts, self._ids, self._wires = [], [], set(), set()
        self._is_stale = True

    def _hash_again(self, lead: list[bytes]) -> None:
        lines = b"".join([*lead, *(line for part in self._parts for line in part.lines)])
        words = b"".join([*lead, *(line for part in self._parts for line in part.words)])
        self._lead, self._ends, self._is_stale = lead, {}, False
        self._hashes = hashlib.sha256(lines), hashlib.sha256(words)
        self._count = len(lead) + sum(len(part.lines) for part in self._parts)

    def _check_ids(self, part: _Part) -> None:
        if not self._ids.isdisjoint(part.ids):
            raise _Indivisible

    def _add(self, part: _Part) -> None:
        self._parts.append(part)
        self._messages += part.messages
        self._ids |= part.ids
        self._count += len(part.lines)
        for value, lines in zip(self._hashes, (part.lines, part.words), strict=True):
            value.update(b"".join(lines))
        self._ends[self._count] = (self._hashes[0].hexdigest(), self._hashes[1].hexdigest())
        if len(self._ends) > _ENDS:
            del self._ends[next(iter(self._ends))]

    def _finish(self, head: Mapping[str, Any], last: _Part) -> RequestDigest:
        ends = [value.copy() for value in self._hashes]
        for value, lines in zip(ends, (last.lines, last.words), strict=True):
            value.update(b"".join(lines))
        count = self._count + len(last.lines)
        prefix = Prefix(*_head_hashes(head), ends[0].hexdigest(), ends[1].hexdigest(), count, "")
        return RequestDigest(prefix, lambda some: self._hashes_after(some, last))

    def _hashes_after(self, count: int, last: _Part) -> tuple[str, str]:
        if (known := self._ends.get(count)) is not None:
            return known
        parts = [*self._parts, last]
        lines = [*self._lead, *(line for part in parts for line in part.lines)]
        words = [*self._lead, *(line for part in parts for line in part.words)]
        return _hash_lines(lines[:count]), _hash_lines(words[:count])


_ENDS = 16


@dataclass
class _PartMaker:
    """Cuts messages into parts and encodes them."""

    request: ModelRequest
    body: Body
    wire: str

    def parts(self, messages: list[ChatMessage]) -> list[_Part]:
        """Return all parts. The last one may have open calls."""
        made: list[_Part] = []
        pending: set[tuple[str, str]] = set()
        begin = 0
        for place, message in enumerate(messages):
            if place > begin and not pending and _can_cut(messages[place - 1], message):
                made.append(self._part(messages[begin:place]))
                begin = place
            for part in message.parts:
                _follow_call(part, message, pending)
        return [*made, self._part(messages[begin:])]

    def _part(self, messages: list[ChatMessage]) -> _Part:
        bodies = _body_messages(self.body(structs.replace(self.request, messages=tuple(messages))))
        if not bodies or any(map(_is_compaction, bodies)):
            raise _Indivisible
        lines, words = _encode_messages(bodies)
        return _Part(messages, _ids(messages), lines, words)


def _can_cut(before: ChatMessage, message: ChatMessage) -> bool:
    return (before.role == "assistant") != (message.role == "assistant")


def _follow_call(part: ChatPart, message: ChatMessage, pending: set[tuple[str, str]]) -> None:
    raw = part.raw if isinstance(part.raw, dict) else {}
    kind, call_id = str(raw.get("type")), raw.get("call_id")
    if part.kind == "call":
        pending.add(("", part.call_id))
    elif part.kind == "result":
        if message.role == "assistant" or ("", part.call_id) not in pending:
            raise _Indivisible
        pending.remove(("", part.call_id))
    elif part.kind == "opaque" and isinstance(call_id, str):
        if not kind.endswith(_OUTPUT):
            pending.add((kind, call_id))
        elif (kind.removesuffix(_OUTPUT), call_id) in pending:
            pending.remove((kind.removesuffix(_OUTPUT), call_id))
        else:
            raise _Indivisible


def _ids(messages: Sequence[ChatMessage]) -> set[str]:
    """Return the ids of calls and items. An id that comes again within a part is judged by the repair of the part."""
    found = {part.call_id for message in messages for part in message.parts if part.kind == "call"}
    for message in messages:
        for part in message.parts if message.wire == "responses" else ():
            if isinstance(part.raw, dict) and isinstance(part.raw.get("id"), str):
                found.add(part.raw["id"])
    return found


def _body_messages(body: Mapping[str, Any]) -> list[Any]:
    given = body.get("messages", body.get("input"))
    return list(given) if isinstance(given, list) else [given] if given else []


def _encode_messages(messages: Sequence[Any]) -> tuple[list[bytes], list[bytes]]:
    """Return each message as a line, with its thoughts and without them."""
    encoded = [b"\0" if one is None else _encode_value(one) + b"\n" for one in messages]
    bare = [_without_thoughts(one) for one in messages]
    words = [
        line if one is whole else b"\0" if one is None else _encode_value(one) + b"\n"
        for one, whole, line in zip(bare, messages, encoded, strict=True)
    ]
    return encoded, words
