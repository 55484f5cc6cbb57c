"""Cursor: transcripts of its agent, databases of the editor, Markdown exports."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.derive.file_book import UNRECORDED
from everturn.model.conversation import TokenUsage
from everturn.sessions.state import session_state
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.cursor import SOURCE
from everturn.sources.cursor.message import parse_local_time
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
NAME = "0c1d2e3f-1111-4222-8333-444455556666"
LINES, EXPORT = SAMPLES / f"{NAME}.jsonl", SAMPLES / "export.md"
PIECES = LINES.read_bytes().splitlines(keepends=True)
FOUND = SourceCandidate(LINES, "main", NAME)
COMPOSER, CHAT, NEWER, CHILD = "composer-old", "chat-tab", "composer-new", "composer-child"


def tool(call: str, name: str, given: Any, result: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"toolCallId": call, "name": name, "rawArgs": json.dumps(given), "result": json.dumps(result), "status": status, "modelCallId": "model-1", **more}  # fmt: skip


BUBBLES: list[dict[str, Any]] = [
    {"type": 1, "bubbleId": "b1", "text": "count the walruses", "createdAt": "2025-08-01T11:00:00.000Z", "images": [{"data": "x"}], "context": {"selections": [{"text": "herd = []"}]}},
    {"type": 2, "bubbleId": "b2", "text": "", "thinking": {"text": "read and list"}, "createdAt": "2025-08-01T11:00:02.000Z"},
    {"type": 2, "bubbleId": "b3", "text": "", "toolFormerData": tool("t1", "read_file", {"target_file": "src/walrus.py"}, {"contents": "herd = [1, 2, 3]"})},
    {"type": 2, "bubbleId": "b4", "text": "", "toolFormerData": tool("t2", "run_terminal_cmd", {"command": "make count"}, {"output": "no rule", "exitCode": 2})},
    {"type": 2, "bubbleId": "b5", "text": "", "toolFormerData": tool("t3", "edit_file", {"target_file": "src/walrus.py"}, {}, "cancelled", userDecision="rejected")},
    {"type": 2, "bubbleId": "b6", "text": "", "toolFormerData": tool("t4", "task", {"prompt": "count otters"}, {"agentId": CHILD})},
    {"type": 2, "bubbleId": "b7", "text": "Three.", "codeBlocks": [{"content": "print(3)"}], "tokenCount": {"inputTokens": 70, "outputTokens": 5}, "modelInfo": {"modelName": "sonnet"}},
    {"type": 2, "bubbleId": "b8", "text": "", "errorDetails": {"message": "overloaded"}},
    {"type": 7, "bubbleId": "b9", "text": "a bubble of the future"},
]  # fmt: skip
RECORDS: list[Any] = [*(json.loads(line) for line in PIECES), *({"bubble": bubble} for bubble in BUBBLES), {"conversation": "x", "title": "y"}]  # fmt: skip


def database(path: Path, upto: int = 100) -> sqlite3.Connection:
    """A database with a conversation of each generation."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    connection.execute("CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    chat = {"tabs": [
        {"tabId": CHAT, "chatTitle": "An old chat", "bubbles": [
            {"type": "user", "id": "u", "initText": json.dumps({"root": {"children": [{"text": "rich "}, {"text": "words"}]}})},
            {"type": "ai", "id": "a", "rawText": "an old answer", "modelType": "gpt-4"}]},
        {"tabId": "empty", "bubbles": []},
    ]}  # fmt: skip
    composers = {"allComposers": [
        {"composerId": COMPOSER, "name": "An old composer", "createdAt": 1_735_689_600_000, "conversation": [
            {"type": 1, "bubbleId": "c1", "text": "make it blue"}, {"type": 2, "bubbleId": "c2", "text": "It is blue."}]},
        {"composerId": "headless"},
    ]}  # fmt: skip
    put(connection, "ItemTable", "workbench.panel.aichat.view.aichat.chatdata", chat)
    put(connection, "ItemTable", "composer.composerData", composers)
    put(connection, "ItemTable", "aiService.prompts", [{"text": "a prompt only"}])
    shown = BUBBLES[:upto]
    put(connection, "cursorDiskKV", f"composerData:{NEWER}", {
        "composerId": NEWER, "name": "A new composer", "modelConfig": {"modelName": "opus"}, "lastUpdatedAt": upto,
        "fullConversationHeadersOnly": [{"bubbleId": one["bubbleId"], "type": one["type"]} for one in shown],
    })  # fmt: skip
    for one in shown:
        put(connection, "cursorDiskKV", f"bubbleId:{NEWER}:{one['bubbleId']}", one)
    put(connection, "cursorDiskKV", f"composerData:{CHILD}", {
        "composerId": CHILD, "subagentInfo": {"parentComposerId": NEWER}, "fullConversationHeadersOnly": [{"bubbleId": "k1"}],
    })  # fmt: skip
    put(connection, "cursorDiskKV", f"bubbleId:{CHILD}:k1", {"type": 1, "bubbleId": "k1", "text": "count otters"})
    put(
        connection,
        "cursorDiskKV",
        f"bubbleId:{NEWER}:loose",
        {"type": 1, "bubbleId": "loose", "text": "no longer in it"},
    )
    connection.commit()
    return connection


