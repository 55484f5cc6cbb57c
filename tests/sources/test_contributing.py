"""The format in CONTRIBUTING.md is complete: registered from the page, it reads, keeps every promise and reaches the commands."""

from __future__ import annotations

import importlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import everturn
from everturn import sources
from everturn.sources.contract import Source, SourceCandidate, all_sources
from tests.sources.goldens import assert_keeps_promises, assert_same_in_pieces, assert_survives, damaged, readings

PAGE = Path(everturn.__file__).parents[2] / "CONTRIBUTING.md"
SAMPLE = (
    '{"who": "human", "says": "how many tusks?", "at": "2026-05-01T10:00:00Z"}\n'
    '{"who": "walrus", "says": "two tusks", "at": "2026-05-01T10:00:05Z"}\n'
    '{"who": "seal", "says": "none at all"}\n'
)


def write_format(folder: Path) -> Path:
    """Write the code blocks of the page to the files that their first lines name; the folder of the format's package."""
    blocks = re.findall(r"```python\n# src/everturn/sources/(walrus/\w+\.py)\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert [name for name, _ in blocks] == ["walrus/__init__.py", "walrus/reader.py"]
    (folder / "walrus").mkdir(parents=True)
    for name, code in blocks:
        (folder / name).write_text(code)
    return folder


@pytest.fixture
def walrus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """The format of the page, registered for one test."""
    folder = write_format(tmp_path / "formats")
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(folder)])
    importlib.invalidate_caches()
    all_sources.cache_clear()
    yield all_sources()["walrus"]
    all_sources.cache_clear()
    for name in [name for name in sys.modules if name.startswith("everturn.sources.walrus")]:
        del sys.modules[name]
    del sources.walrus  # type: ignore[attr-defined]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "chats" / "talk.walrus"
    path.parent.mkdir()
    path.write_text(SAMPLE)
    return path


def test_it_reads_a_sample_and_keeps_what_readers_promise(walrus: Source, sample: Path) -> None:
    assert [candidate.path for candidate in walrus.find(sample.parent)] == [sample]
    assert walrus.sniff(sample, b'{"a": 1}\n') is None
    ((candidate, data, whole),) = readings(walrus, sample)
    assert_keeps_promises(walrus, data, whole)
    assert whole.texts("prompt") == ["how many tusks?"]
    assert whole.texts("answer") == ["two tusks"]
    assert [message.kind for message in whole.messages["talk"]] == ["text", "text", "unknown"]
    for seed in range(20):
        assert_same_in_pieces(walrus, candidate, data, seed)


def test_no_damage_stops_it(walrus: Source) -> None:
    lines = SAMPLE.encode().splitlines(keepends=True)
    for seed in range(100):
        candidate = SourceCandidate(Path("talk.walrus"), "main", "talk")
        assert_survives(walrus, candidate, damaged(lines, random.Random(seed)), seed)


def test_it_passes_the_linter_and_is_short(tmp_path: Path) -> None:
    folder = write_format(tmp_path / "formats")
    code = [line for path in folder.rglob("*.py") for line in path.read_text().splitlines() if line.strip()]
    assert len(code) < 90
    root = PAGE.parent
    ruff = [sys.executable, "-m", "ruff", "--config", str(root / "pyproject.toml")]
    done = subprocess.run([*ruff[:3], "check", *ruff[3:], str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_new_format_reaches_every_command_without_another_edit(tmp_path: Path, sample: Path) -> None:
    folder = write_format(tmp_path / "formats")
    start = f"import everturn.sources as s; s.__path__.append({str(folder)!r})\n"
    start += "import sys; from everturn.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {"PYTHONPATH": str(Path(everturn.__file__).parents[1]), "PATH": os.environ["PATH"]}
    environment |= {"EVERTURN_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def run(*words: str) -> str:
        command = [sys.executable, "-c", start, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert "walrus" in run("sources")
    assert "--walrus-dir" in run("sync", "--help")
    run("add", str(sample))
    assert "tusks" in run("search", "tusks")
    assert "two tusks" in run("show", "@last")
