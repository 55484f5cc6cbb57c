"""How large the screen was, and when that changed, where a recording does not say so."""

from __future__ import annotations

import pytest

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.sizes import find_changes, guess_size, sensible_size, with_changes
from everturn.sources.terminal.transcript import OutputChunk
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.screens import Boxes

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def screen(columns: int, rows: int, clear: bytes = b"\x1b[2J") -> bytes:
    """A program that clears the screen and paints every row of it."""
    return clear + b"".join(b"\x1b[%d;1H%s" % (row, b"text".ljust(columns, b".")) for row in range(1, rows + 1))


# the size at the start ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("columns", "rows"), [("x", "24"), (80, ""), (0, 24), (80, -1), (10**9, 24)])
def test_a_size_no_terminal_has_is_none(columns: int | str, rows: int | str) -> None:
    assert sensible_size(columns, rows) is None


def test_a_size_may_be_written_as_text() -> None:
    assert sensible_size("120", "40") == (120, 40)


def test_a_screen_is_as_large_as_what_was_painted() -> None:
    assert guess_size(ENTER + screen(120, 40)) == (120, 40)


def test_nothing_painted_gives_the_usual_size() -> None:
    assert guess_size(b"") == (80, 24)
    assert guess_size(b"$ ls\r\none two\r\n") == (80, 24)


def test_what_a_shell_printed_before_says_nothing_of_a_full_screen_program() -> None:
    assert guess_size(b"x" * 200 + b"\r\n" + ENTER + screen(100, 30)) == (100, 30)


# changes --------------------------------------------------------------------------------------------------------------
def test_a_screen_that_stays_has_no_changes() -> None:
    data = ENTER + screen(100, 30) * 4 + LEAVE
    assert find_changes(data, (100, 30)) == []


@pytest.mark.parametrize("size", [(130, 44), (130, 30), (100, 44), (70, 20), (100, 20), (70, 30)])
def test_a_screen_painted_anew_in_another_size_changed_where_it_was_cleared(size: tuple[int, int]) -> None:
    before = ENTER + screen(100, 30)
    assert find_changes(before + screen(*size) + LEAVE, (100, 30)) == [(len(before), size)]


@pytest.mark.parametrize("clear", [b"\x1b[2J", b"\x1b[14t", b"\x1b[H\x1b[J", b"\x1b[1;1H\x1b[0J"])
def test_every_way_to_clear_or_to_ask_for_the_size_may_begin_a_change(clear: bytes) -> None:
    before = ENTER + screen(100, 30)
    assert find_changes(before + screen(120, 40, clear), (100, 30)) == [(len(before), (120, 40))]


def test_several_changes_come_in_their_order() -> None:
    first = ENTER + screen(100, 30)
    second = screen(120, 40)
    assert find_changes(first + second + screen(90, 28), (100, 30)) == [
        (len(first), (120, 40)),
        (len(first) + len(second), (90, 28)),
    ]


def test_a_program_that_never_filled_the_screen_does_not_make_it_smaller() -> None:
    assert find_changes(ENTER + screen(60, 20) * 2, (100, 30)) == []


def test_a_last_column_or_row_left_empty_is_no_change() -> None:
    assert find_changes(ENTER + screen(100, 30) + screen(98, 28) + screen(99, 29), (100, 30)) == []


def test_a_few_rows_painted_after_a_clear_are_no_smaller_screen() -> None:
    dialog = b"\x1b[2J" + b"".join(b"\x1b[%d;10H%s" % (row, b"menu " * 20) for row in (5, 12, 25))
    assert find_changes(ENTER + screen(100, 30) + dialog + screen(100, 30), (100, 30)) == []


def test_output_of_a_shell_changes_no_size() -> None:
    assert find_changes(screen(100, 30) + screen(140, 50), (100, 30)) == []
    assert find_changes(b"", (100, 30)) == []


def test_a_row_that_only_says_the_very_last_is_no_size() -> None:
    assert find_changes(ENTER + screen(100, 30) + screen(100, 30) + b"\x1b[999;999H" + LEAVE, (100, 30)) == []


# chunks ---------------------------------------------------------------------------------------------------------------
def chunks(*pieces: bytes) -> list[OutputChunk]:
    found, place = [], 7
    for piece in pieces:
        found.append(OutputChunk(piece, place, place + len(piece)))
        place += len(piece)
    return found


def test_chunks_without_changes_pass_as_they_are() -> None:
    pieces = chunks(b"one", b"two")
    assert list(with_changes(pieces, [])) == pieces


def test_a_chunk_is_cut_where_the_size_changes() -> None:
    assert list(with_changes(chunks(b"onetwo", b"six"), [(10, (90, 20))])) == [
        OutputChunk(b"one", 7, 10),
        OutputChunk(b"two", 10, 13, size=(90, 20)),
        OutputChunk(b"six", 13, 16),
    ]


def test_a_change_between_two_chunks_cuts_nothing() -> None:
    assert list(with_changes(chunks(b"one", b"two"), [(10, (90, 20))])) == [
        OutputChunk(b"one", 7, 10),
        OutputChunk(b"two", 10, 13, size=(90, 20)),
    ]


def test_several_changes_in_one_chunk_cut_it_several_times() -> None:
    changes = [(8, (90, 20)), (11, (80, 24))]
    found = list(with_changes(chunks(b"onetwo"), changes))
    assert [(chunk.data, chunk.size) for chunk in found] == [(b"o", None), (b"net", (90, 20)), (b"wo", (80, 24))]
    assert b"".join(chunk.data for chunk in found) == b"onetwo"
    assert changes == [(8, (90, 20)), (11, (80, 24))]


def test_chunks_held_in_another_form_are_not_cut() -> None:
    piece = OutputChunk(b"one", 0, 9)
    assert list(with_changes([piece], [(4, (90, 20))])) == [piece]


# both together --------------------------------------------------------------------------------------------------------
def test_a_conversation_in_a_window_that_was_enlarged_is_read_in_both_sizes() -> None:
    small, same, large = Boxes(80, 24), Boxes(120, 40), Boxes(120, 40)
    for client in (small, same):
        client.ask("asked in the small window")
        client.answer("answered in the small window")
    large.painter.send("".join(f"\x1b[{row};1H{' ' * 120}" for row in range(1, 41)))
    large.blocks = same.blocks
    large.ask("asked in the large window, with so many words that they do not fit into a line of eighty cells")
    large.answer("answered in the large window")
    grown = large.close().removeprefix(ENTER)
    data = bytes(small.painter.out) + grown
    head = b'Script started on 2025-12-22 14:19:12-06:00 [TERM="xterm-256color" COLUMNS="80" LINES="24"]\n'
    talks = read_screens(transcribe(head + data))
    assert [item.text for talk in talks for item in talk.said if item.role == "user"] == [
        "asked in the small window",
        "asked in the large window, with so many words that they do not fit into a line of eighty cells",
    ]
