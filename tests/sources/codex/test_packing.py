"""The client packs old rollouts and unpacks those it continues: the session stays one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths, sync_all
from everturn.model.archive import Session
from everturn.sources.codex import SOURCE
from everturn.sources.contract import SearchPlaces
from everturn.store.contract import Store, open_store
from tests.sources.codex.test_files import NAME, SID, packed

LINES = (Path(__file__).parent / "samples" / "new-era.jsonl").read_bytes()
MORE = LINES.splitlines(keepends=True)[-1]


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    yield opened
    opened.close()


def take(store: Store, home: Path, *paths: Path) -> SyncReport:
    job = SyncJob(
        store, {"codex": SOURCE}, SearchPlaces(home, {}, "linux"), Policy(), "box", "ann", lambda: 1_772_000_000_000
    )
    report = add_paths(job, paths) if paths else sync_all(job)
    assert report.failed == []
    return report


def current(store: Store) -> list[Session]:
    found = [row for _, version in store.files() for row in store.sessions_in(version.id) if row.state == "current"]
    assert {row.native_id for row in found} <= {SID}
    return found


@pytest.mark.parametrize("by_hand", [False, True], ids=["found", "added"])
def test_a_rollout_that_was_packed_is_the_same_session(store: Store, tmp_path: Path, by_hand: bool) -> None:
    plain = tmp_path / ".codex" / "sessions" / "2026" / NAME
    plain.parent.mkdir(parents=True)
    plain.write_bytes(LINES)
    take(store, tmp_path, *([plain] if by_hand else []))
    (before,) = current(store)
    archive = plain.with_name(f"{NAME}.zst")
    archive.write_bytes(packed(LINES))
    plain.unlink()
    take(store, tmp_path, *([archive] if by_hand else []))
    (after,) = current(store)
    assert (after.id, after.n_messages, after.n_inherited) == (before.id, before.n_messages, before.n_inherited)
    kept = {file.path: (file.kind, file.state) for file, _ in store.files()}
    assert kept == {str(archive): ("container", "live"), f"{archive}#{NAME}": ("main", "live")}


def test_a_rollout_that_was_unpacked_and_went_on_is_the_same_session(store: Store, tmp_path: Path) -> None:
    archive = tmp_path / ".codex" / "archived_sessions" / f"{NAME}.zst"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(packed(LINES))
    take(store, tmp_path)
    (before,) = current(store)
    archive.unlink()
    plain = tmp_path / ".codex" / "sessions" / NAME
    plain.parent.mkdir()
    plain.write_bytes(LINES + MORE)
    assert take(store, tmp_path).moved == 1
    (after,) = current(store)
    assert after.id == before.id
    states = {file.path: (file.state, file.container) for file, _ in store.files()}
    assert states == {str(archive): ("gone", 0), str(plain): ("live", 0)}
    ((_, version),) = [row for row in store.files() if row[0].path == str(plain)]
    assert store.read_raw(version.id, 0, version.size) == LINES + MORE


def test_a_copy_of_a_rollout_that_is_still_there_does_not_take_its_place(store: Store, tmp_path: Path) -> None:
    plain = tmp_path / NAME
    plain.write_bytes(LINES)
    take(store, tmp_path, plain)
    archive = plain.with_name(f"{NAME}.zst")
    archive.write_bytes(packed(LINES))
    take(store, tmp_path, archive)
    first, second = current(store)
    assert first.n_inherited == 0
    assert second.n_inherited == second.n_messages
