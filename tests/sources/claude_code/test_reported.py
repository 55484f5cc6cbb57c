"""What only some records say: reported work of subagents, interruptions, the caller of a result, the slug of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.analytics.cost import load_prices
from everturn.analytics.stats import WorkTotal, count_stats
from everturn.analytics.turns import TurnFilter, list_turn_rows
from everturn.errors import UnknownSession
from everturn.sessions.lookup import resolve_session
from everturn.store.contract import AnalyticsScope, open_store
from tests.capture.history import SID, History, run
from tests.sources.goldens import ingest


def _session(history: History) -> Path:
    def result(call: str, **note: object) -> bytes:
        content = [{"type": "tool_result", "tool_use_id": call, "content": "done"}]
        return history.line("user", content, toolUseResult=note)

    def call(name: str, call_id: str, **given: object) -> bytes:
        return history.line("assistant", [{"type": "tool_use", "id": call_id, "name": name, "input": given}])

    work = {"status": "completed", "totalDurationMs": 5000, "totalToolUseCount": 7, "totalTokens": 9000}
    data = [
        history.line("user", "count the walruses"),
        call("Task", "t1", prompt="count in the north"), result("t1", agentId="aaa", **work),
        call("Task", "t2", prompt="count in the south"), result("t2", agentId="bbb", **work),
        call("Bash", "t3", command="sleep 99"), result("t3", stdout="", stderr="", interrupted=True),
        history.line(
            "system", None, subtype="compact_boundary",
            compactMetadata={"trigger": "auto", "preTokens": 155000},
        ),
        history.line("system", None, subtype="stop_hook_summary", hookCount=2, hookErrors=["boom"], preventedContinuation=True),
    ]  # fmt: skip
    path = history.file()
    path.write_bytes(b"".join(data))
    below = history.project / SID / "subagents" / "agent-bbb.jsonl"
    below.parent.mkdir(parents=True)
    asked = history.line("user", "count in the south", isSidechain=True, agentId="bbb")
    used = [{"type": "tool_use", "id": "s1", "name": "Read", "input": {"file_path": "/home/ann/shop/south"}}]
    below.write_bytes(asked + history.line("assistant", used, isSidechain=True, agentId="bbb"))
    return history.root


def test_own_inclusive_and_reported_work_are_kept_apart(tmp_path: Path) -> None:
    with ingest("claude_code", _session(History(tmp_path / "agent"))) as taken:
        found = count_stats(taken.store, AnalyticsScope(), load_prices(None))
        assert found.own == WorkTotal(1, 3, 15)
        assert found.inclusive == WorkTotal(2, 4, 20)
        assert found.reported == WorkTotal(1, 7, 9000)  # the other one has a transcript of its own
        (main,) = [row for row in list_turn_rows(taken.store, AnalyticsScope(), TurnFilter()) if not row.subagent]
        assert (main.calls, main.inclusive_calls, main.reported_calls) == (3, 4, 7)
        assert (main.tokens, main.inclusive_tokens, main.reported_tokens) == (15, 20, 9000)


def test_an_interrupted_call_has_failed_and_records_of_the_client_say_what_they_counted(tmp_path: Path) -> None:
    with ingest("claude_code", _session(History(tmp_path / "agent"))) as taken:
        (session,) = [row for row in taken.store.sessions_of("claude_code", SID) if row.kind == "main"]
        calls = {call.call_id: (call.status, call.error_class) for call in taken.store.calls(session.id)}
        assert calls == {"t1": ("ok", ""), "t2": ("ok", ""), "t3": ("error", "interrupted")}
        assert taken.hits("trigger auto tokens before") == [SID]
        assert taken.hits("hooks prevented") == [SID]


def test_a_result_goes_to_the_call_of_the_message_that_it_names(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")

    def call(uuid: str, call_id: str) -> bytes:
        block = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": f"echo {uuid}"}}
        return history.line("assistant", [block], uuid=uuid)

    def result(source: str | None, text: str, **block: object) -> bytes:
        more = {"sourceToolAssistantUUID": source} if source else {}
        return history.line("user", [{"type": "tool_result", "content": text, **block}], **more)

    records = [
        history.line("user", "count the walruses"),
        call("m1", "same"), call("m2", "same"), call("m3", "third"), call("m4", "fourth"), call("m5", "fifth"),
        result("m2", "of the second", tool_use_id="same", is_error=True),  # two calls have this id
        result("m1", "of the first", tool_use_id="same"),
        result("m4", "no id at all"),
        result("m3", "an id that nobody knows", tool_use_id="lost"),
        result(None, "as of older clients", tool_use_id="fifth"),
        result("m9", "of a message that is not here", tool_use_id="gone"),
    ]  # fmt: skip
    for pieces in ([b"".join(records)], records):
        history.write(b"")
        store = open_store("memory:")
        for piece in pieces:
            history.grow(piece)
            run(store, history)
        (session,) = store.sessions_of("claude_code", SID)
        calls = [(call.call_id, call.seq, call.status, call.result_seq) for call in store.calls(session.id)]
        store.close()
        assert calls == [
            ("same", 1, "ok", 7), ("same", 2, "error", 6), ("third", 3, "ok", 9), ("fourth", 4, "ok", 8),
            ("fifth", 5, "ok", 10), ("gone", 11, "orphan", 11),
        ]  # fmt: skip


def test_a_session_goes_by_the_slug_that_its_agent_gave_it(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    slug = "merry-counting-walrus"
    path = history.file()
    path.write_bytes(history.line("user", "count", slug=slug) + history.line("assistant", "three", slug=None))
    with ingest("claude_code", history.root) as taken:
        session = resolve_session(taken.store, slug)
        assert (session.native_id, taken.store.session(session.id)[1].slug) == (SID, slug)
        with pytest.raises(UnknownSession):
            resolve_session(taken.store, "merry-counting")
