"""What the agent sees of a long conversation, with a model and with a Python agent; what was cut is told; what was out of view is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.agents import Teller
from tests.chat.program import Desk, Model
from tests.model_server import ModelServer

WINDOW = 6_000
FILLERS = tuple(f"filler {n} " + "blah " * 250 for n in range(12))
HINT = "[System: The user may be referencing earlier conversation"


@pytest.fixture(params=["model", "agent"])
def teller(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Teller]:
    with ModelServer(Model()) as server:
        yield Teller(Desk(tmp_path, server, window=WINDOW), request.param, WINDOW)


def test_a_pointer_to_what_is_out_of_view_gets_a_hint(teller: Teller) -> None:
    pointer = "do it like we discussed with the zebra cache"
    teller.chat("the zebra cache must be flushed at midnight", *FILLERS, pointer, words=("--new", "--no-summary"))
    last = teller.told()[-1]
    assert pointer in last and last.count(HINT) == 1
    hint = last[last.index(HINT) :]
    assert "turn 1, found by the words zebra, cache" in hint and "must be flushed at midnight" in hint
    can_recall = teller.kind == "model"  # this agent takes no recall, so it is not told to use it
    assert ("Use the conversation_recall tool" in hint) is can_recall


def test_what_is_cut_or_out_of_view_is_told_in_one_line_once(teller: Teller) -> None:
    ran = teller.chat("word " * 10_800, "and on", *FILLERS, "the end", words=("--new", "--no-summary"))
    told = [line for line in ran.err.splitlines() if line.startswith("(in the request: ")]
    assert told[0] == "(in the request: 1 long text is cut in view; the archive has the whole)"
    assert sum("earlier messages are no longer in view; recall finds them" in line for line in told) == 1
    assert len(told) <= 3
    (session,) = teller.desk.sessions()
    first = next(one for one in teller.desk.messages(session) if one.origin == "human")
    assert first.blocks[0].text.strip() == ("word " * 10_800).strip()


def test_each_summary_builds_on_the_one_before(teller: Teller) -> None:
    teller.chat("one", "compact", "two", "compact", "three", words=("--new",))
    asked = [one for one in teller.told() if "Generate a progressive session summary" in one]
    condense = "Condense this previous summary to 1-2 sentences:\n**Background Context:** "
    assert (
        condense not in asked[0]
        and f"{condense}Initial session." in asked[1]
        and f"{condense}Earlier work." in asked[2]
    )
    first, second = teller.restorations()
    assert "**Background Context:** Initial session." in first and "**Background Context:** Earlier work." in second


def test_sessions_of_newer_loops_in_the_workspace_are_synced_and_taken_up(teller: Teller) -> None:
    desk = teller.desk
    folder = desk.workspace / ".chat-sessions"
    folder.mkdir()
    (folder / "sally.md").write_text(
        "# Sally Conversation\n\n**Session ID:** newer-one\n**Date:** 2025-12-30T14:30:22.123456\n**Agent:** Sally\n"
        "**Total Queries:** 1\n\n---\n\n## Query 1 (14:30:45)\n**You:** flush the zebra cache\n\n**Sally:** flushed\n\n---\n"
    )
    assert desk.run("sync").code == 0
    assert "flush the zebra cache" in desk.run("show", "newer-one").out
    ran = desk.run("resume", "newer-one", "--strategy", "summary", "--force", *teller.words, typed="go on\n")
    assert "✓ Found: Sally - 2025-12-30" in ran.err and len(teller.restorations()) == 1
