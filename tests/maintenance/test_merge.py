"""Two archives become one; what both have is there once."""

from __future__ import annotations

from pathlib import Path

from everturn.capture.policy import Policy
from everturn.capture.sync import writer_for
from everturn.maintenance.forget import forget_sessions
from everturn.maintenance.merge import merge_archive
from everturn.maintenance.verify import verify_archive
from everturn.model.archive import KeptRow
from everturn.store.contract import Store, open_store
from tests.capture.history import OTHER, SID, SOURCES, History, current, everything, hits, job, raw, run


def merged(store: Store, other: Store, history: History) -> object:
    return merge_archive(writer_for(job(store, history)), other, SOURCES, lambda *numbers: None)


def other_archive(history: History) -> Store:
    other = open_store("memory:")
    history.write(history.tool_turn("theirs", "cat x.py", "text") + history.turn("more", "words"))
    run(other, history)
    return other


def test_everything_of_the_other_is_there_afterwards(store: Store, history: History) -> None:
    other = other_archive(history)
    data = history.file().read_bytes()
    history.file().unlink()
    history.write(history.turn("mine", "alone", OTHER), OTHER)
    run(store, history)
    merged(store, other, history)
    assert raw(store, history.file()) == data
    assert (hits(store, "theirs"), hits(store, "mine")) == ([(SID, 0)], [(OTHER, 0)])
    assert [(c.name, c.status) for c in store.calls(current(store).id)] == [("Bash", "ok")]
    assert verify_archive(store, "elsewhere", lambda *n: None).wrong == []


def test_merging_again_changes_nothing(store: Store, history: History) -> None:
    other = other_archive(history)
    merged(store, other, history)
    before = list(everything(store))
    done = merged(store, other, history)
    assert (done.same, done.added, done.continued) == (1, 0, 0)  # type: ignore[attr-defined]
    assert list(everything(store)) == before


def test_a_file_that_went_on_in_the_other_is_continued(store: Store, history: History) -> None:
    other = other_archive(history)
    merged(store, other, history)
    history.grow(history.turn("later", "thoughts"))
    run(other, history)
    done = merged(store, other, history)
    assert (done.continued, done.added) == (1, 0)  # type: ignore[attr-defined]
    assert raw(store, history.file()) == history.file().read_bytes()
    assert hits(store, "thoughts") == [(SID, 6)]
    assert len(store.versions(store.files()[0][0].id)) == 1


def test_two_different_lives_of_a_file_are_both_kept(store: Store, history: History) -> None:
    other = other_archive(history)
    theirs = history.file().read_bytes()
    mine = history.turn("a wholly different life", "yes")
    history.write(mine)
    run(store, history)
    merged(store, other, history)
    assert {raw(store, history.file(), 1), raw(store, history.file(), 2)} == {mine, theirs}


def test_sessions_without_content_keep_their_structure(store: Store, history: History) -> None:
    other = open_store("memory:")
    history.write(history.tool_turn("hidden", "cat x.py", "text"))
    run(other, history, Policy(mode="structure"))
    merged(store, other, history)
    session = current(store)
    assert (session.n_turns, session.n_calls, session.mode) == (1, 1, "structure")
    assert [(c.name, c.status) for c in store.calls(session.id)] == [("Bash", "ok")]


def test_what_was_forgotten_here_does_not_come_back_through_a_merge(store: Store, history: History) -> None:
    other = other_archive(history)
    run(store, history)
    forget_sessions(writer_for(job(store, history)), SOURCES, [current(store)])
    merged(store, other, history)
    assert hits(store, "theirs") == []
    assert store.files() == []


def test_notes_and_tombstones_come_along(store: Store, history: History) -> None:
    other = other_archive(history)
    forget_sessions(writer_for(job(other, history)), SOURCES, [current(other)])
    with other.write():
        other.keep(KeptRow("note", "", SID, "k", '"v"', 1))
    merged(store, other, history)
    assert [row.value for row in store.kept("note")] == ['"v"']
    assert run(store, history).forgotten == 1


def test_a_file_archive_merges_into_postgresql(postgres_url: str, history: History, tmp_path: Path) -> None:
    other = other_archive(history)
    team = open_store(postgres_url)
    merged(team, other, history)
    assert raw(team, history.file()) == history.file().read_bytes()
    assert hits(team, "theirs") == [(SID, 0)]
    team.close()
