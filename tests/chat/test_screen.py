"""The screen while an answer streams, and the description of a call that needs approval."""

from __future__ import annotations

import io

import pytest

from everturn.chat.screen import ChatScreen, describe_call_fully
from everturn.llm.protocol import Delta
from everturn.sources.terminal.screen import TerminalScreen as Emulator


def shown(text: str, columns: int = 20, rows: int = 8, piece: int = 3) -> list[str]:
    """Return what a terminal of that size shows of a streamed answer."""
    out = io.StringIO()
    screen = ChatScreen(out, out, lambda label: "", True, True, lambda: (columns, rows))
    screen.begin_answer("A")
    for start in range(0, len(text), piece):
        screen.delta(Delta("text", text[start : start + piece]))
    screen.end_answer()
    emulator = Emulator(columns, rows)
    emulator.feed(out.getvalue().replace("\n", "\r\n").encode())
    return [line.rstrip() for line in emulator.lines()]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("**short**", ["A: short"]),
        (
            "first\n**twenty columns** are not enough for this",
            ["A: first", "twenty columns are n", "ot enough for this"],
        ),
        ("x\n" + "**a** " * 7, ["A: x", "a a a a a a a"]),
        ("**会话恢复会话恢复** twice", ["A: 会话恢复会话恢复", "twice"]),
        ("**exactly 17 char**", ["A: exactly 17 char"]),
    ],
)
def test_a_line_that_has_run_over_the_edge_is_set_again_in_its_style(text: str, lines: list[str]) -> None:
    assert [line for line in shown(text) if line] == lines


@pytest.mark.parametrize(
    "text", ["**a**\t and a tab that goes on", "**picture** \U0001f600 and so on and on", "**a** " * 60]
)
def test_a_line_whose_beginning_nobody_can_tell_stays_as_it_came(text: str) -> None:
    seen = " ".join(shown(text, rows=6)).replace(" ", "")
    assert "**a**" in seen or "**picture**" in seen


def test_a_long_argument_is_shown_in_part_until_all_of_it_is_wanted() -> None:
    call = {"path": "a.txt", "content": "\n".join(f"line {n}" for n in range(30))}
    short = describe_call_fully("write_file", call, 5)
    assert short.split("\n")[:4] == ["? write_file", "  path: a.txt", "  content:", "    line 0"]
    assert short.endswith("    line 4\n    … 25 more lines") and describe_call_fully("write_file", call).endswith(
        "    line 29"
    )
    assert describe_call_fully("shell", "ls") == "? shell\n  : ls"
