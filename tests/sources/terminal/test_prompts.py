"""Conversations on the main screen (Claude Code) are read as what was said; the input field and the spinner are not."""

from __future__ import annotations

import textwrap

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.prompts import find_live_part
from everturn.sources.terminal.transcript import (
    DrawnSaying,
    Run,
    ScreenTalk,
    TerminalTranscript,
    TranscriptLine,
    TranscriptSegment,
)
from tests.sources.terminal.reading import artifacts, calls, spoken, written

RULE = "─" * 80
BANNER = " ▐▛███▜▌   Claude Code v2.1.197\n▝▜█████▛▘  Sonnet 4.5 · API Usage Billing\n  ▘▘ ▝▝    /srv/demo\n"
SESSION = f"""$ claude
{BANNER}

❯ fix the 会话 bug please

● Let me look.

● Read(src/main.py)
  ⎿  Read 42 lines (ctrl+o to expand)

● Update(src/main.py)
  ⎿  Updated src/main.py with 1 addition and 1 removal
       10    def main():
       11 -      pass
       11 +      run()

● Write(src/new.py)
  ⎿  Wrote 3 lines to src/new.py
     one
     … +2 lines (ctrl+o to expand)

● Bash(pytest -q
      --maxfail=1)
  ⎿  Error: Exit code 1
     1 failed

● Search(pattern: "def run", path: "src")
  ⎿  Found 3 files (ctrl+o to expand)

● weather - lookup (MCP)(city: "Oslo")
  ⎿  rain

● Two things are left:

  - the first
  - the second

✻ Baked for 1m 3s

❯ and now
  the second one

  with a blank line

✻ Frosting… (3s · esc to interrupt)

{RULE}
❯ half a sente
{RULE}
  ? for shortcuts
"""


def test_a_session_is_read_in_order() -> None:
    talk = one(written(SESSION, 80, False))
    assert [(item.role, item.kind, words(item)) for item in talk.said] == [
        ("system", "output", "$ claude"),
        ("user", "text", "fix the 会话 bug please"),
        ("assistant", "text", "Let me look."),
        ("assistant", "text", "Read(src/main.py)"),
        ("assistant", "text", "Update(src/main.py)"),
        ("assistant", "text", "Write(src/new.py)"),
        ("assistant", "text", "Bash(pytest -q\n--maxfail=1)"),
        ("assistant", "text", 'Search(pattern: "def run", path: "src")'),
        ("assistant", "text", 'weather - lookup (MCP)(city: "Oslo")'),
        ("assistant", "text", "Two things are left:\n\n- the first\n- the second"),
        ("user", "text", "and now\nthe second one\n\nwith a blank line"),
    ]
    assert (talk.dialect, talk.client, talk.workspace) == ("prompts", "2.1.197", "/srv/demo")
    assert talk.said[9].duration_ms == 63_000


def test_calls_have_their_results_and_files() -> None:
    talk = one(written(SESSION, 80, False))
    assert artifacts([talk]) == [("read", "src/main.py"), ("edited", "src/main.py"), ("created", "src/new.py")]
    found = {call.name: call for call in calls([talk])}
    assert found["Edit"].output.startswith("Updated src/main.py with 1 addition")
    assert (found["Bash"].status, found["Bash"].error_class) == ("error", "exit_status")
    assert found["Bash"].command == "pytest -q\n--maxfail=1"
    assert (found["Grep"].pattern, found["Grep"].path) == ("def run", "src")
    assert found["weather - lookup (MCP)"].arguments == {"city": "Oslo"}


def test_older_releases_are_read_too() -> None:
    text = """╭───────────────────────────────────────────────╮
│ ✻ Welcome to Claude Code!                     │
│   cwd: /srv/demo                              │
╰───────────────────────────────────────────────╯

> hello there

⏺ Hi! What shall we do?

> run it

⏺ Bash(ls)
  ⎿  a.py
     b.py

✽ Thinking… (2s · ↑ 12 tokens · esc to interrupt)

╭───────────────────────────────────────────────╮
│ > type here                                   │
╰───────────────────────────────────────────────╯
  ? for shortcuts
"""
    talk = one(written(text, 80, False))
    assert [words(item) for item in talk.said] == ["hello there", "Hi! What shall we do?", "run it", "Bash(ls)"]
    assert calls([talk])[0].output == "a.py\nb.py"
    assert talk.workspace == "/srv/demo"


def test_a_command_that_the_client_answers_is_no_prompt() -> None:
    talk = one(written("❯ hello\n\n● Hi.\n\n❯ /compact\n  ⎿  Not enough messages to compact.\n", 80, False))
    assert [(item.role, item.kind, item.text, item.starts_turn) for item in talk.said[2:]] == [
        ("system", "command", "/compact", False),
        ("system", "output", "Not enough messages to compact.", False),
    ]


