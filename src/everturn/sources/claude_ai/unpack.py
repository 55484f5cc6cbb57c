"""Conversations as lines: `{"conversation": …}` first, then `{"message": …}` for each message of the live path.

Messages stand in the order in which they were written. Where they name their parents, an edit or a retry shows as a branch:
the path to the last message (or to the one that is named as current) is live, the others are sessions of their own,
`<id>/branch-1` and so on. What changes whenever a conversation grows is left out of the first line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.sources import Member, SourceCandidate
from everturn.sources.exports import line, members, threads
from everturn.sources.foreign import digest, word
from everturn.sources.linewise import Rec, mapping

_CHANGING = ("chat_messages", "updated_at", "current_leaf_message_uuid")


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Every conversation of an export."""
    return members(path, "chat_messages", list, _members)


def _members(conversation: Rec) -> Iterator[Member]:
    messages = conversation["chat_messages"]
    name = word(conversation.get("uuid")) or digest(str(conversation.get("created_at")), str(conversation.get("name")))
    path, branches = _threads(conversation, [mapping(message) for message in messages])
    about = {key: value for key, value in conversation.items() if key not in _CHANGING}
    yield Member(name, _lines(about, path, messages), native_id=name)
    for number, branch in enumerate(branches, 1):
        child = f"{name}/branch-{number}"
        titled = {"name": conversation.get("name"), "branch": number}
        yield Member(child, _lines(titled, branch, messages), "sidechain", child, name)


def _threads(conversation: Rec, messages: list[Rec]) -> tuple[list[int], list[list[int]]]:
    """The places of the messages that are live, and of those on other branches."""
    places = {word(message.get("uuid")): place for place, message in enumerate(messages) if word(message.get("uuid"))}
    above = [word(message.get("parent_message_uuid")) for message in messages]
    if not any(parent in places for parent in above):
        return list(range(len(messages))), []
    parents = {place: places.get(parent) for place, parent in enumerate(above)}
    leaf = places.get(word(conversation.get("current_leaf_message_uuid")), len(messages) - 1)
    return threads(parents, leaf)


def _lines(about: Rec, path: list[int], messages: list[object]) -> Iterator[bytes]:
    yield line({"conversation": about})
    for place in path:
        yield line({"message": messages[place]})
