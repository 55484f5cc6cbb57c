"""A whole made-up history, read back through every way out and compared with the truth about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.export.json_document import as_json
from everturn.export.markdown import as_markdown
from everturn.export.original import raw_bytes, read_original
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import search
from everturn.secrets.redaction import redact_bytes, redact_text
from everturn.sessions.lineage import lineage
from everturn.sessions.lookup import resolve_session
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store, open_store
from tests.capture.history import ticking
from tests.transcript_truth import Truth
from tests.transcripts import write_history


class Kept(NamedTuple):
    store: Store
    truth: Truth


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    root = tmp_path_factory.mktemp("agent")
    truth = write_history(root, seed=5)
    store = open_store(str(tmp_path_factory.mktemp("archive") / "archive.db"))
    places = SearchPlaces(Path("/nowhere"), {}, "linux", {"claude_code": (root,)})
    sync_all(SyncJob(store, {"claude_code": all_sources()["claude_code"]}, places, Policy(), "box", "ann", ticking()))
    yield Kept(store, truth)
    store.close()


def documents(kept: Kept) -> Iterator[tuple[Any, dict[str, Any]]]:
    for truth in kept.truth.sessions.values():
        session = resolve_session(kept.store, truth.native_id)
        yield truth, json.loads("".join(as_json(kept.store, all_sources(), session, redact_bytes)))


def test_every_file_comes_back_byte_for_byte(kept: Kept) -> None:
    for truth in kept.truth.sessions.values():
        found = read_original(kept.store, resolve_session(kept.store, truth.native_id))
        assert found.file.path == str(truth.path)
        assert b"".join(raw_bytes(kept.store, found.version.id)) == truth.path.read_bytes()


def test_the_documents_tell_the_truth(kept: Kept) -> None:
    for truth, found in documents(kept):
        facts = found["session"]
        assert (facts["id"], facts["kind"], facts["parent"] or "") == (truth.native_id, truth.kind, truth.parent)
        assert (facts["counts"]["turns"], facts["counts"]["steps"]) == (truth.turns, truth.steps)
        assert facts["workspace"] == truth.workspace
        calls = sorted(
            (call["id"], call["name"], call["turn"], call["batch"], call["status"], call["error_class"] or "")
            for turn in found["turns"]
            for step in turn["steps"]
            for call in step["calls"]
        )
        told = [
            (one.call_id, one.name, one.turn + 1, one.batch + 1, one.status, one.error_class) for one in truth.calls
        ]
        assert calls == sorted(told)


def test_every_message_is_in_its_document_once(kept: Kept) -> None:
    for truth, found in documents(kept):
        parts = [part for turn in found["turns"] for part in (turn, *turn["steps"])]
        numbers = sorted(message["number"] for part in parts for message in part["messages"])
        assert numbers == list(range(1, truth.messages + 1))


def test_every_page_has_every_turn_once(kept: Kept) -> None:
    for truth in kept.truth.sessions.values():
        session = resolve_session(kept.store, truth.native_id)
        page = "".join(as_markdown(kept.store, all_sources(), session, redact_text, thinking=True, context=True))
        assert page.count("\n## Turn ") == truth.turns


def test_words_that_stand_nowhere_else_are_found_in_their_field(kept: Kept) -> None:
    marks = [(truth, field, word) for truth in kept.truth.sessions.values() for field, word in truth.marks.items()]
    assert len(marks) > 30
    for truth, field, word in marks:
        found = search(kept.store, all_sources(), word).items
        assert {(one.session.native_id, one.field) for one in found} == {(truth.native_id, field)}
        assert all(one.snippet[start:end] == word for one in found for start, end in one.spans)
        assert all(one.spans for one in found)


def test_a_fork_can_be_searched_for_what_it_inherited(kept: Kept) -> None:
    forks = [truth for truth in kept.truth.sessions.values() if truth.forked_from]
    assert forks
    for fork in forks:
        word = kept.truth.sessions[fork.forked_from].marks["prompt"]
        session = resolve_session(kept.store, fork.native_id)
        (found,) = search(kept.store, all_sources(), word, SearchFilters(session=session)).items
        assert found.session.native_id == fork.native_id and found.row is not None and found.row.inherited


def test_children_hang_on_the_call_that_started_them(kept: Kept) -> None:
    children = [truth for truth in kept.truth.sessions.values() if truth.kind in ("subagent", "sidechain")]
    assert {truth.kind for truth in children} == {"subagent", "sidechain"}
    for child in children:
        parent = resolve_session(kept.store, child.parent)
        (one,) = [one for one in lineage(kept.store, parent).children if one.native_id == child.native_id]
        assert one.session is not None
        assert one.call is not None and one.call.kind == "task", child.native_id
        assert [up.native_id for up in lineage(kept.store, one.session).ancestors][:1] == [child.parent]
