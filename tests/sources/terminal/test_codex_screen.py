"""Screens of Codex are divided into conversation, input field and the rest, and read as what was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.sources.terminal.codex_screen import find_layout, looks_like_codex, read_codex
from everturn.sources.terminal.frames import ScreenLayout
from everturn.sources.terminal.transcript import DrawnSaying
from tests.sources.terminal.sketches import Line, paint_rows, transcribe_rows

GREEN, RED, TEAL = 0x00CD00, 0xCD0000, 0x87D7D7
HEIGHT = 24
BANNER = ["", "  >_ OpenAI Codex (v0.166.0)", "     ~/shop", "  permissions: YOLO mode", "", ""]
ASKED = ["› Why is it slow?", "", "", "• It reads every file twice.", "", "  Worked for 3s • 18:54"]


def screen(
    above: Sequence[Line], typed: str = "Ask Codex to do anything", *, hint: str = "  ? for shortcuts"
) -> list[Line]:
    """A whole screen: what stands above, the input field at the bottom."""
    field: list[Line] = [f"› {typed}", "", "  fine-model high · ~/shop", hint]
    return [*above, *[""] * (HEIGHT - len(above) - len(field)), *field]


def divide(lines: Sequence[Line]) -> ScreenLayout:
    found = find_layout(paint_rows(lines))
    assert found is not None
    return found


def texts(found: ScreenLayout) -> list[str]:
    return [row.text for row in found.rows if row.text]


def read(*lines: Line) -> list[DrawnSaying]:
    talks = read_codex(transcribe_rows(lines), 80)
    assert len(talks) <= 1
    return talks[0] if talks else []


def one_call(*lines: Line) -> Any:
    said = read(*lines)
    assert [len(item.calls) for item in said] == [1]
    return said[0].calls[0]


# the layout -----------------------------------------------------------------------------------------------------------
def test_a_conversation_is_what_stands_between_banner_and_input_field() -> None:
    found = divide(screen([*BANNER, *ASKED]))
    assert (found.state, found.typed) == ("talk", "")
    assert texts(found) == [line for line in ASKED if line]
    assert found.title == ">_ OpenAI Codex (v0.166.0)"
    assert found.footer.splitlines()[:2] == ["fine-model high", "~/shop"]


def test_before_the_first_prompt_no_conversation_is_open() -> None:
    assert divide(screen(BANNER)).state == "home"
    assert divide(screen(["", "", "", "          ⣀⣤⣤⣤⣀⣀", "        ⣠⣶⣿⣿⣿⣿⣿⣿"])).state == "home"


def test_what_is_typed_is_no_part_of_the_conversation() -> None:
    lines = screen([*BANNER, *ASKED])
    lines[-4:-3] = ["› and then", "  the second line"]
    del lines[len(BANNER) + len(ASKED)]
    found = divide(lines)
    assert found.typed == "and then\nthe second line"
    assert texts(found) == [line for line in ASKED if line]


def test_the_prompt_repeated_in_the_first_row_is_left_out() -> None:
    found = divide(screen(["› Why is it slow?", "  the end of an answer", "", *ASKED]))
    assert texts(found)[0] == "  the end of an answer"
    assert texts(found).count("› Why is it slow?") == 1


def test_the_status_and_waiting_messages_are_left_out() -> None:
    waiting: list[Line] = [
        *ASKED,
        "",
        "◦ Working (1m 03s • esc to interrupt) · 1 background terminal running",
        "",
        "• Queued follow-up inputs",
        "  ↳ and the tests?",
        "    shift+← edit last queued message",
    ]
    above = [*[""] * (HEIGHT - 4 - 2 - len(waiting)), *waiting]
    assert "esc to interrupt" in divide(screen(above)).footer
    assert texts(divide(screen(above))) == [line for line in ASKED if line]
    without_status = [line for line in above if "Working" not in line]
    assert texts(divide(screen(["", *without_status]))) == [line for line in ASKED if line]


def test_a_tip_is_left_out_and_output_that_looks_like_one_is_not() -> None:
    tip = "  └ Tip: Use /rename to name your threads."
    assert tip not in texts(divide(screen([*BANNER, *ASKED[:4], tip, *ASKED[4:]])))
    ran: Line = ("• Ran cat tips", {0: GREEN})
    assert tip in texts(divide(screen([*BANNER, *ASKED[:3], ran, tip, "", "  Worked for 3s • 18:54"])))


def test_lists_look_the_same_with_and_without_blank_rows() -> None:
    item = [("  • one", {2: TEAL}), ("  • two", {2: TEAL})]
    close = divide(screen([*BANNER, *ASKED[:4], *item, ""]))
    loose = divide(screen([*BANNER, *ASKED[:4], "", item[0], "", item[1], ""]))
    assert [row.text for row in close.rows[:6]] == [row.text for row in loose.rows[:6]]


def test_a_list_without_its_answer_is_not_read() -> None:
    assert divide(screen([*BANNER, "› Why?", "", ("  • one", {2: TEAL})])).state == "covered"


def test_the_scrolled_view_is_read() -> None:
    above = [*ASKED, *[""] * (HEIGHT - 6 - len(ASKED)), "                    ↓ Back to bottom · esc"]
    found = divide(screen(above, hint="  enter/esc latest · ? shortcuts"))
    assert found.state == "talk"
    assert "Back to bottom" not in "".join(texts(found))


@pytest.mark.parametrize(
    "lines",
    [
        screen([*[""] * (HEIGHT - 6), "› /new  start a new chat"], "/new", hint=""),
        [*ASKED, "", "", "  Would you like to run the following command?", "", "  $ touch x", "", "› 1. Yes (y)", "  2. No (esc)", "", "  Press enter to confirm or esc to cancel"],
        [*ASKED, "", "", "  Select Model and Effort", "", "› 1. fine-model", "  2. other-model", "↓", "  enter select · esc back"],
        ["/ T R A N S C R I P T / / / / / / / / / / /", *ASKED, "~", "────── 100% ─", " ↑/↓ to scroll", " q close"],
    ],
    ids=["commands", "permission", "models", "pager"],
)  # fmt: skip
def test_menus_dialogs_and_the_pager_cover_the_conversation(lines: list[Line]) -> None:
    found = divide(lines)
    assert (found.state, list(found.rows)) == ("covered", [])


def test_screens_of_others_are_not_divided() -> None:
    assert find_layout(paint_rows(["$ ls", "notes.txt", "› a file with a strange name"])) is None
    assert find_layout(paint_rows(["", "  ┃ >", ""])) is None


# the conversation -----------------------------------------------------------------------------------------------------
def test_prompts_answers_and_the_time_a_turn_took() -> None:
    said = read("› Why is it slow?", "", "  It was not yesterday.", "", "", *ASKED[3:])
    assert [(item.role, item.text) for item in said] == [
        ("user", "Why is it slow?\n\nIt was not yesterday."),
        ("assistant", "It reads every file twice."),
    ]
    assert said[0].starts_turn
    assert said[1].duration_ms == 3000


def test_a_wrapped_prompt_is_one_line_again() -> None:
    words = "word " * 14 + "ending"
    assert read(f"› {words}", "  of it", "", "", "• Yes.")[0].text == f"{words} of it"


def test_the_end_of_a_prompt_is_no_prompt() -> None:
    said = read("  the last line of a long text", "", "", "• Yes.")
    assert [(item.role, item.fidelity) for item in said] == [("system", "partial"), ("assistant", "rendered")]


def test_the_end_of_an_answer_is_a_part_of_one() -> None:
    said = read("  the last words.", "", "  Worked for <1s • 18:54", "", "", "› More", "", "", "• Yes.")
    assert [(item.role, item.fidelity) for item in said[:2]] == [("assistant", "partial"), ("user", "rendered")]


def test_a_list_below_a_prompt_is_not_what_the_human_wrote() -> None:
    said = read("› Why?", "", ("  • because", {2: TEAL}))
    assert [(item.role, item.text) for item in said] == [("user", "Why?"), ("assistant", "• because")]


def test_notices_are_no_prompts() -> None:
    said = read(
        "✔ You approved codex to run ls this time",
        "",
        "⚠ The model is not known.",
        "  It may be slow.",
        "",
        "• Model changed to fine-model high for Plan mode.",
        "",
        "• Context compacted · 2s",
        "",
        "/status",
        "",
        "  >_ OpenAI Codex (v0.166.0)",
        "",
        "  Model:      fine-model",
    )
    assert {item.role for item in said} == {"system"}
    assert [item.kind for item in said] == ["notice", "notice", "notice", "compaction", "notice"]


def test_the_input_field_is_no_prompt() -> None:
    assert read("› Ask Codex to do anything", "", "  fine-model high · ~/shop") == []
    assert read("• Yes.", "", "› half a sen", "", "  fine-model high · ~/shop", "  ? for shortcuts")[1:] == []
    assert len(read("› Which file", "", "  do you want to view")) == 1
    assert read("› Ask Codex to do anything", "", "", "  ?") == []


def test_an_answer_without_its_mark_as_yet_is_no_part_of_the_prompt_that_was_drawn_before() -> None:
    rows = transcribe_rows(["› Again, please", "", "  Early"])
    late = replace(rows[2], line=replace(rows[2].line, first=900, last=950))
    (said,) = read_codex([*rows[:2], late], 80)
    assert [(item.role, item.text) for item in said] == [("user", "Again, please"), ("assistant", "Early")]


def test_a_refused_command_failed_because_of_it() -> None:
    said = read("✗ You canceled the request to run ls", "", "• Exited (status 1) ls", "  └ (no output)")
    assert [call.error_class for item in said for call in item.calls] == ["rejected"]


def test_the_status_is_not_said() -> None:
    assert read("• Working (3s • esc to interrupt)", "", "• Yes.")[0].text == "Yes."


def test_every_start_is_a_conversation() -> None:
    talks = read_codex(transcribe_rows([*BANNER, *ASKED, "", "$", "", *BANNER, *ASKED]), 80)
    assert [[item.role for item in said if item.role != "system"] for said in talks] == [["user", "assistant"]] * 2


def test_an_interrupt_stops_the_last_answer() -> None:
    said = read("› Go", "", "", "• It beg", "", "■ Conversation interrupted - use /feedback if something went wrong")
    assert [(item.kind, item.interrupted) for item in said] == [("text", False), ("text", True), ("interrupt", True)]


def test_a_failed_request_is_a_notice_in_place_of_the_answer() -> None:
    said = read("› Go", "", "", ("■ The model is not at home", {0: RED}))
    assert [(item.role, item.kind) for item in said] == [("user", "text"), ("assistant", "notice")]


def test_a_command_the_human_ran_is_no_call() -> None:
    said = read("• You ran ls", "  └ notes.txt")
    assert [(item.role, item.kind, item.text) for item in said] == [
        ("user", "shell", "ls"),
        ("system", "output", "notes.txt"),
    ]


# calls ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([("• Ran seq 1 60", {0: GREEN}), "  └ 59", "    60", "    + 58 lines (^t to expand)"], {"kind": "shell", "command": "seq 1 60", "output": "59\n60", "status": "ok"}),
        ([("• Ran true", {0: GREEN}), "  └ (no output)"], {"command": "true", "output": ""}),
        ([("• Ran ls", {0: RED}), "  └ ls: no such file"], {"status": "error", "error_class": "exit_status"}),
        (["• Exited (status 2) ls /x", "  └ (no output)"], {"command": "ls /x", "status": "error"}),
        ([("• Running sleep 9", {10: TEAL})], {"command": "sleep 9", "status": "open"}),
        ([("• Ran for n in 1 2", {0: GREEN}), "  │ do echo $n", "  └ 1"], {"command": "for n in 1 2\ndo echo $n", "output": "1"}),
        (["$ seq 1 2", "1", "2", "✓ • 12ms"], {"command": "seq 1 2", "output": "1\n2", "status": "ok"}),
        (["$ cat x", "    y", "› no prompt", "", "• no answer", "✗ (1) • 0ms"], {"command": "cat x\ny", "status": "error"}),
        (["• Explored", "  └ Read notes.txt", "    + Show details"], {"kind": "read", "path": "notes.txt", "action": "read"}),
        (["• Exploring", "  └ Read notes.txt"], {"kind": "read", "status": "open", "action": ""}),
        (["• Explored · 1 nonzero exit", "  └ List src (exit 2)"], {"kind": "search", "path": "src", "status": "error"}),
        (["• Explored", "  └ Search def main in src"], {"pattern": "def main", "path": "src"}),
        (["• Added a b.txt (+2 -0)", "    1 +one", "    2 +two"], {"kind": "create", "path": "a b.txt", "action": "created", "output": "1 +one\n2 +two"}),
        (["• Edited a.txt (+1 -1)", "    1 -one"], {"kind": "edit", "path": "a.txt", "action": "edited"}),
        (["• Deleted a.txt (+0 -1)"], {"kind": "delete", "action": "deleted"}),
        (["• Updated Plan", "  └ ✔ Look", "    □ Write"], {"name": "update_plan", "kind": "plan", "output": "✔ Look\n□ Write"}),
        (["• Called tracker.list({})", "  └ none"], {"name": "tracker.list", "kind": "other", "output": "none"}),
    ],
)  # fmt: skip
def test_an_item_is_read_as_its_call(lines: list[Line], found: dict[str, Any]) -> None:
    call = one_call(*lines)
    assert {name: getattr(call, name) for name in found} == found


def test_one_item_may_be_several_calls() -> None:
    said = read("• Explored", "  └ Read a.txt, b.txt", "    List src")
    assert [call.path for call in said[0].calls] == ["a.txt", "b.txt", "src"]
    said = read("• Edited 2 files (+2 -1)", "  └ a.txt (+1 -1)", "    1 +x", "  └ b.txt (+1 -0)", "    1 +y")
    assert [(call.path, call.output) for call in said[0].calls] == [("a.txt", "1 +x"), ("b.txt", "1 +y")]


def test_an_edit_of_files_that_are_not_shown_is_one_call() -> None:
    call = one_call("• Edited 2 files (+2 -1)")
    assert (call.kind, call.path, call.action) == ("edit", "", "")


def test_a_sentence_that_begins_like_a_call_is_a_sentence() -> None:
    said = read("• Ran the tests, all is well.", "", "• Running out of ideas.", "", "• Called it a day.")
    assert [len(item.calls) for item in said] == [0, 0, 0]


def test_a_proposed_plan_is_an_answer() -> None:
    assert read("• Proposed Plan", "", "  Read the index once.")[0].text == "Proposed Plan\n\nRead the index once."


def test_a_transcript_without_its_banner_is_not_claimed() -> None:
    assert looks_like_codex(transcribe_rows(ASKED)) == 0
    assert looks_like_codex(transcribe_rows([*BANNER, *ASKED])) == 2
