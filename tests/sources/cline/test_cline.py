"""Tasks of Cline and Roo Code: what the model was told, what the human was shown, and what was noted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn.analytics.cost import load_prices
from everturn.analytics.stats import count_stats
from everturn.model.conversation import Message, TokenUsage
from everturn.sessions.messages import passages, read_turns
from everturn.sources.cline import SOURCE
from everturn.sources.contract import SearchPlaces
from everturn.store.contract import AnalyticsScope, SessionFilter
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
TASK, ALONE, NATIVE = "1754000000000", "1754000000001", "1754000000002"
HISTORY, PANEL, METADATA = "api_conversation_history.json", "ui_messages.json", "task_metadata.json"


def whole_of(*parts: str) -> goldens.Whole:
    ((_, _, whole),) = goldens.readings(SOURCE, SAMPLES.joinpath(*parts))
    return whole


def results(messages: list[Message]) -> dict[str, list[tuple[bool, str, int | None]]]:
    """How the calls of each tool went."""
    found: dict[str, list[tuple[bool, str, int | None]]] = {}
    for block in (block for message in messages for block in message.blocks):
        if block.result is not None:
            end = block.result
            found.setdefault(end.call_id.partition(":")[0], []).append((end.is_error, end.error_class, end.exit_status))
    return found


# what the model was told ------------------------------------------------------------------------------------------------
def test_only_what_a_human_typed_is_a_prompt() -> None:
    whole = whole_of(TASK, HISTORY)
    human = [message for message in whole.all() if message.origin == "human"]
    assert [message.blocks[-1].text for message in human if message.blocks[-1].field == "prompt"] == [
        "count the walruses", "please do not delete", "count them too",
    ]  # fmt: skip
    assert whole.texts("prompt") == [
        "count the walruses",
        "please do not delete",
        "what about otters?",
        "count them too",
    ]
    assert [(message.kind, message.starts_turn) for message in human] == [
        ("text", True), ("queued", False), ("text", True), ("text", True),
    ]  # fmt: skip
    assert not [
        text for text in whole.texts("prompt", "answer") if "environment_details" in text or "TASK RESUM" in text
    ]


def test_calls_as_tags_are_calls_with_the_words_around_them() -> None:
    whole = whole_of(TASK, HISTORY)
    calls = [block.call for message in whole.all() for block in message.blocks if block.call]
    assert [(call.name, call.kind, call.path or call.command) for call in calls] == [
        ("read_file", "read", "src/walrus.py"),
        ("search_files", "search", "src"),
        ("replace_in_file", "edit", "src/walrus.py"),
        ("execute_command", "shell", "rm -rf /tmp/herd"),
        ("ask_followup_question", "ask", ""),
        ("write_to_file", "create", "docs/herd.md"),
        ("plan_mode_respond", "other", ""),
        ("execute_command", "shell", "make count"),
        ("attempt_completion", "other", ""),
    ]
    assert calls[5].input["content"] == "# Herd\n</write_to_fil"
    assert "<path>tag</path>" in calls[2].input["diff"]
    assert whole.texts("answer") == [
        "Let me look.", "Now I change it.", "There are two otters.", "I thought about it, without a tool.",
        "Three walruses, two otters.",
    ]  # fmt: skip
    assert whole.texts("thinking") == ["look first"]


def test_results_are_paired_and_say_how_it_went() -> None:
    with goldens.ingest("cline", SAMPLES / TASK / HISTORY) as taken:
        (session,) = taken.store.sessions_of("cline", TASK)
        calls = {(call.name, call.status, call.error_class) for call in taken.store.calls(session.id)}
        assert calls == {
            ("read_file", "ok", ""),
            ("search_files", "ok", ""),
            ("replace_in_file", "error", "invalid_input"),
            ("execute_command", "error", "rejected"),
            ("ask_followup_question", "ok", ""),
            ("write_to_file", "ok", ""),
            ("plan_mode_respond", "ok", ""),
            ("execute_command", "error", "exit_status"),
            ("attempt_completion", "open", ""),
        }
        assert session.n_turns == 3
        assert [(one.action, one.path) for one in taken.store.artifacts(session.id)] == [
            ("read", "src/walrus.py"), ("created", "docs/herd.md"),
        ]  # fmt: skip
        assert taken.store.session(session.id)[1].workspace == "c:/Users/ann/zoo"
        assert taken.hits("northern one") == [TASK]


def test_what_a_call_gave_back_is_shown_with_it() -> None:
    with goldens.ingest("cline", SAMPLES / TASK / HISTORY) as taken:
        (session,) = taken.store.sessions_of("cline", TASK)
        shown = [
            (one.start.name, one.result.text.split("\n")[0])
            for turn in read_turns(taken.store, session)
            for one in passages(taken.store, {"cline": SOURCE}, session, turn, results=True)
            if one.start is not None and one.result is not None
        ]
        assert shown[:3] == [
            ("read_file", "herd = ['<feedback>not typed</feedback>']"),
            ("search_files", "Found 0 results."),
            ("replace_in_file", "The tool execution failed with the following error:"),
        ]
        assert len(shown) == 7, "the last but one quotes its command in other words, the last has no result"


def test_times_come_from_what_the_model_is_told_where_there_are_none() -> None:
    first, *_ = whole_of(TASK, HISTORY).all()
    assert (first.at, first.precision) == (1754046005000, "s")
    native = whole_of(NATIVE, HISTORY).all()
    assert (native[0].at, native[0].precision) == (1754046000123, "ms")


def test_native_calls_are_paired_by_their_ids() -> None:
    whole = whole_of(NATIVE, HISTORY)
    answer = whole.all()[2]
    assert [block.kind for block in answer.blocks] == ["thinking", "text", "call", "call"]
    assert (answer.model, answer.usage) == ("claude-sonnet-4", TokenUsage(100, 20, 900))
    assert results(whole.all()) == {"toolu_1": [(False, "", None)], "toolu_2": [(True, "exit_status", 1)]}
    assert [message.origin for message in whole.all()] == [
        "human", "injected", "model", "tool", "tool", "injected", "model", "model", "human", "model", "injected",
    ]  # fmt: skip
    assert whole.all()[-1].kind == "summary"
    assert "future block" in "\n".join(whole.texts("meta"))


def test_unknown_roles_are_kept_and_counted() -> None:
    whole = whole_of(TASK, HISTORY)
    assert whole.census["narrator", "", "unknown"] == 1
    assert whole.all()[-1].kind == "unknown"


# what the human was shown -------------------------------------------------------------------------------------------------
def test_without_a_history_the_panel_is_the_conversation() -> None:
    with goldens.ingest("cline", SAMPLES / ALONE / PANEL) as taken:
        (session,) = taken.store.sessions_of("cline", ALONE)
        assert (session.kind, session.n_turns, session.n_prompts) == ("main", 2, 2)
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (20, 300, 8300)
        calls = {call.name: call.status for call in taken.store.calls(session.id)}
        assert calls == {
            "read_file": "ok", "execute_command": "ok", "ask_followup_question": "open", "plan_mode_respond": "ok",
            "attempt_completion": "open",
        }  # fmt: skip
        assert taken.hits("herd plankton") == [ALONE]
        assert [step.n_calls for step in taken.store.steps(session.id, 0)] == [1, 1, 1]


def test_beside_a_history_the_panel_gives_only_what_that_lacks() -> None:
    whole = whole_of(TASK, PANEL)
    name = f"{TASK}/ui_messages"
    assert whole.facts[name] == {"kind": "meta", "parent": TASK}
    assert [(link.relation, link.native_id) for link in whole.links[name]] == [("about", TASK)]
    assert whole.texts() == [
        "The herd is in src.",
        "The provider is overloaded.",
        "a way of saying of the future",
    ]
    assert [message.usage.output for message in whole.all() if message.usage] == [200, 70, 30]
    assert [message.kind for message in whole.all()].count("compaction") == 1


def test_notes_about_a_task_are_found_by_the_paths_in_them() -> None:
    whole = whole_of(TASK, METADATA)
    assert whole.texts("meta") == ["src/walrus.py", "docs/herd.md"]
    assert whole.facts[f"{TASK}/task_metadata"]["client"] == "3.40.1"


# where they are -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".config/Code/User"),
        ("linux", ".vscode-server/data/User"),
        ("darwin", "Library/Application Support/VSCodium/User"),
        ("win32", "AppData/Roaming/Code - Insiders/User"),
    ],
)
def test_tasks_are_found_in_every_editor(tmp_path: Path, platform: str, folder: str) -> None:
    tasks = tmp_path / folder / "globalStorage" / "rooveterinaryinc.roo-cline" / "tasks"
    (tasks / TASK).mkdir(parents=True)
    for name in (HISTORY, PANEL, METADATA):
        (tasks / TASK / name).write_bytes((SAMPLES / TASK / name).read_bytes())
    (tasks / TASK / "focus_chain.md").write_text("# todo")
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, platform))
    assert [(one.path.name, one.kind, one.native_id, one.parent) for one in SOURCE.find(root)] == [
        (HISTORY, "main", TASK, ""),
        (METADATA, "meta", f"{TASK}/task_metadata", TASK),
        (PANEL, "meta", f"{TASK}/ui_messages", TASK),
    ]


def test_named_folders_are_looked_at_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").symlink_to(SAMPLES / TASK)
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", {"cline": (tmp_path / "a",)}))
    assert list(SOURCE.find(root)) == []


def test_the_working_folder_is_known_from_the_beginning() -> None:
    assert SOURCE.workspace((SAMPLES / TASK / HISTORY).read_bytes()) == "c:/Users/ann/zoo"
    assert SOURCE.workspace(b"[]") == ""


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"[]",
        b"{}",
        b'[{"role":"user","content":"hi"}]',
        b'[{"ts":1,"type":"x"}]',
        b'{"files":[]}',
        b"\xff\xfe<task>",
    ],
)
def test_what_is_not_ours_is_not_claimed(head: bytes) -> None:
    assert SOURCE.sniff(Path("a.json"), head) is None


# real files -----------------------------------------------------------------------------------------------------------------
def test_of_all_real_files_only_its_own_are_claimed() -> None:
    goldens.assert_claims_only(SOURCE, "cline")


@pytest.mark.parametrize("path", goldens.corpus("cline"))
def test_a_real_file_is_read_whole(path: Path) -> None:
    ((found, data, whole),) = goldens.readings(SOURCE, path)
    goldens.assert_keeps_promises(SOURCE, data, whole, lines=False)
    assert not whole.problems + whole.tail
    assert {disposition for _, _, disposition in whole.census} <= {"message", "known"}
    elements = json.loads(data)
    assert whole.lines == (len(elements) if isinstance(elements, list) else len(elements["files_in_context"]) + 1)
    with goldens.ingest("cline", path) as taken:
        for session in taken.store.sessions_of("cline", found.native_id):
            calls = taken.store.calls(session.id)
            assert "orphan" not in {call.status for call in calls}
            unpaired = sum(call.status == "open" for call in calls)
            assert unpaired <= 1 + len(calls) // 10
            assert found.kind == "meta" or session.n_turns >= 1
    goldens.assert_same_in_pieces(SOURCE, found, data, len(data))


def test_a_task_counts_the_same_from_its_panel_and_with_its_history(tmp_path: Path) -> None:
    asked = "<task>\ncount the walruses\n</task>"
    result = "[read_file for 'herd.txt'] Result:\n\nthree"
    history = [
        {"role": "user", "content": [{"type": "text", "text": asked}]},
        {"role": "assistant", "content": [{"type": "text", "text": "<read_file>\n<path>herd.txt</path>\n</read_file>"}]},
        {"role": "user", "content": [{"type": "text", "text": result}]},
        {"role": "assistant", "content": [{"type": "text", "text": "<attempt_completion>\n<result>\nThree.\n</result>\n</attempt_completion>"}]},
    ]  # fmt: skip

    def request(text: str) -> str:
        return json.dumps({"request": text, "tokensIn": 10, "tokensOut": 20, "cacheReads": 30, "cacheWrites": 40})

    said = [
        ("text", "count the walruses"), ("api_req_started", request(asked)),
        ("tool", json.dumps({"tool": "readFile", "path": "herd.txt"})), ("api_req_started", request(result)),
        ("completion_result", "Three."),
    ]  # fmt: skip
    panel = [
        {"ts": 1754046000000 + number, "type": "say", "say": kind, "text": text}
        for number, (kind, text) in enumerate(said)
    ]
    counted = []
    for files in ({PANEL: panel}, {PANEL: panel, HISTORY: history}):
        folder = tmp_path / str(len(files)) / "1754000000009"
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
        with goldens.ingest("cline", folder.parent) as taken:
            total = count_stats(taken.store, AnalyticsScope(), load_prices()).total
            names = sorted(
                call.name for row, _ in taken.store.sessions(SessionFilter())[0] for call in taken.store.calls(row.id)
            )
            counted.append((total.sessions, total.turns, total.calls, total.tokens_in, total.tokens_out, names))
    assert counted[0] == counted[1] == (1, 1, 2, 20, 40, ["attempt_completion", "read_file"])
