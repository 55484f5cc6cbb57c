"""Conversations as lines: `{"conversation": …}` first, then `{"node": …}` for each message of the live path.

A conversation is a tree: an edit or a retry starts a branch, and `current_node` is the end of the path that is live. The
others are kept as sessions of their own, `<id>/branch-1` and so on. What changes whenever a conversation grows (`children`,
`current_node`, `update_time`) is left out of the lines, so that they only grow too; the export itself is kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.sources import Member, SourceCandidate
from everturn.sources.chatgpt.message import is_call, role_of
from everturn.sources.exports import line, members, threads
from everturn.sources.foreign import digest, word
from everturn.sources.linewise import Rec, mapping

_CHANGING = ("mapping", "current_node", "update_time")


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Every conversation of an export."""
    return members(path, "mapping", dict, _members)


def _members(conversation: Rec) -> Iterator[Member]:
    nodes = {key: mapping(node) for key, node in conversation["mapping"].items()}
    name = _name(conversation, nodes)
    parents = {key: node.get("parent") if isinstance(node.get("parent"), str) else None for key, node in nodes.items()}
    path, branches = threads(parents, _leaf(conversation, nodes))
    about = {key: value for key, value in conversation.items() if key not in _CHANGING}
    yield Member(name, _lines(about, path, nodes), native_id=name)
    for number, branch in enumerate(branches, 1):
        if any(nodes[key].get("message") for key in branch):
            titled = {"title": conversation.get("title"), "branch": number}
            child = f"{name}/branch-{number}"
            yield Member(child, _lines(titled, branch, nodes), "sidechain", child, name)


def _name(conversation: Rec, nodes: dict[str, Rec]) -> str:
    told = word(conversation.get("conversation_id")) or word(conversation.get("id"))
    return told or digest(str(conversation.get("create_time")), next(iter(nodes), ""))


def _leaf(conversation: Rec, nodes: dict[str, Rec]) -> str | None:
    current = conversation.get("current_node")
    if isinstance(current, str) and current in nodes:
        return current
    above = {node.get("parent") for node in nodes.values() if isinstance(node.get("parent"), str)}
    return next((key for key in reversed(nodes) if key not in above), None)


def _lines(about: Rec, path: list[str], nodes: dict[str, Rec]) -> Iterator[bytes]:
    yield line({"conversation": about})
    asked = ""  # the call that waits for its result: there are no call ids
    for key in path:
        message = nodes[key].get("message")
        record: Rec = {"node": {"id": key, "parent": nodes[key].get("parent"), "message": message}}
        if is_call(message):
            asked = key
        elif role_of(message) == "tool" and asked:
            record["call"], asked = asked, ""
        yield line(record)
