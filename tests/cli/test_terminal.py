"""Lists and transcripts on a terminal of 80 columns: nothing is wider, titles have room, names are completed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from everturn.cli.frame import root
from everturn.text.printable import count_cells, short_path, wrap_cells
from everturn.text.times import DAY, short_ago
from tests.capture.history import SID
from tests.cli.desk import Desk

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
LONG = "Make the parser of the shop understand discounts that end at midnight in another time zone, please"


@pytest.fixture
def screen(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Eighty columns, with colours."""
    archive = desk.archive
    path = "/home/ann/shop/" + "/".join(f"folder{n}" for n in range(12)) + "/parser.py"
    desk.take_in(
        archive.history.line("user", f"{LONG}\n{LONG}"),
        archive.use("Read", "a", file_path=path),
        archive.back("a", "x = 1"),
        archive.history.line("assistant", [{"type": "text", "text": f"# Plan\n\n- **first** {LONG} `code`\n{LONG}"}]),
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    return desk


@pytest.mark.parametrize(
    "words",
    [("sessions",), ("sessions", "--all"), ("search", "discounts"), ("show", "@last"), ("show", "@last", "--tools")],
)
def test_no_line_is_wider_than_the_terminal(screen: Desk, words: tuple[str, ...]) -> None:
    code, out, _ = screen.run(*words)
    lines = _STYLE.sub("", out).splitlines()
    assert code == 0 and max(map(count_cells, lines)) <= 80


def test_a_title_has_room_and_paths_keep_their_file_names(screen: Desk) -> None:
    listed = screen.run("sessions")[1]
    assert LONG[:30] in listed
    shown = _STYLE.sub("", screen.run("show", "@last")[1])
    assert "…/" in shown and "/parser.py\n" in shown


def test_markdown_is_drawn_unless_there_are_no_colours(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen.run("show", "@last")[1]
    assert "\x1b[1mPlan\x1b[0m" in shown and "• \x1b[1mfirst\x1b[0m" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    plain = screen.run("show", "@last")[1]
    assert "\x1b" not in plain and "# Plan" in plain and "- **first**" in plain


def test_a_misspelt_filter_is_an_error_with_a_suggestion(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("codex", "yes"))
    code, _, err = desk.run("search", "agnt:codex")
    assert code == 2 and "did you mean agent:codex?" in err
    assert desk.run("search", '"agnt:codex" OR codex')[0] == 0
    code, _, err = desk.run("search", "yes agent:codec")
    assert code == 2 and "there is no agent 'codec'; did you mean codex?" in err
    assert desk.run("search", "yes agent:claude")[0] == 0


def test_resuming_an_unknown_session_says_that_there_is_none(desk: Desk) -> None:
    desk.take_in(desk.archive.history.turn("go", "yes"))
    code, _, err = desk.run("resume", "zzz")
    assert code == 3 and "no session 'zzz'" in err


def completed(*words: str) -> list[str]:
    *before, last = words
    return [one.value for one in ShellComplete(root, {}, "everturn", "_X").get_completions(before, last)]


def test_sessions_agents_and_tools_are_completed(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTURN_DB", str(screen.db))
    assert completed("sessions", "--agent", "cl") == ["claude_ai", "claude_code", "cline"]
    assert completed("show", SID[:2]) == [SID[:8]]
    screen.run("stats")  # counts the calls
    assert completed("inspect", "R") == ["Read"]


def test_workspaces_and_filters_are_completed(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTURN_DB", str(screen.db))
    assert completed("sessions", "--workspace", "sh") == ["shop"]
    assert completed("stats", "--workspace", "/home/ann/s") == ["/home/ann/shop"]
    assert completed("search", "ag") == ["agent:"]
    assert completed("search", "parser", "agent:code") == ["agent:codex"]
    assert completed("search", "workspace:sh") == ["workspace:shop"]
    assert completed("search", "since:") == []


def test_text_is_wrapped_between_words_and_styles_take_no_room() -> None:
    assert wrap_cells("one two three", 7) == ["one two", "three"]
    assert wrap_cells("a" * 10, 4) == ["aaaa", "aaaa", "aa"]
    assert wrap_cells("\x1b[1mone\x1b[0m two", 7) == ["\x1b[1mone\x1b[0m two"]
    for text in (LONG, "日本語 " * 30, "x" * 300, "  indented " + LONG, ""):
        lines = wrap_cells(text, 20)
        assert all(count_cells(line) <= 20 for line in lines)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_path_is_shortened_in_its_middle() -> None:
    path = "/home/ann/shop/src/app/parser.py"
    assert short_path(path, 40) == path
    assert short_path(path, 26) == "/home/…/src/app/parser.py"
    assert short_path(path, 12) == "…/parser.py"
    assert all(count_cells(short_path(path, width)) <= width for width in range(2, 40))


def test_an_age_takes_few_characters() -> None:
    now = 1000 * DAY
    ages = {0: "now", DAY // 24 * 5: "5h", 3 * DAY: "3d", 100 * DAY: "3mo", 800 * DAY: "2y", -2 * DAY: "+2d"}
    assert {age: short_ago(now - age, now) for age in ages} == ages


def test_a_long_transcript_goes_through_the_pager_of_the_person(screen: Desk, tmp_path: Path) -> None:
    from everturn.cli.output import Output, open_pager

    seen = tmp_path / "seen"

    class Screen(Output):
        @property
        def on_terminal(self) -> bool:
            return True

    out = Screen(env={"PAGER": f"tee {seen}", "PATH": "/usr/bin:/bin"})
    with open_pager(out):
        out.emit("data")
        out.say("a message waits")
    assert seen.read_text() == "data\n"
