"""Sessions of Junie, whose client writes every block several times."""

from __future__ import annotations

from pathlib import Path

from everturn.sources.contract import SearchPlaces
from everturn.sources.junie import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "session-260301-100000-ab12" / "events.jsonl"]


def test_a_block_is_one_call_however_often_it_was_written() -> None:
    with goldens.ingest("junie", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("junie", "session-260301-100000-ab12")
        calls = [(call.call_id, call.name, call.kind, call.status) for call in taken.store.calls(session.id)]
        assert calls == [
            ("s1", "Terminal", "shell", "ok"), ("s2", "ViewFiles", "read", "ok"), ("s2/1", "ViewFiles", "read", "ok"),
            ("s3", "FileChanges", "edit", "ok"), ("s3/1", "FileChanges", "create", "ok"), ("s4", "Terminal", "shell", "error"),
            ("s5", "Mcp", "other", "ok"),
        ]  # fmt: skip
        assert (session.n_turns, session.n_prompts, session.n_steps, session.model) == (2, 2, 3, "model-1")
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (55, 38, 660)
        text = taken.store.session(session.id)[1]
        assert (text.title, text.workspace) == ("Walruses of the zoo", "/home/ann/zoo")
        edited = [(one.action, one.path) for one in taken.store.artifacts(session.id) if one.action != "read"]
        assert edited == [("edited", "zoo.txt"), ("created", "seals.txt")]
        assert taken.hits("two walruses") == [session.native_id]


def test_sessions_are_found_with_their_working_folder(tmp_path: Path) -> None:
    session = tmp_path / ".junie" / "sessions" / "session-1" / "events.jsonl"
    session.parent.mkdir(parents=True)
    session.write_bytes(PATHS[0].read_bytes())
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [(found.path, found.native_id) for found in SOURCE.find(root)] == [(session, "session-1")]
    assert SOURCE.workspace(session.read_bytes()) == "/home/ann/zoo"
