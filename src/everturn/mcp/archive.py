"""The archive as the server sees it: opened when first asked for, read only, never made, never brought up to date.

An agent's client starts the server before anything else, perhaps before the first sync. So a missing archive is an error
of one call and the next call looks again; one that was replaced or whose connection broke is opened anew. Used by one
thread.

How sessions and their turns are named to clients.

    everturn://session/ID                 a session: its latest turns
    everturn://session/ID/turns/3-5       some turns of it, counted from 1

An id is taken as the archive has it, so it may hold a `/`: in a handle it is written %2F.

Turns of one session as a page for a model: what session it is, then the turns, quoted and within a budget.

The turns are told by `conversation_recall` itself, so that a session reads the same whichever way one came to it, and
what was cut is named by a call of that tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from everturn.clock import Clock, now
from everturn.errors import EverturnError, NothingFound, UsageError
from everturn.model.archive import Session
from everturn.recall.budget import cost
from everturn.recall.tool import ConversationRecall, RecallAnswer
from everturn.sessions.lookup import resolve_session
from everturn.sessions.secrets import archive_cleaner
from everturn.store.contract import Store
from everturn.text.printable import Clean, quote_for_model, safe_line
from everturn.text.times import iso

if TYPE_CHECKING:
    from everturn.retrieval.meaning import MeaningSearch
    from everturn.sources.contract import Source


T = TypeVar("T")


class McpArchive:
    """One archive, and what "this session" and "this workspace" mean to whoever asks.

    `session` and `workspace` were given by whoever set the server up; `folder` is where it runs.
    """

    #: What a search needs to look at meaning too, by whoever set the server up; None: words alone.
    meaning: Callable[[Store], MeaningSearch | None] = staticmethod(lambda store: None)

    def __init__(self, url: str, session: str = "", workspace: str = "", folder: str = "", clock: Clock = now) -> None:
        self.url, self.session, self.workspace, self.folder, self.clock = url, session, workspace, folder, clock
        self._store: Store | None = None
        self._identity: tuple[int, int] | None = None

    def ask(self, job: Callable[[Store], T]) -> T:
        """Let a job read one view of the archive, whatever is written meanwhile.

        A connection that was good a call ago may have broken since: then the job, which only reads, runs once more.
        """
        was_open = self._store is not None
        try:
            return self._run(job)
        except (NothingFound, UsageError):
            raise
        except EverturnError:
            self.close()
            if not was_open:
                raise
        return self._run(job)

    def current(self, store: Store) -> Session | None:
        """The session that is meant when none is named: the one given, else the newest of the given workspace."""
        if self.session:
            from everturn.sessions.lookup import resolve_session

            return resolve_session(store, self.session)
        if self.workspace:
            from everturn.store.contract import SessionFilter

            rows, _ = store.sessions(SessionFilter(workspace=self.workspace), 1)
            return rows[0][0] if rows else None
        return None

    def close(self) -> None:
        """Let go of it; the next question opens it again."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _run(self, job: Callable[[Store], T]) -> T:
        store = self._open_store()
        with store.reading():
            return job(store)

    def _open_store(self) -> Store:
        from everturn.store.contract import archive_identity

        found = archive_identity(self.url)
        if self._store is not None and found != self._identity:
            self.close()  # another file lies in its place, or none
        if self._store is None:
            from everturn.store.contract import open_store

            self._store = open_store(self.url, create=False, upgrade=False)
            self._identity = found
        return self._store


def sources() -> Mapping[str, Source]:
    """Every source, for the words of messages."""
    from everturn.sources.contract import all_sources

    return all_sources()


def clean(text: str) -> str:
    """Words of the archive as they may leave it: secrets masked, nothing that a terminal would act on."""
    from everturn.secrets.redaction import redact_text
    from everturn.text.printable import printable

    return printable(redact_text(text))


SESSION = "everturn://session/{id}"
TURNS = "everturn://session/{id}/turns/{first}-{last}"

_HANDLE = re.compile(r"everturn://session/(?P<id>[^/]+)(?:/turns/(?P<first>[0-9]{1,9})-(?P<last>[0-9]{1,9}))?/?")


def session_handle(native_id: str) -> str:
    """The handle of a session."""
    from urllib.parse import quote

    return f"everturn://session/{quote(native_id, safe='', errors='replace')}"


def parse_handle(uri: str) -> tuple[str, int | None, int | None]:
    """The session of a handle, and the first and last of its turns, from 1. Raises NothingFound."""
    from urllib.parse import unquote

    found = _HANDLE.fullmatch(uri)
    if found is None:
        raise NothingFound(f"{uri[:200]!r} names nothing here; handles look like {SESSION} or {TURNS}")
    first, last = found["first"], found["last"]
    return unquote(found["id"]), int(first) if first else None, int(last) if last else None


def session_name(text: str) -> str:
    """What a model gives for a session: an id or its beginning, @last, or a handle."""
    return parse_handle(text)[0] if text.startswith("everturn://") else text


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
