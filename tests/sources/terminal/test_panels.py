"""Screens of panels (OpenCode 1.x) are read as what was said: the colour of a bar decides who speaks."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import ScreenTalk, TerminalTranscript, TranscriptLine, TranscriptSegment
from tests.sources.terminal.drawing import BLACK, BLUE, MUTED, PURPLE, RED, TEXT, Block, Row
from tests.sources.terminal.reading import artifacts, assert_found, calls, segment_of, whole, written
from tests.sources.terminal.screens import Panels

#: A panel's lines, and what must be read of it.
BLOCKS: list[tuple[list[str], dict[str, Any]]] = [
    (
        ["$ uname -a", "", "Linux box 6.1"],
        {"name": "bash", "kind": "shell", "command": "uname -a", "output": "Linux box 6.1"},
    ),
    (
        ["   # Run the tests in lib", "", "$ pytest -q", "", "1 passed", "…", "", "Click to expand"],
        {
            "title": "# Run the tests in lib",
            "command": "pytest -q",
            "arguments": {"description": "Run the tests in lib"},
            "output": "1 passed\n…",
        },
    ),
    (
        ["   # Wrote src/a.py", "", "  1 x = 1"],
        {"name": "write", "kind": "create", "path": "src/a.py", "action": "created"},
    ),
    (["← Edit README.md", "", " 1   a", " 2 + b"], {"kind": "edit", "path": "README.md", "action": "edited"}),
    (["   # Created b.py", "", " 1 + b"], {"name": "patch", "path": "b.py", "action": "created"}),
    (["← Patched c.py", "", " 1 + b"], {"kind": "edit", "path": "c.py", "action": "edited"}),
    (["   # Deleted d.py", "", "-3 lines"], {"kind": "delete", "path": "d.py", "action": "deleted"}),
    (["   # Moved e.py → f.py", "", " 1   b"], {"path": "f.py", "arguments": {"from": "e.py"}, "action": "created"}),
    (["   # Todos", "", "[•] one", "[ ] two"], {"name": "todowrite", "kind": "plan", "output": "[•] one\n[ ] two"}),
    (["   # Questions", "", "Which one?", "the first"], {"name": "question", "kind": "ask"}),
    (["   # weather_lookup [city=Oslo]", "", "rain"], {"name": "weather_lookup", "arguments": {"city": "Oslo"}}),
]
#: A call in one line, and what must be read of it.
LINES: list[tuple[str, dict[str, Any]]] = [
    (
        "→ Read src/cli.py [limit=20]",
        {"kind": "read", "path": "src/cli.py", "arguments": {"limit": "20"}, "action": "read"},
    ),
    ("← Edit src/cli.py", {"kind": "edit", "path": "src/cli.py", "status": "open", "action": ""}),
    (
        '✱ Glob "**/*.py" in src (3 matches)',
        {"name": "glob", "pattern": "**/*.py", "path": "src", "output": "3 matches"},
    ),
    ('✱ Grep "def \\w+" (1 match)', {"name": "grep", "kind": "search", "pattern": "def \\w+", "path": ""}),
    ("→ List src", {"name": "list", "path": "src", "action": ""}),
    ("% WebFetch https://example.org", {"kind": "fetch", "arguments": {"url": "https://example.org"}}),
    ('◈ Exa Web Search "how to" (8 results)', {"kind": "search", "pattern": "how to"}),
    ("⚙ weather_lookup [city=Oslo]", {"name": "weather_lookup", "kind": "other", "arguments": {"city": "Oslo"}}),
    ("│ Explore Task — find callers", {"kind": "task", "agent": "explore", "prompt": "find callers"}),
    ("✓ General Subagent — find callers", {"kind": "task", "agent": "general", "prompt": "find callers"}),
    ('→ Skill "pdf"', {"name": "skill", "arguments": {"about": "pdf"}}),
    ("→ Asked 2 questions", {"name": "question", "kind": "ask"}),
]


@pytest.mark.parametrize(("lines", "found"), BLOCKS, ids=[block[0][0].strip() for block in BLOCKS])
def test_a_tool_panel_is_read_as_its_call(lines: list[str], found: dict[str, Any]) -> None:
    client = Panels()
    client.ask("do it")
    client.block(lines, title=lines[0].strip(), **{key: value for key, value in found.items() if key != "title"})
    client.end(ms=36_100)
    assert_found(read_screens(whole(client)), client.truth)


@pytest.mark.parametrize(("line", "found"), LINES, ids=[line[0] for line in LINES])
def test_a_line_with_an_icon_is_read_as_its_call(line: str, found: dict[str, Any]) -> None:
    client = Panels()
    client.ask("do it")
    client.inline(line, **found)
    client.end(ms=36_100)
    assert_found(read_screens(whole(client)), client.truth)


def test_a_session_is_read_in_order_with_everything_it_shows() -> None:
    client = Panels(110, 32)
    client.ask(
        "Run uname and say what machine this is, in one sentence and without any of those long explanations of yours"
    )
    client.think("Simple.")
    for lines, found in BLOCKS:
        client.block(lines, title=lines[0].strip(), **{key: value for key, value in found.items() if key != "title"})
    client.answer("It is a Mac. " * 20)
    client.end("1m 5s", ms=65_000)
    client.ask("And now?")
    for line, found in LINES:
        client.inline(line, **found)
    client.answer("→ this is prose with an arrow\n\n$ and this is a line of code")
    client.end("157ms", ms=157)
    client.ask("Edit it")
    client.interrupt()
    client.ask("again")
    client.ask("again")
    client.answer("Done.")
    client.end("2h 3m", ms=7_380_000)
    talks = read_screens(whole(client))
    assert_found(talks, client.truth)
    assert artifacts(talks) == [
        ("created", "src/a.py"),
        ("edited", "README.md"),
        ("created", "b.py"),
        ("edited", "c.py"),
        ("deleted", "d.py"),
        ("created", "f.py"),
        ("read", "src/cli.py"),
    ]
    assert (talks[0].dialect, talks[0].tokens, talks[0].percent) == ("panels", 9_200, 1)


def test_the_colour_of_the_bar_decides_not_the_words() -> None:
    client = Panels()
    client.ask("$ ls is what I typed, why did it fail?")
    client.answer("Because.")
    client.end(ms=36_100)
    client.agent = PURPLE
    client.ask("# Wrote this as a heading")
    client.block(["please look at this line", "", "$ echo"], title="please look at this line", command="echo")
    client.end(mode="Plan", ms=36_100)
    assert_found(read_screens(whole(client)), client.truth)


def test_colours_of_terminals_with_few_colours_are_learnt_from_the_ends_of_turns() -> None:
    client = Panels()
    client.ask("one")
    client.block(["please", "", "$ echo"], title="please", command="echo")
    client.end(ms=36_100)
    fewer = {BLUE: 0x5FAFFF, BLACK: 0x080808, MUTED: 0x7F7F7F}
    for block in client.blocks:
        block.rows = [[(text, fewer.get(colour or 0, colour)) for text, colour in row] for row in block.rows]
    assert_found(read_screens(whole(client)), client.truth)


def test_a_grey_theme_is_told_by_the_colour_of_its_agents() -> None:
    client = Panels()
    client.agent = 0xC0C0C0
    client.ask("one")
    client.block(["please", "", "$ echo"], title="please", command="echo")
    client.end(ms=36_100)
    assert_found(read_screens(whole(client)), client.truth)


def test_without_colours_what_looks_like_a_tool_is_one() -> None:
    text = "  ┃\n  ┃  Run it\n  ┃\n\n  ┃\n  ┃  $ uname -a\n  ┃\n  ┃  Linux\n  ┃\n\n     It ran.\n\n     ▣  Build · Model One · 36.1s"
    talk = one(written(text))
    assert [(item.role, item.text, item.duration_ms) for item in talk.said] == [
        ("user", "Run it", None),
        ("assistant", "", None),
        ("assistant", "It ran.", 36_100),
    ]
    assert talk.said[1].calls[0].command == "uname -a"


def test_an_end_without_a_time_leaves_the_answer_unfinished() -> None:
    client = Panels()
    client.ask("one")
    client.answer("I beg")
    client.end("")
    client.ask("two")
    client.end("")
    client.ask("three")
    said = one(whole(client)).said
    assert [(item.role, item.kind, item.interrupted) for item in said] == [
        ("user", "text", False),
        ("assistant", "text", True),
        ("user", "text", False),
        ("assistant", "interrupt", True),
        ("user", "text", False),
    ]


def test_a_queued_message_is_read_once() -> None:
    client = Panels()
    client.ask("first")
    waiting = client.queue("second")
    client.answer("One.", before=waiting)
    rows = [row for block in client.blocks for row in [*block.visible(), []]]
    client.unqueue(waiting, "second")
    rows += [row for block in client.blocks[2:] for row in [*block.visible(), []]]
    talk = one(TerminalTranscript((segment_of(rows),), 100, 30))
    assert [(item.text, item.kind, item.queued) for item in talk.said] == [
        ("first", "text", False),
        ("One.", "text", False),
        ("second", "text", True),
    ]


def test_a_question_for_permission_leaves_the_call_open() -> None:
    text = (
        "  ┃  Edit README.md\n\n     → Read README.md\n     ← Edit README.md\n\n     ▣  Build · Model One\n\n"
        "  ┃\n  ┃  △ Permission required\n  ┃    → Edit README.md\n  ┃\n  ┃  1   hello\n  ┃   Allow once   Allow always   Reject"
    )
    talk = one(written(text))
    assert [(item.role, item.kind) for item in talk.said] == [
        ("user", "text"),
        ("assistant", "text"),
        ("assistant", "text"),
        ("system", "notice"),
    ]
    assert [(call.status, call.action) for call in calls([talk])] == [("ok", "read"), ("open", "")]


def test_the_sidebar_is_cut_off_and_tells_title_and_tokens() -> None:
    client = Panels(140, 32)
    side = ["Fixing the parser", "", "Context", "12,345 tokens", "6% used", "$0.10 spent", "", "LSP", "• pyright"]
    client.side = side
    client.ask(
        "please look at all of this text, which is long enough to be wrapped where the conversation ends, not the screen"
    )
    client.answer("Some words that go on for a while. " * 10)
    client.end(ms=36_100)
    rows = [row for block in client.blocks for row in [*block.visible(), []]]
    beside: list[Row] = [
        [*row, (" " * (98 - sum(len(text) for text, _ in row)), None), (f"  {side[n]}" if n < len(side) else "", TEXT)]
        for n, row in enumerate(rows)
    ]
    talks = read_screens(TerminalTranscript((segment_of(beside),), 140, 32))
    assert_found(talks, client.truth)
    assert (talks[0].titles, talks[0].tokens, talks[0].percent) == (("Fixing the parser",), 12_345, 6)


def test_a_wide_screen_without_a_sidebar_is_not_cut() -> None:
    client = Panels(140, 32)
    client.ask("short")
    client.answer("Some words that go on for a while. " * 10)
    client.end(ms=36_100)
    assert_found(read_screens(whole(client)), client.truth)


def test_the_input_field_and_the_last_lines_are_no_messages() -> None:
    client = Panels()
    client.ask("hello")
    client.answer("Hi.")
    client.end(ms=36_100)
    client.typed = "half a sente"
    rows = [row for block in client.blocks for row in [*block.visible(), []]] + client.footer()
    assert_found(read_screens(TerminalTranscript((segment_of(rows),), 100, 30)), client.truth)


def test_thoughts_that_are_not_shown_are_noted_as_such() -> None:
    client = Panels()
    client.ask("hello")
    client.blocks.append(Block([[("     + Thought: 1.5s", MUTED)]]))
    client.answer("Hi.")
    said = one(whole(client)).said
    assert [(item.kind, item.text, item.fidelity) for item in said[1:]] == [
        ("notice", "+ Thought: 1.5s", "partial"),
        ("text", "Hi.", "rendered"),
    ]


def test_a_compaction_is_marked() -> None:
    client = Panels()
    client.ask("hello")
    client.blocks.append(Block([[("  ───────────── Compaction ─────────────", MUTED)]]))
    assert [item.kind for item in one(whole(client)).said] == ["text", "compaction"]


def test_a_failure_of_the_model_is_no_prompt() -> None:
    client = Panels()
    client.ask("hello")
    client.end("")
    client.blocks.insert(1, Block(client.panel(["Overloaded"], RED, MUTED)))
    said = one(whole(client)).said
    assert [(item.role, item.kind, item.text) for item in said] == [
        ("user", "text", "hello"),
        ("assistant", "notice", "Overloaded"),
    ]


def test_what_stands_below_a_call_belongs_to_it() -> None:
    rows: list[Row] = [
        [("     │ Explore Task — find callers", MUTED)],
        [("     └ 5 toolcalls · 3.1s", MUTED)],
        [],
        [("     → Read nowhere.py", MUTED)],
        [("     File not found: nowhere.py", RED)],
        [],
        [("     ✱ Explored", MUTED)],
        [("       ├ Read a.py", MUTED)],
        [('       └ Grep "x"', MUTED)],
        [("     ▣ ", BLUE), (" Build", TEXT), (" · m · 1s", MUTED)],
    ]
    found = calls(read_screens(TerminalTranscript((segment_of(rows),), 100, 30)))
    assert [(call.name, call.steps, call.status, call.action) for call in found] == [
        ("task", ("5 toolcalls · 3.1s",), "ok", ""),
        ("read", (), "error", ""),
        ("read", (), "ok", "read"),
        ("grep", (), "ok", ""),
    ]
    assert found[1].error_class == "not_found"


def test_newer_releases_end_a_turn_without_a_square() -> None:
    text = "  ┃\n  ┃  hello\n  ┃\n\n     Hi.\n\n     Build · Model One · 3.2s"
    assert [(item.text, item.model, item.duration_ms) for item in one(written(text)).said] == [
        ("hello", "", None),
        ("Hi.", "Model One", 3_200),
    ]


def test_the_home_screen_parts_two_sessions_and_says_nothing() -> None:
    first, second = Panels(), Panels()
    first.ask("one")
    first.end(ms=36_100)
    second.ask("one")
    home = ["", "   █▀▀█ █▀▀█ █▀▀█", "   █  █ █  █ █▀▀▀", "   ▀▀▀▀ █▀▀▀ ▀▀▀▀", "", "  ┃  Ask anything…", "  ┃  Build"]
    logo = TranscriptSegment(tuple(TranscriptLine(line) for line in home))
    before = TranscriptSegment((TranscriptLine("$ opencode"),), False)
    segments = (before, logo, *whole(first).segments, logo, *whole(second).segments)
    talks = read_screens(TerminalTranscript(segments, 100, 30))
    assert [[item.text for item in talk.said if item.role == "user"] for talk in talks] == [["one"], ["one"]]
    assert all("Ask anything" not in item.text for talk in talks for item in talk.said)


def one(transcript: TerminalTranscript) -> ScreenTalk:
    """The only conversation."""
    (talk,) = read_screens(transcript)
    return talk