def put(connection: sqlite3.Connection, table: str, key: str, value: Any) -> None:
    connection.execute(f"INSERT INTO {table}(key, value) VALUES (?, ?)", (key, json.dumps(value)))


def in_database(path: Path) -> dict[str, tuple[SourceCandidate, bytes, goldens.Whole]]:
    return {found.native_id: (found, lines, whole) for found, lines, whole in goldens.readings(SOURCE, path)}


# transcripts --------------------------------------------------------------------------------------------------------------
def test_what_was_asked_is_apart_from_what_the_editor_added() -> None:
    ((_, _, whole),) = goldens.readings(SOURCE, LINES)
    assert whole.texts("prompt") == ["how many walruses?", "plain words"]
    first = whole.all()[0]
    assert (first.at, first.precision) == (1754046000000, "min")
    reminder = next(message for message in whole.all() if "the mode is agent" in message.blocks[0].text)
    assert (reminder.origin, reminder.kind, reminder.starts_turn) == ("injected", "context", False)


def test_calls_are_known_though_what_they_gave_back_is_not() -> None:
    with goldens.ingest("cursor", LINES) as taken:
        (session,) = taken.store.sessions_of("cursor", NAME)
        calls = [(call.name, call.kind, call.status) for call in taken.store.calls(session.id)]
        assert calls == [("Read", "read", "open"), ("Shell", "shell", "open"), ("Write", "create", "open")]
        assert [step.n_calls for step in taken.store.steps(session.id, 0)] == [2, 0]
        rows = list(taken.store.messages(session.id))
        assert [row.fidelity for row in rows].count("partial") == 2
        assert [row.kind for row in rows if row.origin == "system"] == ["notice", "interrupt", "unknown"]
        assert session.n_turns == 2


