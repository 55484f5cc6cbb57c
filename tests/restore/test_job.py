"""The restore job: which session is meant, and the one path that makes its document and turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.errors import MissingPath, NothingFound, UnknownSession, Unreadable, UsageError
from everturn.model.archive import Session
from everturn.restore.job import (
    RestoreOptions,
    RestoreTarget,
    find_target,
    kept_summaries,
    open_asker,
    restore_session,
    restore_turns,
)
from everturn.restore.markdown import document_markdown
from everturn.restore.mechanical import build_document
from everturn.sessions.secrets import archive_cleaner
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store
from tests.capture.history import OTHER, SID, History
from tests.model_server import ModelServer
from tests.restore.shop import NOW, SOURCES, asker, good


@pytest.fixture
def job(tmp_path: Path) -> Callable[[Store], SyncJob]:
    places = SearchPlaces(tmp_path / "home", {}, "linux")
    return lambda store: SyncJob(store, all_sources(), places, Policy(), "box", "ann", lambda: 1_772_000_000_000)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "files")


def test_a_session_is_found_by_the_beginning_of_its_id(
    store: Store, session: Session, job: Callable[[Store], SyncJob]
) -> None:
    for name in (session.native_id, session.native_id[:8], "@last"):
        found = find_target(name, store, job)
        assert found.session.id == session.id and found.store is store and not found.temporary


def test_a_file_outside_the_archive_is_only_read(
    store: Store, history: History, job: Callable[[Store], SyncJob]
) -> None:
    path = history.write(history.turn("a question", "an answer"))
    found = find_target(str(path), store, job)
    assert found.temporary and found.session.native_id == SID and found.session.n_turns == 1
    assert "the file was not archived" in found.notes[0]
    assert store.files() == [] and store.sessions(SessionFilter())[0] == []
    found.store.close()


def test_a_file_needs_no_archive(history: History, job: Callable[[Store], SyncJob]) -> None:
    path = history.write(history.turn("a question", "an answer"))
    found = find_target(str(path), None, job)
    assert found.session.native_id == SID
    found.store.close()


def test_a_file_that_is_archived_is_that_session(
    store: Store, history: History, job: Callable[[Store], SyncJob]
) -> None:
    path = history.write(history.turn("a question", "an answer"))
    add_paths(job(store), [path])
    found = find_target(str(path), store, job)
    assert found.store is store and not found.temporary and found.notes == ()


def test_a_file_that_has_grown_since_is_read_itself(
    store: Store, history: History, job: Callable[[Store], SyncJob]
) -> None:
    path = history.write(history.turn("a question", "an answer"))
    add_paths(job(store), [path])
    history.grow(history.turn("another", "one more"))
    found = find_target(str(path), store, job)
    assert found.temporary and found.session.n_turns == 2 and "has changed since" in found.notes[0]
    assert store.sessions(SessionFilter())[0][0][0].n_turns == 1
    found.store.close()


def test_of_several_sessions_in_a_file_the_newest_is_meant_and_said(
    tmp_path: Path, job: Callable[[Store], SyncJob]
) -> None:
    chats = [
        {"uuid": f"{n}", "name": f"chat {n}", "created_at": f"2026-0{n}-01T00:00:00Z", "updated_at": f"2026-0{n}-01T00:00:00Z",
         "chat_messages": [{"uuid": f"m{n}", "sender": "human", "text": f"question {n}", "created_at": f"2026-0{n}-01T00:00:00Z"}]}
        for n in (1, 3, 2)
    ]  # fmt: skip
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(chats))
    found = find_target(str(path), None, job)
    assert found.session.native_id.endswith("3")
    assert any("contains 3 sessions; this is the newest" in note for note in found.notes)
    found.store.close()


def test_a_path_that_is_not_there_is_told_as_a_path(store: Store, job: Callable[[Store], SyncJob]) -> None:
    for where in (store, None):
        with pytest.raises(MissingPath):
            find_target("no/such/file.jsonl", where, job)
        with pytest.raises(UnknownSession):
            find_target("abcdef", where, job)


def test_a_folder_is_refused_with_what_to_do(store: Store, tmp_path: Path, job: Callable[[Store], SyncJob]) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        find_target(str(tmp_path), store, job)


def test_a_file_of_no_format_is_refused(store: Store, tmp_path: Path, job: Callable[[Store], SyncJob]) -> None:
    (tmp_path / "notes.bin").write_bytes(b"\x00\x01\x02")
    with pytest.raises((Unreadable, NothingFound)):
        find_target(str(tmp_path / "notes.bin"), store, job)


def test_a_name_no_file_can_have_is_not_looked_for(store: Store, job: Callable[[Store], SyncJob]) -> None:
    for name in ("x" * 5000, "a\0b"):
        with pytest.raises(UnknownSession):
            find_target(name, store, job)


def test_the_archive_that_was_opened_for_nothing_is_closed(tmp_path: Path, job: Callable[[Store], SyncJob]) -> None:
    opened: list[Store] = []

    def noted(store: Store) -> SyncJob:
        opened.append(store)
        return job(store)

    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises((Unreadable, NothingFound)):
        find_target(str(tmp_path / "empty.jsonl"), None, noted)
    with pytest.raises(Exception, match="clos"):
        opened[0].files()


def test_a_session_that_is_not_the_newest_is_named_by_its_id(
    store: Store, history: History, job: Callable[[Store], SyncJob]
) -> None:
    history.write(history.turn("a question", "an answer"))
    history.write(history.turn("another", "an answer", OTHER), OTHER)
    add_paths(job(store), [history.root])
    assert find_target(SID[:8], store, job).session.native_id == SID


# the one path of every surface ----------------------------------------------------------------------------------------
def test_without_an_asker_the_document_is_the_mechanical_one_and_nothing_is_kept(
    store: Store, session: Session
) -> None:
    target = RestoreTarget(store, session)
    assert restore_session(target, SOURCES) == build_document(store, SOURCES, session)
    assert restore_session(target, SOURCES, RestoreOptions(max_turns=1)).turns == 1
    assert kept_summaries(store, session) == []


@pytest.mark.parametrize("temporary", [False, True])
def test_what_a_model_wrote_is_kept_unless_the_archive_is_temporary(
    store: Store, session: Session, temporary: bool
) -> None:
    target, done = RestoreTarget(store, session, temporary=temporary), list[tuple[int, int]]()
    with ModelServer(good) as server:
        document = restore_session(
            target,
            SOURCES,
            RestoreOptions(skip_evidence=True),
            asker(server),
            lambda *step: done.append(step),
            lambda: NOW,
        )
    assert document.model == "model-1" and done[-1] == (3, 3)
    kept = kept_summaries(store, session)
    assert [(one.model, one.at, one.turns) for one in kept] == ([] if temporary else [("model-1", NOW, 3)])
    assert all(one.text == document_markdown(document, archive_cleaner(store), 0) for one in kept)


def test_prompts_of_the_user_are_loaded_for_a_model_only(store: Store, session: Session, tmp_path: Path) -> None:
    target, options = RestoreTarget(store, session), RestoreOptions(prompt_folder=str(tmp_path / "nothing"))
    assert restore_session(target, SOURCES, options).turns == 3
    with ModelServer(good) as server, pytest.raises(MissingPath):
        restore_session(target, SOURCES, options, asker(server))
    assert server.asked == []


def test_turns_are_reported_with_and_without_a_model(store: Store, session: Session) -> None:
    target = RestoreTarget(store, session)
    plain = restore_turns(target, SOURCES, RestoreOptions(max_turns=2))
    assert [one.turn for one in plain.turns] == [0, 1] and plain.notes == ()
    with ModelServer(good) as server:
        told = restore_turns(target, SOURCES, asker=asker(server))
    assert [one.turn for one in told.turns] == [0, 1, 2] and told.turns[0] != plain.turns[0]


def test_the_limit_on_requests_follows_turns_and_searches(store: Store, session: Session) -> None:
    with ModelServer(good) as server:
        backend = asker(server).backend
    assert backend is not None
    assert open_asker(store, session, backend).budget.requests == 3 * session.n_turns + 26
    assert open_asker(store, session, backend, searches=0).budget.requests == 3 * session.n_turns + 10
