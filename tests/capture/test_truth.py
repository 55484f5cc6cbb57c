"""A generated history with known truth comes out of the archive exactly; the work follows the new bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.maintenance.verify import verify_archive
from everturn.sources.contract import SearchPlaces
from everturn.store.contract import IndexQuery, Store, open_store
from everturn.store.sqlite import open_sqlite
from everturn.text.terms import terms
from tests.capture.history import FORMAT, SOURCES, ticking
from tests.quick import QUICK
from tests.transcript_truth import SessionTruth, Truth
from tests.transcripts import append_turn, write_history


def take_in(store: Store, root: Path, places: SearchPlaces | None = None) -> SyncReport:
    found = SearchPlaces(root / "no-home", {}, "linux", {FORMAT: (root,)})
    return sync_all(SyncJob(store, SOURCES, places or found, Policy(), "box", "ann", ticking()))


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return write_history(tmp_path_factory.mktemp("history"), seed=11, sessions=16)


@pytest.fixture(scope="module")
def archive(truth: Truth, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = open_store(str(tmp_path_factory.mktemp("archive") / "archive.db"))
    take_in(store, truth.root)
    return store


def session_of(archive: Store, truth: SessionTruth) -> int:
    (row,) = archive.sessions_of(FORMAT, truth.native_id)
    return row.id


def test_every_session_has_the_turns_steps_calls_and_tokens_it_really_has(archive: Store, truth: Truth) -> None:
    assert len(truth.sessions) > 16
    for one in truth.sessions.values():
        row, text = archive.session(session_of(archive, one))
        assert (row.n_turns, row.n_steps, row.n_messages, row.n_prompts, row.n_calls, row.n_errors) == (
            one.turns, one.steps, one.messages, one.prompts, len(one.calls), one.errors,
        ), one.native_id  # fmt: skip
        assert (text.title, text.workspace, row.parent, row.kind) == (one.title, one.workspace, one.parent, one.kind)
        steps = archive.steps(row.id)
        tokens = tuple(
            sum(getattr(step, f"tokens_{name}") for step in steps)
            for name in ("in", "out", "cache_read", "cache_write")
        )
        assert tokens == one.tokens


def test_every_call_has_its_batch_status_and_duration(archive: Store, truth: Truth) -> None:
    for one in truth.sessions.values():
        session = session_of(archive, one)
        size = {step.idx: step.n_calls for step in archive.steps(session)}
        found = [
            (c.call_id, c.name, c.turn, c.batch, size[c.step], c.status, c.error_class, c.duration_ms)
            for c in archive.calls(session) if c.status != "orphan"
        ]  # fmt: skip
        wanted = [
            (c.call_id, c.name, c.turn, c.batch, c.batch_size, c.status, c.error_class, c.duration_ms)
            for c in one.calls
        ]
        assert sorted(found) == sorted(wanted), one.native_id


def test_forks_are_counted_once_and_linked(archive: Store, truth: Truth) -> None:
    forks = [one for one in truth.sessions.values() if one.forked_from]
    assert forks
    for one in forks:
        mine, theirs = session_of(archive, one), session_of(archive, truth.sessions[one.forked_from])
        later, earlier = (mine, one.forked_from) if mine > theirs else (theirs, one.native_id)
        assert archive.session(later)[0].n_inherited == one.shared
        links = [(link.native_id, link.n) for link in archive.links(later) if link.relation == "forked_from"]
        assert links == [(earlier, one.shared)]


def test_every_field_group_can_be_searched(archive: Store, truth: Truth) -> None:
    looked_for = 0
    for one in truth.sessions.values():
        for field, word in one.marks.items():
            hits = archive.search(IndexQuery(((tuple(terms(word)),),), fields=(field,)))
            assert len(hits) >= 1, (field, word)
            looked_for += 1
    assert looked_for > 20


def test_every_record_is_accounted_for(archive: Store, truth: Truth) -> None:
    census = archive.census()
    notes = sum(row.n for row in census if row.type.startswith("("))
    assert sum(row.n for row in census) - notes == truth.lines + truth.glued
    assert verify_archive(archive, "box", lambda *numbers: None).wrong == []


@pytest.mark.parametrize("others", [10, pytest.param(800 if QUICK else 3000, marks=pytest.mark.slow)])
def test_the_work_after_one_more_turn_follows_the_new_bytes(tmp_path: Path, others: int) -> None:
    """The same small number of rows and bytes, however many sessions there are."""
    store = open_sqlite(str(tmp_path / "a.db"))
    folder = tmp_path / "h" / "projects" / "-x"
    folder.mkdir(parents=True)
    line = (
        b'{"type":"user","message":{"role":"user","content":"hi"},"uuid":"%d","timestamp":"2026-01-01T00:00:00.000Z"}\n'
    )
    for n in range(others):
        (folder / f"{n:08x}-0000-4000-8000-000000000000.jsonl").write_bytes(line % n)
    first = write_history(tmp_path / "h2", seed=1, sessions=1, forks=False, subagents=False, notes=False)
    both = SearchPlaces(tmp_path, {}, "linux", {FORMAT: (tmp_path / "h", tmp_path / "h2")})
    assert take_in(store, tmp_path, both).failed == []
    new = append_turn(first.files[0])
    connection = store.driver.connection
    before = connection.total_changes()
    report = take_in(store, tmp_path, both)
    assert (report.files, report.bytes_read) == (1, len(new))
    assert connection.total_changes() - before < 100 + 10 * new.count(b"\n")
    store.close()
