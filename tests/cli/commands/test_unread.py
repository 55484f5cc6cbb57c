"""Files beside the sessions of an agent that look like transcripts and are not read: `sync`, `doctor` and `sources` list them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.desk import Desk


def test_a_file_that_looks_like_a_transcript_is_listed_until_it_is_gone(desk: Desk) -> None:
    history = desk.archive.history
    history.write(history.turn("count the walruses", "three"))
    odd = history.project / "future.jsonl"
    odd.write_text('{"speaker": "user", "says": "hi"}\n{"speaker": "assistant", "says": "hello"}\n')
    (history.project / "settings.json").write_text('{"theme": "dark"}')
    where = ("--claude-dir", str(history.root))
    code, _, err = desk.run("sync", *where)
    assert code == 0
    assert f"left out {odd}: looks like a transcript" in err
    assert "settings.json" not in err
    assert desk.json("sources", *where)["unread"] == [str(odd)]
    assert f"not read: {odd}" in desk.run("sources", *where)[2]
    checks = {one["name"]: one for one in json.loads(desk.run("doctor", "--json", *where)[1])["items"]}
    assert str(odd) in checks["unread"]["text"]
    odd.unlink()
    assert "left out" not in desk.run("sync", *where)[2]
    assert desk.json("sources", *where)["unread"] == []


def test_the_search_for_unread_files_is_bounded(tmp_path: Path) -> None:
    from everturn.capture.sync import find_unread
    from everturn.sources.contract import SearchPlaces, all_sources

    folder = tmp_path / ".claude" / "projects" / "node_modules"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text('[{"role": "user"}, {"role": "assistant"}]')
    places = SearchPlaces(tmp_path, {}, "linux")
    assert find_unread(all_sources(), places, ()) == []
