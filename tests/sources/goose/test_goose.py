"""Goose sessions: files of lines, and the database."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.goose import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
NAME = "20250801_130000"
LINES = SAMPLES / f"{NAME}.jsonl"
PIECES = LINES.read_bytes().splitlines(keepends=True)
RECORDS: list[dict[str, Any]] = [json.loads(line) for line in PIECES]


def whole_of(path: Path) -> goldens.Whole:
    ((_, _, whole),) = goldens.readings(SOURCE, path)
    return whole


def database(path: Path, upto: int = 100) -> sqlite3.Connection:
    """A database as versions since 1.10 make it, with the sample in it and a subagent's session."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL"
        " DEFAULT '', session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP,"
        " updated_at TIMESTAMP, total_tokens INTEGER, model_config_json TEXT)"
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT"
        " NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, tokens INTEGER, metadata_json TEXT)"
    )
    for name, kind in ((NAME, "user"), ("20250801_2", "sub_agent")):
        row = (name, "Counting", kind, "/home/ann/zoo", "2025-08-01 11:00:00", '{"model_name":"gpt-5"}')
        connection.execute(
            "INSERT OR IGNORE INTO sessions(id,name,session_type,working_dir,created_at,model_config_json) VALUES (?,?,?,?,?,?)",
            row,
        )
    for record in RECORDS[1:upto]:
        add(connection, NAME, record)
    add(connection, "20250801_2", RECORDS[1])
    connection.commit()
    return connection


def add(connection: sqlite3.Connection, session: str, record: dict[str, Any], metadata: str | None = None) -> None:
    row = (session, record["role"], json.dumps(record["content"]), record["created"], metadata)
    connection.execute(
        "INSERT INTO messages(session_id,role,content_json,created_timestamp,metadata_json) VALUES (?,?,?,?,?)", row
    )


def test_who_speaks_is_known_from_what_a_message_holds() -> None:
    speakers = [(message.role, message.origin, message.kind) for message in whole_of(LINES).all()]
    assert speakers == [
        ("user", "human", "text"),
        ("assistant", "model", "text"),
        ("tool", "tool", "result"),
        ("assistant", "model", "text"),
        ("tool", "tool", "result"),
        ("system", "system", "compaction"),
        ("system", "system", "notice"),
        ("assistant", "model", "text"),
        ("user", "human", "text"),
        ("system", "system", "unknown"),
    ]


def test_calls_have_neutral_kinds_and_results_say_how_they_went() -> None:
    whole = whole_of(LINES)
    calls = [block.call for message in whole.all() for block in message.blocks if block.call]
    assert [(call.call_id, call.kind, call.path or call.command) for call in calls] == [
        ("call_1", "shell", "ls src"),
        ("call_2", "read", "src/walrus.py"),
        ("call_3", "create", "docs/herd.md"),
        ("call_4", "task", ""),
        ("call_5", "other", ""),
    ]
    ends = [block.result for message in whole.all() for block in message.blocks if block.result]
    assert [(end.call_id, end.error_class, end.exit_status) for end in ends] == [
        ("call_1", "", None), ("call_2", "not_found", None), ("call_3", "", None), ("call_4", "exit_status", 3),
    ]  # fmt: skip
    assert whole.texts("tool_output") == [
        "walrus.py",
        "No such file: src/walrus.py",
        "written\n[image]",
        "exit code: 3",
    ]


def test_parallel_calls_are_one_step_and_pairs_are_found() -> None:
    with goldens.ingest("goose", LINES) as taken:
        (session,) = taken.store.sessions_of("goose", NAME)
        assert (session.n_turns, session.n_prompts, session.n_calls) == (2, 2, 5)
        assert [step.n_calls for step in taken.store.steps(session.id, 0)] == [2, 3, 0]
        assert [call.status for call in taken.store.calls(session.id)] == ["ok", "error", "ok", "error", "open"]
        assert [(one.action, one.path) for one in taken.store.artifacts(session.id)] == [("created", "docs/herd.md")]
        assert taken.hits("rate limited") == [NAME]
        text = taken.store.session(session.id)[1]
        assert (text.title, text.workspace) == ("Counting walruses", "/home/ann/zoo")


