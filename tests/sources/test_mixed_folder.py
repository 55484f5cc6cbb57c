"""All formats in one folder, and files that belong to none: all taken, none misattributed, every skip named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import open_store
from tests.fuzz.seeds import SCRIPTS, scripted_database

HERE = Path(__file__).parent
#: Formats without a file of their own: journals are in the archive.
WITHOUT = {"journal"}

STRANGERS: dict[str, str] = {
    "notes.txt": "milk, eggs",
    "a.py": "import os",
    "table.csv": "a,b\n1,2",
    "package.json": '{"name": "zoo", "version": "1.0.0"}',
    "list.json": "[1, 2, 3]",
    "lines.jsonl": '{"a": 1}\n{"a": 2}\n',
    "README.md": "# Zoo\n\nAbout walruses.\n",
    "empty.json": "",
    "broken.json": '{"role": "user", ',
    "quoted.md": 'A transcript looks like {"role": "user"}.\n',
    "page.html": "<html><body>walrus</body></html>",
    "data.yaml": "role: user\n",
    "log.txt": "2026-01-01 INFO started\n",
    "geo.json": '{"type": "FeatureCollection", "features": []}',
    "tsconfig.json": '{"compilerOptions": {"strict": true}}',
    "schema.json": '{"$schema": "x", "type": "object", "properties": {"role": {"type": "string"}}}',
    "users.json": '[{"id": 1, "name": "ann", "type": "user"}]',
    "events.jsonl": '{"event": "click", "user": "ann"}\n',
    "spans.json": '{"spans": []}',
    "binary.bin": "\x00\x01\x02",
}
LOOKALIKE = '{"speaker": "user", "says": "hi"}\n{"speaker": "assistant", "says": "hello"}\n'


@pytest.mark.slow
def test_every_format_is_taken_and_every_skip_is_named(tmp_path: Path) -> None:
    expected = _mix(tmp_path)
    for name, text in STRANGERS.items():
        folder = tmp_path / "strangers"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    odd = tmp_path / "strangers" / "future.jsonl"
    odd.write_text(LOOKALIKE)
    store = open_store("memory:")
    job = SyncJob(store, all_sources(), SearchPlaces(tmp_path, {}, "linux"), Policy(), "box", "ann", lambda: 1)
    report = add_paths(job, [tmp_path])
    taken = {file.path: file.format for file, _ in store.files() if not file.container}
    missing = {path for path in expected if path not in taken}
    wrong = {path: (name, taken[path]) for path, name in expected.items() if path in taken and taken[path] != name}
    assert (wrong, missing, report.failed) == ({}, set(), [])
    assert set(expected.values()) == set(all_sources()) - WITHOUT
    assert [path for path in taken if "strangers" in path] == []
    assert [path for path, _ in report.skipped] == [str(odd)]
    assert {Path(path).name for path in report.other if "strangers" in path} == set(STRANGERS)
    store.close()


def _mix(folder: Path) -> dict[str, str]:
    """Copy the samples of every format into one folder; return which path is of which format."""
    expected: dict[str, str] = {}
    for name in sorted(set(all_sources()) - WITHOUT):
        source, target = all_sources()[name], folder / name
        shutil.copytree(HERE / name / "samples", target, ignore=shutil.ignore_patterns("*.expected.json", "*.sql"))
        if name in SCRIPTS:
            scripted_database(target / SCRIPTS[name][0], name).close()
        for path in sorted(target.rglob("*")):
            if path.is_file() and (found := source.sniff(path, path.read_bytes()[: 64 << 10])) is not None:
                expected.setdefault(str(found.path), name)
    return expected


def test_the_strangers_are_twenty_and_are_what_they_look_like() -> None:
    assert len(STRANGERS) == 20
    assert json.loads(STRANGERS["geo.json"])