def test_a_command_that_the_model_answers_is_a_prompt() -> None:
    talk = one(written("❯ hello\n\n● Hi.\n\n❯ /review\n\n● I looked at it.\n", 80, False))
    assert [(item.role, item.kind, item.starts_turn) for item in talk.said[2:]] == [
        ("user", "command", True),
        ("assistant", "text", False),
    ]


def test_a_path_at_the_beginning_is_no_command() -> None:
    talk = one(written("❯ /etc/hosts looks odd\n\n● It does.\n", 80, False))
    assert talk.said[0].kind == "text"


def test_an_interrupt_ends_what_was_running() -> None:
    text = "❯ go\n\n● Bash(sleep 100)\n  ⎿  Interrupted · What should Claude do instead?\n\n❯ stop\n\n● Stopped.\n"
    talk = one(written(text, 80, False))
    assert [(item.role, item.kind, item.interrupted) for item in talk.said] == [
        ("user", "text", False),
        ("assistant", "text", True),
        ("user", "interrupt", True),
        ("user", "text", False),
        ("assistant", "text", False),
    ]
    assert calls([talk])[0].error_class == "interrupted"


def test_a_call_without_a_result_is_open() -> None:
    talk = one(written("❯ go\n\n● Bash(sleep 100)\n  ⎿  Running…\n", 80, False))
    assert (calls([talk])[0].status, calls([talk])[0].output) == ("open", "")


def test_a_call_drawn_in_red_failed() -> None:
    lines = [
        TranscriptLine("❯ go"),
        TranscriptLine(""),
        TranscriptLine("● Update(a.py)", (Run(0, 1, 0xFF6B80),)),
        TranscriptLine("  ⎿  String not found"),
    ]
    talk = one(TerminalTranscript((TranscriptSegment(tuple(lines), False),), 80, 24))
    assert (calls([talk])[0].status, calls([talk])[0].action) == ("error", "")


def test_a_sentence_with_brackets_is_no_call() -> None:
    talk = one(
        written("❯ go\n\n● Done (see above)\n\n● Tests(all of them) pass now, as you can see here.\n", 80, False)
    )
    assert [item.calls for item in talk.said] == [(), (), ()]


def test_thoughts_and_compactions_are_told_apart_from_answers() -> None:
    text = "❯ go\n\n∴ Thinking…\n\n  They want to go.\n\n● Going.\n\n✻ Conversation compacted (ctrl+o for history)\n"
    talk = one(written(text, 80, False))
    assert [(item.role, item.kind, item.text, item.thinking) for item in talk.said] == [
        ("user", "text", "go", ""),
        ("assistant", "text", "", "They want to go."),
        ("assistant", "text", "Going.", ""),
        ("system", "compaction", "Conversation compacted (ctrl+o for history)", ""),
    ]


def test_a_shell_command_of_the_human_is_a_request() -> None:
    talk = one(written("❯ go\n\n● Gone.\n\n! ls\n  ⎿  a.py\n", 80, False))
    assert [(item.role, item.kind, item.text) for item in talk.said[2:]] == [
        ("user", "shell", "ls"),
        ("system", "output", "a.py"),
    ]


def test_menus_below_the_input_field_and_the_choices_of_a_question_are_left_out() -> None:
    text = f"❯ go\n\n● Gone.\n\n{RULE}\n❯ /ex\n{RULE}\n/exit     Exit the CLI\n/export   Export\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n"
    talk = one(written(text, 80, False))
    assert [item.text for item in talk.said if item.role in ("user", "assistant")] == ["go", "Gone."]
    assert "/export" not in repr(talk)


def test_an_input_field_without_its_lower_edge_swallows_no_answer() -> None:
    talk = one(written(f"❯ go\n\n● Gone.\n\n{RULE}\n❯ half a sente\n● And back.\n\n❯ good\n\n● Yes.\n", 80, False))
    assert [item.text for item in talk.said] == ["go", "Gone.", "And back.", "good", "Yes."]


def test_the_name_of_the_session_is_taken_from_the_last_words() -> None:
    text = "❯ go\n\n● Gone.\n\nResume this session with:\nclaude --resume 003d0896-16f2-4171-8ad4-bbfc18111811\n$ \n"
    talk = one(written(text, 80, False))
    assert talk.native_id == "003d0896-16f2-4171-8ad4-bbfc18111811"


def test_a_shell_with_the_same_prompt_sign_is_no_conversation() -> None:
    (talk,) = read_screens(written("❯ ls\na.py  b.py\n❯ cat a.py\nx = 1\n", 80, False))
    assert (talk.dialect, [(item.role, item.kind) for item in talk.said]) == ("plain", [("system", "unknown")])


def test_a_long_prompt_is_put_together_again() -> None:
    long = "please look at every file in the folder and tell me which of them nobody needs any more today"
    first, second = textwrap.wrap(long, 78)
    text = f"❯ {first}\n  {second}\n\n● I did.\n"
    assert one(written(text, 80, False)).said[0].text == long


