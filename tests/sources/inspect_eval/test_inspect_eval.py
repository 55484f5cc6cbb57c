"""Samples of Inspect logs, in documents and in archives."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from everturn.sources.contract import SearchPlaces, SourceCandidate
from everturn.sources.inspect_eval import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "zoo.json"]


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("inspect_eval", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("inspect_eval", "zoo/walrus/1")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("bash", "shell", "ok", ""),
            ("python", "other", "error", "timeout"),
        ]
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (100, 20, 300)
        assert taken.hits("paint the seals") == ["zoo/2/1"]
        assert taken.hits("match C") == ["zoo/walrus/1"]


def build_archive(path: Path) -> Path:
    """Write the sample as an archive."""
    log = json.loads(PATHS[0].read_text("utf-8"))
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": log["eval"]}))
        for sample in log["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps({key: log[key] for key in log if key != "samples"}))
    return path


def test_an_archive_has_the_same_samples_as_a_document(tmp_path: Path) -> None:
    packed = {
        found.native_id: data for found, data, _ in goldens.readings(SOURCE, build_archive(tmp_path / "zoo.eval"))
    }
    plain = {found.native_id: data for found, data, _ in goldens.readings(SOURCE, PATHS[0])}
    assert packed == plain
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {"INSPECT_LOG_DIR": str(tmp_path)}, "linux"))
    assert [found.path.name for found in SOURCE.find(root)] == ["zoo.eval"]


def test_an_archive_that_expands_out_of_proportion_or_is_cut_is_refused(tmp_path: Path) -> None:
    assert SOURCE.unpack is not None
    bomb = tmp_path / "bomb.eval"
    with ZipFile(bomb, "w", ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", b" " * (70 << 20))
    with pytest.raises(OSError, match="not unpacked"):
        list(SOURCE.unpack(SourceCandidate(bomb, "container"), bomb))
    cut = tmp_path / "cut.eval"
    cut.write_bytes(build_archive(tmp_path / "zoo.eval").read_bytes()[:300])
    with pytest.raises(OSError, match="damaged"):
        list(SOURCE.unpack(SourceCandidate(cut, "container"), cut))
