"""What reaches a terminal."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.text.printable import count_cells, cut_cells, one_line, printable

ANY_TEXT = st.text(st.characters(), max_size=200)


def test_clean_text_comes_back_as_the_same_object() -> None:
    text = "def parse(line):\n\treturn 会话 — café 🙂\n"
    assert printable(text) is text


def test_escape_sequences_become_visible() -> None:
    assert printable("a\x1b]52;c;aGk=\x07b") == "a␛]52;c;aGk=␇b"
    assert printable("\x9b2J\x7f\b") == "\\x9b2J␡␈"


def test_colours_are_dropped_without_a_trace() -> None:
    assert printable("\x1b[1;31mFAILED\x1b[0m \x1b[Ktests") == "FAILED tests"


def test_text_cannot_be_reordered_or_hidden() -> None:
    assert printable("user\u202egnp.exe") == "user\\u202egnp.exe"
    assert printable("a\u200bb\u2060c\ufeffd\U000e0041e") == "abcde"
    assert printable("one\u2028two") == "one\\u2028two"


def test_lone_surrogates_can_be_encoded_afterwards() -> None:
    assert printable("x\udcff").encode() == b"x\\udcff"


def test_line_ends_and_tabs_stay_unless_they_are_not_wanted() -> None:
    assert printable("a\r\nb\tc\rd") == "a\nb\tc␍d"
    assert printable("a\nb\tc", keep="") == "a␊b␉c"


@settings(deadline=None)
@given(ANY_TEXT)
def test_nothing_that_acts_is_left_in_any_text(text: str) -> None:
    shown = printable(text)
    left = {unicodedata.category(char) for char in shown if char not in "\n\t"}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    assert not any(
        unicodedata.bidirectional(char) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI")
        for char in shown
    )
    shown.encode()


@settings(deadline=None)
@given(ANY_TEXT)
def test_what_was_made_printable_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)


def test_one_line_collapses_white_space_and_cuts_by_cells() -> None:
    assert one_line("\n\n  Fix the\n  parser \t now ", 40) == "Fix the parser now"
    assert one_line("Fix the parser now", 10) == "Fix the p…"
    assert one_line("会话记录会话记录", 7) == "会话记…"
    assert one_line("a\x1b[31mb", 40) == "ab"
    assert one_line("anything", 0) == ""


@settings(deadline=None)
@given(ANY_TEXT, st.integers(0, 30))
def test_one_line_never_is_wider_than_asked(text: str, width: int) -> None:
    line = one_line(text, width)
    assert count_cells(line) <= width
    assert "\n" not in line


def test_cut_leaves_what_fits() -> None:
    assert cut_cells("会话", 4) == "会话"
    assert cut_cells("会话x", 4) == "会…"
    assert count_cells("e\u0301a") == 2
