"""The flows of a conversation on a screen of tmux: talking, leaving, compacting, taking up again.

What is checked is what a person reads off the screen, what the model was sent, and what is in the archive and in the saved
file afterwards. `README.md` says which requirement each test is for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.sessions.lineage import ancestors
from tests.chat.program import Desk, Model, Sitting, is_restoration, is_summary_request, last_words, words_of
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says

pytestmark = pytest.mark.needs("tmux")
TOPIC = "a topic: use token buckets, then integration tests"  # what the summary of the scripted model tells
READY = "I have reviewed our previous conversation. Ready to continue!"


@pytest.fixture
def desk(tmp_path: Path, model: Model, held_by: str) -> Iterator[Desk]:
    with ModelServer(model) as server:
        yield Desk(tmp_path, server, held_by=held_by)


def restorations(desk: Desk) -> list[str]:
    return [last_words(one) for one in desk.server.asked if is_restoration(one)]


def counted(queries: int) -> str:
    return f"{queries} quer{'y' if queries == 1 else 'ies'}"


def test_the_way_out_tells_what_was_kept_and_how_to_go_on(desk: Desk) -> None:
    with Sitting(desk, "chat") as sitting:
        assert sitting.say(TOPIC) == f"You: {TOPIC}\n{desk.name}: answer 1"
        told = sitting.leave()
    (session,) = desk.sessions()
    wanted = [
        "📝 Generating session summary... ✓",
        "Goodbye!",
        "✓ Conversation saved successfully!",
        f"  Session ID: {session.native_id}",
        "  Queries: 1",
        "  Tokens: 121",
        f"  File: {desk.saved[0]}",
        f"  Go on with: everturn chat --resume {session.native_id[:8]}{f' --agent {desk.agent}' if desk.agent else ''}",
        "[ended 0]",
    ]
    assert told.split("\n")[: len(wanted)] == wanted


def test_a_saved_conversation_has_the_layout_of_the_document(desk: Desk) -> None:
    with Sitting(desk, "chat") as sitting:
        sitting.say("hello", "compact", "and on")
        sitting.leave()
    first, second = (path.read_text() for path in desk.saved)
    parent, child = desk.sessions()
    head = (
        rf"# {desk.name} Conversation\n\n\*\*Session ID:\*\* {parent.native_id}\n"
        rf"\*\*Date:\*\* \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}\n\*\*Agent:\*\* {desk.name}\n"
        rf"\*\*Agent Path:\*\* {re.escape(desk.path)}\n\*\*Workspace:\*\* {re.escape(str(desk.workspace))}\n\*\*Total Queries:\*\* 1\n\n---\n"
    )
    assert re.match(head, first)
    query = (
        rf"## Query 1 \(\d\d:\d\d:\d\d\)\n\*\*You:\*\* hello\n\n\*\*{desk.name}:\*\* answer 1\n\n"
        r"\*Time: [\d.]+s \| Tokens: 121 \(in: 101, out: 20\)\*\n\n---\n"
    )
    assert re.search(query, first)
    assert "<!-- SESSION_SUMMARY_START -->\n**Background Context:** Initial session.\n" in first
    assert first.rstrip().endswith("<!-- SESSION_SUMMARY_END -->")
    assert f"**Session ID:** {child.native_id}\n" in second
    restored = (
        rf"## Session Restored \(\d\d:\d\d:\d\d\)\n\*\*Context:\*\* Resumed from {parent.native_id} \(1 query, 121 tokens\)\n"
        rf"\*\*Previous Session:\*\* {re.escape(str(desk.saved[0]))}\n\n\*\*{desk.name}:\*\* I have reviewed .*\n\n"
        r"\*Time: [\d.]+s \| Tokens: 156 \(in: 89, out: 67\)\*\n"
    )
    assert re.search(restored, second) and second.index("Session Restored") < second.index("## Query 1")


@pytest.mark.few(1)
@pytest.mark.parametrize("queries", [1, 5, pytest.param(20, marks=pytest.mark.slow)])
def test_compacting_goes_on_in_a_child_that_begins_with_the_summary(desk: Desk, queries: int) -> None:
    with Sitting(desk, "chat") as sitting:
        sitting.say(*(f"question {n}: {TOPIC}" for n in range(queries)))
        shown = sitting.say("compact").split("\n")
        tokens = sitting.say("/tokens")
        assert sitting.say("and on") == f"You: and on\n{desk.name}: answer {queries + 1}"
    parent, child = desk.sessions()
    assert shown[:2] == ["You: compact", "📝 Generating session summary... ✓"]
    assert re.fullmatch(rf"💾 Saved session: {parent.native_id} \({counted(queries)}, [\d.]+K? tokens\)", shown[2])
    assert shown[3:] == ["🔄 Starting new session with summary...", f"{desk.name}: {READY}"]
    assert tokens.startswith("You: /tokens\nTotal Queries: 0\nRestoration: 156 tokens (in: 89, out: 67)\n")
    (told,) = restorations(desk)
    assert told.startswith("CONTEXT RESTORATION: You are continuing a previous conversation from 20")
    assert f"(Session ID: {parent.native_id}, {counted(queries)}, " in told
    assert "(2-6 sentences or bullets)" in told and "question 0" not in told
    assert (parent.n_prompts, child.n_prompts) == (queries, 1)


@pytest.mark.slow
def test_compacting_three_times_tells_each_child_only_the_session_before(desk: Desk) -> None:
    with Sitting(desk, "chat") as sitting:
        for word in ("one", "two", "three"):
            sitting.say(f"the {word} question")
            assert READY in sitting.say("compact")
        sitting.say("the last question")
        assert sitting.text().count("🔄 Starting new session with summary...") == 3
    sessions = desk.sessions()
    assert [one.n_prompts for one in sessions] == [1, 1, 1, 1]
    for number, told in enumerate(restorations(desk), 1):
        assert re.findall(r"- topic (\d)", told) == [str(number)] and "question" not in told
    asked = [last_words(one) for one in desk.server.asked if is_summary_request(one)]
    assert ["Condense this previous summary to 1-2 sentences:" in words for words in asked[:3]] == [False, True, True]
    assert "- topic 2" in asked[2] and "- topic 1" not in asked[2]
    (words,) = [words_of(one) for one in desk.server.asked if last_words(one) == "the last question"]
    assert len(words) == 2 and words[0] == restorations(desk)[2]


@pytest.mark.slow
def test_a_chain_of_processes_loads_only_the_session_before_and_replays_nothing(desk: Desk) -> None:
    with Sitting(desk, "chat", "--new") as sitting:
        sitting.say("the first question")
        sitting.leave()
    for number, word in ((2, "second"), (3, "third")):
        with Sitting(desk, "chat", "--new") as sitting:
            shown = sitting.say("resume 1").split("\n")
            assert shown[1] == "📋 Loading session..." and shown[3:] == [
                "🔄 Restoring context...",
                f"{desk.name}: {READY}",
            ]
            assert re.fullmatch(
                rf"✓ Found: {desk.name} - \d{{4}}-\d\d-\d\d \d\d:\d\d \(1 query, {121 if number == 2 else 278} tokens\)",
                shown[2],
            )
            sitting.say(f"the {word} question")
            sitting.leave()
    first, second, third = desk.sessions()
    told = restorations(desk)
    assert [re.findall(r"- topic (\d)", words) for words in told] == [["1"], ["2"]]
    assert f"This session was resumed from: {first.native_id}" in told[1]
    (words,) = [words_of(one) for one in desk.server.asked if last_words(one) == "the third question"]
    assert words == [told[1], "the third question"]
    store = desk.store()
    assert [one.native_id for one in ancestors(store, third)] == [second.native_id, first.native_id]
    store.close()
    saved = desk.saved[-1].read_text()
    assert f"**Context:** Resumed from {second.native_id} (1 query, 278 tokens)" in saved
    assert f"**Previous Session:** {desk.saved[1]}" in saved


@pytest.mark.slow
def test_resume_compact_resume_is_one_chain(desk: Desk) -> None:
    with Sitting(desk, "chat") as sitting:
        sitting.say("first")
        sitting.leave()
    with Sitting(desk, "chat", "--resume") as sitting:
        first = desk.sessions()[0].native_id
        assert f"Resuming session {first} (1 turn in archive)…" in sitting.ready()
        sitting.say("second", "compact", "third")
        sitting.leave()
    child = desk.sessions()[1].native_id
    with Sitting(desk, "resume", child[:8]) as sitting:
        assert f"Resuming session {child} (2 turns in archive)…" in sitting.ready()
        sitting.say("fourth")
        sitting.leave()
    assert [one.n_prompts for one in desk.sessions()] == [2, 2]
    (words,) = [words_of(one) for one in desk.server.asked if last_words(one) == "fourth"]
    assert words[1:] == ["third", "fourth"] and words[0].startswith("CONTEXT RESTORATION")


def test_earlier_sessions_are_offered_and_taken_up_by_number_and_by_id(desk: Desk) -> None:
    desk.chat("work on the zebra")
    desk.chat("work on the giraffe")
    zebra, giraffe = (one.native_id for one in desk.sessions())
    with Sitting(desk, "chat", "--no-summary") as sitting:
        lines = sitting.wait("Which one? (Enter: new)").split("\n")
        assert lines[:2] == ["Earlier sessions here:", "  0. Start new session"]
        row = r"  {}\. \d{{4}}-\d\d-\d\d \d\d:\d\d  {}  1 query  scripted-1  closed  work on the {}"
        assert re.fullmatch(row.format(1, giraffe[:8], "giraffe"), lines[2])
        assert re.fullmatch(row.format(2, zebra[:8], "zebra"), lines[3])
        sitting.enter("2")
        assert f"Resuming session {zebra} (1 turn in archive)…" in sitting.ready()
        assert f"✓ Found: {desk.name} - " in sitting.say(f"/resume {giraffe[:8]}")


def test_several_lines_are_one_message_pasted_or_with_a_backslash(desk: Desk) -> None:
    with Sitting(desk, "chat", "--no-summary") as sitting:
        sitting.ready()
        sitting.paste("first line\nsecond line\nthird line")
        sitting.wait("third line")
        sitting.press("Enter")
        assert sitting.ready().endswith(f"{desk.name}: answer 1")
        sitting.enter("and a\\")
        sitting.wait("...")
        assert sitting.say("fourth").endswith(f"...  fourth\n{desk.name}: answer 2")
        sitting.press("Up", "Up")
        sitting.wait("You: and a\\")
        sitting.press("C-u")
        sitting.leave()
    said = [words_of(one)[-1] for one in desk.server.asked]
    assert said == ["first line\nsecond line\nthird line", "and a\nfourth"]


def test_ctrl_c_stops_the_answer_and_keeps_what_came_and_ctrl_d_leaves(tmp_path: Path, held_by: str) -> None:
    script = Model()

    def answer(asked: Asked) -> Says:
        slow = last_words(asked) == "tell me a story"
        return Says("once upon a time " * 60, drip=0.05) if slow else script(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        with Sitting(desk, "chat", "--no-summary") as sitting:
            sitting.ready()
            sitting.enter("tell me a story")
            sitting.wait(f"{desk.name}: once upon a time once")
            sitting.press("C-c")
            shown = sitting.ready().split("\n")
            assert shown[1].startswith(f"{desk.name}: once upon a time") and shown[-1] == "(stopped; what came is kept)"
            assert sitting.say("and now").endswith(f"{desk.name}: answer 1")
            sitting.press("C-d")
            assert sitting.ended() == 0 and "Goodbye!" in sitting.text()
        kept = [block.text for one in desk.messages(desk.sessions()[0]) for block in one.blocks]
        assert any(text.startswith("once upon a time once") for text in kept)


def test_the_meter_tells_80_90_and_95_percent_once_each(tmp_path: Path, held_by: str) -> None:
    used = iter([7_000, 8_100, 8_200, 9_100, 9_600, 9_700])
    with (
        ModelServer(lambda asked: Says("fine", tokens=(next(used), 0))) as server,
        Sitting(Desk(tmp_path, server, window=10_000, held_by=held_by), "chat", "--no-summary") as sitting,
    ):
        told = [sitting.say(letter).split("\n")[2:] for letter in "abcdef"]
        assert sitting.say("/context") == "You: /context\nContext 97% full (9.7K of 10.0K tokens)"
    full = "⚠️  Context {}% full ({} of 10.0K tokens): {} /compact to go on in a fresh session"
    said = {1: (81, "8.1K", "consider"), 3: (91, "9.1K", "better use"), 4: (96, "9.6K", "it is time for")}
    assert told == [[full.format(*said[n])] if n in said else [] for n in range(6)]


def test_help_lists_compact_and_resume_and_fits_the_screen(desk: Desk) -> None:
    with Sitting(desk, "chat", size=(80, 24)) as sitting:
        shown = sitting.say("/help").split("\n")
        assert any(line.startswith("  /compact") for line in shown)
        assert any(line.startswith("  /resume [N|ID]") for line in shown)
        assert len(shown) < 24 and "You: /help" in sitting.screen()


def test_several_sessions_are_told_together_and_all_are_its_parents(desk: Desk) -> None:
    desk.chat("about apples")
    desk.chat("about pears")
    with Sitting(desk, "chat", "--resume", "1", "--resume", "2") as sitting:
        shown = sitting.ready()
        assert shown.count(f"✓ Found: {desk.name} - ") == 2 and shown.endswith(READY)
        sitting.say("both")
        sitting.leave()
    apples, pears, both = desk.sessions()
    store = desk.store()
    assert {one.native_id for one in ancestors(store, both)} == {pears.native_id, apples.native_id}
    store.close()
    (told,) = restorations(desk)
    assert "continuing several previous conversations" in told and sorted(re.findall(r"- topic (\d)", told)) == [
        "1",
        "2",
    ]
    target = desk.folder / "chain.md"
    assert desk.run("resume", both.native_id, "--chain", str(target)).code == 0
    text = target.read_text()
    assert all(f"**You:** {words}" in text for words in ("about apples", "about pears", "both"))


def test_a_session_picked_in_browse_goes_on_in_a_chat(desk: Desk) -> None:
    desk.chat("about zebras")
    (old,) = desk.sessions()
    with Sitting(desk, "browse") as sitting:
        sitting.wait("1 session")
        sitting.press("Enter")
        shown = sitting.wait("You:", everything=True)
        held_by = f"--agent {desk.agent} " if desk.agent else ""
        assert f"everturn resume {held_by}{old.native_id}" in shown and "Continue?" not in shown
        sitting.say("and lions")
        sitting.leave()
    assert "about zebras" in str(desk.server.asked[-2].body) and "and lions" in str(desk.server.asked[-2].body)


def test_a_session_picked_in_browse_goes_on_in_its_own_agent(tmp_path: Path, model: Model) -> None:
    with ModelServer(model) as server:
        pick_in_browse(Desk(tmp_path, server))


def pick_in_browse(desk: Desk) -> None:
    encoded = re.sub(r"[^A-Za-z0-9]", "-", str(desk.workspace))  # where the agent looks for sessions of the folder
    folder, stand_in = desk.home / ".claude" / "projects" / encoded, desk.folder / "bin" / "claude"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\necho "started in $PWD: claude $*"\n')
    stand_in.chmod(0o755)
    folder.mkdir(parents=True)
    about = {"sessionId": "0b7e3c52-1111-4222-8333-444455556666", "cwd": str(desk.workspace), "version": "2.0.0"}
    line = {**about, "type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-01-01T10:00:00.000Z"}
    (folder / f"{about['sessionId']}.jsonl").write_text(
        json.dumps({**line, "message": {"role": "user", "content": "mend the door"}}) + "\n"
    )
    assert desk.run("add", str(folder)).code == 0
    with Sitting(desk, "browse", PATH=f"{stand_in.parent}:{desk.env['PATH']}") as sitting:
        sitting.wait("1 session")
        sitting.press("Enter")
        assert sitting.ended() == 0
        assert f"started in {desk.workspace}: claude --resume {about['sessionId']}" in sitting.text()
