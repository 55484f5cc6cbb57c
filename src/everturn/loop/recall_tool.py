"""`recall_tool`: the archive as a tool for the model of one session, for any loop.

    tool = recall_tool("archive.db", session_id)        an archive by its path or URL
    tool = recall_tool(store, session_id)               an open `ConversationStore` or archive
    loop = Loop(model, [tool])                          in a durable loop, or
    text = tool.fn(**arguments)                         in a loop of your own

The tool only reads, so it needs no approval. Wrong arguments of a model are answered in words, and what is quoted is framed
as data. A path and a `ConversationStore` are read on connections of the tool's own, one for each thread; an archive passed in
is read on its own connection, by the thread that opened it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from everturn.clock import Clock, now
from everturn.loop.conversation_store import ConversationStore
from everturn.loop.tools import Tool
from everturn.recall.schema import DESCRIPTION, SCHEMA
from everturn.recall.tool import ConversationRecall
from everturn.sessions.lookup import resolve_session
from everturn.sessions.secrets import archive_cleaner
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from everturn.store.pool import ArchivePool

_Read = Callable[[Callable[[Store], str]], str]


def recall_tool(
    store: Store | ConversationStore | str | Path,
    session_id: str,
    *,
    budget: int | None = None,
    turns_in_view: int | None = None,
    clock: Clock = now,
) -> Tool:
    """Return `conversation_recall` for the model of a session: its own history, its lineage, and the rest of the archive.

    `budget` limits every answer, in tokens (default: 2,000 for a search, 8,000 for the rest). `turns_in_view` says how many of
    the last turns the model still sees; these rank behind. Raises UnknownSession.
    """
    read = _reader(store)

    def check(opened: Store) -> str:
        return resolve_session(opened, session_id).native_id

    def recall(**asked: Any) -> str:
        def answer(opened: Store) -> str:
            session, clean = resolve_session(opened, session_id), archive_cleaner(opened)
            return ConversationRecall(
                opened, all_sources(), session, clean, clock, budget, turns_in_view=turns_in_view
            ).call(asked)  # fmt: skip

        return read(answer)

    read(check)
    return Tool(recall, "conversation_recall", DESCRIPTION, SCHEMA, read_only=True)


def _reader(store: Store | ConversationStore | str | Path) -> _Read:
    """Return a function that runs a job on a connection."""
    if isinstance(store, str | Path):
        return ArchivePool(str(store)).read
    if isinstance(store, ConversationStore):
        return ArchivePool(store.url).read
    opened = store
    return lambda job: job(opened)
