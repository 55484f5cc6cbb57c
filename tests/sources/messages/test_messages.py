"""Message lists of any program: lines, documents, conversations in either."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.derive.turns import grow_session
from everturn.model.archive import JournalTail, SessionGrowth
from everturn.sources.contract import SearchPlaces, SourceCandidate, all_sources
from everturn.sources.messages import SOURCE
from everturn.store.contract import open_store
from tests.sources.goldens import (
    CORPUS,
    Whole,
    assert_keeps_promises,
    assert_same_in_pieces,
    assert_survives,
    claimants,
    claimed,
    corpus,
    corpus_files,
    damaged,
    found_for,
    ingest,
    read,
    readings,
)

FOLDER = Path(__file__).parent / "samples"
SAMPLES = sorted(path for path in FOLDER.iterdir() if not path.name.endswith(".expected.json"))


def sample(name: str) -> Whole:
    ((_, _, whole),) = readings(SOURCE, FOLDER / name)
    return whole


def rows(whole: Whole) -> SessionGrowth:
    (messages,) = whole.messages.values()
    return grow_session(JournalTail(), messages)[0]


def test_parallel_calls_are_paired_by_id_and_failures_by_what_they_say() -> None:
    growth = rows(sample("openai.jsonl"))
    assert [(call.name, call.kind, call.batch, call.status, call.exit_status) for call in growth.calls] == [
        ("read_file", "read", 0, "ok", None), ("bash", "shell", 1, "error", 2), ("look", "other", 0, "ok", None),
        ("shell", "shell", 0, "ok", None),
    ]  # fmt: skip
    first = growth.steps[0]
    assert (first.tokens_in, first.tokens_out, first.tokens_cache_read) == (4, 4, 6)
    assert growth.n_prompts == 2


def test_blocks_of_the_other_interface_are_read_alike() -> None:
    growth = rows(sample("anthropic.json"))
    assert [(call.kind, call.status, call.error_class) for call in growth.calls] == [
        ("edit", "ok", ""),
        ("read", "error", "not_found"),
    ]
    assert [(artifact.action, artifact.path) for artifact in growth.artifacts] == [("edited", "sail.py")]
    assert len(growth.turns) == 1


def test_an_action_in_the_text_is_a_call_and_what_follows_its_result() -> None:
    whole = sample("swe.traj")
    growth = rows(whole)
    assert [(call.name, call.kind, call.status) for call in growth.calls] == [
        ("open", "read", "ok"),
        ("bash", "shell", "ok"),
        ("submit", "other", "open"),
    ]
    assert [(artifact.action, artifact.path) for artifact in growth.artifacts] == [
        ("read", "boat.py"),
        ("created", "out.txt"),
    ]
    assert whole.texts("prompt") == ["We have an issue: the boat leaks"]
    assert "diff --git a/boat.py" in "\n".join(whole.texts("meta"))


def test_each_conversation_of_a_file_is_a_session() -> None:
    assert list(sample("dataset.jsonl").messages) == [f"dataset@samples/{n}" for n in (1, 2, 3)]
    assert sample("dataset.jsonl").facts["dataset@samples/1"]["title"] == "7"
    assert [len(messages) for messages in sample("list.json").messages.values()] == [1, 2]


def test_a_conversation_that_is_one_text_is_taken_apart() -> None:
    whole = sample("dataset.jsonl")
    shown_as_text = whole.messages["dataset@samples/3"]
    assert [message.role for message in shown_as_text] == ["user", "assistant", "tool", "assistant", "user"]
    assert [block.text for message in shown_as_text for block in message.blocks] == [
        'Hi, one "thing"', "", '{"a": "x\\\\nuser: y"}', "Here: é", "bye",
    ]  # fmt: skip
    growth, _ = grow_session(JournalTail(), shown_as_text)
    assert [call.status for call in growth.calls] == ["ok"]
    assert {message.fidelity for message in shown_as_text} == {"partial"}


def test_what_stands_around_the_messages_is_found_too() -> None:
    with ingest("messages", FOLDER / "around.json") as taken:
        assert taken.hits("one line only") == ["around@samples"]
        (session,) = taken.store.sessions_of("messages", "around@samples")
        assert taken.store.session(session.id)[1].title == "Harbour"


def test_a_list_that_is_still_written_is_read_on() -> None:
    data = (FOLDER / "anthropic.json").read_bytes()
    found, cut = found_for(SOURCE, FOLDER / "anthropic.json", data), data.find(b'"Sewn."')
    begun = read(SOURCE, found, data[:cut])
    assert (len(begun.all()), [problem.provisional for problem in begun.tail]) == (3, [True])
    assert read(SOURCE, found, data, [cut], [True]).messages == read(SOURCE, found, data).messages


@given(seed=st.integers(0, 2**64))
@settings(max_examples=300)
def test_no_damage_to_a_document_stops_the_reader(seed: int) -> None:
    dice = random.Random(seed)
    data = damaged([dice.choice(SAMPLES).read_bytes()], dice, most=1)
    assert_survives(SOURCE, SourceCandidate(Path("x.json"), native_id="x"), data, seed, lines=False)


def test_only_clear_lists_of_messages_are_known() -> None:
    path = Path("/x/y.json")
    message = b'{"role":"user","content":"hi"}'
    for ours in (
        message, message + b"\n" + message, b"[" + message + b"]", b'{"messages":[' + message, b'[{"traj":[' + message + b"]}]",
        b'[\n {\n  "role": "system",\n  "content": "' + b"x" * 70_000,
    ):  # fmt: skip
        assert SOURCE.sniff(path, ours) == SourceCandidate(path, "main", "y@x")
    for other in (
        b"", b"[]", b"{}", b"[1]", b'{"role":"user"}', b'{"role":"poet","content":""}', b'{"messages":[]}', b'{"messages":[1]}',
        b'{"type":"user","message":{"role":"user","content":""}}', b'{"messages":[{"info":{"role":"user"}}]}', b"text",
        message + b'\n{"type":"other"}\n', b'{"working_dir":"/x"}\n' + message,
    ):  # fmt: skip
        assert SOURCE.sniff(path, other) is None


def test_it_is_the_last_resort() -> None:
    others = [source for name, source in all_sources().items() if name not in ("messages", "headed_markdown")]
    assert SOURCE.rank < min(source.rank for source in others)
    assert (SOURCE.roots(SearchPlaces(Path("/"), {}, "linux")), list(SOURCE.find(FOLDER))) == ([], [])


def test_a_file_that_another_source_claims_is_that_ones(tmp_path: Path) -> None:

    path = tmp_path / "talk.json"
    path.write_bytes((FOLDER / "anthropic.json").read_bytes())
    other = structs.replace(SOURCE, name="other", rank=0)
    store = open_store("memory:")
    sources = {"messages": SOURCE, "other": other}
    job = SyncJob(
        store, sources, SearchPlaces(Path("/nowhere"), {}, "linux"), Policy(), "box", "ann", lambda: 1_772_000_000_000
    )
    assert add_paths(job, [path]).sessions == 1
    assert [file.format for file, _ in store.files()] == ["other"]
    store.close()


@pytest.mark.parametrize("path", corpus("openai-messages"))
def test_a_real_list_is_read_whole(path: Path) -> None:
    ((found, data, whole),) = readings(SOURCE, path)
    assert_keeps_promises(SOURCE, data, whole, lines=path.suffix == ".jsonl")
    assert_same_in_pieces(SOURCE, found, data, 7, stopping=False)
    assert whole.problems == []
    growths = [grow_session(JournalTail(), messages)[0] for messages in whole.messages.values()]
    calls = [call for growth in growths for call in growth.calls]
    assert sum(call.status == "open" for call in calls) <= 1, "only the last action of a run has no result"
    with ingest("messages", path) as taken:
        assert taken.report.sessions == len(whole.messages)


def test_no_file_of_another_format_is_taken_in_the_end() -> None:
    if not CORPUS.is_dir():
        pytest.skip("no real files beside the checkout")
    own = {str(path.relative_to(CORPUS)) for path in corpus_files("openai-messages")}
    assert own <= set(claimed(SOURCE))
    for path in set(claimed(SOURCE)) - own:
        assert claimants(CORPUS / path) != ["messages"], "another source must claim it with a higher rank"
