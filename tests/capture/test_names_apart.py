"""Files with one name, copies of a file, and edits of a file that also grew: every session stays what it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from everturn.capture.sync import add_paths, sync_all
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store
from tests.capture.history import SID, History, job, raw, run


def _transcript(path: Path, *prompts: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"role": "user", "message": {"content": [{"type": "text", "text": text}]}} for text in prompts]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _listed(store: Store) -> list[tuple[str, int]]:
    return sorted((row.native_id, row.n_messages) for row, _ in store.sessions(SessionFilter())[0])


def test_two_files_of_one_name_are_two_sessions_and_a_copy_is_none(
    any_store: Store, history: History, tmp_path: Path
) -> None:
    first = _transcript(tmp_path / "a" / "full.jsonl", "count the walruses")
    second = _transcript(tmp_path / "b" / "full.jsonl", "paint the seals")
    _transcript(tmp_path / "c" / "full.jsonl", "count the walruses")
    work = replace(job(any_store, history), sources=all_sources())
    add_paths(work, [tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    names = [name for name, _ in _listed(any_store)]
    assert len(names) == 2
    assert names[0] == "full"
    assert names[1].startswith("full-")
    with second.open("a") as file:
        file.write(first.read_text().replace("count", "feed"))
    sync_all(work)
    assert _listed(any_store) == [("full", 1), (names[1], 2)]


def test_a_copied_session_is_listed_once_until_it_goes_its_own_way(any_store: Store, history: History) -> None:
    history.file().write_bytes(history.turn("count the walruses", "three"))
    copy = history.root / "projects" / "copy" / f"{SID}.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(history.file().read_bytes())
    run(any_store, history)
    assert _listed(any_store) == [(SID, 2)]
    copy.write_bytes(copy.read_bytes() + history.turn("and the seals?", "two"))
    run(any_store, history)
    assert _listed(any_store) == [(SID, 4)]
    history.file().write_bytes(history.file().read_bytes() + history.turn("and the otters?", "none"))
    run(any_store, history)
    assert _listed(any_store) == [(SID, 4), (SID, 4)]


def test_an_edit_in_place_is_noticed_before_growth_is_booked(any_store: Store, history: History) -> None:
    path = history.file()
    filler = history.turn("x" * 3000, "y" * 3000)
    path.write_bytes(filler + history.turn("count the walruses", "three") + filler)
    run(any_store, history)
    edited = path.read_bytes().replace(b"walruses", b"penguins") + history.turn("thank you", "welcome")
    with path.open("r+b") as file:
        file.write(edited)
    report = run(any_store, history)
    assert (report.rewritten, report.grown) == (1, 0)
    assert raw(any_store, path) == edited
