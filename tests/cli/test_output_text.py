"""Words of the archive on a terminal: masked, made visible, then cut."""

from __future__ import annotations

import io

import pytest

from everturn.cli.output import Output, Pen, first_lines, in_one_line
from everturn.text.printable import plural, short_folder
from tests.cli.desk import KEY


@pytest.fixture
def out() -> Output:
    return Output(stdout=io.StringIO(), stderr=io.StringIO(), env={})


@pytest.mark.parametrize(
    ("text", "most", "lines", "beyond"),
    [
        ("", 2, [""], 0),
        ("a", 2, ["a"], 0),
        ("\n\na\nb\n\n", 2, ["a", "b"], 0),
        ("a\nb\nc", 2, ["a", "b", "c"], 0),  # no word about one line
        ("a\nb\nc\nd", 2, ["a", "b"], 2),
        ("a\nb\nc\nd", 0, ["a", "b", "c", "d"], 0),
        ("a\n\n\nd", 9, ["a", "", "", "d"], 0),
    ],
)
def test_long_texts_are_cut_by_lines(out: Output, text: str, most: int, lines: list[str], beyond: int) -> None:
    shown, rest = first_lines(out, text, most)
    assert (list(shown), rest) == (lines, beyond)


def test_a_long_line_is_cut_unless_all_is_wanted(out: Output) -> None:
    assert len(next(first_lines(out, "x" * 9999, 5)[0])) == 2001
    assert len(next(first_lines(out, "x" * 9999, 0)[0])) == 9999


def test_secrets_are_masked_before_anything_is_cut(out: Output) -> None:
    assert KEY[:8] not in in_one_line(out, f"key {KEY}", 12)
    assert KEY[:8] not in next(first_lines(out, "x" * 1990 + f" {KEY}", 5)[0])


def test_a_folder_goes_by_its_last_two_parts() -> None:
    assert [short_folder(path) for path in ("/home/ann/shop", "D:\\a\\b", "shop", "/", "")] == [
        "ann/shop",
        "a/b",
        "shop",
        "",
        "",
    ]


def test_there_is_colour_only_where_it_is_wanted(out: Output) -> None:
    assert Pen(out)("bold", "x") == "x"
    assert Pen(Output(stdout=io.StringIO(), env={"FORCE_COLOR": "1"}))("bold", "x") == "\x1b[1mx\x1b[0m"
    assert Pen(Output(stdout=io.StringIO(), env={"FORCE_COLOR": "1", "NO_COLOR": "1"}))("bold", "x") == "x"


def test_one_is_not_many() -> None:
    assert (plural(1, "turn"), plural(1234, "turn"), plural(0, "turn")) == ("1 turn", "1,234 turns", "0 turns")
