"""Hints about what has left the window, and the many prompts that need none."""

from __future__ import annotations

import pytest

from benchmarks.labelled import PROMPTS
from everturn.derive.references import HINT, PHRASES, find_reference, phrases_in

ELSEWHERE = ("Paint the fence green.", "The fence is green now.")


def test_the_hint_has_the_agreed_words() -> None:
    assert HINT == (
        "[System: The user may be referencing earlier conversation that is no longer in your context window. Use the "
        "conversation_recall tool to search for relevant context before proceeding.]"
    )


def test_there_are_fourteen_phrases() -> None:
    assert len(set(PHRASES)) == 14


@pytest.mark.parametrize("phrase", PHRASES)
@pytest.mark.parametrize("turned", [str.lower, str.upper, str.title])
def test_every_phrase_gives_the_hint_in_any_case_when_nothing_is_in_the_window(phrase: str, turned: type) -> None:
    assert find_reference(f"Well, {turned(phrase)} the zebra migration, please.", []) == HINT


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_within_longer_words_is_none(phrase: str) -> None:
    assert find_reference(f"Write x{phrase}x into it.", ELSEWHERE) is None


def test_a_prompt_without_a_phrase_needs_no_hint() -> None:
    assert find_reference("Write a zebra migration.", []) is None
    assert find_reference("", []) is None


def test_what_the_window_speaks_of_needs_no_hint() -> None:
    said = "The zebra migration is in place."
    assert find_reference("Do the zebra migration as before.", [*ELSEWHERE, said]) is None
    assert find_reference("Do the zebra migration as before.", ELSEWHERE) == HINT


def test_words_scattered_over_the_window_do_not_count() -> None:
    scattered = ["A zebra.", "Some migration.", "A tortoise.", "An invoice."]
    assert find_reference("Remember when the zebra migration hit the tortoise invoice?", scattered) == HINT


@pytest.mark.parametrize(
    ("prompt", "held"),
    [
        ("Open that file.", "I wrote notes/plan.md"),
        ("Explain that error.", "ImportError: no module"),
        ("Rename that function.", "def parse(text):"),
        ("Explain that error.", "2 tests failed"),
    ],
)
def test_a_thing_that_stands_in_the_window_needs_no_hint(prompt: str, held: str) -> None:
    assert find_reference(prompt, [*ELSEWHERE, held]) is None
    assert find_reference(prompt, ELSEWHERE) == HINT


def test_a_previous_conversation_is_never_in_the_window() -> None:
    assert find_reference("Use the fence colour from the previous conversation.", ELSEWHERE) == HINT


def test_only_the_writers_own_words_count() -> None:
    assert find_reference("```\nas I said, zebra\n```\n> that file\n\nWhat is this?", ELSEWHERE) is None


def test_most_of_the_labelled_prompts_come_out_as_labelled() -> None:
    given = [(one.dangling, find_reference(one.prompt, one.window) is not None) for one in PROMPTS]
    hints = [dangling for dangling, hint in given if hint]
    assert len(PROMPTS) >= 60
    assert sum(hints) / len(hints) >= 0.9
    assert sum(hints) / sum(dangling for dangling, _ in given) >= 0.85


def test_the_phrases_alone_are_found_too() -> None:
    assert phrases_in("As Before, that  file: earlierish") == ["as before", "that  file"]


def test_a_long_window_and_odd_texts_do_no_harm() -> None:
    assert find_reference("as before " * 10_000, ["\x00\ud800" * 1000]) in (None, HINT)
    assert find_reference("Do the zebra thing as before.", ["zebra " * 200_000]) is None
