"""Messages with one id and different content are different responses."""

from __future__ import annotations

import json
from pathlib import Path

from tests.sources.goldens import ingest


def test_two_responses_with_one_id_are_counted_both(tmp_path: Path) -> None:
    def message(role: str, text: str, at: int, **more: object) -> dict[str, object]:
        info = {"id": "msg_1", "sessionID": "ses_1", "role": role, "time": {"created": at, "completed": at + 5}, **more}
        return {
            "info": info,
            "parts": [{"type": "text", "text": text, "id": "p", "messageID": "msg_1", "sessionID": "ses_1"}],
        }

    tokens = {"input": 100, "output": 10, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    document = {
        "info": {"id": "ses_1", "title": "zoo", "directory": "/home/ann/zoo", "version": "1.0.0", "time": {"created": 1, "updated": 2}},
        "messages": [
            message("user", "count the walruses", 1_772_000_000_000),
            message("assistant", "three", 1_772_000_001_000, tokens=tokens, modelID="m", finish="stop"),
            message("assistant", "no, four", 1_772_000_002_000, tokens=tokens, modelID="m", finish="stop"),
        ],
    }  # fmt: skip
    path = tmp_path / "ses_1.json"
    path.write_text(json.dumps(document))
    with ingest("opencode", path) as taken:
        (session,) = taken.store.sessions_of("opencode", "ses_1")
        assert (session.n_steps, session.tokens_in, session.tokens_out) == (2, 200, 20)
