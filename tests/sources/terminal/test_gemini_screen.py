"""Screens of Gemini CLI are read as what was said and done; the input field, the status and the hints are not."""

from __future__ import annotations

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.gemini_screen import find_live_part
from everturn.sources.terminal.transcript import DrawnSaying, ScreenTalk, TerminalTranscript
from tests.sources.terminal.reading import artifacts, calls, spoken, written

WIDTH = 60
RULE = "─" * WIDTH
BANNER = """
 ▝▜▄     Gemini CLI v0.61.0
   ▝▜▄
  ▗▟▀    Authenticated with gemini-api-key /auth
 ▝▀


Tips for getting started:
1. Create GEMINI.md files to customize your interactions
2. /help for more information
"""
FIELD = f"""

 ⠴ Thinking... (esc to cancel, 3s)            ? for shortcuts
{RULE}
 YOLO Ctrl+Y

 *   Type your message or @path/to/file

 workspace (/directory)      sandbox               /model
 ~/work                      no sandbox      gemini-2.5-flash
"""


def box(*lines: str, closed: bool = True) -> str:
    inside = "\n".join(f"│ {line.ljust(WIDTH - 4)} │" for line in lines)
    return f"╭{'─' * (WIDTH - 2)}╮\n{inside}\n" + (f"╰{'─' * (WIDTH - 2)}╯\n" if closed else "")


SESSION = f"""$ gemini
{BANNER}
 > count to two, please
   and say so

{box("✓  Shell seq 1 2", "", "1", "2", "")}
✦ I counted:

   - one
   - two

 > change the notes

  ✓  ReadFile  notes.txt
  ✓  Edit  notes.txt → Accepted (+1, -1)

      1   first
      2 - second
      2 + changed

  x  WriteFile  Writing to /etc/hosts

      Error: permission denied

✕ [API Error: the model is not at home]

{FIELD}"""


def test_a_session_is_read_in_order() -> None:
    talk = one(written(SESSION, 80, False))
    assert talk.dialect == "gemini"
    assert [(item.role, item.kind, words(item)) for item in talk.said] == [
        ("system", "output", "$ gemini"),
        ("user", "text", "count to two, please\nand say so"),
        ("assistant", "text", "Shell seq 1 2"),
        ("assistant", "text", "I counted:\n\n - one\n - two"),
        ("user", "text", "change the notes"),
        ("assistant", "text", "ReadFile  notes.txt"),
        ("assistant", "text", "Edit  notes.txt → Accepted (+1, -1)"),
        ("assistant", "text", "WriteFile  Writing to /etc/hosts"),
        ("system", "notice", "[API Error: the model is not at home]"),
    ]


def test_the_beginning_of_a_prompt_that_was_left_standing_above_it_is_no_prompt() -> None:
    twice = SESSION.replace(" > count to two, please", " > count to two, please\n > count to two, please")
    assert twice != SESSION
    assert [words(item) for item in one(written(twice, 80, False)).said] == [
        words(item) for item in one(written(SESSION, 80, False)).said
    ]


def test_calls_have_their_results_and_files() -> None:
    talk = one(written(SESSION, 80, False))
    shell, read, edit, write = calls([talk])
    assert (shell.name, shell.command, shell.output, shell.status) == ("run_shell_command", "seq 1 2", "1\n2", "ok")
    assert (read.kind, edit.kind, write.kind) == ("read", "edit", "create")
    assert artifacts([talk]) == [("read", "notes.txt"), ("edited", "notes.txt")]
    assert edit.output.startswith("Accepted (+1, -1)")
    assert "2 + changed" in edit.output
    assert (write.status, write.error_class, write.path) == ("error", "permission", "/etc/hosts")


def test_several_calls_share_a_box() -> None:
    text = " > go\n\n" + box("✓  Shell echo a", "", "a", "", "", "⊶  Shell ls /b", "", "") + "\n✦ Done.\n"
    first, second = calls([one(written(text, 80, False))])
    assert (first.command, first.output, first.status) == ("echo a", "a", "ok")
    assert (second.command, second.status) == ("ls /b", "open")


