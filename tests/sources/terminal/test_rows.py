"""Rows of a screen: text put together again, secrets taken out, widths."""

from __future__ import annotations

import pytest

from everturn.sources.terminal.rows import cut, rejoin_rows, width, without_secret


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ("[sudo] password for ada: hunter2", "[sudo] password for ada:"),
        ("  ┃ > [sudo] password for ada: hunter2    ┃", "  ┃ > [sudo] password for ada:"),
        ("Password: hunter2", "Password:"),
        ("Enter passphrase for key '/home/ada/.ssh/id': hunter2", "Enter passphrase for key '/home/ada/.ssh/id':"),
        ("ada@example.org's password: hunter2", "ada@example.org's password:"),
        ("The password field: it is required", "The password field: it is required"),
        ("[sudo] password for ada:", "[sudo] password for ada:"),
    ],
)
def test_what_is_typed_at_a_password_prompt_is_cut(row: str, kept: str) -> None:
    assert without_secret(row) == kept


def test_only_lines_that_could_not_have_held_the_next_word_are_joined() -> None:
    assert rejoin_rows(["one two", "three", "four"], 11) == "one two three\nfour"
    assert rejoin_rows(["one two", "- three"], 8) == "one two\n- three"
    assert rejoin_rows(["one two", "", "three"], 8) == "one two\n\nthree"
    assert rejoin_rows(["https://example.org/a", "b"], 21) == "https://example.org/a\nb"
    assert rejoin_rows(["one two-", "three"], 8, "-") == "one two-\nthree"


def test_wide_characters_fill_two_cells() -> None:
    assert width("ab会话") == 6
    assert cut("ab会话cd", 4) == ("ab会", "话cd")
    assert cut("ab会话cd", 5) == ("ab会", "话cd")
    assert cut("abc", 10) == ("abc", "")
