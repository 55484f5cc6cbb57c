"""Screens of OpenCode 0.1 are divided and read: boxes in a column in the middle, for prompts and answers alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from everturn.sources.terminal.early_boxes import find_layout, read_early_boxes
from everturn.sources.terminal.frames import ScreenLayout
from everturn.sources.terminal.transcript import DrawnSaying, TranscriptSegment
from tests.sources.terminal.sketches import Line, paint_rows, transcribe_rows

BLUE, PURPLE, BLACK, GREY = 0x5FAFFF, 0xAF87D7, 0x080808, 0x949494
COLUMNS, HEIGHT, INNER = 100, 24, 58
STATUS = "\xa0opencode v0.1.174\xa0\xa0~/shop\xa0                  \xa0Context: 15 (0%), Cost: $0.00"
FOOTER = "enter send                     Local fine-model\nopencode v0.1.174  ~/shop  Context: 15 (0%), Cost: $0.00"


def box(colour: int, *lines: str) -> list[Line]:
    """The rows of a box without the margin."""
    padded = ["┃" + ("\xa0\xa0" + line).ljust(INNER) + "┃" for line in lines]
    return [(row, {0: colour, INNER + 1: BLACK}) for row in padded]


def prompt(text: str, *more: str) -> list[Line]:
    return box(BLUE, text, *more, "ana (06:27 PM)", "")


def answer(text: str, *more: str) -> list[Line]:
    return box(PURPLE, text, *more, "fine-model (06:28 PM)", "")


def call(title: str, *body: str) -> list[Line]:
    return ["", *box(BLACK, "", title, "", *body, ""), ""]


TALK: list[Line] = [*box(BLUE, ""), *prompt("Why is it slow?"), *answer("It reads every file twice.")]


def screen(
    talk: Sequence[Line], typed: str = "", margin: int = 20, status: str = STATUS, above: str = ""
) -> list[Line]:
    """A whole screen: header, conversation, input field and status."""
    header = box(BLACK, "# A short title", "/share to create a shareable link")
    room = HEIGHT - 1 - len(header) - 1 - 6
    rows: list[Line] = ["", *header, "", *talk, *[""] * (room - len(talk))]
    field = [f"┃{line.ljust(INNER)}┃" for line in ("", "\xa0> " + typed, "")]
    rows[-1] = f"┃{above.ljust(INNER)}┃" if above else rows[-1]
    return [*(shift(row, margin) for row in [*rows, *field, "\xa0enter send"]), "", status]


def shift(line: Line, margin: int) -> Line:
    if isinstance(line, str):
        return " " * margin + line if line else ""
    return " " * margin + line[0], {cell + margin: colour for cell, colour in line[1].items()}


def divide(lines: Sequence[Line]) -> ScreenLayout:
    found = find_layout(paint_rows(lines, COLUMNS))
    assert found is not None
    return found


def read(*blocks: list[Line], footer: str = FOOTER, cut: bool = False) -> list[DrawnSaying]:
    segment = TranscriptSegment((), cut_top=cut, footer=footer)
    above = [] if cut else box(BLUE, "")
    return read_early_boxes(transcribe_rows([*above, *(line for block in blocks for line in block)]), segment)


# the layout -----------------------------------------------------------------------------------------------------------
def test_a_conversation_stands_between_header_and_input_field() -> None:
    found = divide(screen(TALK, "and"))
    assert (found.state, found.typed) == ("talk", "and")
    assert found.title.startswith("# A short title")
    assert "opencode v0.1.174" in found.footer
    assert [row.text[:20].rstrip() for row in found.rows[1:3]] == ["┃  Why is it slow?", "┃  ana (06:27 PM)"]


def test_rows_do_not_depend_on_the_margin() -> None:
    wide, narrow = divide(screen(TALK, margin=20)), divide(screen(TALK, margin=0))
    assert [row.text for row in wide.rows] == [row.text for row in narrow.rows]
    assert wide.rows[1] is divide(screen(TALK, margin=20)).rows[1]


def test_the_logo_is_the_home_screen() -> None:
    logo = [" " * 30 + "█▀▀█ █▀▀█ █▀▀ █▀▀▄ █▀▀ █▀▀█", ""]
    field = [" " * 20 + f"┃{line.ljust(INNER)}┃" for line in ("", " >", "")]
    assert divide([*logo, *field, " " * 21 + "enter send", "", ""]).state == "home"
    later = [*logo, *field, " " * 21 + "enter send", "", " opencode   tab ┃ BUILD AGENT"]
    assert find_layout(paint_rows(later, COLUMNS)) is None


def test_a_list_of_commands_covers_the_conversation() -> None:
    assert divide(screen(TALK, "/new", above="   /new    new session")).state == "covered"


def test_a_dialog_covers_the_conversation() -> None:
    lines = screen(TALK)
    lines[6] = " " * 30 + "┃  Select Model        ┃"
    assert divide(lines).state == "covered"
    for number in range(6, 9):
        lines[number] = cover(lines[number], 30, "┃  Select Model        ┃")
    assert divide(lines).state == "covered"


def test_a_border_in_the_text_covers_nothing() -> None:
    lines = screen([*box(BLUE, ""), *prompt("What is this ┃ sign?")])
    assert "What is this ┃ sign?" in "".join(row.text for row in divide(lines).rows)


def cover(line: Line, cell: int, text: str) -> Line:
    """A line with something drawn over it."""
    below = line if isinstance(line, str) else line[0]
    return below.ljust(cell)[:cell] + text + below[cell + len(text) :]


def test_rows_below_a_toast_are_read() -> None:
    lines = screen(TALK)
    for number in range(2, 6):
        lines[number] = cover(lines[number], 60, "┃  Something failed                 ┃")
    found = divide(lines)
    assert found.state == "talk"
    assert [row.text for row in found.rows] == [row.text for row in divide(screen(TALK)).rows[2:]]
    assert "failed" not in "".join(row.text for row in found.rows)


def test_a_narrow_screen_has_no_status() -> None:
    assert divide(screen(TALK, margin=0, status="")).state == "talk"


@pytest.mark.parametrize("status", [" opencode v0.5.29  ~/shop          tab ┃ BUILD AGENT", "", "~/shop $"])
def test_screens_of_others_are_not_divided(status: str) -> None:
    assert find_layout(paint_rows(screen(TALK, margin=2, status=status), COLUMNS)) is None


# the conversation -----------------------------------------------------------------------------------------------------
def test_prompts_and_answers_are_told_apart() -> None:
    said = read(prompt("Why is it slow?", "", "Since yesterday."), answer("It reads twice.", "", "• a", "• b"))
    assert [(item.role, item.text) for item in said] == [
        ("user", "Why is it slow?\n\nSince yesterday."),
        ("assistant", "It reads twice.\n\n• a\n• b"),
    ]
    assert (said[0].author, said[0].time_text, said[0].starts_turn) == ("ana", "06:27 PM", True)
    assert (said[1].model, said[1].time_text) == ("fine-model", "06:28 PM")


@pytest.mark.parametrize("colours", [(0x112233, 0x445566), (BLUE, PURPLE)])
def test_any_theme_is_read(colours: tuple[int, int]) -> None:
    asked, said = box(colours[0], "Hi", "ana (06:27 PM)", ""), box(colours[1], "Hello", "fine-model (06:27 PM)", "")
    assert [item.role for item in read(asked, said, asked, said)] == ["user", "assistant"] * 2


def test_another_model_may_have_answered() -> None:
    earlier = box(PURPLE, "Hello", "old-model (06:20 PM)", "")
    assert [item.role for item in read(prompt("Hi"), earlier, prompt("More"), answer("Yes"))] == [
        "user",
        "assistant",
    ] * 2
    assert [item.role for item in read(prompt("Hi"), earlier)] == ["user", "assistant"]


def test_two_prompts_in_a_row_are_two() -> None:
    assert [item.text for item in read(prompt("one"), prompt("two"), answer("Yes"))] == ["one", "two", "Yes"]


def test_a_wrapped_prompt_is_one_line_again() -> None:
    words = "word " * 10 + "end"
    assert read(prompt(words, "of it"), answer("Yes"))[0].text == f"{words} of it"


def test_the_end_of_a_prompt_is_no_prompt() -> None:
    said = read(prompt("the last line of a long text"), answer("Yes"), cut=True)
    assert [(item.role, item.fidelity) for item in said] == [("system", "partial"), ("assistant", "rendered")]


def test_a_failure_is_a_notice_and_a_pending_call_is_nothing() -> None:
    said = read(prompt("Go"), box(GREY, "AI_APICallError: The model is not at home", ""))
    assert [(item.role, item.kind) for item in said] == [("user", "text"), ("assistant", "notice")]
    assert len(read(prompt("Go"), box(BLACK, "Writing command...", ""))) == 1


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["Bash Count to two", "> seq 1 2", "1", "2"], {"kind": "shell", "command": "seq 1 2", "output": "1\n2", "status": "ok"}),
        (["Write notes.txt", "one"], {"kind": "create", "path": "notes.txt", "action": "created"}),
        (["Read notes.txt", "Error: File not found"], {"kind": "read", "status": "error", "error_class": "not_found", "action": ""}),
        (["Plan", "[✓] Look", "[ ] Write"], {"name": "todowrite", "kind": "plan", "output": "[✓] Look\n[ ] Write"}),
    ],
)  # fmt: skip
def test_a_box_without_a_name_is_a_call(lines: list[str], found: dict[str, Any]) -> None:
    said = read(prompt("Go"), call(*lines), answer("Done"))
    assert [item.role for item in said] == ["user", "assistant", "assistant"]
    assert {name: getattr(said[1].calls[0], name) for name in found} == found
