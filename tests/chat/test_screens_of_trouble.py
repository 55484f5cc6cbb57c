"""Failures on a screen of tmux: models that fail, processes that are killed, agents and summaries that do not fit.

Whatever happens, a person is told in a sentence, nothing that was said is lost, and the conversation goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.chat.program import SUMMARY, Desk, Model, Sitting, is_restoration, is_summary_request, last_words, words_of
from tests.model_server import Answer, Asked, ModelServer, broken
from tests.model_wires import Says

pytestmark = pytest.mark.needs("tmux")
#: What a failure of the server looks like: the chat's own, and that of an agent which asks it.
FAILED = {"model": "the server failed with status 500", "agent": "the agent failed: HTTPError: HTTP Error 500"}
SAVED = """# Sally Conversation

**Session ID:** {name}
**Date:** 2025-12-30T14:30:22.123456
**Agent:** Sally
**Total Queries:** 1

---

## Query 1 (14:30:45)
**You:** build the limiter

**Sally:** done

*Time: 3.2s | Tokens: 345 (in: 123, out: 222)*

---
{summary}"""


@pytest.fixture
def desk(tmp_path: Path, model: Model, held_by: str) -> Iterator[Desk]:
    with ModelServer(model) as server:
        yield Desk(tmp_path, server, held_by=held_by)


class Faulty(Model):
    """Fails so often for requests of one kind, and is a good model otherwise."""

    def __init__(self, fault: Says | Answer, times: int, summaries: bool = False, restorations: bool = False) -> None:
        super().__init__()
        self._fault, self._left, self._summaries, self._restorations = fault, times, summaries, restorations

    def __call__(self, asked: Asked) -> Says | Answer:  # type: ignore[override]
        kind = (is_summary_request(asked), is_restoration(asked))
        if self._left and kind == (self._summaries, self._restorations):
            self._left -= 1
            return self._fault
        return super().__call__(asked)


@pytest.mark.few(1)
@pytest.mark.parametrize("times", [1, 2])
def test_a_summary_that_fails_is_tried_once_more_and_then_done_without(
    tmp_path: Path, times: int, held_by: str
) -> None:
    with ModelServer(Faulty(broken(), times, summaries=True)) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        with Sitting(desk, "chat") as sitting:
            sitting.say("important words")
            told = sitting.leave()
    assert sum(map(is_summary_request, server.asked)) == 2 and "; trying once more" in told
    failed = "⚠️ Summary generation failed - session saved without a summary by the model" in told
    assert failed == (times == 2) and "✓ Conversation saved successfully!" in told
    assert "important words" in desk.saved[0].read_text() and desk.sessions()[0].n_prompts == 1


def test_a_summary_that_takes_too_long_is_left_behind(tmp_path: Path, held_by: str) -> None:
    with ModelServer(Faulty(Says("late", wait=60), 2, summaries=True)) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        with Sitting(desk, "chat", "--summary-timeout", "0.2") as sitting:
            sitting.say("words")
            told = sitting.leave()
    assert "(timed out after 0.2 s)" in told and "✓ Conversation saved successfully!" in told


def test_a_summary_that_is_much_too_long_is_taken_whole(tmp_path: Path, held_by: str) -> None:
    long = SUMMARY.format(
        background="Initial session.", topic="a point\n- " + "\n- ".join(f"point {n}" for n in range(900))
    )
    with ModelServer(Faulty(Says(long), 1, summaries=True)) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        with Sitting(desk, "chat") as sitting:
            sitting.say("words", "compact")
    (told,) = [last_words(one) for one in server.asked if is_restoration(one)]
    assert "- point 899" in told and "- point 0 (not found in the record)\n" in told


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("fault", "patience", "shown"),
    [
        (broken(), "60", "⚠️ The model did not acknowledge ({failed}"),
        (Says("odd", wait=60), "1", "⚠️ The acknowledgment did not come in time or was stopped; going on"),
        (Says("42 bananas"), "60", "{name}: 42 bananas"),
    ],
    ids=["fails", "late", "odd"],
)
def test_an_acknowledgment_that_fails_is_late_or_odd_is_shown_and_the_chat_goes_on(
    tmp_path: Path, fault: Says | Answer, patience: str, shown: str, held_by: str
) -> None:
    with ModelServer(Faulty(fault, 1, restorations=True)) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        with Sitting(desk, "chat", "--summary-timeout", patience) as sitting:
            sitting.say("one")
            assert shown.format(name=desk.name, failed=FAILED[held_by]) in sitting.say("compact")
            assert sitting.say("two").endswith(f"{desk.name}: answer 2")
    (words,) = [words_of(one) for one in server.asked if last_words(one).endswith("two")]
    assert words[0].startswith("CONTEXT RESTORATION") and [one.n_prompts for one in desk.sessions()] == [1, 1]


def test_a_model_that_fails_is_a_sentence_and_retry_asks_again(tmp_path: Path, held_by: str) -> None:
    with ModelServer(Faulty(broken(), 1)) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        with Sitting(desk, "chat", "--no-summary") as sitting:
            assert FAILED[held_by] in sitting.say("hello")
            assert sitting.say("/retry") == f"You: /retry\n{desk.name}: answer 1"
    assert desk.sessions()[0].n_prompts == 1


@pytest.mark.slow
def test_a_killed_chat_is_taken_up_where_it_stood_and_told_by_a_summary_made_then(desk: Desk) -> None:
    with Sitting(desk, "chat") as sitting:
        sitting.say("remember the zebra", "and the giraffe")
        sitting.kill()
    with Sitting(desk, "chat") as sitting:
        assert "  2 queries  scripted-1  crashed  remember the zebra" in sitting.wait("Which one? (Enter: new)")
        sitting.enter("1")
        assert "(2 turns in archive)…" in sitting.ready()
        assert sitting.say("what was it?").endswith(f"{desk.name}: answer 3")
        sitting.kill()
    with Sitting(desk, "chat", "--new") as sitting:
        shown = sitting.say("resume 1")
        assert "📝 No summary yet: generating it now... ✓" in shown and shown.endswith("Ready to continue!")
    (words,) = [words_of(one) for one in desk.server.asked if last_words(one) == "what was it?"]
    assert words == ["remember the zebra", "and the giraffe", "what was it?"]


def test_words_that_were_taken_when_the_process_was_killed_are_answered_by_retry(tmp_path: Path, held_by: str) -> None:
    with ModelServer(Faulty(Says("never comes", wait=60), 1)) as server:
        desk = Desk(tmp_path, server, held_by=held_by)
        with Sitting(desk, "chat") as sitting:
            sitting.ready()
            sitting.enter("are you there?")
            sitting.wait(lambda _: bool(server.asked))
            sitting.kill()
        with Sitting(desk, "chat", "--resume", "--no-summary") as sitting:
            assert "The last request has no answer yet: /retry goes on with it." in sitting.ready()
            assert sitting.say("/retry").endswith(f"{desk.name}: answer 1")
    assert desk.sessions()[0].n_prompts == 1


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_another_agent_is_asked_about_with_both_paths(desk: Desk, answer: str, code: int) -> None:
    agents = [desk.folder / f"{name}_agent.py" for name in ("old", "new")]
    for path in agents:
        path.write_text("def agent(text):\n    return 'you said ' + text.split()[-1]\n")
    desk.run("chat", "--new", "--no-summary", "--agent", str(agents[0]), typed="hello\n")
    with Sitting(desk, "chat", "--resume", "--no-summary", "--agent", str(agents[1]), size=(400, 20)) as sitting:
        sitting.wait("Continue? (y/n)")
        assert f"⚠️ Session created with {agents[0]}, using {agents[1]}." in sitting.screen()
        sitting.enter(answer)
        if code == 0:
            assert sitting.say("again").endswith("New Agent: you said again")
            sitting.press("C-d")
        assert sitting.ended() == code
    assert [one.n_prompts for one in desk.sessions()] == [2 if code == 0 else 1]


def test_another_prompt_is_asked_about_and_a_refusal_changes_nothing(desk: Desk) -> None:
    desk.chat("hello", words=("--new", "--no-summary"))
    prompt = desk.folder / "prompt.txt"
    prompt.write_text("Be a pirate.")
    with Sitting(desk, "chat", "--resume", "--no-summary", "--system", str(prompt)) as sitting:
        old = "no system prompt" if desk.agent else "the system prompt "
        assert f"⚠️ Session created with {old}" in sitting.wait("Continue? (y/n)")
        sitting.enter("n")
        assert sitting.ended() == 1 and "Not resumed; nothing was changed." in sitting.text()
    with Sitting(desk, "chat", "--resume", "--no-summary", "--system", str(prompt)) as sitting:
        sitting.wait("Continue? (y/n)")
        sitting.enter("y")
        assert "exact: the system prompt has changed → window" in sitting.ready()
        sitting.say("again")
    told = str(desk.server.asked[-1].body["messages"][0]["content"])
    assert told.startswith("Be a pirate.") and last_words(desk.server.asked[-1]) == "again"


def test_a_parent_that_is_gone_is_told_and_the_session_is_whole(desk: Desk) -> None:
    desk.chat("one", "compact", "two")
    parent, child = desk.sessions()
    assert desk.run("forget", parent.native_id, "--yes").code == 0
    with Sitting(desk, "chat", "--resume", child.native_id, "--no-summary") as sitting:
        assert f"⚠️ Parent session {parent.native_id} not found; this session itself is complete" in sitting.ready()
        assert f"⚠️ Session {'f' * 8} not found; this conversation goes on" in sitting.say(f"/resume {'f' * 8}")
        sitting.say("three")
    assert words_of(desk.server.asked[-1])[-2:] == ["two", "three"]


def asks_for_the(number: int, text: str) -> bool:
    return text.count("Continue? (y/n)") == number


def test_sessions_without_a_summary_or_with_broken_marks_are_told_by_a_document(desk: Desk) -> None:
    folder = desk.folder / "old"
    folder.mkdir()
    torn = "\n<!-- SESSION_SUMMARY_START -->\n**Background Context:** Initial session.\n- old topic\n"
    (folder / "torn.md").write_text(SAVED.format(name="torn", summary=torn))
    (folder / "none.md").write_text(SAVED.format(name="none", summary=""))
    assert desk.run("add", str(folder)).code == 0
    with Sitting(desk, "chat", "--no-summary") as sitting:
        sitting.ready()
        for number, (name, why) in enumerate((("torn", "invalid summary format"), ("none", "no summary")), 1):
            sitting.enter(f"/resume {name}")
            asked = sitting.wait(partial(asks_for_the, number), everything=True)
            assert asked.count(f"⚠️ Session created with Sally, using {desk.agent or desk.name}.") == number
            sitting.enter("y")
            shown = sitting.ready()
            assert f"⚠️ Session can't be resumed ({why}), starting fresh from a document" in shown
            assert shown.endswith("Ready to continue!")
    assert all("build the limiter" in last_words(one) for one in desk.server.asked if is_restoration(one))
    assert "build the limiter" in desk.run("show", "none").out
