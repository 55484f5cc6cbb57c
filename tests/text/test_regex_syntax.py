"""Regular expressions: what is understood, what is refused, what every match holds."""

from __future__ import annotations

import pytest

from everturn.errors import UsageError
from everturn.text.regex_syntax import LONGEST, literals, parse_regex


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", "not closed"),
        ("a)", "too many"),
        ("[a", "not closed"),
        ("*a", "repeats nothing"),
        ("a**", "side by side"),
        ("a{2}{3}", "side by side"),
        ("a++", "side by side"),
        ("^*", "cannot be repeated"),
        ("a{5,2}", "smaller number first"),
        ("a{2000}", "at most 1000"),
        ("[z-a]", "not a range"),
        (r"[a-\d]", "not a range"),
        ("(?=a)", "no look-around"),
        ("(?<!a)b", "no look-around"),
        ("(?i:a)", "no look-around"),
        (r"(a)\1", "no back references"),
        (r"\q", "means nothing"),
        ("a\\", "ends after a backslash"),
        ("(" * 40 + "a" + ")" * 40, "nested too deeply"),
    ],
)
def test_what_cannot_be_used_is_told_with_a_reason(pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_regex(pattern)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    parse_regex("a" * LONGEST)
    parse_regex("(?i)" + "a" * LONGEST)
    with pytest.raises(UsageError, match="at most 200"):
        parse_regex("a" * (LONGEST + 1))


@pytest.mark.parametrize(
    ("pattern", "held"),
    [
        ("parse_json", ["parse_json"]),
        (r"line \d+: denied", ["line ", ": denied"]),
        ("(?i)ERROR", ["error"]),
        ("a|b", []),
        ("(foo)+bar", ["foo", "bar"]),
        ("(foo)*bar", ["bar"]),
        (r"foo\b bar$", ["foo bar"]),
        ("fo?o", ["f", "o"]),
        ("[x]yz", ["xyz"]),
        (".", []),
        ("naïve", ["na", "ve"]),
    ],
)
def test_literal_parts_are_what_every_match_holds(pattern: str, held: list[str]) -> None:
    assert literals(parse_regex(pattern)) == held
