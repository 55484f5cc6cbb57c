"""Conversations of OpenHands: folders of events, and trajectories of older versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from everturn.sources.contract import SearchPlaces
from everturn.sources.openhands import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"


TRAJECTORY = SAMPLES / "trajectory.json"


def copy_conversation(folder: Path) -> Path:
    """Copy the sample without what is expected of it."""
    return Path(shutil.copytree(SAMPLES / "0a1b2c", folder, ignore=shutil.ignore_patterns("*.expected.json")))


def test_calls_say_what_became_of_them(tmp_path: Path) -> None:
    with goldens.ingest("openhands", copy_conversation(tmp_path / "0a1b2c")) as taken:
        (session,) = taken.store.sessions_of("openhands", "0a1b2c")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("terminal", "shell", "ok", ""),
            ("file_editor", "create", "error", "rejected"),
            ("", "other", "orphan", "other"),
        ]
        assert taken.store.session(session.id)[1].workspace == "/home/ann/zoo"
        assert (session.n_turns, taken.store.turns(session.id)[0].compacted) == (1, 1)
    with goldens.ingest("openhands", TRAJECTORY) as taken:
        (session,) = taken.store.sessions_of("openhands", "samples")
        assert [(call.name, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("execute_bash", "error", "exit_status"),
            ("read", "error", "not_found"),
        ]
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (40, 7, 60)


def test_a_conversation_is_found_once_and_grows_by_events(tmp_path: Path) -> None:
    folder = copy_conversation(tmp_path / ".openhands" / "conversations" / "0a1b2c")
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    (found,) = SOURCE.find(root)
    assert (found.kind, found.native_id, found.stamp > 0) == ("bundle", "0a1b2c", True)
    event = folder / "events" / "event-00001-x.json"
    assert SOURCE.sniff(event, event.read_bytes()) == found
    before = goldens.unpacked(SOURCE, found, found.path)[0][1]
    (folder / "events" / "event-00011-x.json").write_text(json.dumps({"id": "e11", "kind": "PauseEvent"}))
    assert goldens.unpacked(SOURCE, found, found.path)[0][1].startswith(before)
