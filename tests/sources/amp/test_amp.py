"""Threads of Amp: prompts, calls with what became of them, and tokens wherever they are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.conversation import TokenUsage
from everturn.sources.amp import SOURCE
from everturn.sources.contract import SearchPlaces
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = sorted(path for path in SAMPLES.glob("*.json") if not path.name.endswith(".expected.json"))
WALRUSES, SEALS, LEDGER_FIRST = PATHS


def whole_of(path: Path) -> goldens.Whole:
    ((_, _, whole),) = goldens.readings(SOURCE, path)
    return whole


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("amp", WALRUSES) as taken:
        (session,) = taken.store.sessions_of("amp", WALRUSES.stem)
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("Read", "read", "ok", ""),
            ("Read", "read", "error", "not_found"),
            ("Bash", "shell", "error", "exit_status"),
            ("Bash", "shell", "error", "rejected"),
            ("Task", "task", "open", ""),
        ]
        assert session.n_turns == 2
        about = taken.store.session(session.id)[1]
        assert (about.title, about.workspace) == ("Counting walruses", "/home/ann/my zoo")
        assert taken.hits("three walruses") == [WALRUSES.stem]
    whole = whole_of(WALRUSES)
    assert whole.texts("prompt") == ["count the walruses", "thank you"]
    assert whole.texts("summary") == ["Three walruses were counted."]
    assert [message.usage for message in whole.all() if message.usage] == [
        TokenUsage(10, 60, 2000, 400), TokenUsage(5, 30), TokenUsage(7, 20),
    ]  # fmt: skip


@pytest.mark.parametrize("path", [SEALS, LEDGER_FIRST], ids=["after", "before"])
def test_the_ledger_of_older_threads_counts_once_wherever_it_stands(path: Path) -> None:
    counted = [message for message in whole_of(path).all() if message.usage]
    assert [(message.usage, message.provider_id) for message in counted] == [(TokenUsage(120, 9), f"{path.stem}/1")]


def test_threads_are_found_in_the_data_folder(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "share" / "amp" / "threads"
    folder.mkdir(parents=True)
    for path in PATHS:
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "T-notes.json").write_text('{"id": "T-1", "text": "no thread"}')
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [found.native_id for found in SOURCE.find(root)] == [path.stem for path in PATHS]
    assert SOURCE.workspace(WALRUSES.read_bytes()) == "/home/ann/my zoo"
    assert SOURCE.resume_command is not None
    assert SOURCE.resume_command("T-1")[-1] == "T-1"
