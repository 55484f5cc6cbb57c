"""`ConversationStore`: the conversations of an archive for asynchronous programs.

    store = ConversationStore()
    await store.initialize("archive.db")
    session = await store.create_session("/project", "some-model", "Be exact.")
    await store.append_turn(session, "user", "What did we decide?")

Each method runs one of `turn_log` in one dedicated thread, in order, since a connection belongs to one thread. When
`append_turn` returns, the message has reached the disk; if it could not be written, it raises. A cancelled caller gets the
cancellation when the work has ended: it is done or it failed, never in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from everturn.clock import Clock, now
from everturn.errors import UsageError
from everturn.loop.journal import open_archive
from everturn.loop.turn_log import RECENT, LoggedTurn, TurnLog

P = ParamSpec("P")
R = TypeVar("R")


class OneThread:
    """Runs plain functions in one thread, in the order they are submitted."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)

    async def run(self, work: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
        """Return or raise the outcome of `work` without blocking the event loop."""
        running = asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *given, **named))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # retrieve it, so that asyncio does not warn
            raise

    def close(self) -> None:
        """Let the thread end when the submitted work is done."""
        self._pool.shutdown(wait=False)


Row = dict[str, Any]


class ConversationStore:
    """Append-only conversations; each message is written at once."""

    def __init__(self, clock: Clock = now) -> None:
        self._clock = clock
        self._thread = OneThread("conversations")
        self._opened: TurnLog | None = None
        self._durability = "power"

    async def initialize(self, db_path: str | Path, durability: str = "power") -> None:
        """Open the archive at a path or URL and create it if it does not exist. See `journal` for `durability`."""
        await self._thread.run(self._open, str(db_path), durability)

    @property
    def url(self) -> str:
        """The path or URL of the archive."""
        return self._log().store.url

    async def create_session(self, workspace: str | Path, model: str, system_prompt: str = "") -> str:
        """Begin a conversation and return its id."""
        return await self._do(TurnLog.create_session, str(workspace), model, system_prompt)

    async def append_turn(
        self,
        session_id: str,
        role: str,
        content: str | None = None,
        *,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        tool_call_id: str | None = None,
        tool_name: str | None = None,
        token_count: int = 0,
        is_error: bool | None = None,
    ) -> int:
        """Write one message verbatim and return its number in the session, from 1.

        `is_error` says whether a tool failed. Without it, a shell whose output states an exit status other than 0 has.

        Raise SessionNotFound, Busy while a durable loop runs the session, and any error that prevents the write.
        """
        turn = LoggedTurn(role, content, tool_calls, tool_call_id, tool_name, token_count, is_error)
        return await self._do(TurnLog.append_turn, session_id, turn)

    async def get_turns(self, session_id: str, offset: int = 0, limit: int = RECENT) -> list[Row]:
        """Return messages in order, at most 1,000; none if there is no such session."""
        return await self._do(TurnLog.get_turns, session_id, offset, limit)

    async def search_turns(self, session_id: str, query: str, limit: int = 20) -> list[Row]:
        """Return the messages that match a query (words, "phrases", -not, prefix*), best first, at most 200."""
        return await self._do(TurnLog.search_turns, session_id, query, limit)

    async def get_turn_count(self, session_id: str) -> int:
        """Return the number of messages; 0 if there is no such session."""
        return await self._do(TurnLog.get_turn_count, session_id)

    async def get_session(self, session_id: str) -> Row | None:
        """Return the facts about a session, or None."""
        return await self._do(TurnLog.get_session, session_id)

    async def list_sessions(self, workspace: str | Path | None = None, limit: int = 100) -> list[Row]:
        """Return the sessions of a workspace, or all, newest first, at most 1,000."""
        folder = None if workspace is None else str(workspace)
        return await self._do(TurnLog.list_sessions, folder, limit)

    async def update_session_state(self, session_id: str, state: Mapping[str, Any]) -> None:
        """Keep the program's own state of a session. Raise SessionNotFound."""
        await self._do(TurnLog.update_session_state, session_id, state)

    async def set_active(self, session_id: str, is_active: bool) -> None:
        """Say whether a session is still in use: its `is_active`. Raise SessionNotFound."""
        await self._do(TurnLog.set_active, session_id, is_active)

    async def register_tool(self, name: str, kind: str) -> None:
        """Say of which kind a tool is (`shell`, `write`, `edit`, `read`, …), so that the state knows what its calls do."""
        await self._do(TurnLog.register_tool, name, kind)

    async def resume_session(self, session_id: str, limit: int = RECENT) -> list[Row]:
        """Return the last messages, oldest first. Raise SessionNotFound, which is a ValueError."""
        return await self._do(TurnLog.resume_session, session_id, limit)

    async def close(self) -> None:
        """Close the archive. A second call does nothing."""
        await self._thread.run(self._close)

    async def __aenter__(self) -> ConversationStore:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    def _open(self, url: str, durability: str) -> None:
        if self._opened is not None and self._opened.store.url == url:
            return
        self._close()
        self._opened, self._durability = TurnLog(open_archive(url, durability), self._clock), durability

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.store.close()
        self._opened = None

    async def _do(self, work: Callable[Concatenate[TurnLog, P], R], *given: P.args, **named: P.kwargs) -> R:
        """Run a method of the log in its thread."""
        self._log()
        return await self._thread.run(lambda: work(self._usable_log(), *given, **named))

    def _usable_log(self) -> TurnLog:
        """Return the log; after a failed write on a new connection, since the old one may differ from the disk."""
        log = self._log()
        if log.is_usable:
            return log
        url, kinds = log.store.url, log.kinds
        self._close()
        self._opened = TurnLog(open_archive(url, self._durability), self._clock, kinds=kinds)
        return self._opened

    def _log(self) -> TurnLog:
        if self._opened is None:
            raise UsageError("the store is not open; await initialize(db_path) first")
        return self._opened
