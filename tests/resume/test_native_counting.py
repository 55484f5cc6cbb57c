"""A session made out of another one holds the same words: they are found, counted and erased once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.capture.writer import ArchiveWriter, rebuild_archive
from everturn.maintenance.forget import forget_sessions
from everturn.model.archive import Session
from everturn.resume.handoff import NativeOptions, plan_native, write_native
from everturn.retrieval.scope import SearchFilters
from everturn.retrieval.search import search
from everturn.sessions.lookup import best_match
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, open_store
from tests.recall.archives import Archive

SOURCES = all_sources()
WRITTEN = [name for name, source in SOURCES.items() if source.native is not None]
NOW, RANDOM = 1_800_000_000_000, "0123456789abcdef0123456789abcdef"
CANARY = "quetzalcoatl"


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Archive]:
    store = open_store(str(tmp_path / "archive" / "archive.db"))
    yield Archive(store, tmp_path / "agent")
    store.close()


@pytest.fixture
def session(kept: Archive) -> Session:
    turns = [kept.history.tool_turn(f"{CANARY} ask {n}", f"echo {n}", f"out {n}") for n in range(3)]
    return kept.take_in(*turns, kept.history.turn("last", "done"))


def taken_over(kept: Archive, session: Session, agent: str, home: Path) -> Session:
    """The session made for an agent and taken in again."""
    wanted = NativeOptions(SOURCES[agent], SearchPlaces(home, {}, "linux"), RANDOM, NOW, home / "ours")
    made = plan_native(kept.store, SOURCES, session, wanted)
    write_native(kept.store, session, made)
    add_paths(SyncJob(kept.store, SOURCES, wanted.places, Policy(), "box", "ann", lambda: NOW), [made.path])
    return best_match(kept.store.sessions_of(agent, made.new.id))


def found(kept: Archive, words: str, **filters: object) -> set[str]:
    """The sessions that a search gives, but for those that only their title is found of."""
    results = search(kept.store, SOURCES, words, SearchFilters(**filters), limit=50)  # type: ignore[arg-type]
    return {item.session.native_id for item in results.items if item.row is not None}


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def totals(kept: Archive) -> tuple[int, ...]:
    rows = [row for row, _ in kept.store.sessions(SessionFilter(), 100)[0]]
    calls = [call for row in rows for call in kept.store.calls(row.id)]
    return (
        sum(row.n_messages - row.n_inherited for row in rows),
        sum(row.tokens_in + row.tokens_out for row in rows),
        sum(not call.inherited for call in calls),
        sum(not turn.inherited for row in rows for turn in kept.store.turns(row.id)),
    )


@pytest.mark.parametrize("agent", WRITTEN)
def test_what_went_over_is_counted_where_it_was_said(
    kept: Archive, session: Session, tmp_path: Path, agent: str
) -> None:
    before = totals(kept)
    new = taken_over(kept, session, agent, tmp_path / "home")
    assert new.n_messages == new.n_inherited > 0
    assert totals(kept) == before
    rebuild_archive(ArchiveWriter(kept.store, "box", "ann", NOW), SOURCES, lambda *numbers: None)
    assert totals(kept) == before, "the same after a rebuild"


@pytest.mark.parametrize("agent", WRITTEN)
def test_what_went_over_is_found_once_and_also_when_the_new_session_is_asked(
    kept: Archive, session: Session, tmp_path: Path, agent: str
) -> None:
    new = taken_over(kept, session, agent, tmp_path / "home")
    assert found(kept, CANARY) == {session.native_id}
    assert found(kept, CANARY, session=new) == {session.native_id}


def test_what_is_said_after_it_is_its_own(kept: Archive, session: Session, tmp_path: Path) -> None:
    new = taken_over(kept, session, session.agent, tmp_path / "home")
    before = totals(kept)
    path = Path(kept.store.file_by_id(kept.store.version(new.version).source)[0].path)
    with path.open("ab") as file:
        file.write(kept.history.turn("walrus", "new words", new.native_id))
    job = SyncJob(
        kept.store, SOURCES, SearchPlaces(tmp_path / "home", {}, "linux"), Policy(), "box", "ann", lambda: NOW
    )
    add_paths(job, [path])
    grown = best_match(kept.store.sessions_of(new.agent, new.native_id))
    assert (grown.n_messages, grown.n_inherited) == (new.n_messages + 2, new.n_messages)
    assert found(kept, "walrus") == found(kept, "walrus", session=grown) == {new.native_id}
    assert [now - then for now, then in zip(totals(kept), before, strict=True)] == [2, 5, 0, 1]


@pytest.mark.parametrize("agent", WRITTEN)
def test_when_its_origin_is_forgotten_what_went_over_goes_too(
    kept: Archive, session: Session, tmp_path: Path, agent: str
) -> None:
    new = taken_over(kept, session, agent, tmp_path / "home")
    done = forget_sessions(ArchiveWriter(kept.store, "box", "ann", NOW), SOURCES, [session])
    assert done.forked_messages == new.n_messages
    assert CANARY.encode() not in stored(tmp_path / "archive")
    add_paths(
        SyncJob(kept.store, SOURCES, SearchPlaces(tmp_path / "home", {}, "linux"), Policy(), "box", "ann", lambda: NOW),
        [path for path in (tmp_path / "home").rglob("*") if path.is_file()],
    )
    assert found(kept, CANARY) == set(), "a later sync does not bring it back"


@pytest.mark.parametrize("agent", WRITTEN)
def test_when_only_its_origin_is_forgotten_what_went_over_becomes_its_own(
    kept: Archive, session: Session, tmp_path: Path, agent: str
) -> None:
    new = taken_over(kept, session, agent, tmp_path / "home")
    done = forget_sessions(ArchiveWriter(kept.store, "box", "ann", NOW), SOURCES, [session], keep_forks=True)
    assert done.kept_in == [new.native_id]
    again = best_match(kept.store.sessions_of(agent, new.native_id))
    assert (again.n_messages, again.n_inherited) == (new.n_messages, 0)
    assert found(kept, CANARY) == {new.native_id}
