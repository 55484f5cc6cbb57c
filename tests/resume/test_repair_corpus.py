"""Real sessions, harmed: whatever another copy has, or harm between records has left, is told in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from everturn.resume.diagnosis import BrokenSession, SessionCopy, diagnose_session
from everturn.resume.history import History, read_history
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.sources.toolkit.record_check import split
from tests.sources import goldens

FOLDERS = {"claude_code": "claude-code", "codex": "codex"}
PLACES = SearchPlaces(Path("/nowhere"), {}, "linux")
MOST = 12

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not goldens.CORPUS.is_dir(), reason="no real files beside the checkout"),
]


def chosen(agent: str) -> Iterator[tuple[Path, bytes]]:
    """The first sessions of each project, not too long."""
    paths = [path for path in goldens.corpus_files(FOLDERS[agent]) if path.suffix == ".jsonl"]
    for path in paths[:: max(1, len(paths) // MOST)]:
        if path.stat().st_size < 4_000_000:
            yield path, path.read_bytes()


def told(agent: str, path: Path, *copies: bytes) -> tuple[History, str] | None:
    source = all_sources()[agent]
    found = source.sniff(path, copies[0][: goldens.HEAD])
    if found is None or found.kind != "main":
        return None
    named = [SessionCopy(f"version {number}", str(path), data) for number, data in enumerate(copies, 1)]
    with diagnose_session(BrokenSession(source, found, found.native_id, named), PLACES, 0) as diagnosis:
        if diagnosis.session is None:
            return None
        return read_history(diagnosis.store, all_sources(), diagnosis.session), diagnosis.state


def words(found: History) -> list[tuple[str, str, str]]:
    return [
        (message.role, block.kind, block.text) for message in found.messages for block in message.blocks if block.text
    ]


def noisy(data: bytes, dice: Random) -> bytes:
    """Harm between the records only."""
    lines = data.splitlines(keepends=True)
    for _ in range(5):
        place = dice.randrange(1, len(lines) + 1)
        lines.insert(place, dice.choice((bytes(512) + b"\n", b"\n", b"not a record\n", b"\xef\xbb\xbf\n")))
    return b"".join(line.replace(b"\n", b"\r\n") if dice.random() < 0.2 else line for line in lines)


@pytest.mark.parametrize("agent", FOLDERS)
def test_what_a_shorter_copy_has_lost_comes_back(agent: str) -> None:
    tried = 0
    for path, data in chosen(agent):
        lines = data.splitlines(keepends=True)
        whole = told(agent, path, data)
        if whole is None or len(lines) < 8:
            continue
        third = len(lines) // 3
        for shorter in (
            lines[:third],
            [*lines[: 2 * third], lines[2 * third][:50]],
            lines[:third] + lines[2 * third :],
        ):
            back = told(agent, path, data, b"".join(shorter))
            assert back is not None and words(back[0]) == words(whole[0]), path
        tried += 1
    assert tried


@pytest.mark.parametrize("agent", FOLDERS)
def test_harm_between_records_changes_nothing_that_was_said(agent: str) -> None:
    tried = 0
    for path, data in chosen(agent):
        whole = told(agent, path, data)
        if whole is None:
            continue
        harmed = told(agent, path, noisy(data, Random(tried)))
        assert harmed is not None and words(harmed[0]) == words(whole[0]), path
        assert harmed[1] != "sound"
        tried += 1
    assert tried


@pytest.mark.parametrize("agent", FOLDERS)
def test_few_real_files_have_something_wrong_with_their_records(agent: str) -> None:
    """A check that cries out at every file would be of no use."""
    source = all_sources()[agent]
    assert source.check is not None
    wrong = tried = 0
    for path, data in chosen(agent):
        found = source.sniff(path, data[: goldens.HEAD])
        if found is not None and found.kind == "main":
            read = split(data)
            wrong += bool(read.flaws or source.check(found, read.pieces).flaws)
            tried += 1
    assert wrong * 4 <= tried
