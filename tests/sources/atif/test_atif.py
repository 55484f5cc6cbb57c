"""Trajectories of ATIF."""

from __future__ import annotations

from pathlib import Path

from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "trajectory.json"]


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("atif", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("atif", "run-1")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "read", "ok", ""),
            ("bash", "shell", "error", "exit_status"),
            ("", "other", "orphan", ""),
        ]
        assert (session.n_turns, session.client, session.model) == (1, "1.2.3", "claude-x")
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (110, 22, 300)
