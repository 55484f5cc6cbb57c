"""The terminal: what each control function does, and that nothing depends on how the bytes come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.terminal.grid import PALETTE, UNCHANGED, foreground
from everturn.sources.terminal.screen import TerminalScreen
from tests.sources.terminal.random_screens import bytes_of, colours_of, size_of


def screen_of(data: bytes | str, columns: int = 20, rows: int = 5) -> TerminalScreen:
    screen = TerminalScreen(columns, rows)
    screen.feed(data if isinstance(data, bytes) else data.encode())
    screen.close()
    return screen


def lines(data: bytes | str, columns: int = 20, rows: int = 5) -> list[str]:
    """The rows down to the last that is not blank."""
    shown = screen_of(data, columns, rows).lines()
    while shown and not shown[-1]:
        shown.pop()
    return shown


# text -----------------------------------------------------------------------------------------------------------------
def test_a_line_as_wide_as_the_screen_does_not_wrap_before_more_comes() -> None:
    assert lines("x" * 20 + "\r\nnext") == ["x" * 20, "next"]
    assert lines("x" * 20 + "y\r\nnext") == ["x" * 20, "y", "next"]


def test_without_wrapping_the_last_column_is_overwritten() -> None:
    assert lines("\x1b[?7l" + "a" * 19 + "bcd") == ["a" * 19 + "d"]


def test_a_wide_character_takes_two_columns_and_goes_to_the_next_line_whole() -> None:
    assert lines("会話x", 20) == ["会話x"]
    assert lines("abc会", 4) == ["abc", "会"]
    assert screen_of("会話").x == 4


def test_writing_over_half_of_a_wide_character_wipes_out_the_other_half() -> None:
    assert lines("a会b\x1b[2Gx") == ["ax b"]
    assert lines("a会b\x1b[3Gx") == ["a xb"]


def test_accents_join_the_letter_before_them_and_have_no_width() -> None:
    screen = screen_of("e\u0301a")
    assert (screen.lines()[0], screen.x) == ("e\u0301a", 2)
    assert lines("x\r\n\u0301y") == ["x", "y"], "there is no letter before the first column"


def test_a_letter_takes_only_so_many_accents() -> None:
    assert len(lines("e" + "\u0301" * 1000)[0]) == 11


@pytest.mark.parametrize(
    ("text", "columns"), [("👩‍👩‍👧", 2), ("👨‍💻", 2), ("👍🏽", 4), ("❤️", 1), ("🇩🇪", 2), ("한국", 4), ("1️⃣", 1)]
)
def test_emoji_take_as_many_columns_as_in_tmux(text: str, columns: int) -> None:
    screen = screen_of(text + "|")
    assert (screen.lines()[0], screen.x) == (text + "|", columns + 1)


def test_characters_of_the_private_planes_are_kept() -> None:
    assert lines("\U0010fffd\U00100000\U000f0001\ue0b0") == ["\U0010fffd\U00100000\U000f0001\ue0b0"]


def test_bytes_that_are_no_text_show_as_replacement_characters() -> None:
    assert lines(b"a\xffb\xe2\x94\x1b[Cc") == ["a\ufffdb\ufffd c"]


def test_a_character_of_which_only_the_beginning_came_is_not_shown() -> None:
    assert lines("ab┃".encode()[:-1]) == ["ab"]


def test_line_drawing_characters_are_drawn() -> None:
    assert lines("\x1b(0lqk\x1b(Bq\x1b)0\x0ex\x0fx") == ["┌─┐q│x"]


def test_a_character_is_repeated_up_to_the_end_of_the_line() -> None:
    assert lines("a \x1b[4bb") == ["a     b"]
    assert lines("会\x1b[2b|", 20) == ["会会会|"]
    assert lines("x\x1b[99b", 6) == ["xxxxxx"]


# cursor and scrolling -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sequence", "place"),
    [
        ("\x1b[2;3H", (2, 1)),
        ("\x1b[2;3f", (2, 1)),
        ("\x1b[99;99H", (19, 4)),
        ("\x1b[H", (0, 0)),
        ("\x1b[2d", (5, 1)),
        ("\x1b[3G", (2, 2)),
        ("\x1b[3`", (2, 2)),
        ("\x1b[A", (5, 1)),
        ("\x1b[9A", (5, 0)),
        ("\x1b[B", (5, 3)),
        ("\x1b[e", (5, 3)),
        ("\x1b[2C", (7, 2)),
        ("\x1b[2a", (7, 2)),
        ("\x1b[99D", (0, 2)),
        ("\x1b[E", (0, 3)),
        ("\x1b[2F", (0, 0)),
        ("\b\b", (3, 2)),
        ("\x1bM", (5, 1)),
        ("\x1bD", (5, 3)),
        ("\x1bE", (0, 3)),
        ("\r", (0, 2)),
        ("\x1b[0A", (5, 1)),
        ("\x1b[;3H", (2, 0)),
        ("\x1b[>4;1m\x1b[?u\x1b[c\x1b[2 q", (5, 2)),
    ],
)
def test_the_cursor_goes_where_it_is_sent(sequence: str, place: tuple[int, int]) -> None:
    screen = screen_of("\x1b[3;6H" + sequence)
    assert (screen.x, screen.y) == place


def test_output_below_the_last_row_scrolls_and_what_leaves_is_told() -> None:
    gone: list[str] = []
    screen = TerminalScreen(10, 2, on_scroll=lambda cells, inks: gone.append(cells.rstrip()))
    screen.feed(b"one\r\ntwo\r\nthree\r\nfour")
    assert gone == ["one", "two"]
    assert screen.lines() == ["three", "four"]


def test_only_the_scroll_region_scrolls() -> None:
    assert lines("a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[4;1H\nX", 5) == ["a", "c", "d", "X", "e"]
    assert lines("a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[2;1H\x1bMX", 5) == ["a", "X", "b", "c", "e"]
    assert lines("a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[S\x1b[r", 5) == ["a", "c", "d", "", "e"]
    assert lines("a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[2T\x1b[r", 5) == ["a", "", "", "b", "e"]


def test_rows_that_leave_a_region_below_the_first_row_are_not_scrollback() -> None:
    gone: list[str] = []
    screen = TerminalScreen(10, 4, on_scroll=lambda cells, inks: gone.append(cells.rstrip()))
    screen.feed(b"a\r\nb\r\nc\r\nd\x1b[2;4r\x1b[S\x1b[1;3r\x1b[S")
    assert gone == ["a"]


def test_lines_and_characters_are_inserted_and_deleted() -> None:
    assert lines("a\r\nb\r\nc\x1b[2;1H\x1b[L") == ["a", "", "b", "c"]
    assert lines("a\r\nb\r\nc\x1b[2;1H\x1b[M") == ["a", "c"]
    assert lines("abcdef\x1b[2G\x1b[2@") == ["a  bcdef"]
    assert lines("abcdef\x1b[2G\x1b[2P") == ["adef"]
    assert lines("abcdef\x1b[2G\x1b[2X") == ["a  def"]
    assert lines("abc\x1b[2G\x1b[4hX\x1b[4lY") == ["aXYc"]


def test_erasing_goes_as_far_as_it_says() -> None:
    text = "abc\r\ndef\r\nghi\x1b[2;2H"
    assert lines(text + "\x1b[K") == ["abc", "d", "ghi"]
    assert lines(text + "\x1b[1K") == ["abc", "  f", "ghi"]
    assert lines(text + "\x1b[J") == ["abc", "d"]
    assert lines(text + "\x1b[1J") == ["", "  f", "ghi"]
    assert lines(text + "\x1b[2J") == []


def test_tab_stops_can_be_set_and_cleared() -> None:
    assert lines("a\tb") == ["a       b"]
    assert lines("abc\x1bH\r\tx") == ["abcx"]
    assert lines("\x1b[3g\tx") == [" " * 19 + "x"]
    assert lines("a\tb\x1b[Zc\x1b[2Zd\x1b[Ie") == ["d       e"]


def test_a_saved_cursor_comes_back_with_its_colour() -> None:
    screen = screen_of("\x1b[31m\x1b7\x1b[32m\x1b[3;3Hx\x1b8y")
    assert screen.lines()[0] == "y"
    assert colours_of(screen)[0][0] == PALETTE[1]
    assert lines("ab\x1b[s\x1b[3;1H\x1b[uc") == ["abc"]


def test_in_origin_mode_rows_count_from_the_region() -> None:
    assert lines("\x1b[2;4r\x1b[?6h\x1b[Ha\x1b[9;1Hb") == ["", "a", "", "b"]


# screens and modes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["47", "1047", "1049"])
def test_the_alternate_screen_is_empty_and_leaves_the_main_one_as_it_was(mode: str) -> None:
    inside = screen_of(f"main\x1b[?{mode}h", 10, 3)
    assert (inside.alternate, inside.lines()) == (True, ["", "", ""])
    after = screen_of(f"main\x1b[?{mode}h\x1b[2;2Hother\x1b[?{mode}l", 10, 3)
    assert (after.alternate, after.lines()) == (False, ["main", "", ""])
    assert (after.x, after.y) == ((4, 0) if mode == "1049" else (6, 1))


def test_what_scrolls_on_the_alternate_screen_is_not_scrollback() -> None:
    gone: list[str] = []
    screen = TerminalScreen(10, 2, on_scroll=lambda cells, inks: gone.append(cells))
    screen.feed(b"\x1b[?1049ha\r\nb\r\nc\r\nd\x1b[?1049l")
    assert gone == []


def test_a_reset_brings_everything_back() -> None:
    screen = screen_of("\x1b[?1049h\x1b[2;3r\x1b[?7l\x1b[4h\x1b[31mtext\x1bcx")
    assert (screen.lines()[0], screen.alternate, colours_of(screen)[0][0]) == ("x", False, None)
    assert (screen.top, screen.bottom, screen.wraps, screen.inserts) == (0, 4, True, False)


def test_a_soft_reset_keeps_the_text() -> None:
    screen = screen_of("ab\x1b[4h\x1b[31m\x1b[2;3r\x1b[1;2H\x1b[!pX")
    assert screen.lines()[0] == "aX"
    assert colours_of(screen)[0][1] is None


def test_the_alignment_test_fills_the_screen() -> None:
    assert lines("\x1b#8", 3, 2) == ["EEE", "EEE"]


def test_a_smaller_screen_keeps_the_lines_at_the_cursor() -> None:
    gone: list[str] = []
    screen = TerminalScreen(10, 4, on_scroll=lambda cells, inks: gone.append(cells.rstrip()))
    screen.feed("a\r\nb\r\n会話会話\r\nd".encode())
    screen.resize(7, 2)
    assert gone == ["a", "b"]
    assert [row.rstrip() for row in screen.lines()][1] == "d"
    assert all(len(row) == 7 for row in screen.cells + screen.inks)
    screen.resize(12, 5)
    screen.feed(b"\r\nmore")
    assert screen.lines()[1:3] == ["d", "more"]


# colours --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sequence", "colour"),
    [
        ("31", PALETTE[1]),
        ("97", 0xFFFFFF),
        ("38;5;208", 0xFF8700),
        ("38:5:208", 0xFF8700),
        ("38;2;92;156;245", 0x5C9CF5),
        ("38:2:92:156:245", 0x5C9CF5),
        ("38:2::92:156:245", 0x5C9CF5),
        ("1;38;2;1;2;3;4", 0x010203),
        ("48;5;1", UNCHANGED),
        ("48;2;31;32;33", UNCHANGED),
        ("58;5;31;35", PALETTE[5]),
        ("", None),
        ("31;0", None),
        ("31;39", None),
        ("38;5;999", UNCHANGED),
        ("38", UNCHANGED),
    ],
)
def test_a_colour_is_made_out_however_it_is_written(sequence: str, colour: int | None) -> None:
    assert foreground(sequence) == colour


def test_text_has_the_colour_that_was_set_and_erased_cells_have_none() -> None:
    screen = screen_of("a\x1b[31mbc\x1b[48;5;3md\x1b[0me\x1b[3G\x1b[X")
    assert colours_of(screen)[0][:5] == [None, PALETTE[1], None, PALETTE[1], None]


# strings --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("split", [0, 5, 30])
def test_strings_are_swallowed_and_the_clipboard_is_kept_nowhere(split: int) -> None:
    secret = b"c2VjcmV0LXBhc3N3b3Jk" * 3
    data = (
        b"a\x1b]52;c;"
        + secret
        + b"\x07b\x1bP+q"
        + secret
        + b"\x1b\\c\x1b_"
        + secret
        + b"\x1b\\d\x1b^"
        + secret
        + b"\x1b\\e"
    )
    screen = TerminalScreen(20, 3)
    screen.feed(data[:split])
    screen.feed(data[split:])
    assert screen.lines()[0] == "abcde"
    assert "c2VjcmV0" not in repr(vars(screen))


def test_a_passed_on_string_ends_at_its_own_end() -> None:
    assert lines("a\x1bPtmux;\x1b\x1b]0;x\x07\x1b\\b") == ["ab"]


def test_a_string_that_never_ends_does_not_swallow_everything() -> None:
    assert lines(b"\x1bP" + b"x" * (8 << 20) + b"then\r\nback") == ["then", "back"]
    assert lines(b"\x1b]0;title without an end\x1b[1mtext") == ["text"]


def test_titles_are_told_also_when_they_come_in_pieces() -> None:
    titles: list[str] = []
    for size in (1, 3, 100):
        screen = TerminalScreen(20, 3, on_title=titles.append)
        data = "\x1b]0;fix the bug ✳\x07x\x1b]2;done\x1b\\\x1b]1;icon\x07".encode()
        for start in range(0, len(data), size):
            screen.feed(data[start : start + size])
    assert titles == ["fix the bug ✳", "done"] * 3


def test_control_characters_inside_a_sequence_act_at_once() -> None:
    assert lines("ab\x1b[\r2Cc") == ["abc"]
    assert lines("ab\x1b[3\x18Cc") == ["abCc"]
    assert lines("ab\x1b[3\x1b[Dc") == ["ac"]


# marks ----------------------------------------------------------------------------------------------------------------
def test_the_moments_that_matter_are_told_with_their_places() -> None:
    marks: list[tuple[str, int]] = []
    screen = TerminalScreen(20, 9, on_mark=lambda what, where: marks.append((what, where)))
    data = b"\x1b[?1049h\x1b[?25l\x1b[8;1Hx\x1b[2;1Hy\x1b[?25h\x1b[?2026hz\x1b[?2026l\x1b[2J\x1b[3J\x1b[?1049l"
    screen.feed(data[:50])
    screen.feed(data[50:])
    assert [what for what, _ in marks] == ["enter", "jump", "show", "sync", "clear", "forget", "leave"]
    places = {what: data[:where].decode() for what, where in marks}
    assert places["jump"].endswith("x")
    assert places["show"].endswith("\x1b[?25h")
    assert places["sync"].endswith("\x1b[?2026l")
    assert places["leave"].endswith("\x1b[3J")


def test_small_steps_up_are_no_marks() -> None:
    marks: list[str] = []
    screen = TerminalScreen(20, 9, on_mark=lambda what, where: marks.append(what))
    screen.feed(b"\x1b[8;1Hx\x1b[2Ay\x1b[5;1Hz\x1b[?25h\x1b[?2026l")
    assert marks == []


# any bytes ------------------------------------------------------------------------------------------------------------
SEQUENCES = (
    *(
        b"\x1b[",
        b"\x1b]0;",
        b"\x1bP",
        b"\x1b\\",
        b"\x07",
        b"\x18",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[4h",
        b"\x1b[?7l",
    ),
    *(
        b"\x1b[3;4r",
        b"\x1b[999b",
        b"\x1b[2J",
        b"\x1bc",
        b"\x1b#8",
        b"\x1b[!p",
        b"\r\n",
        b"\x1b(0",
        b"\x1b[?6h",
        b"\x1b[99L",
    ),
    *(b"\x1b[99@", b"\x1b[38;5;1m", "👩‍👩‍👧".encode(), "会".encode(), "\u0301".encode()),
)
PIECES = st.one_of(st.binary(max_size=12), st.text(max_size=8).map(str.encode), st.sampled_from(SEQUENCES))


def looks(screen: TerminalScreen) -> object:
    return screen.lines(), colours_of(screen), (screen.x, screen.y), screen.alternate


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map(b"".join), st.lists(st.integers(0, 400), max_size=12))
def test_any_bytes_in_any_pieces_give_the_same_screen(data: bytes, cuts: list[int]) -> None:
    whole, pieces = TerminalScreen(11, 4), TerminalScreen(11, 4)
    whole.feed(data)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, end in pairwise(places):
        pieces.feed(data[start:end])
    whole.close()
    pieces.close()
    assert looks(whole) == looks(pieces)
    assert {len(row) for row in whole.cells + whole.inks} == {11}
    assert len(whole.cells) == len(whole.inks) == len(whole.wrapped) == 4


@pytest.mark.parametrize("seed", range(40))
def test_a_random_stream_byte_by_byte_gives_the_same_screen(seed: int) -> None:
    whole, pieces = TerminalScreen(*size_of(seed)), TerminalScreen(*size_of(seed))
    whole.feed(bytes_of(seed))
    for byte in bytes_of(seed):
        pieces.feed(bytes([byte]))
    assert looks(whole) == looks(pieces)
