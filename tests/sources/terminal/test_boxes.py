"""Screens of boxes (OpenCode 0.x) are read as what was said, in order, with calls and files."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import ScreenTalk, TerminalTranscript, TranscriptLine, TranscriptSegment
from tests.sources.terminal.drawing import BLUE, DARK, MUTED, Block, Row
from tests.sources.terminal.reading import artifacts, assert_found, calls, segment_of, spoken, whole, written
from tests.sources.terminal.screens import Boxes

#: Title, body, and what must be read of it.
TOOLS: list[tuple[str, list[str], dict[str, Any]]] = [
    (
        "Shell Find the command",
        ["$ which forge", "/usr/bin/forge"],
        {"name": "bash", "kind": "shell", "command": "which forge", "output": "/usr/bin/forge"},
    ),
    (
        "Shell Write a note",
        ["$ cat > note.txt <<'EOF'", "one", "two", "EOF", "done"],
        {"command": "cat > note.txt <<'EOF'\none\ntwo\nEOF", "output": "done"},
    ),
    (
        "Read src/cli.py (limit=20, offset=5)",
        ["import sys", ""],
        {
            "name": "read",
            "kind": "read",
            "path": "src/cli.py",
            "arguments": {"limit": "20", "offset": "5"},
            "action": "read",
        },
    ),
    ("Edit src/old.py", ["   14 - a", "   14 + b"], {"kind": "edit", "path": "src/old.py", "action": "edited"}),
    ("Write src/new one.py", ["print(1)"], {"kind": "create", "path": "src/new one.py", "action": "created"}),
    (
        "Grep src (pattern=^from (x|y))",
        ["Found 3 matches"],
        {"name": "grep", "kind": "search", "path": "src", "pattern": "^from (x|y)"},
    ),
    (
        "Grep *.py (path=src, pattern=a, b)",
        ["Found 1 match"],
        {"path": "src", "pattern": "a, b"},
    ),
    ("Glob **/*.py", ["src/cli.py"], {"name": "glob", "kind": "search", "pattern": "**/*.py", "path": ""}),
    ("List src", ["cli.py"], {"name": "list", "kind": "search", "path": "src", "action": ""}),
    (
        "Fetch https://example.org (format=markdown)",
        ["Example"],
        {"name": "webfetch", "kind": "fetch", "arguments": {"url": "https://example.org", "format": "markdown"}},
    ),
    ("Creating plan", ["[ ] one", "[ ] two"], {"name": "todowrite", "kind": "plan", "output": "[ ] one\n[ ] two"}),
    (
        "Task[general] Look for callers",
        ["∟ Read src/cli.py", "∟ Grep src (pattern=x)", "", "ctrl+x right navigate child sessions"],
        {
            "name": "task",
            "kind": "task",
            "agent": "general",
            "prompt": "Look for callers",
            "steps": ("Read src/cli.py", "Grep src (pattern=x)"),
            "output": "",
        },
    ),
    ("Context7_resolve library (topic=x)", ["ok"], {"name": "context7_resolve", "kind": "other"}),
]


@pytest.mark.parametrize(("title", "body", "found"), TOOLS, ids=[tool[0] for tool in TOOLS])
def test_a_tool_box_is_read_as_its_call(title: str, body: list[str], found: dict[str, Any]) -> None:
    client = Boxes()
    client.ask("do it")
    client.call(title, body, **found)
    assert_found(read_screens(whole(client)), client.truth)


def test_a_session_is_read_in_order_with_everything_it_shows() -> None:
    client = Boxes()
    client.rename("Debugging the forge")
    client.ask(
        "please run the command the way I showed you, and keep hyphens-in-long-words together when you do, thank you"
    )
    client.think("They want the command to be run.")
    client.answer("Understood, I will run it that way. " * 8, mode="Plan")
    for title, body, found in TOOLS:
        client.call(title, body, **found)
    client.answer("Done.\n\n- one\n- two")
    client.ask("thanks", "02 Jan 2006 03:04 PM")
    talks = read_screens(whole(client))
    assert_found(talks, client.truth)
    assert artifacts(talks) == [("read", "src/cli.py"), ("edited", "src/old.py"), ("created", "src/new one.py")]
    (talk,) = talks
    assert (talk.dialect, talk.titles, talk.tokens, talk.percent) == ("boxes", ("Debugging the forge",), 44_500, 21)
    assert (talk.client, talk.workspace) == ("0.13.5", "/srv/demo")
    assert [item.step for item in talk.said if item.step >= 0] == [0] * (2 + len(TOOLS)) + [1]


def test_times_are_those_of_the_recordings_own_day() -> None:
    client = Boxes()
    client.ask("late", "11:58 PM")
    client.answer("yes", time="12:03 AM")
    client.ask("long ago", "02 Jan 2006 03:04 PM")
    at = [(item.at, item.precision) for item in one(whole(client)).said]
    # 2025-12-22 23:58 and the next day 00:03, six hours west of UTC; 2006-01-02 15:04.
    assert at == [(1_766_469_480_000, "min"), (1_766_469_780_000, "min"), (1_136_235_840_000, "min")]


def test_the_zone_is_worked_out_where_only_one_fits() -> None:
    client = Boxes()
    client.ask("hello", "02:36 PM")
    seen = whole(client)
    half_an_hour = TerminalTranscript(seen.segments, 100, 30, seen.started, (seen.started or 0) + 1_800_000)
    assert one(half_an_hour).said[0].at == 1_766_435_760_000
    three_hours = TerminalTranscript(seen.segments, 100, 30, seen.started, (seen.started or 0) + 3 * 3_600_000)
    assert one(three_hours).said[0].at is None


def test_a_tool_box_that_ends_like_a_prompt_is_told_by_its_colour() -> None:
    client = Boxes()
    client.ask("show me the log")
    client.call("Shell Show it", ["$ tail -2 log", "hello", "bob (02:36 PM)"], output="hello\nbob (02:36 PM)")
    client.ask("Read src/cli.py")
    assert_found(read_screens(whole(client)), client.truth)


def test_without_colours_the_author_below_a_prompt_decides() -> None:
    client = Boxes()
    client.ask("show me the log")
    client.call("Shell Show it", ["$ tail -2 log", "bob (02:36 PM)"])
    client.ask("Read src/cli.py")
    client.abort()
    assert_found(read_screens(without_colours(whole(client))), client.truth)


def test_the_colours_of_another_theme_are_learnt() -> None:
    client = Boxes()
    client.ask("one")
    client.call("Read a.py", ["x", "bob (02:36 PM)"])
    client.call("Read b.py", ["y"])
    client.ask("two")
    swapped = {BLUE: 0x00AFAF, DARK: 0x303030}
    for block in client.blocks:
        block.rows = [[(text, swapped.get(colour or 0, colour)) for text, colour in row] for row in block.rows]
    assert_found(read_screens(whole(client)), client.truth)


def test_the_model_below_an_answer_is_nobody_who_asks() -> None:
    talk = one(
        written("  ┃  hello               ┃\n  ┃  bob (01:45 PM)      ┃\n\n     Hi.\n     Plan glm-4.6 (01:45 PM)\n")
    )
    assert [(item.role, item.text, item.author, item.mode, item.model) for item in talk.said] == [
        ("user", "hello", "bob", "", ""),
        ("assistant", "Hi.", "", "Plan", "glm-4.6"),
    ]


def test_an_author_may_have_several_names_and_a_message_any_punctuation() -> None:
    client = Boxes()
    client.ask("is it (02:36 PM) already?", author="Ada K. Lovelace")
    assert_found(read_screens(whole(client)), client.truth)


def test_a_queued_message_is_read_once() -> None:
    client = Boxes()
    client.ask("first")
    waiting = client.queue("second")
    client.answer("One.", before=waiting)
    rows = [row for block in client.blocks for row in [*block.visible(), []]]
    client.unqueue(waiting, "second")
    client.answer("Two.")
    # A stitched transcript may keep the waiting box where it was drawn first.
    rows += [row for block in client.blocks[2:] for row in [*block.visible(), []]]
    talk = one(TerminalTranscript((segment_of(rows),), 100, 30))
    assert [(item.text, item.queued) for item in talk.said] == [
        ("first", False),
        ("One.", False),
        ("second", True),
        ("Two.", False),
    ]


def test_a_queued_message_that_never_got_its_turn_stays_as_queued() -> None:
    client = Boxes()
    client.ask("first")
    client.answer("One.")
    client.queue("second")
    client.queue("second")
    assert [(item.text, item.kind, item.queued) for item in one(whole(client)).said[2:]] == [
        ("second", "queued", True),
        ("second", "queued", True),
    ]


def test_equal_messages_sent_in_the_same_minute_stay_separate() -> None:
    client = Boxes()
    client.ask("continue")
    client.answer("Yes.")
    client.ask("continue")
    client.ask("continue")
    client.answer("Yes.")
    assert_found(read_screens(whole(client)), client.truth)


def test_an_aborted_request_is_answered_by_its_abortion() -> None:
    client = Boxes()
    client.ask("long work")
    client.abort()
    client.ask("short work")
    client.answer("Done.")
    talks = read_screens(whole(client))
    assert_found(talks, client.truth)
    assert talks[0].said[1].role == "assistant"


def test_a_call_that_waits_for_permission_has_done_nothing() -> None:
    client = Boxes()
    client.ask("edit it")
    client.permission("Edit src/a.py", ["   1 + x"])
    (call,) = calls(read_screens(whole(client)))
    assert (call.status, call.action, call.output) == ("open", "", "   1 + x")


def test_a_refused_or_failed_call_touched_nothing() -> None:
    client = Boxes()
    client.ask("edit it")
    client.call("Edit src/a.py", ["The user rejected permission to use this specific tool call."], failed=True)
    client.call("Read src/b.py", ["Error: File not found: src/b.py"], failed=True)
    found = calls(read_screens(without_colours(whole(client))))
    assert [(call.status, call.error_class, call.action) for call in found] == [
        ("error", "rejected", ""),
        ("error", "not_found", ""),
    ]
    assert [call.status for call in calls(read_screens(whole(client)))] == ["error", "error"]


def test_what_is_only_announced_is_no_answer() -> None:
    client = Boxes()
    client.ask("go")
    client.blocks.append(Block(client.box(["Writing command..."], DARK)))
    waiting: list[Row] = [[("     Generating...", MUTED)], [("     Build glm-4.6 (02:36 PM)", MUTED)]]
    client.blocks.append(Block(waiting))
    assert [item.role for item in one(whole(client)).said] == ["user"]


def test_line_breaks_the_human_made_are_kept() -> None:
    client = Boxes(60)
    text = (
        "please do these:\n- the first thing, which is rather long and goes on and on\n- second\n\n"
        "and when that is done go on with the rest of it until you see the end\n    indented code that nobody should join"
    )
    client.ask(text)
    assert one(whole(client)).said[0].text == text


def test_a_message_whose_top_was_never_drawn_is_partial() -> None:
    client = Boxes()
    client.ask("\n".join(f"line {n}" for n in range(60)))
    client.answer("Read.")
    seen = whole(client, cut_top=True)
    cut = TranscriptSegment(seen.segments[0].lines[40:], True, True)
    said = one(TerminalTranscript((cut,), 100, 30)).said
    assert said[0].fidelity == "partial"
    assert said[0].text.startswith("line 39\n")
    assert said[1].fidelity == "rendered"


def test_a_message_whose_end_was_never_drawn_is_partial() -> None:
    client = Boxes()
    client.ask("one")
    client.ask("\n".join(f"line {n}" for n in range(10)))
    seen = whole(client)
    cut = TranscriptSegment(seen.segments[0].lines[:-5])
    said = one(TerminalTranscript((cut,), 100, 30)).said
    assert [(item.role, item.fidelity) for item in said] == [("user", "rendered"), ("user", "partial")]


def test_diffs_side_by_side_and_complaints_of_the_language_server_stay_with_their_edit() -> None:
    client = Boxes(140)
    complaint = 'Error [262:93] "logs" is possibly unbound'
    client.ask("fix it")
    client.call(
        "Edit src/forge.py",
        [
            "  14 - from designer import draft                     14 + from .designer import draft",
            "  15   import sys                                     15   import sys",
            "",
            complaint,
            "",
            "Error [300:1] undefined name",
        ],
        path="src/forge.py",
        action="edited",
        diagnostics=(complaint, "Error [300:1] undefined name"),
    )
    assert_found(read_screens(whole(client)), client.truth)


def test_files_sent_along_are_no_part_of_the_words() -> None:
    client = Boxes()
    lines = ["look at this", "", " img  screen.png", " txt  notes.txt", "", "ada (02:36 PM)"]
    client.show(Block(client.box(lines, BLUE)))
    (said,) = one(whole(client)).said
    assert (said.text, said.attached) == ("look at this", ("screen.png", "notes.txt"))


def test_calls_drawn_without_details_are_found_below_the_answer() -> None:
    text = "     I looked.\n\n     ∟ Read src/a.py\n     ∟ Shell Run tests\n     Build m-1 (01:00 PM)"
    talk = one(written(f"  ┃  go              ┃\n  ┃  bob (01:00 PM)  ┃\n\n{text}"))
    said = talk.said[1]
    assert (said.text, [call.name for call in said.calls]) == ("I looked.", ["read", "bash"])


def test_what_is_typed_at_a_password_prompt_is_nowhere() -> None:
    client = Boxes()
    client.ask("install it")
    client.call("Shell Install", ["$ sudo apt install x", "[sudo] password for ada: hunter2"])
    client.typed = "[sudo] password for ada: hunter2"
    rows = [row for block in client.blocks for row in block.visible()] + client.footer()
    talk = one(TerminalTranscript((segment_of(rows),), 100, 30))
    assert "hunter2" not in repr(talk)
    assert "[sudo] password for ada:" in talk.said[1].calls[0].output


def test_the_input_field_and_the_header_are_no_messages() -> None:
    client = Boxes()
    client.ask("hello")
    client.typed = "half a sente"
    rows = client.header() + [row for block in client.blocks for row in block.visible()] + [[]] + client.footer()[:3]
    assert [item.text for item in one(TerminalTranscript((segment_of(rows),), 100, 30)).said] == ["hello"]


def test_an_answer_that_was_cut_off_by_the_end_is_marked() -> None:
    client = Boxes()
    client.ask("hello")
    client.answer("I am about to")
    client.working = True
    talk = one(whole(client))
    assert talk.working
    assert [item.interrupted for item in talk.said] == [False, True]


def test_a_conversation_after_new_is_another_one() -> None:
    first, second = Boxes(), Boxes()
    first.rename("Fixing the parser")
    first.ask("one")
    first.answer("One.")
    second.rename("Writing docs")
    second.ask("two")
    seen = TerminalTranscript((*whole(first).segments, *whole(second).segments), 100, 30)
    talks = read_screens(seen)
    assert [[item.text for item in talk.said] for talk in talks] == [["one", "One."], ["two"]]
    assert [talk.titles for talk in talks] == [("Fixing the parser",), ("Writing docs",)]


def test_a_title_that_changes_does_not_end_a_conversation() -> None:
    client = Boxes()
    client.ask("one")
    before = whole(client).segments[0]
    client.answer("One.")
    client.rename("Counting")
    client.ask("two")
    after = whole(client, cut_top=True).segments[0]
    (talk,) = read_screens(TerminalTranscript((before, after), 100, 30))
    assert [item.text for item in talk.said] == ["one", "One.", "two"]
    assert talk.titles == ("New session", "Counting")


def test_what_is_seen_again_after_a_menu_is_the_same() -> None:
    client = Boxes()
    client.ask("one")
    client.answer("One.")
    client.ask("continue")
    client.answer("Two.")
    before = whole(client).segments[0]
    client.ask("continue")
    after = whole(client).segments[0]
    cut = TranscriptSegment(after.lines[6:], True, True)
    (talk,) = read_screens(TerminalTranscript((before, cut), 100, 30))
    assert [item.text for item in talk.said] == ["one", "One.", "continue", "Two.", "continue"]


def test_the_end_of_a_known_message_at_the_top_of_a_screen_is_no_other_message() -> None:
    client = Boxes()
    client.ask("one")
    client.answer("One.")
    client.ask("first line\nsecond line")
    before = whole(client).segments[0]
    client.answer("Two.")
    lines = whole(client).segments[0].lines
    cut = TranscriptSegment(lines[next(n for n, line in enumerate(lines) if "second line" in line.text) :], True, True)
    (talk,) = read_screens(TerminalTranscript((before, cut), 100, 30))
    assert [(item.text, item.fidelity) for item in talk.said] == [
        ("one", "rendered"),
        ("One.", "rendered"),
        ("first line\nsecond line", "rendered"),
        ("Two.", "rendered"),
    ]


def test_an_answer_that_went_on_in_the_next_segment_is_one() -> None:
    client = Boxes()
    client.ask("one")
    client.answer("It begins\nhere")
    before = whole(client).segments[0]
    client.blocks[-1].rows[3:3] = [[("     and ends there.", None)]]
    (talk,) = read_screens(TerminalTranscript((before, *whole(client, cut_top=True).segments), 100, 30))
    assert [item.text for item in talk.said] == ["one", "It begins\nhere\nand ends there."]


def test_going_back_to_an_earlier_session_goes_on_with_it() -> None:
    first, second = Boxes(), Boxes()
    first.rename("Parser")
    first.ask("one")
    first.answer("One.")
    second.rename("Docs")
    second.ask("two")
    began = whole(first).segments[0]
    first.ask("three")
    seen = TerminalTranscript((began, *whole(second).segments, *whole(first).segments), 100, 30)
    talks = read_screens(seen)
    assert [[item.text for item in talk.said] for talk in talks] == [["one", "One.", "three"], ["two"]]


def test_what_a_shell_printed_around_it_stays_with_the_conversation() -> None:
    client = Boxes()
    client.ask("one")
    before = TranscriptSegment((TranscriptLine("$ opencode"),), False)
    after = TranscriptSegment((TranscriptLine("Continue  opencode -s ses_0abc"), TranscriptLine("$ exit")), False)
    (talk,) = read_screens(TerminalTranscript((before, *whole(client).segments, after), 100, 30))
    assert [(item.kind, item.text) for item in talk.said] == [
        ("output", "$ opencode"),
        ("text", "one"),
        ("output", "Continue  opencode -s ses_0abc\n$ exit"),
    ]
    assert talk.native_id == "ses_0abc"


def test_file_tools_drawn_without_a_box_are_calls_and_prose_is_not() -> None:
    talk = one(
        written(
            "┃ fix it             ┃\n┃ alice (10:32 AM)   ┃\n\n  Read src/mod.py\n  Read the docs first.\n  Edit src/mod.py\n  DONE"
        )
    )
    assert [item.text or item.calls[0].title for item in talk.said] == [
        "fix it",
        "Read src/mod.py",
        "Read the docs first.",
        "Edit src/mod.py",
        "DONE",
    ]
    assert artifacts([talk]) == [("read", "src/mod.py"), ("edited", "src/mod.py")]


def test_lines_and_bytes_lead_back_to_the_recording() -> None:
    client = Boxes()
    client.ask("one")
    client.answer("One.")
    seen = whole(client)
    lines = [line for segment in seen.segments for line in segment.lines]
    for item in spoken(one(seen)):
        first, last = item.lines
        assert item.text in "\n".join(line.text for line in lines[first : last + 1])
        assert item.bytes == (lines[first].first, lines[last].last)


def test_reverted_messages_leave_a_notice() -> None:
    client = Boxes()
    client.ask("one")
    client.show(
        Block(client.box(["2 messages reverted, 1 tool call reverted", "ctrl+x r (or /redo) to restore"], DARK))
    )
    assert [(item.role, item.kind) for item in one(whole(client)).said] == [("user", "text"), ("system", "notice")]


def one(transcript: TerminalTranscript) -> ScreenTalk:
    """The only conversation."""
    (talk,) = read_screens(transcript)
    return talk


def without_colours(transcript: TerminalTranscript) -> TerminalTranscript:
    """As `tmux capture-pane` would give it."""
    segments = (
        TranscriptSegment(tuple(TranscriptLine(line.text) for line in segment.lines), title=segment.title)
        for segment in transcript.segments
    )
    return TerminalTranscript(tuple(segments), transcript.columns, transcript.rows)
