"""A long session: no request over its budget, nothing out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.text.tokens import estimate_tokens
from tests.chat.program import Desk, Model
from tests.model_server import ModelServer

WINDOW = 12_000


@pytest.mark.slow
def test_hundreds_of_messages_stay_within_the_window_and_all_are_found(tmp_path: Path) -> None:
    with ModelServer(Model()) as server:
        desk = Desk(tmp_path, server, window=WINDOW)
        lines = "".join(f"question {n} about widget{n:03} {'blah ' * 40}\n" for n in range(200))
        assert desk.run("chat", "--new", "--no-summary", typed=lines, timeout=300).code == 0
        (session,) = desk.sessions()
        assert session.n_prompts == 200
        for asked in server.asked:
            words = [one["content"] for one in asked.body["messages"]]
            assert sum(map(estimate_tokens, words)) + asked.body["max_tokens"] <= WINDOW
        assert len(server.asked[-1].body["messages"]) < 150
        ran = desk.run(
            "chat", "--resume", "--no-summary", typed="".join(f"/recall widget{n:03}\n" for n in (0, 100, 160))
        )
        assert all(f"question {n} about widget{n:03}" in ran.out for n in (0, 100, 160))
        assert len(desk.saved) == 1 and desk.saved[0].read_text().count("## Query ") == 200