def test_what_the_client_draws_all_over_again_is_said_once() -> None:
    first = f"$ claude\n{BANNER}\n❯ go\n\n● Going.\n\n❯ on\n\n● Going on and"
    text = f"{first}\n{BANNER}\n❯ go\n\n● Going.\n\n❯ on\n\n● Going on and on.\n\n❯ stop\n\n● Stopped.\n"
    talk = one(written(text, 80, False))
    assert [words(item) for item in talk.said] == [
        "$ claude",
        "go",
        "Going.",
        "on",
        "Going on and on.",
        "stop",
        "Stopped.",
    ]


def test_each_start_of_the_client_is_a_conversation_of_its_own() -> None:
    first = f"$ claude\n{BANNER}\n❯ go\n\n● Going.\n\nclaude --resume 003d0896-16f2-4171-8ad4-bbfc18111811\n$ claude"
    talks = read_screens(written(f"{first}\n{BANNER}\n❯ stop\n\n● Stopped.\n", 80, False))
    assert [[words(item) for item in spoken(talk)] for talk in talks] == [["go", "Going."], ["stop", "Stopped."]]
    assert [talk.native_id for talk in talks] == ["003d0896-16f2-4171-8ad4-bbfc18111811", ""]


def test_clear_and_new_begin_another_conversation() -> None:
    for command in ("/clear", "/new"):
        text = f"{BANNER}\n❯ go\n\n● Going.\n\n{BANNER}\n❯ {command}\n\n❯ stop\n\n● Stopped.\n"
        talks = read_screens(written(text, 80, False))
        assert [[words(item) for item in spoken(talk) if item.role == "user"] for talk in talks] == [["go"], ["stop"]]


def test_folded_calls_are_as_many_as_their_line_counts() -> None:
    text = """❯ look

● Reading 1 file… (ctrl+o to expand)
  ⎿  src/cli.py
● Reading 3 files… (ctrl+o to expand)
  ⎿  $ cat notes.txt
  Read 3 files (ctrl+o to expand)

● I looked.

● Searched for 2 patterns, read 1 file (ctrl+o to expand)
"""
    talk = one(written(text, 80, False))
    first, second = (item for item in talk.said if item.calls)
    assert [(call.name, call.path, call.command, call.status) for call in first.calls] == [
        ("Read", "src/cli.py", "", "ok"),
        ("Bash", "", "cat notes.txt", "ok"),
        ("Read", "", "", "ok"),
    ]
    assert [call.name for call in second.calls] == ["Grep", "Grep", "Read"]


def test_folded_calls_at_work_are_open() -> None:
    talk = one(written("❯ look\n\n  Listing 1 directory… (ctrl+o to expand)\n  ⎿  $ ls /tmp\n", 80, False))
    (call,) = calls([talk])
    assert (call.command, call.status) == ("ls /tmp", "open")


def test_a_title_whose_mark_blinks_is_a_call_and_no_part_of_the_prompt() -> None:
    talk = one(written("❯ go\n\n  Bash(sleep 9)\n  ⎿  Running…\n\n● Gone.\n", 80, False))
    assert [words(item) for item in talk.said] == ["go", "Bash(sleep 9)", "Gone."]


def test_a_capture_that_begins_inside_an_answer_has_its_end() -> None:
    text = f"  - the first thing\n  - the second\n\n❯ go on\n\n● Done.\n\n{RULE}\n❯ \n{RULE}\n  ? for shortcuts\n"
    talk = one(written(text, 80, False))
    assert [(item.role, item.text, item.fidelity) for item in talk.said] == [
        ("assistant", "- the first thing\n- the second", "partial"),
        ("user", "go on", "rendered"),
        ("assistant", "Done.", "rendered"),
    ]


def test_the_live_part_is_the_input_field_or_a_dialog_with_what_turns_above() -> None:
    said = ["❯ go", "", "● Going.", ""]
    field = [RULE, "❯ typed", "  more", RULE, "  ? for shortcuts"]
    assert find_live_part([*said, *field]) == 4
    assert find_live_part([*said, "✻ Frosting… (3s)", "  ⎿  Tip: rest", "", "❯ waits its turn", "", *field]) == 4
    assert (
        find_live_part([*said, RULE, " Bash command", "", "   ls", " ❯ 1. Yes", "   2. No", "", " Esc to cancel"]) == 4
    )
    assert find_live_part(["  7 line 7", " ❯ 1. Yes", "   2. No", " Esc to cancel · Tab to amend"]) == 0
    assert find_live_part(said) is None


def one(transcript: TerminalTranscript) -> ScreenTalk:
    """The only conversation."""
    (talk,) = read_screens(transcript)
    assert spoken(talk)
    return talk


def words(item: DrawnSaying) -> str:
    """What was said or called."""
    return item.text or item.thinking or (item.calls[0].title if item.calls else "")
