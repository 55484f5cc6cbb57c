"""Summary blocks: what is asked for, what is found in an answer, what is made without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.chat.summaries import END, START, extract, mechanical_text, prompt_for
from everturn.derive.decision_states import DecisionState
from everturn.derive.open_failures import OpenFailure
from everturn.derive.session_state import SessionState, TurnRequest

BLOCK = "**Background Context:** Initial session.\n\n**Current Session Summary:**\n**Topics Discussed:**\n- a\n"


def marked(text: str) -> str:
    return f"{START}\n{text}\n{END}"


def test_the_prompt_is_that_of_the_document() -> None:
    first, later = prompt_for("talk"), prompt_for("talk", "before")
    assert first.startswith(
        "Generate a progressive session summary:\n\n**Current Session:**\ntalk\n\nCreate a structured"
    )
    assert "Condense this previous summary to 1-2 sentences:\nbefore\n\n**Current Session:**" in later
    assert later.endswith(f"{START}\n[your summary here]\n{END}") and "less than 500 words" in later


def test_the_last_well_formed_block_counts() -> None:
    newer = BLOCK.replace("- a", "- b")
    assert extract(f"x {marked(BLOCK)} y {marked(newer)} z") == newer.strip()
    assert extract(f"{marked(newer)}\n{END} {START} torn") == newer.strip()
    assert extract(f"you said {START} and {END}, so: {marked(newer)}") == newer.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no marks",
        START,
        END,
        f"{END} {START}",
        marked(""),
        marked("[your summary here]"),
        f"{START}\n{BLOCK}",
        prompt_for("x"),
    ],
)
def test_what_is_no_summary_is_none(text: str) -> None:
    assert extract(text) is None


def test_a_long_summary_is_taken_whole() -> None:
    text = BLOCK + "- more\n" * 5000
    assert extract(marked(text)) == text.strip()


@given(st.lists(st.sampled_from(["a", " ", "\n", START, END]), max_size=40))
def test_words_with_marks_in_them_never_break_the_search(noise: list[str]) -> None:
    found = extract(f"{''.join(noise)}\n{marked(BLOCK)}")
    assert found is not None and "- a" in found


def test_the_mechanical_block_has_the_same_form_and_says_what_is_open() -> None:
    state = SessionState(
        requests=(TurnRequest("build it", 0, 0),),
        constraints=(DecisionState("never use an ORM", 0, 0, "pin", True),),
        failing=(OpenFailure("pytest", "1 failed", 0, 3, 0, 3),),
    )
    text = mechanical_text(state)
    assert extract(marked(text)) == text
    assert "Initial session." in text and "- build it" in text and "- never use an ORM" in text
    assert "- still fails: pytest" in text
    assert "Earlier: a; b" in mechanical_text(state, "**Topics Discussed:**\n- a\n- b")
