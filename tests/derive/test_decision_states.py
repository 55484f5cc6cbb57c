"""What was decided up to a turn, and what became of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.derive import decision_states
from everturn.derive.choices import ChoicePassage
from everturn.derive.decision_states import DecisionState, advance_choices, advance_decisions
from everturn.derive.decisions import DecisionMark, likeness
from everturn.derive.failures import Complaint
from everturn.derive.turn_facts import TurnFacts


def turn(number: int, *choices: str) -> TurnFacts:
    return TurnFacts(number, number * 10, choices=tuple(ChoicePassage(one, 1.0, number * 10) for one in choices))


def folded(turns: list[list[str]]) -> tuple[DecisionState, ...]:
    known: tuple[DecisionState, ...] = ()
    for number, choices in enumerate(turns):
        known = advance_choices(known, (), turn(number, *choices), None)
    return known


def test_words_are_read_once_however_long_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def counted(text: str) -> str:
        read.append(text)
        return likeness(text)

    monkeypatch.setattr(decision_states, "likeness", counted)
    folded([[f"Baskets of kind {number} go to store {number}."] for number in range(300)])
    assert len(read) == 300


def test_decisions_of_a_state_without_keys_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = (DecisionState("use Redis", 0, 1, "marker"), DecisionState("one shop only", 0, 1, "marker"))
    facts = TurnFacts(1, 9, marks=((DecisionMark("Use redis!", "marker"), 7), (DecisionMark("no login", "marker"), 8)))
    found = advance_decisions(kept, facts, None)
    assert [one.text for one in found] == ["use Redis", "one shop only", "no login"]
    monkeypatch.setattr(decision_states, "likeness", lambda text: pytest.fail("read again"))
    assert advance_decisions(found, TurnFacts(2, 12), None) == found


@given(
    st.lists(
        st.lists(st.sampled_from(["use Redis", "Use redis!", "one shop", "no login", "…"]), max_size=4), max_size=6
    )
)
def test_the_same_words_count_once_at_their_first_place(turns: list[list[str]]) -> None:
    known = folded(turns)
    first = dict[str, tuple[str, int]]()
    for number, choices in enumerate(turns):
        for one in choices:
            first.setdefault(likeness(one) or one, (one, number))
    assert [(one.text, one.turn) for one in known] == list(first.values())


def test_the_same_word_to_two_questions_is_two_decisions() -> None:
    known: tuple[DecisionState, ...] = ()
    for number, question in enumerate(("Shall I paint the pier?", "Shall I oil the crane?")):
        reply = DecisionState("yes", number, number * 10, "agreement", about=question, about_seq=number * 10 - 1)
        known = advance_decisions(known, TurnFacts(number, number * 10 + 5), reply)
    assert [one.about for one in known] == ["Shall I paint the pier?", "Shall I oil the crane?"]


def test_a_report_of_trouble_denies_what_the_turn_before_says_was_chosen() -> None:
    known = folded([["Baskets live in PostgreSQL."], ["The page shows the sum."]])
    trouble = TurnFacts(2, 29, complaints=((Complaint("the page is empty"), 25),))
    assert [one.denied for one in advance_choices(known, (), trouble, None)] == [False, True]
