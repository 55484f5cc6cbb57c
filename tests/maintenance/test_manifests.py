"""A chain of signed manifests: growing is fine, erasing is visible, and everything else is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.capture.writer import ArchiveWriter
from everturn.errors import EverturnError
from everturn.maintenance.forget import forget_sessions
from everturn.maintenance.manifests import ManifestReport, check_manifests, sign_archive
from everturn.store.contract import Store
from tests.capture.history import OTHER, SOURCES, History, current, run

pytest.importorskip("cryptography")


@pytest.fixture
def chain(store: Store, history: History, tmp_path: Path) -> Path:
    """Two manifests, and a session that has grown in between."""
    path = tmp_path / "archive.manifests"
    history.write(history.turn("first", "reply"))
    history.write(history.turn("other", "talk", OTHER), OTHER)
    run(store, history)
    sign(store, path)
    with history.file().open("ab") as file:
        file.write(history.turn("second", "reply"))
    run(store, history)
    sign(store, path)
    return path


def sign(store: Store, path: Path) -> ManifestReport:
    return sign_archive(store, path, path.with_name("key"), 1)


def test_growth_is_fine(store: Store, chain: Path) -> None:
    report = check_manifests(store, chain)
    assert (report.manifests, report.wrong, report.erased) == (2, [], [])
    assert chain.with_name("key").stat().st_mode & 0o077 == 0
    assert check_manifests(store, chain, "00" * 32).wrong  # another key is expected


def test_changed_and_removed_bytes_are_told(store: Store, chain: Path) -> None:
    version = current(store).version
    with store.write():
        store.put_chunks(
            version, [(0, store.read_raw(version, 0, store.version(version).size).replace(b"first", b"FIRST"))]
        )
    assert any("were changed" in line for line in check_manifests(store, chain).wrong)
    with store.write():
        store.delete_file(store.version(version).source)
    assert any("no longer in the archive" in line for line in check_manifests(store, chain).wrong)


def test_an_erasure_is_visible_as_such(store: Store, chain: Path) -> None:
    forget_sessions(ArchiveWriter(store, "box", "ann", 1), SOURCES, [current(store)])
    report = check_manifests(store, chain)
    assert report.wrong == [] and len(report.erased) == 2


@pytest.mark.parametrize("damage", ["removed first", "changed", "swapped"])
def test_a_damaged_chain_is_told(store: Store, chain: Path, damage: str) -> None:
    first, second = chain.read_bytes().splitlines()
    lines = {
        "removed first": [second],
        "changed": [first.replace(b'"size":', b'"size":1', 1), second],
        "swapped": [second, first],
    }[damage]
    chain.write_bytes(b"\n".join(lines) + b"\n")
    assert check_manifests(store, chain).wrong


def test_without_a_chain_it_says_how_to_begin(store: Store, tmp_path: Path) -> None:
    with pytest.raises(EverturnError, match="--sign"):
        check_manifests(store, tmp_path / "none")
