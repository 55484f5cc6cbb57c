"""When a screen counts as complete."""

from __future__ import annotations

from collections.abc import Iterator

from everturn.sources.terminal.frames import Frames, ScreenFrame, ScrolledRow
from everturn.sources.terminal.transcript import OutputChunk, TerminalRecording

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def recording(*pieces: bytes | tuple[float, bytes], started: int | None = None) -> TerminalRecording:
    def chunks() -> Iterator[OutputChunk]:
        place = 100
        for piece in pieces:
            elapsed, data = piece if isinstance(piece, tuple) else (None, piece)
            yield OutputChunk(data, place, place + len(data), elapsed)
            place += len(data)

    return TerminalRecording("raw", 20, 10, chunks, started)


def frames(*pieces: bytes | tuple[float, bytes]) -> list[tuple[str, str]]:
    """Why each frame of the alternate screen was taken, and its text."""
    return [
        (event.why, " ".join(row.text for row in event.rows if row.text))
        for event in Frames(recording(*pieces))
        if isinstance(event, ScreenFrame) and event.alternate
    ]


def repaint(word: bytes) -> bytes:
    return b"\x1b[2;1H" + word + b"\x1b[8;1H" + word


def test_the_end_of_a_synchronized_update_shows_a_complete_screen() -> None:
    drawn = [b"\x1b[?2026h" + repaint(word) + b"\x1b[?2026l" for word in (b"one", b"two", b"six")]
    assert frames(ENTER, *drawn, LEAVE) == [
        ("sync", "one one"),
        ("sync", "two two"),
        ("sync", "six six"),
        ("leave", "six six"),
    ]


def test_a_cursor_that_is_shown_again_shows_a_complete_screen() -> None:
    drawn = [b"\x1b[?25l" + repaint(word) + b"\x1b[?25h" for word in (b"one", b"two")]
    assert frames(ENTER, *drawn) == [("show", "one one"), ("show", "two two"), ("end", "two two")]


def test_without_marks_a_jump_up_begins_the_next_screen() -> None:
    assert frames(ENTER, *map(repaint, (b"one", b"two"))) == [("jump", "one one"), ("end", "two two")]


def test_better_marks_win_over_jumps_inside_an_update() -> None:
    zigzag = b"\x1b[?25l\x1b[8;1H%s\x1b[2;1H%s\x1b[9;1H%s\x1b[1;1H%s\x1b[?25h"
    seen = frames(ENTER, *(zigzag % ((word,) * 4) for word in (b"one", b"two", b"six")))
    assert seen[-4:] == [("show", " ".join([word] * 4)) for word in ("one", "two", "six")] + [
        ("end", "six six six six")
    ]


def test_lesser_marks_count_again_when_the_better_ones_stop() -> None:
    noise = b"\x1b[3;1H" + b"\x1b[0m" * 50_000
    seen = frames(ENTER, b"\x1b[?2026h" + repaint(b"one") + b"\x1b[?2026l", noise, repaint(b"two"), repaint(b"six"))
    assert ("jump", "two two") in seen


def test_a_pause_in_the_output_shows_a_complete_screen() -> None:
    pieces = [(0.0, ENTER), (0.1, b"\x1b[1;1Hone"), (0.101, b" more"), (0.5, b"\x1b[1;1Htwo")]
    assert frames(*pieces) == [("pause", "one more"), ("end", "two more")]


def test_a_pause_in_the_middle_of_an_update_does_not_count() -> None:
    pieces = [(0.0, ENTER + b"\x1b[?2026h\x1b[1;1Hone"), (0.5, b"\x1b[2;1Htwo\x1b[?2026l")]
    assert frames(*pieces) == [("sync", "one two"), ("end", "one two")]


def test_what_is_cleared_or_left_is_shown_before_it_goes() -> None:
    assert frames(ENTER + b"one\x1b[2J\x1b[1;1Htwo\x1b[H\x1b[Jsix" + LEAVE) == [
        ("clear", "one"),
        ("clear", "two"),
        ("leave", "six"),
    ]


def test_rows_that_did_not_change_are_the_same_objects() -> None:
    events = Frames(recording(ENTER + b"\x1b[5;1Hstays", *map(repaint, (b"one", b"two")), b"\x1b[1;1Hx"))
    first, second, *_ = [event for event in events if isinstance(event, ScreenFrame) and event.why == "jump"][1:]
    same = [before is after for before, after in zip(first.rows, second.rows, strict=True)]
    assert [row.text for row, unchanged in zip(second.rows, same, strict=True) if not unchanged] == ["two", "two"]
    assert second.rows[4].text == "stays"


def test_a_frame_knows_its_place_and_time() -> None:
    events = [
        event
        for event in Frames(recording((0.5, b"one\x1b[2J"), (1.5, b"two"), started=1000))
        if isinstance(event, ScreenFrame)
    ]
    assert [(event.why, event.start, event.end, event.at) for event in events] == [
        ("clear", 0, 103, 1500),
        ("pause", 103, 107, 1500),
        ("end", 107, 110, 2500),
    ]


def test_rows_that_scroll_off_the_main_screen_come_in_their_order() -> None:
    events = Frames(recording(b"".join(b"line %d\r\n" % number for number in range(14)), b"\x1b[2J"))
    seen = [event.row.text if isinstance(event, ScrolledRow) else event.why for event in events]
    assert seen == [f"line {number}" for number in range(5)] + ["clear", "end"]


def test_another_size_is_taken_over() -> None:
    def chunks() -> Iterator[OutputChunk]:
        yield OutputChunk(b"one", 0, 3)
        yield OutputChunk(b"", 3, 3, size=(40, 5))
        yield OutputChunk(b"\x1b[9;36Htwo", 3, 13)

    events = [event for event in Frames(TerminalRecording("raw", 20, 10, chunks)) if isinstance(event, ScreenFrame)]
    assert [(event.why, len(event.rows)) for event in events] == [("resize", 10), ("end", 5)]
    assert [row.text for row in events[-1].rows] == ["one", "", "", "", " " * 35 + "two"]
