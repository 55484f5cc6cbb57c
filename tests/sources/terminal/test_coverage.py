"""What was shown and is in no talk is reported with its place, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from everturn.sources.terminal.coverage import ScreenCoverage, ScreenPassage, ScreenWitness, compare
from everturn.sources.terminal.frames import PaintedRow, ScreenFrame, ScreenLayout, cut_row
from everturn.sources.terminal.transcript import DrawnCall, DrawnSaying, ScreenTalk
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.screens import Panels, Prompts
from tests.sources.terminal.sketches import paint_rows


def talk(*said: DrawnSaying) -> ScreenTalk:
    return ScreenTalk("boxes", said)


def user(text: str) -> DrawnSaying:
    return DrawnSaying("user", text=text, author="ada", time_text="02:36 PM")


def model(text: str = "", **fields: object) -> DrawnSaying:
    return DrawnSaying("assistant", text=text, **fields)  # type: ignore[arg-type]


class Watched:
    """A witness that is shown frames of one hundred bytes each. As in a replay, equal rows are the same object."""

    def __init__(self) -> None:
        self.witness = ScreenWitness()
        self.place = 0
        self.rows: dict[str, PaintedRow] = {}

    def show(self, *lines: str, times: int = 2, typed: str | None = "", state: str = "talk") -> None:
        """Show the same rows in some frames."""
        rows = [self.rows.setdefault(line, paint_rows([line])[0]) for line in lines]
        for _ in range(times):
            self.show_rows(rows, typed, state)

    def show_rows(self, rows: Sequence[PaintedRow], typed: str | None = "", state: str = "talk") -> None:
        frame = ScreenFrame(rows, "sync", True, self.place, self.place + 100, None)
        self.witness.see(ScreenLayout("boxes", rows, state, typed=typed), frame)
        self.place += 100

    def type(self, *texts: str | None) -> None:
        """Show the input field with one text after the other."""
        for text in texts:
            self.show(times=1, typed=text)

    def compare(self, *said: DrawnSaying) -> ScreenCoverage:
        return compare(self.witness, [talk(*said)])


def missing(coverage: ScreenCoverage) -> list[str]:
    return [passage.text for passage in coverage.missing]


# rows -----------------------------------------------------------------------------------------------------------------
def test_nothing_shown_is_nothing_missing() -> None:
    assert compare(ScreenWitness(), []) == ScreenCoverage()
    assert ScreenCoverage().share == 1


def test_what_is_in_a_talk_is_not_missing_however_it_was_wrapped() -> None:
    watched = Watched()
    watched.show("  ┃  a question that   ┃", "  ┃  was wrapped       ┃", "     an answer in", "     two rows")
    assert watched.compare(user("a question that was wrapped"), model("an answer in two rows")).share == 1


def test_a_row_in_no_talk_is_reported_and_lowers_the_share() -> None:
    watched = Watched()
    watched.show("     known", "  ┃  never read  ┃")
    coverage = watched.compare(model("known"))
    assert missing(coverage) == ["never read"]
    assert coverage.shown == len("known") + len("neverread")
    assert coverage.share == pytest.approx(len("known") / len("knownneverread"))


def test_the_bytes_reported_are_those_that_drew_the_row() -> None:
    watched = Watched()
    watched.show("     known", times=3)
    watched.show("     known", "     never read", times=3)
    (passage,) = watched.compare(model("known")).missing
    assert passage.first <= 300 < passage.last


def test_the_share_is_never_below_nothing() -> None:
    watched = Watched()
    watched.show("     ▣  Build · m · 1m 5s")
    assert watched.compare().share == 0


def test_a_conversation_beside_a_sidebar_is_watched_too() -> None:
    client = Panels(140, 30)
    client.side = ["Fixing the parser", "", "Context", "12,345 tokens", "6% used"]
    client.ask("what is it?")
    client.answer("it is this")
    client.draw()
    head = b'Script started on 2025-12-22 14:19:12-06:00 [TERM="xterm-256color" COLUMNS="140" LINES="30"]\n'
    witness = ScreenWitness()
    transcribe(head + client.close(), witness=witness)
    assert missing(compare(witness, [])) == ["what is it?", "it is this"]


def test_a_row_that_is_still_being_written_is_no_witness() -> None:
    watched = Watched()
    for end in range(3, 16):
        watched.show("     word by word"[: 5 + end], times=1)
    watched.show("     word by word", times=1)
    assert missing(watched.compare()) == ["word by word"]


def test_a_row_counts_once_however_often_it_is_shown() -> None:
    watched = Watched()
    for _ in range(5):
        watched.show("     never read", "     never read")
    assert missing(watched.compare()) == ["never read"]


def test_without_any_talk_everything_is_missing() -> None:
    watched = Watched()
    watched.show("     one thing", "     another thing")
    coverage = compare(watched.witness, [])
    assert missing(coverage) == ["one thing", "another thing"]
    assert coverage.share == 0


@pytest.mark.parametrize(
    "row",
    ["", "  ┃      ┃", "─────────", "ab", "...", "     Generating...", " QUEUED ", "  Click to expand", "     ~ Writing command..."],
)  # fmt: skip
def test_frames_spinners_and_waiting_marks_say_nothing(row: str) -> None:
    watched = Watched()
    watched.show(row)
    assert watched.compare() == ScreenCoverage()


def test_a_spinner_in_front_and_a_duration_behind_do_not_count() -> None:
    watched = Watched()
    watched.show("     ⠋ Reading the file", "     ⠙ Reading the file", "     ▣  Build · m · 1m 5s")
    assert watched.compare(model("Reading the file", mode="Build", model="m")).share == 1


def test_everything_a_call_says_is_in_the_talk() -> None:
    call = DrawnCall(
        "bash", title="Run tests", command="pytest -q", output="2 passed\nin a second", steps=("Read a.py",), diagnostics=("unbound name",)
    )  # fmt: skip
    watched = Watched()
    watched.show("Run tests", "pytest -q", "2 passed", "in a second", "Read a.py", "unbound name", "not in it")
    assert missing(watched.compare(model(calls=(call,)))) == ["not in it"]


def test_thoughts_names_and_times_are_in_the_talk() -> None:
    watched = Watched()
    watched.show("a deep thought", "ada (02:36 PM)", "Build glm (02:37 PM)", "notes.txt")
    said = model(thinking="a deep thought", mode="Build", model="glm", time_text="02:37 PM", attached=("notes.txt",))
    assert watched.compare(user("what?"), said).share == 1


def test_the_row_that_a_toast_cuts_off_is_no_witness() -> None:
    watched = Watched()
    whole, *_ = paint_rows(["a line that goes on below the toast"])
    hidden = cut_row(whole, 12)
    watched.show_rows([hidden])
    watched.show_rows([hidden])
    assert watched.compare() == ScreenCoverage()


@pytest.mark.parametrize("state", ["home", "covered"])
def test_only_the_conversation_counts(state: str) -> None:
    watched = Watched()
    watched.show("a menu of many things", state=state)
    assert watched.compare() == ScreenCoverage()


# the input field ------------------------------------------------------------------------------------------------------
def test_text_that_left_the_field_and_is_a_prompt_is_answered() -> None:
    watched = Watched()
    watched.type("", "make", "make it blue", "")
    assert watched.compare(user("make it blue")).unanswered == ()


def test_text_that_left_the_field_and_is_no_prompt_is_reported_with_its_place() -> None:
    watched = Watched()
    watched.type("", "make", "make it blue", "make it blue", "")
    assert watched.compare(user("something else")).unanswered == (ScreenPassage("make it blue", 200, 500),)


def test_a_prompt_may_go_on_beyond_what_the_field_showed() -> None:
    watched = Watched()
    watched.type("the first line", "")
    assert watched.compare(user("the first\nline and a second one")).unanswered == ()


def test_one_prompt_answers_for_one_of_two_equal_texts() -> None:
    watched = Watched()
    watched.type("continue", "", "continue", "")
    assert [(one.first, one.last) for one in watched.compare(user("continue")).unanswered] == [(200, 400)]
    assert watched.compare(user("continue"), user("continue")).unanswered == ()


def test_words_of_the_model_are_no_prompt() -> None:
    watched = Watched()
    watched.type("make it blue", "")
    assert [one.text for one in watched.compare(model("make it blue")).unanswered] == ["make it blue"]


@pytest.mark.parametrize("typed", ["/new", "!ls -l", "ok", " "])
def test_commands_and_a_letter_or_two_are_not_expected_to_be_prompts(typed: str) -> None:
    watched = Watched()
    watched.type(typed, "")
    assert watched.compare().unanswered == ()


def test_a_field_that_is_hidden_for_a_while_sends_nothing() -> None:
    watched = Watched()
    watched.type("make it", None, None, "make it blue", "")
    assert watched.compare(user("make it blue")).unanswered == ()


def test_text_still_in_the_field_at_the_end_was_not_sent() -> None:
    watched = Watched()
    watched.type("not sent yet")
    assert watched.compare().unanswered == ()


def test_text_sent_from_the_home_screen_counts() -> None:
    watched = Watched()
    watched.show(typed="the first question", state="home")
    watched.show(typed="")
    assert [one.text for one in watched.compare().unanswered] == ["the first question"]


def test_a_frame_that_no_layout_fits_is_watched() -> None:
    witness = ScreenWitness()
    rows = [PaintedRow("Select a model", "Select a model", "")]
    witness.see_other(ScreenFrame(rows, "sync", True, 10, 20, None))
    assert [passage.text for passage in compare(witness, []).missing] == ["Select a model"]


@pytest.mark.parametrize(
    "shown", ["[Pasted ~14 lines]", "[pasted #1 8+ lines]", "see [Pasted text #2 +40 lines] there"]
)
def test_pasted_lines_are_answered_for_by_the_prompt_that_holds_the_rest(shown: str) -> None:
    watched = Watched()
    watched.type("", shown, "")
    said = replace(user("see the first\nand the second there"), bytes=(100, 300))
    assert watched.compare(said).unanswered == ()
    assert len(watched.compare(replace(said, text="something else", bytes=(0, 0))).unanswered) == 1


def test_a_field_caught_while_it_was_drawn_was_not_sent() -> None:
    watched = Watched()
    watched.type("half a", "", "half a sentence", "")
    assert watched.compare(user("half a sentence")).unanswered == ()


# the main screen ------------------------------------------------------------------------------------------------------
def watch_main_screen(client: Prompts) -> ScreenWitness:
    witness = ScreenWitness()
    head = b'Script started on 2025-12-22 14:19:12-06:00 [TERM="xterm-256color" COLUMNS="100" LINES="30"]\n'
    transcribe(head + client.close(), witness=witness)
    return witness


def test_what_left_the_input_field_of_the_main_screen_is_a_witness_too() -> None:
    client = Prompts()
    for number in range(3):
        client.ask(f"question {number} of some words")
        client.answer(f"answer {number}")
    witness = watch_main_screen(client)
    assert [passage.text for passage in witness.sent] == [f"question {number} of some words" for number in range(3)]
    unread = compare(witness, [talk(user("question 0 of some words"), user("question 2 of some words"))]).unanswered
    assert [passage.text for passage in unread] == ["question 1 of some words"]


def test_a_suggestion_in_an_empty_field_was_not_sent() -> None:
    client = Prompts()
    client.say([], typed='Try "fix lint errors"')
    client.ask("a question")
    client.answer("an answer")
    assert [passage.text for passage in watch_main_screen(client).sent] == ["a question"]
