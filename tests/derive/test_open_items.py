"""What the end of an answer leaves open."""

from __future__ import annotations

from everturn.derive.open_items import find_call_questions, find_closing_questions, find_next_steps
from everturn.model.conversation import CallStart


def test_the_question_at_the_end_counts() -> None:
    assert find_closing_questions("All done.\n\nThe tests pass. Shall I push it?") == ["Shall I push it?"]


def test_a_question_before_its_choices_counts() -> None:
    assert find_closing_questions("Which one?\n\n1. this\n2. that") == ["Which one?"]


def test_a_question_in_the_middle_does_not() -> None:
    assert find_closing_questions("Why does it fail? Because of the cache.\n\nI fixed it.") == []
    assert find_closing_questions("") == []


def test_a_question_in_code_does_not() -> None:
    assert find_closing_questions("See:\n\n```\nwhat?\n```") == []


def test_a_call_asks_one_or_several_questions() -> None:
    several = CallStart("c", "ask", "ask", input={"questions": [{"question": "A?"}, {"question": "B?"}]})
    assert find_call_questions(several) == ["A?", "B?"]
    assert find_call_questions(CallStart("c", "ask", "ask", input={"question": "C?"})) == ["C?"]
    assert find_call_questions(CallStart("c", "ask", "ask", input=None)) == []


def test_next_steps_stand_under_their_heading() -> None:
    text = "Done.\n\n## Next steps\n\n1. **Push** it\n2. Tell Ann\n\nThat is all."
    assert find_next_steps(text) == ["**Push** it", "Tell Ann"]
    assert find_next_steps("**Remaining work:**\n- docs\n- tests") == ["docs", "tests"]


def test_next_steps_may_be_a_sentence() -> None:
    assert find_next_steps("All green. Next, I'll write the docs for it.") == ["Next, I'll write the docs for it."]


def test_the_word_next_alone_says_nothing() -> None:
    assert find_next_steps("The next release is far away. Next up") == []


def test_a_next_step_has_at_least_four_words_and_is_no_question() -> None:
    assert find_next_steps("All green. Next, write the docs.") == ["Next, write the docs."]
    assert find_next_steps("All green. Next, the docs.") == []
    assert find_next_steps("All green. Next, shall I write the docs for it?") == []


def test_the_last_three_sentences_that_name_a_next_step_count() -> None:
    steps = [f"Next, I'll write part {n} of the docs." for n in range(5)]
    assert find_next_steps("All green. " + " ".join(steps)) == steps[-3:]
