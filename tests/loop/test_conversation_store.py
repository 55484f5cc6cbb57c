"""The archive for programs with a loop of their own: every message written through, in SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from everturn.capture.policy import NotCaptured, Policy
from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.errors import Busy, EverturnError, SessionNotFound, UsageError
from everturn.loop.conversation_store import ConversationStore
from everturn.loop.journal import Journal, open_archive
from everturn.loop.journal_state import AGENT
from everturn.loop.loop import Loop
from everturn.loop.recall_tool import recall_tool
from everturn.loop.turn_log import LoggedTurn, TurnLog
from everturn.maintenance.forget import forget_sessions
from everturn.retrieval.search import search
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from tests.loop.scripted_model import Model, says

ROOT = Path(__file__).parents[2]
READ = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":  "a.py"}'}}
RUN = {"id": "c2", "name": "run", "input": {"command": "ls"}, "extra": [None]}

TURN_COLUMNS = ["id", "session_id", "turn_number", "role", "content", "tool_calls", "tool_call_id", "tool_name",
                "token_count", "created_at"]  # fmt: skip
SESSION_COLUMNS = ["id", "workspace_path", "model_name", "system_prompt", "started_at", "last_active_at",
                   "total_tokens", "turn_count", "session_state", "is_active"]  # fmt: skip


@pytest.fixture
def log(store: Store) -> TurnLog:
    ticks = count(1_700_000_000_123, 1000)
    return TurnLog(store, lambda: next(ticks))


def talk(log: TurnLog) -> str:
    """A short conversation, with an interruption."""
    session = log.create_session("/project", "model-1", "Be exact. \U0001f600")
    for turn in (
        LoggedTurn("user", "read it: 100% of a_b\nplease", token_count=5),
        LoggedTurn("assistant", "reading", tool_calls=[READ, RUN], token_count=7),
        LoggedTurn("tool", "the words of a.py", tool_call_id="c1", tool_name="read"),
        LoggedTurn("user", "wait"),
        LoggedTurn("tool", "late", tool_call_id="c2"),
        LoggedTurn("assistant", "so be it"),
    ):
        log.append_turn(session, turn)
    return session


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


# the log --------------------------------------------------------------------------------------------------------------
def test_every_message_comes_back_as_it_was_given_and_numbered_by_one(log: TurnLog) -> None:
    rows = log.get_turns(talk(log))
    assert column(rows, "turn_number") == [1, 2, 3, 4, 5, 6]
    assert column(rows, "role") == ["user", "assistant", "tool", "user", "tool", "assistant"]
    assert column(rows, "content")[:3] == ["read it: 100% of a_b\nplease", "reading", "the words of a.py"]
    assert rows[1]["tool_calls"] == [READ, RUN]
    assert column(rows, "tool_call_id") == [None, None, "c1", None, "c2", None]
    assert column(rows, "tool_name") == [None, None, "read", None, "run", None]
    assert column(rows, "token_count") == [5, 7, 0, 0, 0, 0]
    assert all(row["created_at"].startswith("2023-11-14T22:1") and row["created_at"].endswith("+00:00") for row in rows)
    assert [name for name in rows[0] if name != "is_error"] == TURN_COLUMNS
    assert len(set(column(rows, "id"))) == 6


def test_pages_are_cut_by_number_and_have_a_limit(log: TurnLog) -> None:
    session = talk(log)
    assert column(log.get_turns(session, 2, 2), "turn_number") == [3, 4]
    assert column(log.get_turns(session, offset=5), "turn_number") == [6]
    assert log.get_turns(session, 6) == log.get_turns(session, limit=0) == log.get_turns("nobody") == []
    assert len(log.get_turns(session, -5, 10**9)) == 6
    assert (log.get_turn_count(session), log.get_turn_count("nobody")) == (6, 0)


@pytest.mark.parametrize(
    ("query", "found"),
    [("words", [3]), ("100%", [1]), ("%", [1]), ("_", [1]), ("a_b", [1]), ("late", [5]), ("nothing", []), ("  ", [])],
)
def test_messages_are_found_and_wildcards_are_only_signs(log: TurnLog, query: str, found: list[int]) -> None:
    session = talk(log)
    other = log.create_session("/project", "model-1")
    log.append_turn(other, LoggedTurn("user", "words late 100% a_b"))
    assert column(log.search_turns(session, query), "turn_number") == found


def test_a_session_is_described_and_listed_by_its_exact_workspace(log: TurnLog) -> None:
    session = talk(log)
    empty = log.create_session("/project/deeper", "model-2")
    shown = log.get_session(session)
    assert shown is not None
    assert [name for name in shown if name != "session_state_through_turn"] == SESSION_COLUMNS
    assert (shown["workspace_path"], shown["model_name"], shown["turn_count"]) == ("/project", "model-1", 6)
    assert (shown["system_prompt"], shown["total_tokens"], shown["is_active"]) == ("Be exact. \U0001f600", 12, 1)
    assert shown["session_state"] is None and shown["started_at"] < shown["last_active_at"]
    assert column(log.list_sessions("/project"), "id") == [session]
    assert column(log.list_sessions("/proj"), "id") == []
    assert column(log.list_sessions(), "id") == [session, empty]
    assert column(log.list_sessions(limit=1), "id") == [session]
    assert log.get_session("nobody") is None


def test_the_state_of_a_session_says_up_to_where_it_is_known(log: TurnLog) -> None:
    session = talk(log)
    log.update_session_state(session, {"focus": "tests", "seen": [1, None, "\ud800"]})
    log.append_turn(session, LoggedTurn("user", "more"))
    shown = log.get_session(session)
    assert shown is not None
    assert json.loads(shown["session_state"]) == {"focus": "tests", "seen": [1, None, "\ud800"]}
    assert (shown["session_state_through_turn"], shown["turn_count"]) == (6, 7)
    log.update_session_state(session, {})
    assert (log.get_session(session) or {})["session_state"] == "{}"
    with pytest.raises(UsageError, match="JSON"):
        log.update_session_state(session, {"when": object()})
    with pytest.raises(SessionNotFound):
        log.update_session_state("nobody", {})


def test_resuming_gives_the_last_messages_and_never_begins_with_a_result(log: TurnLog) -> None:
    session = talk(log)
    assert column(log.resume_session(session), "turn_number") == [1, 2, 3, 4, 5, 6]
    assert column(log.resume_session(session, 3), "turn_number") == [4, 5, 6]
    assert column(log.resume_session(session, 2), "turn_number") == [4, 5, 6]
    assert column(log.resume_session(session, 4), "turn_number") == [2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match=r"^Session not found: nobody"):
        log.resume_session("nobody")


SAID = {
    "a result nobody asked for": LoggedTurn("tool", "nobody asked", tool_call_id="c9", tool_name="lost"),
    "a second result": LoggedTurn("tool", "a second time", tool_call_id="c1", tool_name="read"),
    "a result of nothing": LoggedTurn("tool", ""),
    "a word of the system": LoggedTurn("system", "the rules have changed", token_count=3),
    "no word of the user": LoggedTurn("user", ""),
    "half a surrogate pair": LoggedTurn("user", "half \ud800 a pair"),
    "no word of the model": LoggedTurn("assistant", ""),
    "a call without anything": LoggedTurn("assistant", None, [{}]),
    "a call that is none": LoggedTurn("assistant", "text", [{"function": None, "arguments": "no json"}]),
    "a long text": LoggedTurn("user", "x" * 300_000),
}


@pytest.mark.few(10)
@pytest.mark.parametrize("name", SAID)
def test_whatever_is_said_is_taken_and_the_session_can_still_be_opened(log: TurnLog, name: str) -> None:
    session, turn = talk(log), SAID[name]
    assert log.append_turn(session, turn) == 7
    (row,) = log.get_turns(session, 6)
    assert (row["role"], row["content"] or "") == (turn.role, turn.content or "")
    assert (row["tool_call_id"], row["tool_name"]) == (turn.tool_call_id, turn.tool_name)
    assert (row["tool_calls"], row["token_count"]) == (turn.tool_calls or None, turn.token_count)
    assert log.append_turn(session, LoggedTurn("user", "and then")) == 8
    with Journal.open(log.store, session) as journal:
        assert journal.past.messages[-1].parts[0].text == "and then"


def test_an_unknown_role_and_an_unknown_session_are_refused(log: TurnLog) -> None:
    with pytest.raises(UsageError, match="unknown role"):
        log.append_turn(talk(log), LoggedTurn("robot", "beep"))
    with pytest.raises(SessionNotFound):
        log.append_turn("nobody", LoggedTurn("user", "hello"))


def test_what_was_appended_is_a_session_like_any_other(log: TurnLog) -> None:
    session = talk(log)
    found = search(log.store, all_sources(), "words", now=0)
    assert [one.session.native_id for one in found.items] == [session]
    log.append_turn(session, LoggedTurn("user", "go on"))
    with Journal.open(log.store, session) as journal:
        assert Loop(Model([says("?")] * 2 + [says("done")])).resume(journal).text == "done"
    assert column(log.get_turns(session, 7), "content") == ["done"]


def test_a_session_that_a_loop_runs_is_busy(log: TurnLog) -> None:
    session = talk(log)
    journal = Journal.open(log.store, session)
    other = TurnLog(log.store, journal.clock)
    with pytest.raises(Busy):
        other.append_turn(session, LoggedTurn("user", "me too"))
    journal.close()
    assert other.append_turn(session, LoggedTurn("user", "me too")) == 7


def test_several_connections_append_to_one_session_and_nothing_is_lost(url: str) -> None:
    if url == "memory:":
        pytest.skip("an archive in memory has one connection")
    logs = [TurnLog(open_archive(url, "process")) for _ in range(3)]
    session = logs[0].create_session("/project", "model-1")
    numbers = [log.append_turn(session, LoggedTurn("user", f"{n}/{m}")) for m in range(5) for n, log in enumerate(logs)]
    assert numbers == list(range(1, 16))
    assert column(logs[2].get_turns(session), "content") == [f"{n}/{m}" for m in range(5) for n in range(3)]
    for log in logs:
        log.store.close()


def test_the_work_of_an_append_does_not_grow(tmp_path: Path) -> None:
    log = TurnLog(open_archive(str(tmp_path / "archive.db"), "process"))
    session = log.create_session("/project", "model-1")
    connection = log.store.driver.connection  # type: ignore[attr-defined]

    def statements() -> int:
        """How many statements one exchange takes."""
        seen: list[str] = []

        def note(cursor: object, sql: str, bindings: object) -> bool:
            seen.append(sql)
            return True

        connection.exec_trace = note
        log.append_turn(session, LoggedTurn("user", "hello", token_count=1))
        log.append_turn(session, LoggedTurn("assistant", "", [READ]))
        log.append_turn(session, LoggedTurn("tool", "x", tool_call_id="c1"))
        connection.exec_trace = None
        return len(seen)

    statements()
    early = statements()
    for _ in range(100):
        log.append_turn(session, LoggedTurn("user", "more"))
    statements()
    assert statements() <= early
    log.store.close()


def test_what_is_forgotten_is_gone_with_its_prompt_and_its_state(tmp_path: Path) -> None:
    log = TurnLog(open_archive(str(tmp_path / "archive.db")))
    session = log.create_session("/project", "model-1", "canary one")
    log.append_turn(session, LoggedTurn("user", "canary two"))
    log.update_session_state(session, {"focus": "canary three"})
    (row,) = log.store.sessions_of(AGENT, session)
    forget_sessions(ArchiveWriter(log.store, "", "", 1), all_sources(), [row])
    assert log.get_session(session) is None and log.get_turns(session) == []
    log.store.close()
    assert b"canary" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


# SQL ------------------------------------------------------------------------------------------------------------------
def read_rows(url: str, sql: str) -> list[dict[str, Any]]:
    """Through a driver of the engine, not ours."""
    if url.startswith("postgres"):
        import psycopg
        from psycopg.rows import dict_row

        address, _, schema = url.partition("schema=")
        with psycopg.connect(address.rstrip("?&"), row_factory=dict_row) as connection:
            connection.execute(f'SET search_path TO "{schema}"')
            return connection.execute(sql).fetchall()
    connection_ = sqlite3.connect(url)
    connection_.row_factory = sqlite3.Row
    rows = [dict(row) for row in connection_.execute(sql)]
    connection_.close()
    return rows


@pytest.fixture
def views(log: TurnLog, url: str) -> Iterator[tuple[TurnLog, str]]:
    if url == "memory:":
        pytest.skip("an archive in memory has one connection")
    yield log, url


def test_the_views_have_the_columns_of_the_document_and_agree_with_the_log(views: tuple[TurnLog, str]) -> None:
    log, url = views
    session = talk(log)
    log.update_session_state(session, {"focus": "tests"})
    turns = read_rows(url, "SELECT * FROM conversation_turns ORDER BY turn_number")
    assert [list(row) for row in turns] == [TURN_COLUMNS] * 6
    for row, ours in zip(turns, log.get_turns(session), strict=True):
        calls = json.loads(row["tool_calls"]) if row["tool_calls"] else None
        assert {**row, "tool_calls": calls} == {name: ours[name] for name in TURN_COLUMNS}
    (shown,) = read_rows(url, "SELECT * FROM cowork_sessions")
    assert shown == {name: (log.get_session(session) or {})[name] for name in SESSION_COLUMNS}


def test_the_views_hold_every_session_of_the_archive(views: tuple[TurnLog, str]) -> None:
    log, url = views
    with Journal.open(log.store, "of-a-loop") as journal:
        Loop(Model([says("hello")])).run(journal, "hi")
    log.create_session("/project", "\x00 odd \ud800", "\x00")
    rows = {row["id"]: row for row in read_rows(url, "SELECT * FROM cowork_sessions")}
    assert len(rows) == 2
    assert (rows["of-a-loop"]["total_tokens"], rows["of-a-loop"]["system_prompt"]) == (110, None)
    assert [
        row["content"]
        for row in read_rows(
            url, "SELECT * FROM conversation_turns WHERE role IN ('user', 'assistant') ORDER BY turn_number"
        )
    ] == ["hi", "hello"]
    assert read_rows(url, "SELECT count(*) AS n FROM conversation_turns WHERE session_id = 'of-a-loop'")[0]["n"] >= 2


@pytest.mark.slow
def test_a_row_of_a_view_costs_the_same_however_long_its_session_is(tmp_path: Path) -> None:
    path = str(tmp_path / "archive.db")
    log = TurnLog(open_archive(path, "process"))
    sizes = {log.create_session("/project", "model-1"): exchanges for exchanges in (20, 160)}
    for session, exchanges in sizes.items():
        for number in range(exchanges):
            log.append_turn(session, LoggedTurn("assistant", "", [{**READ, "id": f"c{number}"}]))
            log.append_turn(session, LoggedTurn("tool", "x", tool_call_id=f"c{number}"))
    log.store.close()
    connection = sqlite3.connect(path)

    def work(session: str) -> float:
        """How often the engine came by for each row, once for every 20 of its steps."""
        steps = count()
        connection.set_progress_handler(lambda: next(steps) and 0, 20)
        rows = connection.execute("SELECT * FROM conversation_turns WHERE session_id = ?", (session,)).fetchall()
        return next(steps) / len(rows)

    short, long = map(work, sizes)
    connection.close()
    assert long < 1.5 * short


def test_words_are_erased_with_their_session_and_made_again_by_a_rebuild(log: TurnLog) -> None:
    session, writer = talk(log), ArchiveWriter(log.store, "", "", 0)
    rows = partial(log.store.driver.all, 'SELECT "content" FROM "message_text" ORDER BY "seq"')  # type: ignore[attr-defined]
    before = rows()
    assert [text for (text,) in before] == column(log.get_turns(session), "content")
    rebuild_archive(writer, all_sources(), lambda done, total, path: None)
    assert rows() == before
    forget_sessions(writer, all_sources(), [log.store.sessions_of(AGENT, session)[0]])
    assert not rows()


def test_a_filter_on_the_tool_reads_only_its_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "archive.db")
    log = TurnLog(open_archive(path, "process"))
    for sessions in (1, 8):
        session = log.create_session("/project", "model-1")
        for number in range(20 * sessions):
            log.append_turn(
                session, LoggedTurn("assistant", "", [{"id": f"c{number}", "name": "ls", "arguments": "{}"}])
            )
            log.append_turn(session, LoggedTurn("tool", "x", tool_call_id=f"c{number}"))
        log.append_turn(
            session, LoggedTurn("assistant", "", [{"id": "z", "name": f"rare{sessions}", "arguments": "{}"}])
        )
        log.append_turn(session, LoggedTurn("tool", "found it", tool_call_id="z"))
    log.store.close()
    connection = sqlite3.connect(path)

    def work(tool: str) -> int:
        steps = count()
        connection.set_progress_handler(lambda: next(steps) and 0, 20)
        rows = connection.execute("SELECT content FROM conversation_turns WHERE tool_name = ?", (tool,)).fetchall()
        assert rows == [("found it",)]
        return next(steps)

    work("rare1")  # the schema is read once
    assert work("rare8") <= work("rare1") + 2
    connection.close()


@pytest.mark.parametrize(
    ("tool", "kind", "failed"),
    [("shell_execute", "", None), ("run_it", "shell", None), ("shell_execute", "", True)],
    ids=["known", "registered", "told"],
)
def test_an_error_that_was_fixed_is_resolved_in_the_state(url: str, tool: str, kind: str, failed: bool | None) -> None:
    async def use() -> str:
        async with ConversationStore() as store:
            await store.initialize(url)
            if kind:
                await store.register_tool(tool, kind)
            session = await store.create_session("/project", "model-1")
            await store.append_turn(session, "user", "make the tests pass")
            for number, (status, is_error) in enumerate(((1, failed), (0, None))):
                calls = [{"id": f"c{number}", "name": tool, "arguments": {"command": "pytest -q"}}]
                await store.append_turn(session, "assistant", None, tool_calls=calls)
                text = "ImportError: no module named jwt" + ("" if is_error or not status else f"\nexit code: {status}")
                await store.append_turn(
                    session, "tool", text if status else "3 passed", tool_call_id=f"c{number}", is_error=is_error
                )
            turns = await store.get_turns(session)
            assert [row["is_error"] for row in turns if row["role"] == "tool"] == [True, False]
            return str(recall_tool(store, session).fn(action="summary"))

    if url == "memory:" or url.startswith("postgres"):
        pytest.skip("the recall tool opens connections of its own")
    assert '  - "pytest -q: ImportError: no module named jwt — went well later (turn 1)"' in asyncio.run(use())


def test_a_session_can_be_closed_and_opened_again(views: tuple[TurnLog, str]) -> None:
    log, url = views
    closed, opened = talk(log), talk(log)
    for session, is_active in ((closed, False), (opened, False), (opened, True)):
        log.set_active(session, is_active)
        assert (log.get_session(session) or {})["is_active"] == int(is_active)
    rows = {row["id"]: row["is_active"] for row in read_rows(url, "SELECT id, is_active FROM cowork_sessions")}
    assert rows == {closed: 0, opened: 1}
    with pytest.raises(SessionNotFound):
        log.set_active("nobody", True)
    with pytest.raises(UsageError, match="unknown kind of tool 'oven'"):
        log.register_tool("bake", "oven")


def test_a_session_that_the_rules_keep_out_can_be_closed_too(tmp_path: Path) -> None:
    with closing(open_store(str(tmp_path / "a.db"))) as store:
        log = TurnLog(store, policy=Policy(mode="off"))
        with pytest.warns(NotCaptured):
            session = log.create_session("/w", "m")
        log.set_active(session, False)
        assert (log.get_session(session) or {})["is_active"] == 0
        assert store.sessions(SessionFilter(), 10)[0] == []


def test_after_a_failed_write_the_store_goes_on(tmp_path: Path) -> None:
    async def use() -> None:
        async with ConversationStore() as store:
            await store.initialize(tmp_path / "archive.db")
            session = await store.create_session("/project", "model-1")
            log = store._opened
            assert log is not None
            log.store.driver.unusable = "reading or writing it failed"  # type: ignore[attr-defined]
            assert await store.get_turn_count(session) == 0
            assert await store.append_turn(session, "user", "still here") == 1

    asyncio.run(use())


# the asynchronous face --------------------------------------------------------------------------------------------------
def test_the_store_offers_the_methods_of_the_document(url: str) -> None:
    async def use() -> None:
        async with ConversationStore() as store:
            await store.initialize(url)
            await store.initialize(url)
            session = await store.create_session(Path("/project"), "model-1", "Be exact.")
            assert await store.append_turn(session, "user", "hello") == 1
            assert await store.append_turn(session, "assistant", tool_calls=[READ]) == 2
            assert await store.append_turn(session, "tool", "x", tool_call_id="c1", tool_name="read") == 3
            assert column(await store.get_turns(session, offset=1, limit=1), "tool_calls") == [[READ]]
            assert column(await store.search_turns(session, "hello"), "turn_number") == [1]
            assert await store.get_turn_count(session) == 3
            await store.update_session_state(session, {"focus": "x"})
            assert ((await store.get_session(session)) or {})["session_state"] == '{"focus": "x"}'
            assert column(await store.list_sessions(Path("/project")), "id") == [session]
            assert column(await store.list_sessions(None), "id") == [session]
            assert len(await store.resume_session(session)) == 3
            with pytest.raises(ValueError, match="Session not found"):
                await store.resume_session("nobody")

    asyncio.run(use())


def test_many_tasks_may_use_one_store_and_a_cancelled_one_leaves_a_whole_message(tmp_path: Path) -> None:
    async def use() -> None:
        async with ConversationStore() as store:
            await store.initialize(tmp_path / "archive.db", "process")
            session = await store.create_session("/project", "model-1")
            numbers = await asyncio.gather(*(store.append_turn(session, "user", f"{n}") for n in range(20)))
            assert sorted(numbers) == list(range(1, 21))
            task = asyncio.create_task(store.append_turn(session, "user", "cancelled"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await store.get_turn_count(session) == 21

    asyncio.run(use())


def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    async def use() -> None:
        store = ConversationStore()
        with pytest.raises(UsageError, match="initialize"):
            await store.get_turns("x")
        await store.initialize(tmp_path / "archive.db")
        await store.close()
        await store.close()
        with pytest.raises(UsageError, match="initialize"):
            await store.append_turn("x", "user", "hello")

    asyncio.run(use())


def test_a_message_that_could_not_be_written_is_an_error_and_is_not_there(tmp_path: Path) -> None:
    log = TurnLog(open_archive(str(tmp_path / "archive.db")))
    session = talk(log)
    connection = log.store.driver.connection  # type: ignore[attr-defined]
    pages = connection.pragma("page_count")
    connection.pragma("max_page_count", pages)
    with pytest.raises(EverturnError, match="full"):
        log.append_turn(session, LoggedTurn("user", os.urandom(300_000).hex()))
    connection.pragma("max_page_count", 10**9)
    assert log.get_turn_count(session) == 6
    assert log.append_turn(session, LoggedTurn("user", "again")) == 7
    log.store.close()


DYING = """
import asyncio, os, sys
from everturn.loop.conversation_store import ConversationStore

async def main():
    store = ConversationStore()
    await store.initialize(sys.argv[1])
    session = await store.create_session("/project", "model-1")
    print(session, flush=True)
    for number in range(20):
        print(await store.append_turn(session, "user", f"message {number}"), flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_what_was_acknowledged_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "archive.db")
    died = subprocess.run(
        [sys.executable, "-c", DYING, path],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    session, *numbers = died.stdout.decode().split()
    log = TurnLog(open_archive(path))
    assert numbers == [str(number) for number in range(1, 21)]
    assert column(log.get_turns(session), "content") == [f"message {number}" for number in range(20)]
    assert log.append_turn(session, LoggedTurn("user", "still here")) == 21
    log.store.close()
