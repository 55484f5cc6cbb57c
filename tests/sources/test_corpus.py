"""Every real file beside the checkout is read by the right source, with everything in it accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.sources.contract import all_sources
from tests.sources import goldens

#: Which source reads which folder; no source reads the last two: they hold what hooks were told, and licences.
READ_BY = {
    "aider": "aider", "chatgpt": "chatgpt", "claude-code": "claude_code", "claude-code-fixture": "claude_code",
    "claude-code-streamjson": "stream_json", "cline": "cline", "codex": "codex", "codex-tui-log": "codex",
    "copilot-cli": "copilot_cli", "gemini": "gemini", "goose": "goose", "openai-messages": "messages",
    "opencode-export": "opencode", "opencode-tui": "terminal", "pi": "pi", "specstory": "specstory",
    "terminal": "terminal", "hooks": "", "licences": "",
}  # fmt: skip

pytestmark = pytest.mark.skipif(not goldens.CORPUS.is_dir(), reason="no real files beside the checkout")


def claimed_by(path: Path) -> list[str]:
    """The sources that claim a file, as `add` decides: only those of the highest rank count."""
    names = goldens.claimants(path)
    best = max((all_sources()[name].rank for name in names), default=0)
    return [name for name in names if all_sources()[name].rank == best]


def test_every_folder_is_known() -> None:
    assert {path.name for path in goldens.CORPUS.iterdir() if path.is_dir()} <= set(READ_BY)


@pytest.mark.slow
@pytest.mark.parametrize("folder", READ_BY)
def test_every_file_is_claimed_by_the_right_source_alone(folder: str) -> None:
    expected = [READ_BY[folder]] if READ_BY[folder] else []
    wrong = {str(path): found for path in goldens.corpus_files(folder) if (found := claimed_by(path)) != expected}
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("folder", [folder for folder, source in READ_BY.items() if source])
def test_everything_is_accounted_for_and_kept_as_it_is(folder: str) -> None:
    paths = goldens.corpus_files(folder)
    if not paths:
        pytest.skip(f"no real files of {folder} beside the checkout")
    with goldens.ingest(READ_BY[folder], *paths) as taken:
        files = taken.store.files()
        assert {file.path for file, _ in files if not file.container} == {str(path.resolve()) for path in paths}
        for file, version in files:
            if file.kind not in ("container", "bundle"):
                counted = sum(row.n for row in taken.store.census(version.id))
                assert counted == version.lines + version.glued, file.path
                assert counted or not version.size, file.path
                assert version.parser == all_sources()[file.format].parser, file.path
