"""The shape of a turn, and patterns of shapes as people write them."""

from __future__ import annotations

import pytest

from everturn.analytics.turns import fits, matches_name, read_pattern, shape, write_shape
from everturn.errors import UsageError


def test_repeats_are_one_token_however_many_there_are() -> None:
    assert shape("Read Read Edit Bash Bash Bash Read".split()) == ("Read{2+}", "Edit", "Bash{2+}", "Read")
    assert shape(["Read"] * 2) == shape(["Read"] * 9)
    assert write_shape(shape(["Read", "Read", "Edit"])) == "Read{2+} → Edit"
    assert shape([]) == ()


@pytest.mark.parametrize(
    ("pattern", "tools", "expected"),
    [
        ("Read → Edit", "Read Edit", True),
        ("Read -> Edit", "Bash Read Edit Bash", True),
        ("Read > Edit", "Read Bash Edit", False),
        ("Read → Edit", "Read Read Edit", False),
        ("Read{2+} → Edit", "Read Read Edit", True),
        ("Read{1+} → Edit{1+}", "Read Read Edit", True),
        ("Read → Edit", "Edit Read", False),
        ("read → EDIT", "Read Edit", True),
        ("mcp__* → Bash", "mcp__x__y Bash", True),
        ("* → Bash", "Read Read Bash", True),
        ("* → Bash", "Bash", False),
        ("Read → … → Bash", "Read Edit Edit Glob Bash", True),
        ("Read → ... → Bash", "Read Bash", True),
        ("Read → ** → Bash", "Bash Read", False),
        ("^Read → Edit$", "Read Edit", True),
        ("^Read → Edit$", "Read Edit Bash", False),
        ("^Edit", "Read Edit", False),
        ("Edit$", "Read Edit", True),
        ("^ … → Edit $", "Read Bash Edit", True),
        ("Read", "", False),
    ],
)
def test_a_pattern_fits_where_its_tools_stand_side_by_side(pattern: str, tools: str, expected: bool) -> None:
    assert fits(read_pattern(pattern), shape(tools.split())) is expected


def test_the_shape_of_a_turn_is_a_pattern_that_fits_it() -> None:
    tokens = shape("Read Read Edit Bash Bash Glob".split())
    assert fits(read_pattern(f"^{write_shape(tokens)}$"), tokens)


@pytest.mark.parametrize("text", ["", " → ", "Read →", "→ Read", "Read → → Edit", " → ".join(["Read"] * 21)])
def test_what_is_no_pattern_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UsageError, match="not a pattern of tools"):
        read_pattern(text)


def test_names_with_brackets_are_no_more_than_names() -> None:
    assert matches_name("*", "anything") and matches_name("Ba?h", "bash") and not matches_name("Bash", "BashOutput")