# the database -------------------------------------------------------------------------------------------------------------
def test_a_database_in_use_gives_the_same_sessions_as_files_do(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    connection = database(path)
    first, second = goldens.readings(SOURCE, path)
    assert (first[0].native_id, first[0].kind, second[0].kind) == (NAME, "main", "subagent")
    for _, lines, whole in (first, second):
        goldens.assert_keeps_promises(SOURCE, lines, whole)
    assert first[2].texts() == whole_of(LINES).texts()
    assert {message.model for message in first[2].all() if message.origin == "model"} == {"gpt-5"}
    assert second[2].all()[0].origin == "agent"
    connection.close()


def test_what_is_added_to_a_session_is_added_to_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    database(path, 4).close()
    before = goldens.readings(SOURCE, path)[0][1]
    with sqlite3.connect(path) as connection:
        add(connection, NAME, RECORDS[4])
        connection.execute("UPDATE sessions SET updated_at='2025-08-02', total_tokens=5")
    connection.close()
    assert goldens.readings(SOURCE, path)[0][1].startswith(before)


def test_a_summary_that_only_the_model_sees_is_no_prompt(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    connection = database(path, 3)
    add(connection, NAME, RECORDS[1], '{"userVisible":false,"agentVisible":true}')
    connection.commit()
    last = goldens.readings(SOURCE, path)[0][2].all()[-1]
    assert (last.origin, last.kind, last.starts_turn) == ("injected", "summary", False)
    connection.close()


def test_the_database_is_kept_and_its_sessions_are_found(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    connection = database(path)
    with goldens.ingest("goose", path) as taken:
        assert taken.hits("list and read") == [NAME]
        assert (taken.report.sessions, taken.report.subagents) == (1, 1)
    connection.close()


def test_rows_that_are_not_json_are_kept_as_text(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    connection = database(path, 2)
    connection.execute("INSERT INTO messages(session_id,role,content_json,created_timestamp) VALUES (?,?,?,?)", (NAME, "user", '[{"type":\n', 5))  # fmt: skip
    connection.execute("UPDATE sessions SET name=CAST(x'ff41' AS TEXT)")
    connection.commit()
    ((_, lines, whole), _) = goldens.readings(SOURCE, path)
    goldens.assert_accounted(lines, whole)
    assert len(whole.all()) == 2
    assert whole.facts[NAME]["title"] == "\ufffdA"
    connection.close()


def test_a_database_of_another_shape_has_no_sessions(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sessions (name TEXT)")
    connection.close()
    assert goldens.unpacked(SOURCE, SourceCandidate(path, "container"), path) == []
    assert SOURCE.sniff(path, path.read_bytes()) is None


# where they are -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("platform", "folder", "env"),
    [
        ("linux", ".local/share/goose/sessions", {}),
        ("darwin", ".local/share/goose/sessions", {}),
        ("win32", "AppData/Roaming/Block/goose/data/sessions", {}),
        ("linux", "elsewhere/data/sessions", {"GOOSE_PATH_ROOT": "elsewhere"}),
    ],
)
def test_sessions_are_found_where_the_agent_keeps_them(
    tmp_path: Path, platform: str, folder: str, env: dict[str, str]
) -> None:
    sessions = tmp_path / folder
    sessions.mkdir(parents=True)
    (sessions / LINES.name).write_bytes(LINES.read_bytes())
    (sessions / "other.jsonl").write_text("{}\n")
    database(sessions / "sessions.db").close()
    moved = {name: str(tmp_path / value) for name, value in env.items()}
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, moved, platform))
    found = list(SOURCE.find(root))
    assert [(one.path.name, one.kind, one.native_id) for one in found] == [
        (LINES.name, "main", NAME), ("sessions.db", "container", ""),
    ]  # fmt: skip
    assert found[1].stamp > 0
    assert [one.path.name for one in SOURCE.find(root.parent)] == [LINES.name, "sessions.db"]


def test_a_session_is_resumed_by_its_id() -> None:
    assert SOURCE.resume_command is not None
    assert SOURCE.resume_command(NAME) == ["goose", "session", "--resume", "--session-id", NAME]


def test_the_working_folder_is_known_from_the_beginning() -> None:
    assert SOURCE.workspace(LINES.read_bytes()) == "/home/ann/zoo"
    assert SOURCE.workspace(b"{}") == ""


@pytest.mark.parametrize(
    "head", [b"", b"{}", b'{"role":"user"}\n{"working_dir":"x"}', b"SQLite format 3\0", b"working_dir"]
)
def test_what_is_not_ours_is_not_claimed(head: bytes) -> None:
    assert SOURCE.sniff(Path("a.jsonl"), head) is None


# real files -----------------------------------------------------------------------------------------------------------------
def test_of_all_real_files_only_its_own_are_claimed() -> None:
    goldens.assert_claims_only(SOURCE, "goose")


@pytest.mark.parametrize("path", goldens.corpus("goose"))
def test_a_real_file_is_read_whole(path: Path) -> None:
    for _, lines, whole in goldens.readings(SOURCE, path):
        goldens.assert_keeps_promises(SOURCE, lines, whole)
        assert not whole.problems + whole.tail
    with goldens.ingest("goose", path) as taken:
        assert taken.report.sessions == 1
