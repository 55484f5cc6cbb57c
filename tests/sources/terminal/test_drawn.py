"""From bytes to turns: sessions drawn as the real clients draw them give exactly what was put into them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.rounds import TurnParser
from everturn.sources.terminal.transcript import ScreenTalk
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.drawing import PURPLE
from tests.sources.terminal.reading import artifacts, assert_found, spoken
from tests.sources.terminal.screens import Boxes, Panels, Prompts
from tests.sources.terminal.test_boxes import TOOLS
from tests.sources.terminal.test_panels import BLOCKS, LINES


def recorded(client: Boxes | Panels | Prompts) -> bytes:
    """The session as `script` would have kept it."""
    head = f'Script started on 2025-12-22 14:19:12-06:00 [TERM="xterm-256color" COLUMNS="{client.columns}" LINES="{client.height}"]\n'
    return head.encode() + client.close() + b'\nScript done on 2025-12-22 14:49:12-06:00 [COMMAND_EXIT_CODE="0"]\n'


def read(client: Boxes | Panels | Prompts) -> list[ScreenTalk]:
    """Bytes → transcript → talks."""
    return read_screens(transcribe(recorded(client)))


# boxes ----------------------------------------------------------------------------------------------------------------
def with_every_tool() -> Boxes:
    """A long answer, every kind of tool, and another answer."""
    client = Boxes()
    client.ask(
        "please run the command the way I showed you, and keep hyphens-in-long-words together when you do, thank you"
    )
    client.think("They want the command to be run.")
    client.answer("Understood, I will run it that way, whatever it takes. " * 12, mode="Plan")
    for title, body, found in TOOLS:
        client.call(title, body, pending="Writing command...", **found)
    client.rename("Running the command")
    client.answer("Done.\n\n- one\n- two")
    return client


def with_queued_messages() -> Boxes:
    """Two messages are sent while the agent works; its answer goes on above them."""
    client = Boxes()
    client.ask("count the files in every folder")
    client.answer("I shall begin with the first folder.")
    first = client.queue("and the hidden ones")
    second = client.queue("and then stop")
    client.answer("The second folder has more files than anybody would have thought. " * 9, before=first)
    client.unqueue(first, "and the hidden ones")
    client.answer("Hidden ones too, then.", before=second)
    client.unqueue(second, "and then stop")
    client.answer("Stopped.")
    return client


def with_equal_messages() -> Boxes:
    """The same words again and again, more than fill the screen."""
    client = Boxes()
    for n in range(5):
        client.ask("continue")
        client.answer(f"Part {n} is done.")
    client.ask("continue")
    client.ask("continue")
    client.answer("All parts are done.")
    return client


def with_scrolling() -> Boxes:
    """The human reads further up while the answer grows."""
    client = Boxes()
    for n in range(6):
        client.ask(f"request number {n}: please look")
        client.answer(" ".join(f"Sentence {n}.{m} says something of its own." for m in range(12)))
        client.call(f"Read src/file{n}.py", [f"line {n}"], path=f"src/file{n}.py", action="read")
    client.scroll(-45)
    client.scroll(20)
    client.answer(" ".join(f"Sentence {m} came while nobody looked." for m in range(8)))
    client.scroll(1000)
    client.ask("thanks")
    return client


def with_switches() -> Boxes:
    """Modes, models, titles, authors and days change."""
    client = Boxes(80, 24)
    client.ask("plan it", "21 Dec 2025 11:59 PM", "Ada L.")
    client.answer("A plan.", mode="Plan", model="claude-sonnet-4-5")
    client.rename("Planning")
    client.ask("do it", "02:40 PM", "Ada L.")
    client.answer("It is done now.", mode="Build", model="gpt-5", time="02:41 PM")
    client.rename("Planning and doing")
    client.ask("undo it", "02:42 PM", "Ada L.")
    client.abort()
    client.ask("leave it", "02:43 PM", "Ada L.")
    client.answer("Left as it is.", time="02:43 PM")
    return client


def on_a_wide_screen() -> Boxes:
    """Diffs side by side."""
    client = Boxes(160, 40)
    client.ask("fix the import")
    diff = ["  14 - from designer import draft".ljust(74) + "14 + from .designer import draft", "  15   import sys"]
    client.call(
        "Edit src/forge.py", [*diff, "", 'Error [262:93] "logs" is unbound'], path="src/forge.py", action="edited"
    )
    client.answer("Fixed, as far as I can see from here. " * 10)
    return client


BOXES: list[Callable[[], Boxes]] = [
    with_every_tool, with_queued_messages, with_equal_messages, with_scrolling, with_switches, on_a_wide_screen,
]  # fmt: skip


@pytest.mark.parametrize("scene", BOXES, ids=lambda scene: scene.__name__)
def test_a_session_of_boxes_is_read_exactly(scene: Callable[[], Boxes]) -> None:
    client = scene()
    assert_found(read(client), client.truth)


def test_files_of_a_drawn_session_are_all_found() -> None:
    client = with_every_tool()
    assert artifacts(read(client)) == [("read", "src/cli.py"), ("edited", "src/old.py"), ("created", "src/new one.py")]


def test_a_new_session_in_the_same_recording_is_another_conversation() -> None:
    client = Boxes()
    client.ask("one")
    client.answer("A first answer, which is quite short.")
    client.rename("The first")
    client.new()
    client.ask("two")
    client.answer("Another answer with other words.")
    client.rename("The second")
    talks = read(client)
    assert_found(talks, client.truth)
    assert [talk.titles[-1] for talk in talks] == ["The first", "The second"]


def test_what_was_never_drawn_is_partial_and_what_was_is_there() -> None:
    client = Boxes()
    client.ask("short")
    client.answer("Yes.")
    client.ask("\n".join(f"line {n} of something long" for n in range(60)))
    client.answer("I have read all of it.")
    (talk,) = read(client)
    short, yes, long, answer = spoken(talk)
    assert [item.text for item in (short, yes, answer)] == ["short", "Yes.", "I have read all of it."]
    assert (long.role, long.fidelity) == ("user", "partial")
    assert long.text.split("\n")[-1] == "line 59 of something long"
    assert "line 0 of something long" not in long.text


def test_an_answer_that_was_cut_off_is_marked() -> None:
    client = Boxes()
    client.ask("tell me everything")
    client.answer("I shall tell you everything there is. " * 40)
    client.working = True
    for _ in range(10):
        client.draw()
    (talk,) = read(client)
    assert talk.working
    assert spoken(talk)[-1].interrupted


def test_the_clipboard_and_typed_passwords_are_nowhere() -> None:
    client = Boxes()
    client.ask("install it")
    client.painter.send("\x1b]52;c;aHVudGVyMg==\x07")
    client.type("[sudo] password for ada: hunter2")
    client.typed = ""
    client.answer("Installed, without knowing how. " * 30)
    talks = read(client)
    assert_found(talks, client.truth)
    assert "hunter2" not in repr(talks)
    assert "aHVudGVyMg" not in repr(talks)


def test_rounds_of_a_recording_have_their_messages_files_and_lines() -> None:
    parser = TurnParser()
    client = with_scrolling()
    found = parser.parse(recorded(client))
    assert [one.user_messages for one in found] == [[f"request number {n}: please look"] for n in range(6)] + [
        ["thanks"]
    ]
    assert [(one.file_path, one.action_type) for turn in found for one in turn.artifacts] == [
        (f"src/file{n}.py", "read") for n in range(6)
    ]
    for turn in found:
        assert turn.raw_lines == parser.lines[turn.start_line_index : turn.end_line_index + 1]


def test_the_bytes_an_item_rests_on_are_those_that_drew_it() -> None:
    client = with_switches()
    data = recorded(client)
    for item in spoken(read_screens(transcribe(data))[0]):
        assert 0 < item.bytes[0] < item.bytes[1] <= len(data)


# panels ---------------------------------------------------------------------------------------------------------------
def with_every_call() -> Panels:
    """Every panel and every call in one line, over several turns."""
    client = Panels(110, 32)
    client.ask(
        "Run uname and say what machine this is, in one sentence and without any of those long explanations of yours"
    )
    client.think("Simple.")
    client.working = True
    for lines, found in BLOCKS:
        client.block(lines, title=lines[0].strip(), **{key: value for key, value in found.items() if key != "title"})
    client.answer("It is a machine that runs whatever it is told to run. " * 9)
    client.end("1m 5s", ms=65_000)
    client.ask("And now?")
    for line, found in LINES:
        client.inline(line, **found)
    client.answer("Now nothing is left to be done.")
    client.end("157ms", ms=157)
    return client


def with_stops() -> Panels:
    """Interrupted, repeated and queued requests, and another agent."""
    client = Panels(90, 26)
    client.ask("start the long work")
    client.answer("I begin with the first part of it.")
    client.interrupt()
    client.ask("again")
    client.ask("again")
    client.answer("Once more, with all the words it takes to fill a line or two of this screen.")
    client.inline("→ Read src/second.py", path="src/second.py", action="read")
    waiting = client.queue("and be quick")
    client.answer("Going on with the second part. " * 20, before=waiting)
    client.unqueue(waiting, "and be quick")
    client.answer("Quick it is.")
    client.end("9.9s", ms=9_900)
    client.agent = PURPLE
    client.ask("make a plan")
    client.answer("The plan has one point.")
    client.end("2.0s", "Plan", ms=2_000)
    return client


PANELS: list[Callable[[], Panels]] = [with_every_call, with_stops]


@pytest.mark.parametrize("scene", PANELS, ids=lambda scene: scene.__name__)
def test_a_session_of_panels_is_read_exactly(scene: Callable[[], Panels]) -> None:
    client = scene()
    assert_found(read(client), client.truth)


def test_panels_beside_a_sidebar_are_read_exactly() -> None:
    client = Panels(140, 36)
    client.side = [
        "Fixing the parser",
        "",
        "Context",
        "12,345 tokens",
        "6% used",
        "$0.10 spent",
        "",
        "LSP",
        "• pyright",
    ]
    client.ask(
        "please look at all of this text, which is long enough to be wrapped where the conversation ends, not the screen"
    )
    for n in range(6):
        client.answer(" ".join(f"Sentence {n}.{m} says something of its own." for m in range(12)))
        client.inline(f"→ Read src/file{n}.py", path=f"src/file{n}.py", action="read")
    client.end(ms=36_100)
    talks = read(client)
    assert_found(talks, client.truth)
    assert talks[0].titles == ("Fixing the parser",)


# prompts --------------------------------------------------------------------------------------------------------------
def test_a_session_on_the_main_screen_is_read_exactly() -> None:
    client = Prompts()
    for n in range(8):
        client.ask(
            f"request number {n}: please look at every file in the folder and tell me which of them nobody needs any more"
        )
        client.answer(f"Part {n} of the answer is this, and it is long enough to need a second line. " * 2)
        client.call(f"Read(src/file{n}.py)", ["Read 12 lines"], path=f"src/file{n}.py", action="read", status="ok")
        client.call("Bash(pytest -q)", ["2 passed", "in 0.1s"], command="pytest -q", output="2 passed\nin 0.1s")
        client.answer(f"All of {n} is done.")
        client.end("1m 3s", 63_000)
    talks = read(client)
    assert_found(talks, client.truth)
    assert (talks[0].dialect, talks[0].client, talks[0].workspace) == ("prompts", "2.1.197", "/srv/demo")
