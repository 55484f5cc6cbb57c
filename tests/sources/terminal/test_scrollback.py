"""The main screen keeps every line that was shown, once, however often and however wide it is drawn again."""

from __future__ import annotations

import re
from itertools import accumulate

import pytest

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import ScreenTalk
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.main_screens import HEAD, ROWS, MainSession, played

SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 20))]
RULE = "─" * 60


def letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text)


def lines(data: bytes) -> list[str]:
    """The lines of the main screen."""
    return [line.text for segment in transcribe(data).segments for line in segment.lines if line.text]


def prompts(talks: list[ScreenTalk]) -> list[str]:
    return [letters(item.text) for talk in talks for item in talk.said if item.role == "user"]


def commands(talks: list[ScreenTalk]) -> list[str]:
    return [call.command for talk in talks for item in talk.said for call in item.calls if call.command]


def read(data: bytes) -> list[ScreenTalk]:
    return read_screens(transcribe(data))


# sessions of any kind -------------------------------------------------------------------------------------------------
@pytest.mark.few(6)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_said_is_there_once_and_in_order(seed: int) -> None:
    session = played(seed)
    text = letters("".join(lines(session.data)))
    places = []
    for said in [part for pair in zip(session.prompts, session.answers, strict=True) for part in pair]:
        assert text.count(letters(said)) == 1, said
        places.append(text.index(letters(said)))
    assert places == sorted(places)


@pytest.mark.few(6)
@pytest.mark.parametrize("seed", SEEDS)
def test_prompts_are_read_as_they_were_sent_and_calls_that_went_away_stay(seed: int) -> None:
    session = played(seed)
    talks = read(session.data)
    assert prompts(talks) == [letters(prompt) for prompt in session.prompts]
    assert commands(talks) == session.calls


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_part_of_the_recording_tells_the_whole_tells_too(seed: int) -> None:
    session = played(seed)
    for end in cuts(session, 25):
        talks = read(session.data[:end])
        found = prompts(talks)
        assert found == [letters(prompt) for prompt in session.prompts[: len(found)]], end
        assert commands(talks) == session.calls[: len(commands(talks))], end


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_that_a_complete_drawing_showed_is_never_lost(seed: int) -> None:
    session = played(seed)
    ends = list(accumulate(map(len, session.writes), initial=len(HEAD)))
    whole = letters("".join(lines(session.data)))
    for end in ends[1 :: max(1, len(ends) // 25)]:
        for line in lines(session.data[:end]):
            if line.startswith("  ⎿") or (line[:2] in ("❯ ", "● ") and len(line) < 60):
                assert letters(line) in whole, (end, line)


def cuts(session: MainSession, many: int) -> list[int]:
    """Places all over a recording, most of them in the middle of a drawing."""
    size = len(session.data)
    return [len(HEAD) + (size - len(HEAD)) * n // many + n % 7 for n in range(1, many)]


# single situations ----------------------------------------------------------------------------------------------------
def screen(*writes: str) -> list[str]:
    return lines(HEAD + "".join(writes).encode())


def field(typed: str = "") -> str:
    return f"{RULE}\r\n❯ {typed}\r\n{RULE}\r\n  ? for shortcuts"


UP = "\x1b[3A\r\x1b[J"


def test_typed_text_that_is_taken_back_is_no_line() -> None:
    text = screen("● Hi there.\r\n", field(), UP, field("hello"), UP, field(), UP, field("other"), UP, field(), UP)
    assert text == ["● Hi there."]


def test_a_line_that_vanishes_stays_in_its_place() -> None:
    text = screen(
        "● one\r\n● two is here\r\n● three\r\n", field(), "\x1b[6A\r\x1b[J● one\r\n● three\r\n", field(), UP, field()
    )
    assert text[:3] == ["● one", "● two is here", "● three"]


def test_a_line_that_moves_comes_once() -> None:
    first = "● alpha is first\r\n● beta is second\r\n● gamma is third\r\n"
    second = "● gamma is third\r\n● alpha is first\r\n● beta is second\r\n"
    text = screen(first, field(), "\x1b[6A\r\x1b[J", second, field(), UP, field())
    assert sorted(text[:3]) == ["● alpha is first", "● beta is second", "● gamma is third"]
    assert text[3] == RULE


def test_a_cleared_screen_that_shows_another_conversation_takes_nothing_away() -> None:
    banner = " ▐▛███▜▌   Claude Code v2.1.197\r\n\r\n"
    text = screen(banner, "❯ yes\r\n\r\n● Done.\r\n", field(), "\x1b[2J\x1b[3J\x1b[H", banner, "❯ /clear\r\n", field(), UP, "❯ yes\r\n", field(), UP, field())  # fmt: skip
    assert [line for line in text if line.startswith("❯ ")] == ["❯ yes", "❯ /clear", "❯ yes"]


def test_equal_prompts_stay_as_many_as_they_were_through_a_redraw() -> None:
    said = "❯ yes\r\n\r\n● Done with it.\r\n\r\n" * 3
    text = screen(said, field(), "\x1b[2J\x1b[3J\x1b[H", said, field(), UP, field())
    assert text.count("❯ yes") == 3
    assert text.count("● Done with it.") == 3


def test_a_screen_wiped_row_by_row_and_drawn_wrapped_again_comes_once() -> None:
    wide = "● the quick brown fox jumps over the lazy dog again and again today\r\n"
    narrow = "● the quick brown fox jumps over\r\n  the lazy dog again and again\r\n  today\r\n"
    wiped = "\x1b[H" + "\x1b[2K\x1b[1B" * ROWS + "\x1b[H"
    text = screen("❯ go\r\n", wide, field(), wiped, "❯ go\r\n", narrow, field(), UP, field())
    assert text[:4] == ["❯ go", "● the quick brown fox jumps over", "  the lazy dog again and again", "  today"]


def test_a_drawing_that_was_cut_off_leaves_the_last_complete_one() -> None:
    text = screen("❯ go\r\n\r\n", field(), "\x1b[3A\r\x1b[J● Goi")
    assert text == ["❯ go"]


def test_what_a_shell_prints_at_the_end_is_kept() -> None:
    text = screen("❯ go\r\n\r\n● Gone.\r\n\r\n", field(), UP, field(), UP, "Resume this session\r\n$ exit\r\n")
    assert text == ["❯ go", "● Gone.", "Resume this session", "$ exit"]
