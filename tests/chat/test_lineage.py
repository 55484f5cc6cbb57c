"""One session after another, with a model and with a Python agent: nothing in force is forgotten, nobody is mistaken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.agents import Teller, write_agent
from tests.chat.program import Desk, Model, Terminal, is_summary_request, last_words
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says

PLANTED = ("never use an ORM", "We decided to use token buckets", "the limit is 100 requests per minute")


@pytest.fixture(params=["model", "agent"])
def teller(desk: Desk, request: pytest.FixtureRequest) -> Teller:
    return Teller(desk, request.param)


def test_what_was_laid_down_reaches_every_later_session_with_its_evidence(teller: Teller) -> None:
    teller.chat(
        "hello",
        f"{PLANTED[0]}, please",
        "compact",
        f"{PLANTED[1]}.",
        f"/pin {PLANTED[2]}",
        "compact",
        "and on",
        "compact",
    )
    teller.chat("resume 1", "go on")
    first, second, *_ = teller.desk.sessions()
    told = teller.restorations()
    assert len(told) == 4 and len(teller.desk.sessions()) == 5
    for words in told[1:]:
        assert f"Constraint: {PLANTED[0]}, please (turn 2 of {first.native_id[:8]})" in words
        assert f"Decision: {PLANTED[1]}. (turn 2 of {second.native_id[:8]})" in words
        assert f"Pinned: {PLANTED[2]} (turn 2 of {second.native_id[:8]})" in words


def test_what_was_superseded_is_not_inherited(teller: Teller) -> None:
    teller.chat("CONSTRAINT: never use an ORM", "SUPERSEDED: never use an ORM", "RISK: the lock", "compact", "go on")
    (told,) = teller.restorations()
    assert "Constraint: never use an ORM" not in told and "Risk: the lock (turn 3 of " in told


def test_a_compacted_agent_begins_anew_and_knows_only_the_summary(desk: Desk) -> None:
    for ending in ("maker", "object"):
        sally = write_agent(desk.folder, f"Sally {ending}", ending)
        ran = desk.chat("one", "two", "compact", "three", words=("--new", "--agent", str(sally)))
        assert f"Sally {ending}: I remember 2 messages" in ran.out
        assert ran.out.endswith(f"Ready to continue!\nSally {ending}: I remember 2 messages\n")


def test_a_resumed_agent_is_told_the_session_and_nothing_of_the_one_before(desk: Desk) -> None:
    teller = Teller(desk, "agent")
    teller.chat("about apples")
    teller.chat("about pears", "sessions", "resume 1", "go on", "/save out.md")
    *_, restored, asked = [one for one in teller.told() if "Generate a progressive" not in one][:4]
    assert "CONTEXT RESTORATION" in restored and "pears" not in restored + asked
    assert desk.run("chat", "--resume", *teller.words, typed="still there?\n").code == 0
    exact = [one for one in teller.told() if one.endswith("still there?")]
    assert len(exact) == 1 and "The conversation so far:" in exact[0] and "user: go on" in exact[0]


def test_state_and_hint_reach_both_kinds(teller: Teller) -> None:
    teller.chat("never use an ORM", "hello again")
    last = next(one for one in teller.told() if one.endswith("hello again"))
    assert "## Session State" in last and '- "never use an ORM (turn 1)"' in last


def test_a_number_is_only_a_number_of_the_list(teller: Teller) -> None:
    teller.chat("mine")
    (old,) = teller.desk.sessions()
    other = teller.desk.folder / "elsewhere"
    other.mkdir()
    for name in ("9", old.native_id[:1] if old.native_id[:1].isdigit() else "1"):
        ran = teller.chat(f"resume {name}", words=("--new", "-w", str(other)))
        assert f"⚠️ Session {name} not found; this conversation goes on" in ran.err
    assert not teller.restorations()


@pytest.mark.parametrize("way", ["--resume", "/resume", "resume"])
def test_a_session_of_another_workspace_is_asked_about_on_every_path(teller: Teller, way: str) -> None:
    teller.chat("a secret plan")
    (old,) = teller.desk.sessions()
    other, known = teller.desk.folder / "elsewhere", len(teller.told())
    other.mkdir()
    where = ("-w", str(other), *teller.words)
    if way == "/resume":
        ran = teller.desk.chat(f"/resume {old.native_id}", words=("--new", *where))
    elif way == "--resume":
        ran = teller.desk.chat("x", words=("--resume", old.native_id, *where))
    else:
        ran = teller.desk.run("resume", old.native_id, "--strategy", "summary", *where, typed="x\n")
    assert f"Session of the workspace {teller.desk.workspace}, using it in {other}." in ran.err
    assert "Add --force" in ran.err and len(teller.told()) == known


def test_another_agent_is_asked_about_by_number_too_and_answers_stay_signed(desk: Desk) -> None:
    sally, olly = write_agent(desk.folder), write_agent(desk.folder, "Other Olly")
    desk.chat("hello", words=("--new", "--agent", str(sally)))
    (saved,), (first,) = desk.saved, desk.sessions()
    with Terminal(desk, "chat", "--new", "--agent", str(olly)) as terminal:
        terminal.until("You: ")
        terminal.type("resume 1\n")
        shown = terminal.until("Continue? (y/n)")
        assert f"Session created with {sally}, using {olly}." in shown.replace("\r\n", "").replace("\r", "")
        terminal.type("n\n")
        terminal.until("Not resumed; this conversation goes on.")
        terminal.type("resume 1\n")
        terminal.until("Continue? (y/n)")
        terminal.type("y\n")
        assert "✓ Found: Simple Sally - " in terminal.until("Ready to continue!")
        terminal.until("You: ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    desk.chat("again", words=("--resume", first.native_id, "--agent", str(olly), "--force"))
    text = saved.read_text()
    assert text.startswith("# Simple Sally Conversation") and f"**Agent Path:** {sally}" in text
    assert "**Simple Sally:** I remember 1 messages" in text and "**Other Olly:** I remember 1 messages" in text
    assert "**Also Answered:** Other Olly" in text
    assert len([path for path in desk.saved if first.native_id[:12] in path.name]) == 1
    assert desk.run("add", str(saved)).code == 0
    store = desk.store()
    (copy,) = store.sessions_of("chat_markdown", first.native_id)
    store.close()
    assert (copy.n_prompts, copy.n_messages) == (2, 6)


def test_a_summary_made_late_builds_on_that_of_the_parent_and_tells_the_tool_work(tmp_path: Path) -> None:
    script = Model()

    def answer(asked: Asked) -> Says:
        if last_words(asked) == "look around":
            return Says(calls=(Call("read_file", {"path": "notes.txt"}),))
        return script(asked)

    with ModelServer(answer) as server:
        desk = Desk(tmp_path, server)
        (desk.workspace / "notes.txt").write_text("buy milk\n")
        desk.chat("start", "compact")
        child = desk.sessions()[-1].native_id
        desk.chat("look around", words=("--resume", child, "--no-summary"))
        desk.chat(f"/resume {child}", "on")
        late = [last_words(one) for one in server.asked if is_summary_request(one)][1]
    assert "Condense this previous summary to 1-2 sentences:\n**Background Context:** Initial session." in late
    assert "[tool read_file notes.txt → ok: " in late and "buy milk" in late


def test_the_previous_session_is_named_whoever_held_it(teller: Teller) -> None:
    desk = teller.desk
    folder = desk.folder / "old"
    folder.mkdir()
    saved = "# Sally Conversation\n\n**Session ID:** old-one\n**Date:** 2025-12-30T14:30:22.123456\n**Agent:** Sally\n"
    saved += (
        "**Total Queries:** 1\n\n---\n\n## Query 1 (14:30:45)\n**You:** never use an ORM\n\n**Sally:** done\n\n---\n"
    )
    (folder / "old.md").write_text(saved)
    assert desk.run("add", str(folder)).code == 0
    ran = desk.run("resume", "old-one", "--strategy", "summary", "--force", *teller.words, typed="go on\n")
    assert "✓ Found: Sally - 2025-12-30" in ran.err
    text = desk.saved[-1].read_text()
    assert "**Resumed From:** old-one" in text and f"**Previous Session:** {folder / 'old.md'}" in text
    assert "Constraint: never use an ORM (turn 1 of old-one)" in teller.restorations()[0]
    again = teller.chat("more", words=("--resume",))
    assert "not found" not in again.err


def test_a_saved_file_names_its_session(teller: Teller) -> None:
    teller.chat("hello")
    (saved,) = teller.desk.saved
    for name in (saved.name, saved.stem, str(saved)):
        assert "🔄 Restoring context..." in teller.chat(f"/resume {name}", "on").err


def test_a_pin_names_the_turn_in_which_it_was_pinned(teller: Teller) -> None:
    ran = teller.chat("one", "two", "/pin keep it small", "/state")
    assert '- "keep it small (turn 2)"' in ran.out
