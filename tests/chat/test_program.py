"""Which lines are commands and which are messages."""

from __future__ import annotations

import pytest

from everturn.chat.program import COMMANDS, ChatCommand, help_text, parse


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("exit", ChatCommand("exit")),
        ("  QUIT ", ChatCommand("exit")),
        ("compact", ChatCommand("compact")),
        ("resume", ChatCommand("resume")),
        ("resume 12", ChatCommand("resume", "12")),
        ("/resume 3f2a9c", ChatCommand("resume", "3f2a9c")),
        ("#compact", ChatCommand("compact")),
        ("#pin never use an ORM", ChatCommand("pin", "never use an ORM")),
        ("/recall two\nlines", ChatCommand("recall", "two\nlines")),
        ("/?", ChatCommand("help")),
        ("/nosuch", ChatCommand("nosuch")),
    ],
)
def test_a_command_is_known_by_its_mark_or_by_standing_alone(line: str, wanted: ChatCommand) -> None:
    assert parse(line) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "exit the loop early",
        "compact this function",
        "resume the download",
        "resume 12 of them",
        "help me",
        "/etc/hosts is wrong",
        "/nosuch thing here",
        "#hashtag",
        "# Heading",
        "##compact",
        "",
        "state",
    ],
)
def test_anything_longer_is_words(line: str) -> None:
    assert parse(line) is None


def test_help_lists_every_command() -> None:
    assert all(f"/{name}" in help_text() for name in COMMANDS)
