"""The data export of claude.ai: messages in order, calls paired by their place."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail
from everturn.sources.claude_ai import SOURCE
from everturn.sources.contract import SearchPlaces, SourceCandidate
from tests.sources.goldens import Whole, assert_claims_only, ingest, readings, unpacked

SAMPLE = Path(__file__).parent / "samples" / "export.json"


def sample() -> dict[str, Whole]:
    return {found.native_id: whole for found, _, whole in readings(SOURCE, SAMPLE)}


def test_results_without_ids_are_of_the_calls_before_them() -> None:
    growth, _ = grow_session(JournalTail(), sample()["c-1"].messages["c-1"])
    assert [(call.call_id, call.name, call.kind, call.status, call.error_class) for call in growth.calls] == [
        ("m-2/1", "web_search", "search", "ok", ""),
        ("m-2/2", "bash_tool", "shell", "error", "not_found"),
        ("toolu_9", "create_file", "create", "ok", ""),
    ]
    assert [(artifact.action, artifact.path) for artifact in growth.artifacts] == [("created", "/out/spelt.md")]


def test_content_is_preferred_to_the_flattened_text_and_files_are_named() -> None:
    whole = sample()["c-1"]
    assert whole.texts("answer") == ["40 minutes."]
    assert whole.texts("thinking") == ["An oven question."]
    assert whole.texts("meta")[1:] == ["recipe.txt\nflour", "crust.png", "new"]
    assert sample()["c-2"].texts("prompt", "answer") == ["Hello", "Good day."]


def test_the_path_to_the_last_message_is_live() -> None:
    whole = sample()
    assert whole["c-1"].texts("prompt") == ["How long does it bake?", "and spelt?"]
    assert whole["c-1/branch-1"].texts("prompt") == ["and rye?"]
    assert whole["c-1/branch-1"].facts["c-1/branch-1"]["parent"] == "c-1"


def test_what_is_said_of_a_conversation_becomes_facts() -> None:
    facts = sample()["c-1"].facts["c-1"]
    assert (facts["title"], facts["summary"]) == ("Bread", "Talk about bread")
    models = {message.model for message in sample()["c-2"].all() if message.origin == "model"}
    assert models == {"claude-sonnet-4-5"}


def test_a_sender_nobody_knows_is_kept_and_counted() -> None:
    whole = sample()["c-2"]
    assert [message.kind for message in whole.all()][-1] == "unknown"
    assert whole.census["message", "", "unknown"] == 1


def test_a_zip_and_a_single_conversation_are_read_too(tmp_path: Path) -> None:
    path, single = tmp_path / "data.zip", tmp_path / "conversations-one.json"
    with ZipFile(path, "w") as archive:
        archive.writestr("data/users.json", "[]")
        archive.writestr("data/conversations.json", SAMPLE.read_bytes())
    single.write_text(json.dumps(json.loads(SAMPLE.read_text())[0]))
    (tmp_path / "conversations-other.json").write_text("[]")
    assert [found.native_id for found, _ in unpacked(SOURCE, SourceCandidate(single, "container"), single)] == [
        "c-1",
        "c-1/branch-1",
    ]
    assert [found.path for found in SOURCE.find(tmp_path)] == [path, single]
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", {"claude_ai": (tmp_path,)})) == [tmp_path]
    with ingest("claude_ai", path) as taken:
        assert taken.hits("long does it bake") == ["c-1"]
        assert taken.hits("and rye") == ["c-1/branch-1"]


def test_an_export_is_known_by_its_content() -> None:
    path = Path("/x/conversations.json")
    head = b'[{"uuid":"c","name":"","chat_messages":[{"uuid":"m","text":"hi","sender":"human"'
    assert SOURCE.sniff(path, head) == SourceCandidate(path, "container")
    for other in (
        b"",
        b"[]",
        b'[{"mapping":{}}]',
        b'{"chat_messages": 1}',
        b'text "chat_messages": [] "sender": "human"',
    ):
        assert SOURCE.sniff(path, other) is None


def test_nothing_else_is_taken_for_an_export() -> None:
    assert_claims_only(SOURCE)