def test_what_calls_without_results_did_is_told_once_the_model_goes_on(tmp_path: Path) -> None:
    def said(text: str, name: str = "", **given: str) -> dict[str, Any]:
        call = [{"type": "tool_use", "name": name, "input": given}] if name else []
        return {"role": "assistant", "message": {"content": [{"type": "text", "text": text}, *call]}}

    lines = [
        {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>Add a pool.</user_query>"}]}},
        said("I write it.", "Write", path="/home/ann/zoo/pool.py", contents="DEPTH = 4"),
        said("Now the commit.", "Shell", command='cd /home/ann/zoo && git commit -m "Add a pool"'),
        said("Committed as `1a2b3c4`. One more thing.", "Write", path="/home/ann/zoo/never.py", contents=""),
    ]
    path = tmp_path / NAME / f"{NAME}.jsonl"
    path.parent.mkdir()
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    with goldens.ingest("cursor", path) as taken:
        (session,) = taken.store.sessions_of("cursor", NAME)
        state = session_state(taken.store, {"cursor": SOURCE}, session)
        assert [(one.path, one.action, one.by) for one in state.files.values()] == [
            ("/home/ann/zoo/pool.py", "created", UNRECORDED)
        ]
        assert [(one.hash, one.subject) for one in state.commits] == [("1a2b3c4", "Add a pool")]


# databases ------------------------------------------------------------------------------------------------------------------
def test_each_generation_of_conversations_is_read(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    (tmp_path / "workspace.json").write_text('{"folder": "file:///home/ann/zoo%20one"}')
    connection = database(path)
    found = in_database(path)
    assert list(found) == [CHAT, COMPOSER, CHILD, NEWER]
    for _, lines, whole in found.values():
        goldens.assert_keeps_promises(SOURCE, lines, whole)
    goldens.assert_golden(SAMPLES / "database.db", {name: goldens.shown(one[2]) for name, one in found.items()})
    assert found[CHAT][2].texts() == ["rich words", "an old answer"]
    assert found[COMPOSER][2].texts() == ["make it blue", "It is blue."]
    assert found[NEWER][2].facts[NEWER]["workspace"] == "/home/ann/zoo one"
    assert SOURCE.workspace(found[NEWER][1]) == "/home/ann/zoo one"
    assert "no longer in it" not in found[NEWER][2].texts()
    connection.close()


def test_bubbles_hold_thoughts_calls_results_and_tokens(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database(path).close()
    whole = in_database(path)[NEWER][2]
    ends = {block.result.call_id: block.result for message in whole.all() for block in message.blocks if block.result}
    assert [(name, end.error_class, end.exit_status) for name, end in ends.items()] == [
        ("t1", "", None), ("t2", "exit_status", 2), ("t3", "rejected", None), ("t4", "", None),
    ]  # fmt: skip
    by_id = {message.native_id: message for message in whole.all()}
    assert {by_id[name].provider_id for name in ("b3", "b4", "b5", "b6")} == {"model-1"}
    assert (by_id["b7"].usage, by_id["b7"].model, by_id["b2"].model) == (TokenUsage(70, 5), "sonnet", "opus")
    assert whole.texts("answer") == ["Three.", "print(3)"]
    assert (by_id["b8"].kind, by_id["b9"].kind) == ("notice", "unknown")
    assert whole.census["bubble/7", "", "unknown"] == 1


def test_a_subagent_and_the_call_that_started_it_know_each_other(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database(path).close()
    found = in_database(path)
    child, whole = found[CHILD][0], found[CHILD][2]
    assert (child.kind, child.parent, whole.all()[0].origin) == ("subagent", NEWER, "agent")
    assert [(link.relation, link.native_id) for link in whole.links[CHILD]] == [("subagent_of", NEWER)]
    assert [(link.relation, link.native_id, link.call_id) for link in found[NEWER][2].links[NEWER]] == [
        ("spawned", CHILD, "t4")
    ]


def test_a_conversation_that_goes_on_grows_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database(path, 4).close()
    before = in_database(path)[NEWER][1]
    database(path).close()
    assert in_database(path)[NEWER][1].startswith(before)


def test_the_database_is_kept_and_its_conversations_are_found(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    connection = database(path)
    with goldens.ingest("cursor", path) as taken:
        assert (taken.report.sessions, taken.report.subagents) == (3, 1)
        assert taken.hits("make count") == [NEWER]
        assert taken.hits("an old answer") == [CHAT]
        (session,) = taken.store.sessions_of("cursor", NEWER)
        assert (session.n_calls, session.n_errors, session.n_turns) == (4, 2, 1)
        assert [step.n_calls for step in taken.store.steps(session.id, 0)] == [0, 4, 0]
    connection.close()


def test_access_tokens_of_the_editor_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    connection = database(path)
    put(connection, "ItemTable", "cursorAuth/accessToken", "walrus-token-canary")
    put(connection, "ItemTable", 'secret://{"extensionId":"x"}', "otter-secret-canary")
    connection.commit()
    with goldens.ingest("cursor", path) as taken:
        kept = b"".join(taken.store.read_raw(version.id, 0, version.size) for _, version in taken.store.files())
        assert b"a prompt only" in kept
        assert b"canary" not in kept
    connection.close()


def test_values_that_are_not_json_are_kept_as_text(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    connection = database(path)
    connection.execute("UPDATE cursorDiskKV SET value=? WHERE key=?", ("{\n broken", f"bubbleId:{NEWER}:b7"))
    connection.execute("UPDATE cursorDiskKV SET value=NULL WHERE key=?", (f"bubbleId:{NEWER}:b8",))
    connection.execute("UPDATE ItemTable SET value=CAST(x'ff00' AS TEXT)")
    connection.commit()
    _, lines, whole = in_database(path)[NEWER]
    goldens.assert_keeps_promises(SOURCE, lines, whole)
    assert "{\n broken" in whole.texts()
    connection.close()


# exports ----------------------------------------------------------------------------------------------------------------------
def test_an_export_has_turns_a_title_and_a_client() -> None:
    ((_, _, whole),) = goldens.readings(SOURCE, EXPORT)
    assert [message.role for message in whole.all()] == ["system", "user", "assistant", "user"]
    assert "It stays one answer." in whole.texts("answer")[0]
    assert {message.fidelity for message in whole.all()} == {"rendered"}
    assert (whole.facts["export"]["title"], whole.facts["export"]["client"]) == ("Counting walruses", "0.50.4")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5/19/2025 at 11:13:55 EDT", (1747667635000, "s")),
        ("19/05/2025 at 17:13:55 GMT+2", (1747667635000, "s")),
        ("2025/9/4 at 11:48:38 [GMT+8]", (1756957718000, "s")),
        ("2025. 7. 6. at 18시 15분 42초 GMT+9", (1751793342000, "s")),
        ("5/19/2025 at 11:13:55 PM GMT-4", (1747710835000, "s")),
        ("5/19/2025 at 11:13:55 XYZ", (1747612800000, "day")),
        ("5/6/2025 at 11:13:55 EDT", (None, "")),
        ("yesterday", (None, "")),
        ("99/99/2025 at 11:13:55", (None, "")),
    ],
)
def test_moments_are_read_the_way_of_many_countries(text: str, expected: tuple[int | None, str]) -> None:
    assert parse_local_time(text) == expected


# damage -----------------------------------------------------------------------------------------------------------------------
@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=300)
def test_any_value_may_stand_anywhere(seed: int, odd: Any) -> None:
    dice = random.Random(seed)
    records = [goldens.with_odd_value(dice.choice(RECORDS), odd, dice) for _ in range(4)]
    goldens.assert_survives(SOURCE, FOUND, b"".join(json.dumps(one).encode() + b"\n" for one in records), seed)


# where they are -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".config/Cursor/User"),
        ("darwin", "Library/Application Support/Cursor/User"),
        ("win32", "AppData/Roaming/Cursor/User"),
    ],
)
def test_transcripts_and_databases_are_found(tmp_path: Path, platform: str, folder: str) -> None:
    user = tmp_path / folder
    for place in ("globalStorage", "workspaceStorage/abc"):
        (user / place).mkdir(parents=True)
        database(user / place / "state.vscdb").close()
    transcripts = tmp_path / ".cursor" / "projects" / "home-ann-zoo" / "agent-transcripts" / NAME
    (transcripts / "subagents").mkdir(parents=True)
    (transcripts / LINES.name).write_bytes(LINES.read_bytes())
    (transcripts / "subagents" / "kid.jsonl").write_bytes(LINES.read_bytes())
    (tmp_path / ".cursor" / "projects" / "home-ann-zoo" / "other.jsonl").write_bytes(LINES.read_bytes())
    first, second = SOURCE.roots(SearchPlaces(tmp_path, {}, platform))
    assert [(one.kind, one.native_id, one.parent) for one in SOURCE.find(first)] == [
        ("main", NAME, ""), ("subagent", "kid", NAME),
    ]  # fmt: skip
    databases = list(SOURCE.find(second))
    assert [(one.kind, one.path.parent.name) for one in databases] == [
        ("container", "globalStorage"),
        ("container", "abc"),
    ]
    assert all(one.stamp for one in databases)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{}",
        b"# A title\n\nsome words",
        b'{"role":"user","content":"x"}',
        b'{"type":"user","role":"user","message":{"content":[]}}',
        b"SQLite format 3\0 ItemTable",
        b"_Exported on 1/1/2025 from Cursor_",
    ],
)
def test_what_is_not_ours_is_not_claimed(head: bytes) -> None:
    assert SOURCE.sniff(Path("a.jsonl"), head) is None


def test_of_all_real_files_none_is_claimed() -> None:
    goldens.assert_claims_only(SOURCE)
