"""Bundles, and the readers that need no everturn: what they read is what the archive holds, byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.cli.desk import Desk

READERS = Path(__file__).parents[3] / "readers"
PYTHON = [sys.executable, str(READERS / "everturn_reader.py")]
NODE = ["node", str(READERS / "everturn_reader.mjs")]


def run_reader(command: list[str], *words: str) -> bytes:
    return subprocess.run([*command, *words], capture_output=True, check=True).stdout


@pytest.fixture
def bundle(desk: Desk, tmp_path: Path) -> Path:
    """A bundle of a session with two versions and a subagent."""
    history = desk.archive.history
    desk.take_in(history.turn("count the walruses", "three " * 30_000))
    below = history.project / history.file().stem / "subagents" / "agent-a1.jsonl"
    below.parent.mkdir(parents=True)
    below.write_bytes(history.line("user", "in the north", isSidechain=True, agentId="a1"))
    desk.take_in(history.turn("count the seals", "two"))
    target = tmp_path / "session.zip"
    code, _, err = desk.run("export", history.file().stem, "--as", "bundle", "--out", str(target))
    assert code == 0 and "nothing is masked" in err
    return target


@pytest.mark.parametrize(
    "command", [PYTHON, pytest.param(NODE, marks=pytest.mark.needs("node"))], ids=["python", "node"]
)
def test_a_reader_gives_back_every_version_of_every_file(desk: Desk, bundle: Path, command: list[str]) -> None:
    store = desk.archive.store
    listed = [line.split("\t") for line in run_reader(command, "list", str(bundle)).decode().splitlines()]
    expected = [(file, version) for file, _ in store.files() for version in store.versions(file.id)]
    assert sorted((path, number) for _, number, path in listed) == sorted((f.path, str(v.number)) for f, v in expected)
    assert len(expected) >= 3
    for file, version in expected:
        data = run_reader(command, "cat", str(bundle), file.path, str(version.number))
        assert data == store.read_raw(version.id, 0, version.size)
    assert run_reader(command, "verify", str(bundle)) == b"all bytes are as they were stored\n"


def test_the_reader_reads_the_archive_itself(desk: Desk, bundle: Path) -> None:
    store, archive = desk.archive.store, desk.db
    for file, version in store.files():
        assert run_reader(PYTHON, "cat", str(archive), file.path) == store.read_raw(version.id, 0, version.size)
    assert run_reader(PYTHON, "verify", str(archive)) == b"all bytes are as they were stored\n"


def test_a_bundle_is_the_same_each_time_and_damage_is_told(desk: Desk, bundle: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    assert desk.run("export", desk.archive.history.file().stem, "--as", "bundle", "--out", str(again))[0] == 0
    assert again.read_bytes() == bundle.read_bytes()
    damaged = tmp_path / "damaged.zip"
    with ZipFile(bundle) as old, ZipFile(damaged, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name)[:-1] + b"?" if name.startswith("chunks/") else old.read(name))
    found = subprocess.run([*PYTHON, "verify", str(damaged)], capture_output=True, check=False)
    assert found.returncode == 1 and b"is damaged" in found.stdout


def test_the_manifest_has_what_the_format_promises(bundle: Path) -> None:
    with ZipFile(bundle) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["format"] == "everturn-bundle@1"
    main = next(file for file in manifest["files"] if file["kind"] == "main")
    assert {"path", "machine", "format", "kind", "native_id", "parent", "versions"} <= main.keys()
    for version in main["versions"]:
        ends = [chunk["start"] + chunk["size"] for chunk in version["chunks"]]
        assert [chunk["start"] for chunk in version["chunks"]] == [0, *ends[:-1]]
        assert ends[-1] == version["size"]