def test_a_call_that_was_seen_at_work_is_the_one_that_is_done() -> None:
    text = (
        " > go\n\n  ⊶  WriteFile  Writing to a.txt\n  ✓  WriteFile  a.txt → Accepted (+1, -0)\n\n      1 a\n\n✦ Done.\n"
    )
    (call,) = calls([one(written(text, 80, False))])
    assert (call.path, call.status, call.action) == ("a.txt", "ok", "created")


def test_a_box_without_its_end_that_repeats_a_call_is_no_other_call() -> None:
    text = (
        " > go\n\n"
        + box("✓  Shell echo a", "", "a", "")
        + box("✓  Shell echo a", "", "a", closed=False)
        + "\n✦ Done.\n"
    )
    assert [call.command for call in calls([one(written(text, 80, False))])] == ["echo a"]
    twice = " > go\n\n" + box("✓  Shell echo a", "", "a", "") * 2 + "\n✦ Done.\n"
    assert [call.command for call in calls([one(written(twice, 80, False))])] == ["echo a", "echo a"]


def test_a_refused_call_and_what_was_cancelled() -> None:
    text = " > go\n\n" + box("-  Shell touch a", "") + "\nℹ Request cancelled.\n\n > on\n\n✦ Yes.\n"
    talk = one(written(text, 80, False))
    assert [(item.role, item.kind) for item in talk.said] == [
        ("user", "text"),
        ("assistant", "text"),
        ("user", "interrupt"),
        ("user", "text"),
        ("assistant", "text"),
    ]
    assert (calls([talk])[0].status, calls([talk])[0].error_class) == ("error", "rejected")


def test_clear_begins_another_conversation_and_is_no_prompt() -> None:
    text = f"{BANNER}\n > go\n\n✦ Gone.\n\n > /clear\n{BANNER}\n > again\n\n✦ Gone again.\n"
    talks = read_screens(written(text, 80, False))
    assert [[words(item) for item in spoken(talk) if item.role == "user"] for talk in talks] == [["go"], ["again"]]


def test_hints_between_the_rows_are_left_out() -> None:
    text = " > first line\n Press Ctrl+O to expand pasted text\n   second line\n\n Todo  0/3 completed (Ctrl+T to toggle)\n\n✦ Yes.\n"
    talk = one(written(text, 80, False))
    assert [item.text for item in talk.said] == ["first line\nsecond line", "Yes."]


def test_a_question_for_permission_is_an_open_call() -> None:
    text = " > go\n\n✦ I need it.\n\n" + box(
        "? Shell  touch a", "", "Allow execution of [Shell]?", "", "● 1. Allow once"
    )
    (call,) = calls([one(written(text, 80, False))])
    assert (call.command, call.status) == ("touch a", "open")


def test_a_quotation_with_a_star_is_no_conversation() -> None:
    (talk,) = read_screens(written(" > quoted\n\nplain text\n", 80, False))
    assert talk.dialect == "plain"


def test_the_live_part_begins_with_the_status_or_with_the_question() -> None:
    above = ["✦ Yes.", ""]
    rows = [*above, *FIELD.split("\n")]
    assert find_live_part(rows) == 1
    panel = [*above, " Shortcuts See /help for more", " ! shell mode", "", *FIELD.split("\n")]
    assert find_live_part(panel) == 2
    asked = [*above, *box("? Shell  touch a", "").split("\n")]
    assert find_live_part(asked) == 2
    assert find_live_part([*above, RULE, "plain text"]) is None


def one(transcript: TerminalTranscript) -> ScreenTalk:
    """The only conversation."""
    (talk,) = read_screens(transcript)
    assert spoken(talk)
    return talk


def words(item: DrawnSaying) -> str:
    """What was said or called."""
    return item.text or (item.calls[0].title if item.calls else "")
