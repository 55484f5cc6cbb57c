"""Gemini CLI sessions: both forms, each sample for what it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.model.conversation import Message, TokenUsage
from everturn.sessions.messages import passages, read_turns
from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.gemini import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PARENT = "6e1c0c5e-77f5-4bb1-9f0e-2a6d0a4b7c11"
LINES = SAMPLES / "lines.jsonl"
DOCUMENT = (SAMPLES / "document.json").read_bytes()
FOUND = SourceCandidate(LINES, "main", PARENT)


def whole_of(name: str) -> goldens.Whole:
    ((_, _, whole),) = goldens.readings(SOURCE, SAMPLES / name)
    return whole


def by_id(whole: goldens.Whole) -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    for message in whole.all():
        found.setdefault(message.native_id, []).append(message)
    return found


# what is in a document ------------------------------------------------------------------------------------------------
def test_what_was_typed_is_apart_from_what_the_client_added() -> None:
    whole = whole_of("document.json")
    assert whole.texts("prompt") == ["Explain @src/ please", "/stats", "\n\nwrite the otter test\n".lstrip()]
    context = "\n".join(whole.texts("meta"))
    assert all(words in context for words in ("def walrus", "branch main", "plankton"))


def test_calls_of_one_response_are_a_batch_with_their_results() -> None:
    (message,) = by_id(whole_of("document.json"))["m-a"]
    calls = [block.call for block in message.blocks if block.call]
    results = [block.result for block in message.blocks if block.result]
    assert [(call.kind, call.path) for call in calls] == [("read", "src/walrus.py"), ("read", "src/missing.py")]
    assert [(end.call_id, end.is_error, end.error_class) for end in results] == [
        ("read_1", False, ""),
        ("read_2", True, "not_found"),
    ]
    assert message.usage == TokenUsage(200, 65, 1000)
    assert message.provider_id == "m-a"


def test_a_result_says_how_it_went() -> None:
    (message,) = by_id(whole_of("document.json"))["m-b"]
    ends = {block.result.call_id: block.result for block in message.blocks if block.result}
    assert (ends["sh_1"].exit_status, ends["sh_1"].error_class, ends["sh_1"].duration_ms) == (2, "exit_status", 5000)
    assert (ends["w_1"].action, ends["w_1"].path) == ("created", "/home/ann/zoo/docs/zoo.md")
    assert (ends["e_1"].action, ends["e_1"].path) == ("edited", "/home/ann/zoo/src/walrus.py")
    assert ends["sh_2"].error_class == "rejected"
    assert "sh_3" not in ends, "it was still running"
    assert message.usage is None


def test_unknown_types_and_what_is_no_message_are_kept_and_counted() -> None:
    whole = whole_of("document.json")
    (odd,) = by_id(whole)["m-g"]
    assert (odd.kind, odd.blocks[0].text) == ("unknown", "a kind of the future")
    assert whole.census["hologram", "", "unknown"] == 1
    assert [problem.kind for problem in whole.problems] == ["not_an_object"]


def test_a_document_caught_while_it_is_written_is_read_so_far_and_then_gone_on_with() -> None:
    data, torn = (SAMPLES / "document.json").read_bytes(), (SAMPLES / "torn.json").read_bytes()
    assert data.startswith(torn)
    assert [message.native_id for message in whole_of("torn.json").all()] == ["m-info", "m-user", "m-a"]
    found = goldens.found_for(SOURCE, SAMPLES / "document.json", data)
    goldens.assert_same(goldens.read(SOURCE, found, data, [len(torn)], [True]), goldens.read(SOURCE, found, data))


# lines ------------------------------------------------------------------------------------------------------------------
def test_a_message_written_again_gives_only_what_is_new() -> None:
    data, whole = LINES.read_bytes(), whole_of("lines.jsonl")
    said, tokens, first, rest = by_id(whole)["g1"]
    assert [block.kind for block in said.blocks] == ["thinking", "text"]
    assert (tokens.blocks, tokens.usage) == ((), TokenUsage(400, 25, 100))
    assert [block.call.call_id for block in first.blocks if block.call] == ["grep_1"]
    assert [block.call.call_id for block in rest.blocks if block.call] == ["ag_1", "ls_1"]
    assert {message.provider_id for message in (said, tokens, first, rest)} == {"g1"}
    assert data[rest.start :].startswith(b'{"id":"ag_1"')
    assert whole.census["gemini", "", "known"] == 1, "the same once more"


def test_tokens_are_counted_once_and_parallel_calls_are_one_step() -> None:
    with goldens.ingest("gemini", LINES) as taken:
        (session,) = taken.store.sessions_of("gemini", PARENT)
        assert (session.tokens_in, session.tokens_cache_read, session.n_turns) == (400 + 600 + 10, 100, 3)
        steps = taken.store.steps(session.id, 0)
        assert [step.n_calls for step in steps] == [3, 0]
        assert session.n_calls == 4
        assert taken.hits("there are three") == [PARENT]


def test_what_is_shown_says_everything_once() -> None:
    with goldens.ingest("gemini", LINES) as taken:
        (session,) = taken.store.sessions_of("gemini", PARENT)
        first = next(iter(read_turns(taken.store, session)))
        told = list(passages(taken.store, {"gemini": SOURCE}, session, first, results=True))
        assert [(one.kind, one.text) for one in told if one.kind in ("prompt", "answer", "thinking")] == [
            ("prompt", "how many walruses?"), ("thinking", "Counting\ngrep it"), ("answer", "Let me count."),
            ("answer", "Three walruses."),
        ]  # fmt: skip
        results = [(one.start.name, one.result.text, one.batch) for one in told if one.start and one.result]
        assert results == [
            ("grep_search", "Found 3 matches", 3),
            ("codebase_investigator", "there are three", 3),
            ("list_directory", "walrus.py", 3),
        ]


def test_history_that_the_client_rewrote_is_not_new_but_its_summary_is() -> None:
    whole = whole_of("lines.jsonl")
    kinds = [(message.kind, message.origin) for message in whole.all()]
    assert kinds.count(("compaction", "system")) == 1
    (summary,) = by_id(whole)["snap"]
    assert (summary.kind, summary.origin, summary.starts_turn) == ("summary", "injected", False)
    assert "masked" not in "".join(whole.texts())
    assert whole.texts("answer").count("Three walruses.") == 1


def test_titles_folders_and_notes_are_learnt() -> None:
    whole = whole_of("lines.jsonl")
    assert whole.facts[PARENT] == {
        "kind": "main", "workspace": "/home/ann/zoo", "title": "Counting walruses", "title_rank": 2,
        "summary": "Counting walruses",
    }  # fmt: skip
    assert "counted the animals" in "\n".join(whole.texts("summary"))
    assert "curious penguin" in "\n".join(whole.texts("meta"))
    assert whole.census["$set", "", "unknown"] == 1


def test_a_subagent_and_the_call_that_started_it_know_each_other() -> None:
    parent, child = whole_of("lines.jsonl"), whole_of(f"chats/{PARENT}/sub-1.jsonl")
    (spawned,) = parent.links[PARENT]
    assert (spawned.relation, spawned.native_id, spawned.call_id) == ("spawned", "sub-1", "ag_1")
    (hangs,) = child.links["sub-1"]
    assert (hangs.relation, hangs.native_id) == ("subagent_of", PARENT)
    assert child.all()[0].origin == "agent"


def test_a_file_whose_name_does_not_tell_its_form_is_read_by_its_content(tmp_path: Path) -> None:
    for name in ("document.json", "lines.jsonl"):
        data = (SAMPLES / name).read_bytes()
        expected = goldens.read(SOURCE, SourceCandidate(SAMPLES / name, "main", PARENT), data)
        goldens.assert_same(goldens.read(SOURCE, SourceCandidate(tmp_path / "x", "main", PARENT), data), expected)
    one_line = json.dumps(json.loads((SAMPLES / "document.json").read_text())).encode()
    whole = goldens.read(SOURCE, SourceCandidate(tmp_path / "x", "main", PARENT), one_line)
    assert len(whole.all()) == len(whole_of("document.json").all())
    assert goldens.read(SOURCE, SourceCandidate(tmp_path / "x"), b'{"sess').tail[0].kind == "torn_tail"


def test_the_state_stays_bounded() -> None:
    lines = [json.dumps({"id": f"m{n}", "type": "gemini", "content": "x", "toolCalls": [{"id": f"c{n}"}]}) for n in range(30_000)]  # fmt: skip
    reader = SOURCE.reader(FOUND, b"")
    reader.feed("\n".join(lines).encode(), 0, True)
    assert len(reader.state()) < 300_000


# where they are -----------------------------------------------------------------------------------------------------------
def test_sessions_are_found_where_the_client_keeps_them(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "zoo" / "chats"
    (chats / PARENT).mkdir(parents=True)
    (chats / "session-2026-03-02T09-00-6e1c0c5e.json").write_bytes(DOCUMENT)
    (chats / "session-2026-03-02T09-01-6e1c0c5e.jsonl").write_bytes(LINES.read_bytes())
    (chats / PARENT / "sub-1.jsonl").write_bytes((SAMPLES / "chats" / PARENT / "sub-1.jsonl").read_bytes())
    (chats.parent / "logs.json").write_text('[{"sessionId":"x","messageId":0,"type":"user","message":"hi"}]')
    places = SearchPlaces(tmp_path, {}, "linux")
    (root,) = SOURCE.roots(places)
    found = [(one.path.name[:25], one.kind, one.native_id, one.parent) for one in SOURCE.find(root)]
    assert found == [
        ("session-2026-03-02T09-00-", "main", PARENT, ""),
        ("session-2026-03-02T09-01-", "main", PARENT, ""),
        ("sub-1.jsonl", "subagent", "sub-1", PARENT),
    ]
    assert [one.native_id for one in SOURCE.find(chats)] == [PARENT, PARENT, "sub-1"]


def test_other_places_are_looked_at_when_named(tmp_path: Path) -> None:
    (tmp_path / "moved" / ".gemini").mkdir(parents=True)
    (tmp_path / "given").mkdir()
    places = SearchPlaces(
        tmp_path, {"GEMINI_CLI_HOME": str(tmp_path / "moved")}, "linux", {"gemini": (tmp_path / "given",)}
    )
    assert SOURCE.roots(places) == [tmp_path / "given", tmp_path / "moved" / ".gemini"]


def test_links_to_folders_elsewhere_are_not_entered(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "chats").mkdir(parents=True)
    (tmp_path / "elsewhere" / "chats" / "session-a.json").write_bytes(DOCUMENT)
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    (tmp_path / ".gemini" / "tmp" / "zoo").symlink_to(tmp_path / "elsewhere")
    assert list(SOURCE.find(tmp_path / ".gemini")) == []


def test_retention_is_what_the_settings_say(tmp_path: Path) -> None:
    assert SOURCE.retention is not None
    assert SOURCE.retention(tmp_path) is None
    for rule, days in (('{"maxAge":"4w"}', 28), ('{"enabled":false,"maxAge":"4w"}', None), ('{"maxAge":7}', None)):
        (tmp_path / "settings.json").write_text(f'{{"general":{{"sessionRetention":{rule}}}}}')
        told = SOURCE.retention(tmp_path)
        assert (told.days if told else None) == days


def test_a_session_is_resumed_by_its_id() -> None:
    assert SOURCE.resume_command is not None
    assert SOURCE.resume_command(PARENT) == ["gemini", "--resume", PARENT]


def test_the_working_folder_is_known_from_the_beginning() -> None:
    assert SOURCE.workspace(LINES.read_bytes()) == "/home/ann/zoo"
    assert SOURCE.workspace(DOCUMENT) == "/home/ann/zoo"
    assert SOURCE.workspace(b"{}") == ""


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"[]",
        b"{}",
        b'{"sessionId":"x"}',
        b'{"sessionId":"x","type":"user"}\n',
        b"sessionId projectHash",
        b"\xff\xfe",
    ],
)
def test_what_is_not_ours_is_not_claimed(head: bytes) -> None:
    assert SOURCE.sniff(Path("a.json"), head) is None


# the archive, and real files ----------------------------------------------------------------------------------------------
def test_a_document_that_was_rewritten_with_more_is_found_with_all_of_it(tmp_path: Path) -> None:
    whole = json.loads(DOCUMENT)
    early = {**whole, "messages": [{k: v for k, v in m.items() if k != "toolCalls"} for m in whole["messages"][:3]]}
    path = tmp_path / "session-a.json"
    path.write_text(json.dumps(early, indent=2))
    with goldens.ingest("gemini", path) as taken:
        assert taken.hits("src missing py") == []
        path.write_bytes(DOCUMENT)
        job = SyncJob(
            taken.store, {"gemini": SOURCE}, SearchPlaces(tmp_path, {}, "linux"), Policy(), "box", "ann", lambda: 1
        )
        assert add_paths(job, [path]).rewritten == 1
        assert taken.hits("src missing py") == taken.hits("make test") == [PARENT]
        old, new = sorted(taken.store.sessions_of("gemini", PARENT), key=lambda session: session.id)
        assert (old.state, new.state) == ("superseded", "current")
        assert (new.n_turns, new.n_calls, new.n_errors, new.n_inherited) == (2, 7, 3, 2)


def test_of_all_real_files_only_its_own_are_claimed() -> None:
    goldens.assert_claims_only(SOURCE, "gemini")


@pytest.mark.parametrize("path", goldens.corpus("gemini"))
def test_a_real_file_is_read_whole(path: Path) -> None:
    ((found, data, whole),) = goldens.readings(SOURCE, path)
    goldens.assert_keeps_promises(SOURCE, data, whole, lines=False)
    assert not whole.problems + whole.tail
    assert {disposition for _, _, disposition in whole.census} <= {"message", "known"}
    messages = json.loads(data)["messages"]
    assert len(whole.all()) == len(messages)
    with goldens.ingest("gemini", path) as taken:
        (session,) = taken.store.sessions_of("gemini", found.native_id)
        calls = taken.store.calls(session.id)
        assert len(calls) == sum(len(message.get("toolCalls", [])) for message in messages)
        assert {call.status for call in calls} <= {"ok", "error"}
        assert session.n_turns == max(1, sum(message["type"] == "user" for message in messages))
    for seed in range(5):
        goldens.assert_same_in_pieces(SOURCE, found, data, seed)
