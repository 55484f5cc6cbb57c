"""Small conversations for the tests of the store: messages as a source would read them, rows by the real `grow_session`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everturn.derive.turns import grow_session
from everturn.model.archive import Session, SessionGrowth, SourceFile, Version
from everturn.model.conversation import Block, CallEnd, CallStart, Message, TokenUsage
from everturn.retrieval.query import parse_query
from everturn.store.contract import IndexHit, IndexQuery, Store

AGENT = "agent"
NOON = 1_700_000_000_000


def new_version(store: Store, path: str = "/a", machine: str = "box", mode: str = "full") -> int:
    """The next version of a file, which is made if need be."""
    with store.write():
        known = store.file(machine, path)
        row = SourceFile(format=AGENT, machine=machine, path=path, mode=mode)
        source = known[0].id if known else store.add_file(row)
        return store.add_version(Version(source=source, number=len(store.versions(source)) + 1, mode=mode))


def new_session(store: Store, native_id: str = "one", version: int = 0, **columns: Any) -> int:
    """A session, in a file of its own unless a version is given."""
    version = version or new_version(store, f"/{native_id}", mode=columns.get("mode", "full"))
    with store.write():
        row = Session(agent=columns.pop("agent", AGENT), native_id=native_id, version=version, **columns)
        return store.open_session(row).id


def prompt(text: str, fingerprint: int | None = None, **columns: Any) -> Message:
    """A human speaks."""
    blocks = (Block("text", text, "prompt"),)
    columns = {"at": NOON, "precision": "ms", "starts_turn": True, **columns}
    return Message("user", "human", blocks=blocks, fingerprint=fingerprint, **columns)


def answer(text: str, fingerprint: int | None = None, call: str = "", tokens: int = 0, **columns: Any) -> Message:
    """The model speaks, and perhaps calls a tool."""
    blocks = [Block("text", text, "answer")] if text else []
    if call:
        blocks.append(Block("call", f"ls {call}", "tool_input", call=CallStart(call, "Bash", "shell")))
    columns = {"at": NOON, "precision": "ms", "provider_id": text or call, "model": "m1", **columns}
    usage = TokenUsage(tokens, tokens, tokens, tokens)
    return Message("assistant", "model", blocks=tuple(blocks), fingerprint=fingerprint, usage=usage, **columns)


def result(call: str, text: str = "", fingerprint: int | None = None, failed: bool = False, **columns: Any) -> Message:
    """A tool answers."""
    block = Block("result", text, "tool_output", result=CallEnd(call, is_error=failed))
    columns = {"at": NOON, "precision": "ms", **columns}
    return Message("user", "tool", "result", blocks=(block,), fingerprint=fingerprint, **columns)


def growth_of(store: Store, session: int, messages: Iterable[Message]) -> SessionGrowth:
    """The rows these messages add."""
    return grow_session(store.tail(session), messages)[0]


def tell(store: Store, session: int, *messages: Message) -> None:
    """Add messages to a session."""
    with store.write():
        store.append(session, growth_of(store, session, messages))


def look_for(store: Store, words: str, **parts: Any) -> list[IndexHit]:
    """Search for what a person would type."""
    parsed = parse_query(words)
    return store.search(IndexQuery(parsed.groups, parsed.without, **parts))


def places(hits: Iterable[IndexHit]) -> set[tuple[int, int]]:
    """Where hits are."""
    return {(hit.session, hit.seq) for hit in hits}
