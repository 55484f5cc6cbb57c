"""Turns of one session as a page for a model: what session it is, then the turns, quoted and within a budget.

The turns are told by `conversation_recall` itself, so that a session reads the same whichever way one came to it, and
what was cut is named by a call of that tool.
"""

from __future__ import annotations

from everturn.derive.times import iso
from everturn.mcp.archive import McpArchive, sources
from everturn.mcp.handles import session_handle, session_name
from everturn.model.archive import Session
from everturn.recall.budget import cost
from everturn.recall.framing import Clean, quote_for_model, safe_line
from everturn.recall.secrets import archive_cleaner
from everturn.recall.sessions import resolve_session
from everturn.recall.tool import ConversationRecall, RecallAnswer
from everturn.store import Store

_LEAST_WITH_HEAD = 600  # tokens a page must have for a head to be worth its room


def find_session(archive: McpArchive, store: Store, name: str) -> Session:
    """The session of that name; without a name the current one, else the newest. Raises UnknownSession."""
    current = None if name else archive.current(store)
    return current or resolve_session(store, session_name(name or "@last"))


def read_page(archive: McpArchive, store: Store, session: Session, first: int, last: int, tokens: int) -> RecallAnswer:
    """The turns from `first` to `last`, counted from 1, in at most so many tokens."""
    clean = archive_cleaner(store)
    head = _page_head(store, session, clean) if tokens >= _LEAST_WITH_HEAD else ""
    recall = ConversationRecall(store, sources(), None, clean, archive.clock, tokens - cost(head))
    answer = recall.answer(
        {"action": "range", "start_turn": first, "end_turn": last, "query": session_pointer(session.native_id)}
    )
    return RecallAnswer(head + answer.text, answer.status)


def session_pointer(native_id: str) -> str:
    """How a query names a session."""
    name = native_id.replace('"', "")
    return f'session:"{name}"' if any(char.isspace() for char in name) else f"session:{name}"


def _page_head(store: Store, session: Session, clean: Clean) -> str:
    text = store.session(session.id)[1]
    times = " to ".join(iso(at)[:16].replace("T", " ") for at in (session.started, session.ended) if at is not None)
    work = f"{session.n_turns:,} turns, {session.n_calls:,} calls, {session.n_errors:,} errors"
    ours = " · ".join(filter(None, (session_handle(session.native_id), session.agent, times, work)))
    facts = {"title": text.title, "workspace": text.workspace, "branch": text.branch}
    theirs = [f"{name}: {safe_line(value, clean, 160)}" for name, value in facts.items() if value.strip()]
    return f"{ours}\n" + (f"{quote_for_model(chr(10).join(theirs))}\n" if theirs else "")
