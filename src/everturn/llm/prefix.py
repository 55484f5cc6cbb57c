"""What stood before an answer, as a hash: system prompt, tools and every earlier message.

Some providers bind what a model thought to the words before it and refuse a request in which those have changed. Keep the
`Prefix` of the request with each answer; `changed_parts` says before the next request which part is no longer the same. Marks for
caching are no words and do not count. Where the provider itself compacted the history, the words from its newest block of
that kind on are the prefix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

_MARKS = "cache_control"
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


class Prefix(Struct, frozen=True):
    """Hashes of what was sent; small, whatever the length of the history."""

    system: str
    tools: str
    messages: str  # of all of them, one after the other
    words: str  # the same without thoughts
    count: int
    start: str = ""  # of the newest compaction in it


def prefix_of(body: Mapping[str, Any]) -> Prefix:
    """The prefix of an answer: what the request was that it answers, in any wire format."""
    messages, start = _messages_after_compaction(body)
    return Prefix(
        _hash(body.get("system", body.get("instructions"))),
        _hash(body.get("tools")),
        _hash_messages(messages),
        _hash_messages(map(_without_thoughts, messages)),
        len(messages),
        start,
    )


def changed_parts(prefix: Prefix, body: Mapping[str, Any]) -> list[str]:
    """What of a prefix is not the same in a new request; nothing when the provider will take it.

    Words: system, tools, thinking (thoughts of earlier messages were changed or left out), messages.
    """
    messages, start = _messages_after_compaction(body)
    found = []
    if _hash(body.get("system", body.get("instructions"))) != prefix.system:
        found.append("system")
    if _hash(body.get("tools")) != prefix.tools:
        found.append("tools")
    if start != prefix.start and start:  # compacted since then: the thoughts before that are gone with the words
        return found
    earlier = messages[: prefix.count]
    if len(earlier) < prefix.count or _hash_messages(map(_without_thoughts, earlier)) != prefix.words:
        found.append("messages")
    elif _hash_messages(earlier) != prefix.messages:
        found.append("thinking")
    return found


def _messages_after_compaction(body: Mapping[str, Any]) -> tuple[list[Any], str]:
    given = body.get("messages", body.get("input"))
    messages = list(given) if isinstance(given, list) else [given] if given else []
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


def _hash_messages(messages: Any) -> str:
    value = hashlib.sha256()
    for message in messages:
        value.update(b"\0" if message is None else _encode_value(message) + b"\n")
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
    bare = _without_cache_marks(value)
    try:
        return msgspec.json.encode(bare, order="deterministic")
    except UnicodeEncodeError:  # half a surrogate pair, which transcripts do hold
        return json.dumps(bare, sort_keys=True).encode()


def _without_cache_marks(value: Any) -> Any:
    """Without marks for caching; the same object where there is none."""
    if isinstance(value, dict):
        return {name: _without_cache_marks(one) for name, one in value.items() if name != _MARKS}
    return [_without_cache_marks(one) for one in value] if isinstance(value, list) else value
