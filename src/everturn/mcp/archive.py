"""The archive as the MCP server reads it, the handles of sessions, and turns as a page for a model.

The archive is opened with the first request that reads it, never created and never upgraded; until then nothing of the
store, the sources or recall is imported (`tests/mcp/test_tools.py` holds it). An agent's client may start the server
before the first sync: so a missing archive fails one request, and the next one looks again.

    everturn://session/ID                 a session: its latest turns
    everturn://session/ID/turns/3-5       some of its turns, counted from 1

`conversation_recall` renders the turns of a page, so that a session reads the same whichever way a model came to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from everturn.clock import Clock, now
from everturn.errors import NothingFound
from everturn.text.printable import plural, printable, quote_for_model, safe_line

if TYPE_CHECKING:
    from everturn.llm.asker import Asker
    from everturn.model.archive import Session
    from everturn.recall.tool import RecallAnswer
    from everturn.retrieval.meaning import MeaningSearch
    from everturn.sources.contract import Source
    from everturn.store.contract import Store
    from everturn.store.pool import ArchivePool
    from everturn.text.printable import Clean

T = TypeVar("T")


class McpArchive:
    """One archive, and the session and workspace that a caller means when it names none."""

    #: Opens the search by meaning where it is configured; None: by words alone.
    meaning: Callable[[Store], MeaningSearch | None] = staticmethod(lambda store: None)

    #: Opens the model that may write restore documents, if the user named one.
    open_model: Callable[[Store, Session], Asker] | None = None
    #: The folder whose files that model may search and read, if the user allowed one.
    evidence_folder = ""

    def __init__(self, url: str, session: str = "", workspace: str = "", folder: str = "", clock: Clock = now) -> None:
        self.url, self.session, self.workspace, self.folder, self.clock = url, session, workspace, folder, clock

    @cached_property
    def _pool(self) -> ArchivePool:
        from everturn.store.contract import open_store
        from everturn.store.pool import ArchivePool

        return ArchivePool(self.url, partial(open_store, create=False, upgrade=False))

    def read(self, job: Callable[[Store], T]) -> T:
        """Run a job that reads (`ArchivePool.read`)."""
        return self._pool.read(job)

    def run_separately(self, job: Callable[[Store], T]) -> T:
        """Run a job that takes long and keeps what a model wrote (`ArchivePool.run_separately`)."""
        return self._pool.run_separately(job)

    def close(self) -> None:
        """Close the archive, if it was opened; the next request opens it again."""
        if "_pool" in vars(self):
            self._pool.close()

    def current(self, store: Store) -> Session | None:
        """Return the configured session, else the newest of the configured workspace, else None."""
        from everturn.sessions.lookup import resolve_session
        from everturn.store.contract import SessionFilter

        if self.session:
            return resolve_session(store, self.session)
        if self.workspace:
            rows, _ = store.sessions(SessionFilter(workspace=self.workspace), 1)
            return rows[0][0] if rows else None
        return None


def sources() -> Mapping[str, Source]:
    """Return every source, to render messages."""
    from everturn.sources.contract import all_sources

    return all_sources()


def clean(text: str) -> str:
    """Return text without secrets and control characters."""
    from everturn.secrets.redaction import redact_text

    return printable(redact_text(text))


SESSION = "everturn://session/{id}"
TURNS = "everturn://session/{id}/turns/{first}-{last}"

_HANDLE = re.compile(r"everturn://session/(?P<id>[^/]+)(?:/turns/(?P<first>[0-9]{1,9})-(?P<last>[0-9]{1,9}))?/?")


def session_handle(native_id: str) -> str:
    from urllib.parse import quote

    return f"everturn://session/{quote(native_id, safe='', errors='replace')}"


def parse_handle(uri: str) -> tuple[str, int | None, int | None]:
    """Return the session id of a handle, and its first and last turn, from 1. Raises NothingFound."""
    from urllib.parse import unquote

    found = _HANDLE.fullmatch(uri)
    if found is None:
        raise NothingFound(f"{uri[:200]!r} names nothing here; handles look like {SESSION} or {TURNS}")
    first, last = found["first"], found["last"]
    return unquote(found["id"]), int(first) if first else None, int(last) if last else None


def session_name(text: str) -> str:
    """Return the session name that a model gave as an id or its prefix, @last, or a handle."""
    return parse_handle(text)[0] if text.startswith("everturn://") else text


_LEAST_WITH_HEAD = 600  # tokens; below that a page has no head


def find_session(archive: McpArchive, store: Store, name: str) -> Session:
    """Return the session of that name; without a name the current one, else the newest. Raises UnknownSession."""
    from everturn.sessions.lookup import resolve_session

    current = None if name else archive.current(store)
    return current or resolve_session(store, session_name(name or "@last"))


def read_page(archive: McpArchive, store: Store, session: Session, first: int, last: int, tokens: int) -> RecallAnswer:
    """Return the turns from `first` to `last`, counted from 1, within a budget of tokens."""
    from everturn.recall.budget import cost
    from everturn.recall.tool import ConversationRecall, RecallAnswer
    from everturn.sessions.secrets import archive_cleaner

    clean = archive_cleaner(store)
    head = _page_head(store, session, clean) if tokens >= _LEAST_WITH_HEAD else ""
    recall = ConversationRecall(store, sources(), None, clean, archive.clock, tokens - cost(head))
    answer = recall.answer(
        {"action": "range", "start_turn": first, "end_turn": last, "query": session_pointer(session.native_id)}
    )
    return RecallAnswer(head + answer.text, answer.status)


def session_pointer(native_id: str) -> str:
    name = native_id.replace('"', "")
    return f'session:"{name}"' if any(char.isspace() for char in name) else f"session:{name}"


def _page_head(store: Store, session: Session, clean: Clean) -> str:
    from everturn.text.times import minute

    text = store.session(session.id)[1]
    times = " to ".join(minute(at) for at in (session.started, session.ended) if at is not None)
    work = f"{plural(session.n_turns, 'turn')}, {plural(session.n_calls, 'call')}, {plural(session.n_errors, 'error')}"
    ours = " · ".join(filter(None, (session_handle(session.native_id), session.agent, times, work)))
    facts = {"title": text.title, "workspace": text.workspace, "branch": text.branch}
    theirs = [f"{name}: {safe_line(value, clean, 160)}" for name, value in facts.items() if value.strip()]
    return f"{ours}\n" + (f"{quote_for_model(chr(10).join(theirs))}\n" if theirs else "")
