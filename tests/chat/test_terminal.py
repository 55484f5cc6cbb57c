"""The chat on a real terminal: keys, questions, styles."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.chat.program import Desk, Model, Terminal, is_summary_request, last_words
from tests.model_server import Asked, ModelServer
from tests.model_wires import Call, Says

QUICK = ("chat", "--new", "--no-summary")


def calling(name: str, **arguments: str) -> Model:
    """A model that calls one tool for every thing said, and then tells what it was told."""

    class Calling(Model):
        def __call__(self, asked: Asked) -> Says:
            if asked.body["messages"][-1]["role"] == "tool":
                return Says(f"tool says <{last_words(asked)}>")
            return Says(calls=(Call(name, arguments),)) if not is_summary_request(asked) else super().__call__(asked)

    return Calling()


def test_ctrl_c_stops_an_answer_and_keeps_what_came_and_ctrl_d_leaves(tmp_path: Path) -> None:
    script = Model()

    def answer(asked: Asked) -> Says:
        slow = last_words(asked) == "tell me a story"
        return Says("once upon a time " * 50, drip=0.05) if slow else script(asked)

    with ModelServer(answer) as server, Terminal(desk := Desk(tmp_path, server), *QUICK) as terminal:
        terminal.until("You: ")
        terminal.type("tell me a story\r")
        terminal.until("upon a time")
        terminal.type("\x03")
        terminal.until("(stopped; what came is kept)")
        terminal.until("You: ")
        terminal.type("and now\r")
        terminal.until("answer 1")
        terminal.until("You: ")
        terminal.type("\x04")
        assert terminal.ended() == 0 and "Goodbye!" in terminal.seen
        kept = [block.text for one in desk.messages(desk.sessions()[0]) for block in one.blocks]
        assert any(text.startswith("once upon a time") for text in kept)


def test_ctrl_c_at_the_prompt_gives_the_line_up_and_stays(desk: Desk) -> None:
    with Terminal(desk, *QUICK) as terminal:
        terminal.until("You: ")
        terminal.type("half a thou")
        terminal.until("half a thou")
        terminal.type("\x03")
        try:
            terminal.until("(Ctrl-D or /exit leaves)", seconds=8)
        except AssertionError:  # in the instant a key is read, Python's readline notices an interrupt with the next key
            terminal.type("\x03")
            terminal.until("(Ctrl-D or /exit leaves)")
        terminal.until("You: ")
        terminal.type("exit\r")
        assert terminal.ended() == 0
    assert desk.server.asked == []


@pytest.mark.few(1)
@pytest.mark.few(2)
@pytest.mark.parametrize(("answer", "there"), [("y", True), ("n", False), ("", False)])
def test_writing_asks_first_and_shows_what_is_to_be_written(tmp_path: Path, answer: str, there: bool) -> None:
    with (
        ModelServer(calling("write_file", path="new/a.txt", content="hello")) as server,
        Terminal(desk := Desk(tmp_path, server), *QUICK) as terminal,
    ):
        terminal.until("You: ")
        terminal.type("write it\r")
        asked = terminal.until("Allow it? (y/n/a = always in this chat)")
        assert "path: new/a.txt" in asked and "content: hello" in asked
        terminal.type(f"{answer}\r")
        terminal.until("created, 5 bytes" if there else "denied: the human did not allow this call")
        assert (desk.workspace / "new" / "a.txt").exists() is there


def test_a_tool_that_is_always_allowed_is_asked_about_once(tmp_path: Path) -> None:
    with (
        ModelServer(calling("shell", command="echo ran $((6*7))")) as server,
        Terminal(Desk(tmp_path, server), *QUICK) as terminal,
    ):
        terminal.until("You: ")
        terminal.type("go\r")
        terminal.until("command: echo ran $((6*7))")
        terminal.until("chat) ")
        terminal.type("a\r")
        terminal.until("tool says <ran 42")
        terminal.until("You: ")
        terminal.type("again\r")
        assert "Allow it?" not in terminal.until("tool says <ran 42")


def test_a_command_that_fails_tells_its_status_and_one_that_hangs_is_stopped(tmp_path: Path) -> None:
    with (
        ModelServer(calling("shell", command="echo begun; sleep 100")) as server,
        Terminal(desk := Desk(tmp_path, server), *QUICK) as terminal,
    ):
        terminal.until("You: ")
        terminal.type("go\r")
        terminal.until("chat) ")
        terminal.type("y\r")
        terminal.until("→ shell")
        terminal.type("\x03")
        terminal.until("(stopped; what came is kept)")
    (call,) = desk.store().calls(desk.sessions()[0].id)
    assert call.status == "error"


@pytest.mark.slow
def test_earlier_sessions_are_offered_at_the_start(desk: Desk) -> None:
    desk.chat("work on the zebra")
    with Terminal(desk, "chat", "--no-summary") as terminal:
        seen = terminal.until("Which one? (Enter: new) ")
        assert "0. Start new session" in seen and "work on the zebra" in seen and "1 query" in seen
        terminal.type("1\r")
        terminal.until(f"Resuming session {desk.sessions()[0].native_id} (1 turn in archive)…")
    with Terminal(desk, "chat", "--no-summary") as terminal:
        terminal.until("Which one? (Enter: new) ")
        terminal.type("\r")
        terminal.until("You: ")
        terminal.type("fresh\r")
        terminal.until("answer 2")
    assert len(desk.sessions()) == 2


@pytest.mark.few(1)
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_another_agent_is_asked_about_with_both_paths(desk: Desk, answer: str, code: int) -> None:
    agents = []
    for name in ("old", "new"):
        path = desk.folder / f"{name}_agent.py"
        path.write_text("def agent(text):\n    return 'you said ' + text.split()[-1]\n")
        agents.append(path)
    ran = desk.run("chat", "--new", "--no-summary", "--agent", str(agents[0]), typed="hello\n")
    assert "Old Agent: you said hello" in ran.out
    with Terminal(desk, "chat", "--resume", "--no-summary", "--agent", str(agents[1])) as terminal:
        terminal.until(f"Session created with {agents[0]}, using {agents[1]}.")
        terminal.until("Continue? (y/n) ")
        terminal.type(f"{answer}\r")
        if code == 0:
            terminal.until("You: ")
            terminal.type("exit\r")
        assert terminal.ended() == code


@pytest.mark.slow
def test_an_answer_is_styled_and_its_controls_are_shown_not_obeyed(tmp_path: Path) -> None:
    text = "# Title\n- **bold** and `code`\n```\nx = 1\n```\n\x1b]0;owned\x07 end"
    for colour in ({}, {"NO_COLOR": "1"}):
        folder = tmp_path / f"colour{len(colour)}"
        folder.mkdir()
        with (
            ModelServer(lambda asked: Says(text)) as server,
            Terminal(Desk(folder, server), *QUICK, **colour) as terminal,
        ):
            terminal.until("You: ")
            terminal.type("hi\r")
            seen = terminal.until("end")
            assert ("\x1b[36mx = 1\x1b[0m" in seen) is (not colour)
            assert "\x1b]0;owned" not in seen and "␛]0;owned␇" in seen


def test_copy_hands_the_last_answer_to_the_terminal(desk: Desk) -> None:
    with Terminal(desk, *QUICK) as terminal:
        terminal.until("You: ")
        terminal.type("hi\r")
        terminal.until("answer 1")
        terminal.until("You: ")
        terminal.type("/copy\r")
        terminal.until(f"\x1b]52;c;{base64.b64encode(b'answer 1').decode()}\x07")
