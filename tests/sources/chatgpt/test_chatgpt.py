"""The data export of ChatGPT: trees of messages, in a file or in the zip that holds it."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail
from everturn.sources.chatgpt import SOURCE
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.store.contract import open_store
from tests.sources.goldens import (
    Whole,
    assert_claims_only,
    assert_keeps_promises,
    assert_same_in_pieces,
    corpus,
    ingest,
    readings,
    unpacked,
)

SAMPLE = Path(__file__).parent / "samples" / "export.json"
NAME = "6590-loaves"


def sample() -> dict[str, Whole]:
    return {found.native_id: whole for found, _, whole in readings(SOURCE, SAMPLE)}


def test_the_live_path_is_the_session_and_other_branches_are_their_own() -> None:
    whole = sample()
    assert list(whole)[:2] == [NAME, f"{NAME}/branch-1"]
    assert whole[NAME].texts("prompt") == ["How many loaves fit?", "and these?"]
    branch = whole[f"{NAME}/branch-1"]
    assert branch.texts("prompt", "answer") == ["Forty.", "Are you sure?"]
    assert branch.facts[f"{NAME}/branch-1"] == {"kind": "sidechain", "parent": NAME, "title": "Loaves", "title_rank": 2}
    assert [(link.relation, link.native_id) for link in branch.links[f"{NAME}/branch-1"]] == [("forked_from", NAME)]


def test_what_goes_to_a_tool_is_a_call_and_the_next_answer_of_a_tool_its_result() -> None:
    growth, _ = grow_session(JournalTail(), sample()[NAME].messages[NAME])
    assert [(call.name, call.kind, call.status, call.error_class) for call in growth.calls] == [
        ("python", "other", "ok", ""),
        ("web.search", "search", "error", "timeout"),
    ]
    assert [step.n_calls for step in growth.steps] == [1, 1, 0, 0], "thoughts and a call are one response"


def test_instructions_are_not_what_a_human_typed() -> None:
    said = [(m.origin, m.kind) for m in sample()[NAME].all() if m.role in ("user", "system")]
    assert said == [("system", "notice"), ("injected", "context"), ("human", "text"), ("human", "text")]


def test_what_is_no_conversation_is_kept_and_counted() -> None:
    (name,) = [name for name in sample() if name.startswith("unread-")]
    assert sample()[name].texts() == ["no tree"]
    assert {disposition for _, _, disposition in sample()[name].census} == {"unknown"}


def test_lines_only_grow_when_a_conversation_does(tmp_path: Path) -> None:
    conversations = json.loads(SAMPLE.read_text())
    before = dict(_lines(SAMPLE))
    tree = conversations[0]
    tree["mapping"]["a2"]["children"] = ["u9"]
    tree["mapping"]["u9"] = {
        "id": "u9", "parent": "a2", "children": [],
        "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["more"]}},
    }  # fmt: skip
    tree |= {"current_node": "u9", "update_time": 1804067331.0}
    grown = tmp_path / "grown.json"
    grown.write_text(json.dumps(conversations))
    after = dict(_lines(grown))
    assert after[NAME].startswith(before[NAME])
    assert len(after[NAME]) > len(before[NAME])
    assert {name: after[name] for name in before if name != NAME} == {n: d for n, d in before.items() if n != NAME}


def test_a_zip_is_read_like_the_file_in_it(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("chat.html", "<html>")
        archive.writestr("conversations.json", SAMPLE.read_bytes())
    assert SOURCE.sniff(path, path.read_bytes()[:65536]) == SourceCandidate(path, "container")
    assert _lines(path) == _lines(SAMPLE)
    with ingest("chatgpt", path) as taken:
        assert taken.hits("loaves fit") == [NAME]
        assert taken.hits("are you sure") == [f"{NAME}/branch-1"]
    assert [found.path for found in SOURCE.find(tmp_path)] == [path]
    assert SOURCE.roots(SearchPlaces(tmp_path, {}, "linux", {"chatgpt": (tmp_path,)})) == [tmp_path]


def test_other_zips_and_broken_ones_are_not_ours(tmp_path: Path) -> None:
    other, broken = tmp_path / "other.zip", tmp_path / "broken.zip"
    with ZipFile(other, "w") as archive:
        archive.writestr("conversations.json", b'[{"uuid":"c","chat_messages":[{"sender":"human"}]}]')
    broken.write_bytes(other.read_bytes()[:50])
    for path in (other, broken):
        assert SOURCE.sniff(path, path.read_bytes()) is None
    for head in (b"", b"[]", b'{"mapping": {}}', b'[{"mapping": {"a": {"b": 1}}}]', b"PK"):
        assert SOURCE.sniff(tmp_path / "x.json", head) is None


def test_an_export_that_breaks_off_gives_the_conversations_before(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    data = SAMPLE.read_bytes()
    path.write_bytes(data[: data.find(b'"title": "Old"') + 40])
    whole = {found.native_id: reading for found, _, reading in readings(SOURCE, path)}
    assert len(whole[NAME].texts("prompt")) == 2
    (lost,) = [reading for name, reading in whole.items() if name.startswith("unread-")]
    assert [problem.kind for problem in lost.problems] == ["invalid_json"]


def test_an_export_that_is_taken_in_twice_adds_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "2024.json", tmp_path / "2025.json"
    first.write_bytes(SAMPLE.read_bytes())
    second.write_bytes(SAMPLE.read_bytes())
    store = open_store("memory:")
    places = SearchPlaces(Path("/nowhere"), {}, "linux")
    job = SyncJob(store, {"chatgpt": SOURCE}, places, Policy(), "box", "ann", lambda: 1_772_000_000_000)
    add_paths(job, [first])
    add_paths(job, [second])
    one, other = sorted(store.sessions_of("chatgpt", NAME), key=lambda session: session.id)
    assert (one.n_inherited, other.n_inherited) == (0, other.n_messages)
    store.close()


@pytest.mark.parametrize("path", corpus("chatgpt"))
def test_a_real_export_is_read_whole(path: Path) -> None:
    for found, data, whole in readings(SOURCE, path):
        assert_keeps_promises(SOURCE, data, whole)
        assert_same_in_pieces(SOURCE, found, data, 7)
    with ingest("chatgpt", path) as taken:
        assert taken.report.sessions + taken.report.subagents == len(readings(SOURCE, path))


def test_only_exports_are_taken_for_exports() -> None:
    assert_claims_only(SOURCE, "chatgpt")


def _lines(path: Path) -> list[tuple[str, bytes]]:
    return [(found.native_id, data) for found, data in unpacked(SOURCE, SourceCandidate(path, "container"), path)]
