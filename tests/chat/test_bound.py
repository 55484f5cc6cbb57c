"""Providers that bind an answer to every word before it: the config says so, and nothing sent before is ever changed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.chat.program import Desk, Model, is_restoration, is_summary_request, last_words
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says


class Thinking(Model):
    """Seals what it thought for every answer."""

    def __call__(self, asked: Asked) -> Says:
        said = super().__call__(asked)
        return Says(said.text, thinking="let me see", tokens=said.tokens)


def talked(server: ModelServer) -> list[dict[str, Any]]:
    """The requests of the conversations, without those for summaries."""
    return [one.body for one in server.asked if not is_summary_request(one) and not is_restoration(one)]


def blocks(body: dict[str, Any]) -> list[Any]:
    """All blocks of a request in a row, without marks for caching."""
    found: list[Any] = []
    for message in body["messages"]:
        content = message["content"]
        found += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{key: value for key, value in one.items() if key != "cache_control"} for one in found]


def test_from_the_first_request_on_the_state_is_a_message_and_the_prompt_stays(tmp_path: Path) -> None:
    with ModelServer(Thinking(), strict=True) as server:
        desk = Desk(tmp_path, server, kind="anthropic", bound=True)
        desk.chat("one", "DECISION: use a trie", words=("--new", "--no-summary"))
        desk.chat("three", words=("--resume", "--no-summary"))
    bodies = talked(server)
    assert len(bodies) == 3 and "## Session State" not in str(bodies[0]["system"])
    assert "## Session State" in str(bodies[0]["messages"])
    for earlier, later in pairwise(bodies):
        assert (earlier["system"], earlier["tools"]) == (later["system"], later["tools"])
        assert blocks(later)[: len(blocks(earlier))] == blocks(earlier)


def test_a_full_window_is_told_and_compacting_goes_on(tmp_path: Path) -> None:
    with ModelServer(Thinking(), strict=True) as server:
        desk = Desk(tmp_path, server, window=8_000, kind="anthropic", bound=True)
        lines = [f"number {n} {'word ' * 400}" for n in range(8)]
        ran = desk.chat(*lines, "/compact", "and on")
    assert "nothing may be left out for this provider: /compact goes on in a fresh session" in ran.err
    assert "answer" in ran.out and len(desk.sessions()) == 2
    assert "and on" in last_words([one for one in server.asked if not is_summary_request(one)][-1])
    child = [body for body in talked(server) if "CONTEXT RESTORATION" in str(body)]
    assert len(child) == 1 and "thinking" not in {block["type"] for block in blocks(child[0])}


def test_a_session_that_cannot_go_on_as_it_was_is_told_by_its_summary(tmp_path: Path) -> None:
    with ModelServer(Thinking(), strict=True) as server:
        desk = Desk(tmp_path, server, kind="anthropic", bound=True)
        desk.chat("hello")
        (desk.folder / "prompt.txt").write_text("Be a pirate.")
        ran = desk.chat("again", words=("--resume", "--force", "--system", str(desk.folder / "prompt.txt")))
    assert "exact: the system prompt has changed → window\n" in ran.err
    assert "window: the provider takes a conversation only as it was → summary\n" in ran.err
    assert "🔄 Restoring context..." in ran.err and [one.n_prompts for one in desk.sessions()] == [1, 1]
