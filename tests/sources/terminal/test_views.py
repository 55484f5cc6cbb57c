"""Redrawn screens become one clean text: nothing twice, nothing lost, the chrome apart, with evidence for each line."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from everturn.sources.terminal.transcript import TranscriptSegment
from everturn.sources.terminal.views import transcribe
from tests.quick import QUICK
from tests.sources.terminal.known_content import agreement, read, text, timing, typescript
from tests.sources.terminal.redrawing import Style, played

SHAPES = (
    Style(),
    Style(columns=80, rows=24, title=3, home=False),
    Style(columns=160, rows=50, title=0, turns=12),
    Style(columns=150, rows=32, title=1, sidebar=30),
)
STYLES = [
    replace(shape, marks=marks, drawing=drawing)
    for marks in ("sync", "cursor", "none")
    for drawing in ("whole", "changes", "scrolling")
    for shape in SHAPES
]


def style_name(style: Style) -> str:
    return f"{style.marks}-{style.drawing}-{style.columns}x{style.rows}{'-sidebar' if style.sidebar else ''}"


#: Every style without and with times; half of them are left to the slow tests.
PLAYED = [
    pytest.param(
        style, 1 + timed, timed, marks=[] if (number + number // len(SHAPES)) % 2 == timed else [pytest.mark.slow]
    )
    for number, style in enumerate(STYLES)
    for timed in (False, True)
]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("style", "seed", "timed"), PLAYED, ids=lambda one: style_name(one) if isinstance(one, Style) else None
)
def test_a_program_that_redraws_itself_is_read_as_its_text(style: Style, seed: int, timed: bool) -> None:
    session = played(seed, style)
    assert min(agreement(session.truth, text(read(style, session, timed), style))) >= 0.99


@pytest.mark.parametrize("many", [8, pytest.param(24, marks=pytest.mark.slow)])
def test_the_transcript_of_many_sessions_is_nearly_perfect(many: int) -> None:
    found = []
    for seed in range(100, 100 + (many // 2 if QUICK else many)):
        style = STYLES[seed % len(STYLES)]
        session = played(seed, style)
        found.append(agreement(session.truth, text(read(style, session), style)))
    assert sum(one.recall for one in found) / len(found) >= 0.995
    assert sum(one.precision for one in found) / len(found) >= 0.995


def test_scrolling_back_adds_nothing() -> None:
    style = Style(turns=10, menus=False)
    quiet = Style(turns=10, menus=False, scrolls_back=False)
    assert text(read(style, played(4, style)), style) == played(4, style).truth
    assert text(read(quiet, played(4, quiet)), quiet) == played(4, quiet).truth


def test_title_and_footer_show_the_chrome_as_it_was_last() -> None:
    style = Style()
    *_, segment = [one for one in read(style, played(3, style)).segments if one.alternate]
    assert segment.title.startswith("# ")
    assert "/share" in segment.title
    assert segment.footer.endswith("v0.13")
    assert "enter send" in segment.footer
    assert not any("enter send" in line.text or "/share" in line.text for line in segment.lines)


def test_a_sidebar_goes_to_the_title() -> None:
    style = Style(columns=150, sidebar=30)
    *_, segment = [one for one in read(style, played(3, style)).segments if one.alternate]
    assert {"Context", "LSP ready", "src/main.py +3"} <= set(segment.title.split("\n"))
    assert not any("LSP ready" in line.text for line in segment.lines)


def test_the_home_screen_is_a_segment_of_its_own() -> None:
    style = Style()
    home, *others = [one for one in read(style, played(3, style)).segments if one.alternate]
    assert any("Ask anything" in line.text for line in home.lines)
    assert not any("Ask anything" in line.text for one in others for line in one.lines)


def test_a_session_that_never_scrolled_has_its_input_box_apart() -> None:
    style = Style(turns=1, rows=50, home=False)
    session = played(12, style)
    (segment,) = [one for one in read(style, session).segments if one.alternate]
    assert [line.text for line in segment.lines if line.text] == session.truth
    assert "enter send" in segment.footer


# evidence -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("drawing", ["whole", "changes"])
def test_every_line_was_drawn_where_its_evidence_says(drawing: str) -> None:
    style = Style(drawing=drawing)
    session = played(5, style)
    data = typescript(style, session.data)
    *_, segment = [one for one in transcribe(data).segments if one.alternate]
    for line in segment.lines:
        assert line.text.strip().encode() in data[line.first : line.last], line
    told = [line.first for line in segment.lines if line.text.strip(" ┃")]
    assert sum(before <= after for before, after in itertools.pairwise(told)) >= 0.95 * len(told)


def test_lines_have_colours_and_times() -> None:
    style = Style()
    session = played(5, style)
    data = typescript(style, session.data)
    transcript = transcribe(data, "typescript", timing(session))
    *_, segment = [one for one in transcript.segments if one.alternate]
    boxed = [line for line in segment.lines if line.text.startswith("  ┃")]
    assert {run.colour for line in boxed for run in line.runs} == {0x5C9CF5}
    assert {line.runs[0].start for line in boxed} == {2}
    assert transcript.started is not None
    assert transcript.ended == transcript.started + 50 * len(session.writes)
    times = [line.at for line in segment.lines if line.text.strip(" ┃")]
    assert all(at is not None and transcript.started <= at <= transcript.ended for at in times)


# single situations ----------------------------------------------------------------------------------------------------
ROWS = 12
HEAD = b'Script started on 2025-12-22 14:19:12-06:00 [COLUMNS="60" LINES="%d"]\n' % ROWS


def screens(
    *contents: list[str], footer: tuple[str, ...] = ("", "> input here", "status line")
) -> list[TranscriptSegment]:
    """Segments of a program that shows these texts one after the other, each down to its end."""
    height = ROWS - len(footer)
    drawn = []
    for content in contents:
        rows = (content[-height:] + [""] * height)[:height] + list(footer)
        drawn.append("\x1b[?2026h\x1b[H" + "\r\n".join(f"\x1b[2K{row}" for row in rows) + "\x1b[?2026l")
    data = HEAD + ("\x1b[?1049h" + "".join(drawn) + "\x1b[?1049l").encode()
    return [segment for segment in transcribe(data).segments if segment.alternate]


def growing(content: list[str], start: int = 1) -> list[list[str]]:
    return [content[:end] for end in range(start, len(content) + 1)]


def lines(segment: TranscriptSegment) -> list[str]:
    return [line.text for line in segment.lines if line.text]


SENTENCES = [f"sentence number {number} says {number * 7}" for number in range(40)]


def test_text_taller_than_the_screen_is_put_together_line_by_line() -> None:
    (segment,) = screens(*growing(SENTENCES))
    assert lines(segment) == SENTENCES
    assert not segment.cut_top
    assert segment.footer == "> input here\nstatus line"


def test_equal_lines_sent_again_stay_separate() -> None:
    content = []
    for number in range(12):
        content += ["continue", "user (02:36 PM)", f"answer {number}", "Done."]
    (segment,) = screens(*growing(content))
    assert lines(segment) == content


def test_a_line_that_grows_and_a_placeholder_that_becomes_a_result_replace_themselves() -> None:
    result = [*SENTENCES[:5], "Edit main.py", "- old", "+ new"]
    answers = [[*result, "It is done."[:end]] for end in range(2, 12, 3)]
    (segment,) = screens([*SENTENCES[:5], "Preparing edit..."], result, *answers)
    assert lines(segment) == [*result, "It is done."]


def test_lines_that_come_in_above_the_end_push_nothing_out() -> None:
    before = SENTENCES[:20]
    after = [*SENTENCES[:18], "inserted one", "inserted two", *SENTENCES[18:20]]
    (segment,) = screens(*growing(before), after)
    assert lines(segment) == after


def test_a_gap_begins_a_new_segment_that_says_its_top_was_cut() -> None:
    first, second = screens(*growing(SENTENCES[:15]), SENTENCES[:40])
    assert lines(first) == SENTENCES[:15]
    assert lines(second) == SENTENCES[31:40]
    assert (first.cut_top, second.cut_top) == (False, True)


def test_a_new_session_in_the_same_program_is_a_new_segment_and_the_old_one_stays_whole() -> None:
    old, new = SENTENCES[:15], [f"another thing {number}" for number in range(4)]
    first, second = screens(*growing(old), *growing(new))
    assert (lines(first), lines(second)) == (old, new)


def test_a_menu_over_the_whole_screen_does_not_tear_the_text_apart() -> None:
    menu = [f"({letter}) choose {letter * 3}" for letter in "abcdefghi"]
    first, second = screens(*growing(SENTENCES[:15]), menu, menu, *growing(SENTENCES[:20], 15))
    assert (lines(first), lines(second)) == (SENTENCES[:20], menu)


def test_jumping_to_the_first_line_and_back_adds_nothing() -> None:
    whole = SENTENCES
    (segment,) = screens(*growing(whole), whole[:9], whole[3:12], whole)
    assert lines(segment) == whole


def test_scrolling_back_to_what_was_never_seen_puts_it_in_front() -> None:
    (segment,) = screens(SENTENCES[:30], SENTENCES[:28], SENTENCES[:26], SENTENCES[:24], SENTENCES[:30])
    assert lines(segment) == SENTENCES[15:30]


def test_a_screen_that_changes_as_a_whole_all_the_time_is_not_piled_up() -> None:
    pages = [[f"process {number * page % 97} of page {page}" for number in range(9)] for page in range(1, 60)]
    assert len(screens(*pages)) <= 9


def test_a_frame_that_begins_with_the_last_line_of_the_text_goes_on_with_it() -> None:
    (segment,) = screens(*growing(SENTENCES[:20]), SENTENCES[:28])
    assert lines(segment) == SENTENCES[:28]


def test_lines_that_are_never_rare_are_joined_by_what_most_of_them_say() -> None:
    content = [line for number in range(8) for line in ("yes", f"no {number % 3}", "yes", "maybe", f"no {number % 2}")]
    (segment,) = screens(*growing(content))
    assert lines(segment) == content


def test_an_input_box_that_grows_takes_nothing_away() -> None:
    small, large = (
        ("", "> input here", "status line"),
        ("", "> input here", "> and more of it", "> and more", "status line"),
    )
    height = ROWS - len(small)
    drawn = [(SENTENCES[:end], small) for end in range(1, 20)] + [(SENTENCES[:19], large)] * 2
    drawn += [(SENTENCES[:end], small) for end in range(19, 26)]
    frames = []
    for content, footer in drawn:
        rows = (content[-(ROWS - len(footer)) :] + [""] * height)[: ROWS - len(footer)] + list(footer)
        frames.append("\x1b[?2026h\x1b[H" + "\r\n".join(f"\x1b[2K{row}" for row in rows) + "\x1b[?2026l")
    data = HEAD + ("\x1b[?1049h" + "".join(frames) + "\x1b[?1049l").encode()
    (segment,) = [one for one in transcribe(data).segments if one.alternate]
    assert lines(segment) == SENTENCES[:25]


def test_a_sidebar_is_found_without_scrolling_and_given_up_when_it_goes() -> None:
    side = ["", "Context", "12 tokens", "Modified", "main.py", "LSP ready", "", "", ""]

    def beside(content: list[str]) -> list[str]:
        rows = content[-9:] + [""] * 9
        return [f"{rows[number]:<40}{text}" for number, text in enumerate(side)]

    short = [f"thing {letter} is short" for letter in "abcdef"]
    (segment,) = screens(*(beside(content) for content in growing(short)))
    assert lines(segment) == short
    assert "LSP ready" in segment.title
    long = [f"{sentence} and goes on until the right edge" for sentence in SENTENCES[:20]]
    shown = screens(*(beside(content) for content in growing(SENTENCES[:20])), *growing(long, 9))
    assert [line for one in shown for line in lines(one)][-20:] == long


# the main screen ------------------------------------------------------------------------------------------------------
def main_screen(output: str) -> list[list[str]]:
    return [lines(segment) for segment in transcribe(HEAD + output.encode()).segments if not segment.alternate]


def test_the_main_screen_is_what_scrolled_off_and_what_is_left() -> None:
    assert main_screen("".join(f"{sentence}\r\n" for sentence in SENTENCES)) == [SENTENCES]


def test_a_lower_part_that_is_drawn_again_and_again_comes_out_once() -> None:
    box = "─────\r\n> typing{}\r\n─────\r\n"
    output = ""
    for number in range(20):
        output += f"answer {number}\r\n" + box.format(number) + "\x1b[3A\r\x1b[J"
    assert main_screen(output + box.format("")) == [
        [*(f"answer {number}" for number in range(20)), "─────", "> typing", "─────"]
    ]


def test_what_was_cleared_is_kept() -> None:
    assert main_screen("one\r\ntwo\r\n\x1b[H\x1b[2J\x1b[3Jthree\r\n\x1b[H\x1b[Jfour") == [
        ["one", "two", "three", "four"]
    ]


def test_what_was_cleared_and_printed_again_comes_out_once() -> None:
    history = "".join(f"{sentence}\r\n" for sentence in SENTENCES[:30])
    again = "\x1b[2J\x1b[3J\x1b[H" + history
    assert main_screen(history + again + again + "the end\r\n") == [[*SENTENCES[:30], "the end"]]


def test_the_shell_before_and_after_a_full_screen_program_is_in_its_place() -> None:
    output = "$ one\r\n$ agent\r\n\x1b[?1049hfull screen\x1b[?1049l$ two\r\n"
    segments = transcribe(HEAD + output.encode()).segments
    assert [(segment.alternate, lines(segment)) for segment in segments] == [
        (False, ["$ one", "$ agent"]),
        (True, ["full screen"]),
        (False, ["$ two"]),
    ]


def test_a_screen_scrolled_away_with_a_few_bytes_does_not_fill_the_memory() -> None:
    segments = transcribe(HEAD + b"top\r\n" + b"\x1b[99S" * 20_000 + b"end").segments
    assert sum(len(segment.lines) for segment in segments) < 150


def test_clipboards_and_titles_are_not_in_the_transcript() -> None:
    output = b"before\r\n\x1b]52;c;c2VjcmV0\x07\x1b]0;a title\x07\x1bPsecret\x1b\\after\r\n"
    assert main_screen(output.decode()) == [["before", "after"]]
