"""What a turn says was chosen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.derive.choices import (
    SPEAKERS,
    ChoicePassage,
    PlacedChoice,
    Spoken,
    SpokenTurn,
    choice_odds,
    choose_passages,
    find_choices,
    find_proposed,
)
from everturn.derive.decisions import likeness

WORDS = st.sampled_from(
    "instead because store baskets cache Redis files 缓存 改用 保存 変更 原因 fixed switched keep only uses now the a".split()
)
SENTENCE = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["C", "Z"]), max_size=300), st.lists(SENTENCE, max_size=8).map("\n- ".join)
)
MESSAGES = st.lists(st.tuples(TEXT, st.sampled_from(SPEAKERS)), max_size=5).map(
    lambda found: [Spoken(text, seq, by) for seq, (text, by) in enumerate(found)]
)
PASSAGES = st.lists(st.tuples(SENTENCE, st.floats(-2, 3)), max_size=25).map(
    lambda found: [ChoicePassage(text, weight, seq) for seq, (text, weight) in enumerate(found)]
)


def bare(text: str) -> str:
    return "".join(one for one in text if one.isalnum())


@st.composite
def turns(draw: st.DrawFn, changed: bool | None = None) -> SpokenTurn:
    messages = draw(MESSAGES)
    calls = draw(st.lists(st.integers(0, len(messages)), max_size=4).map(sorted))
    return SpokenTurn(tuple(messages), tuple(calls), draw(st.booleans()) if changed is None else changed)


@given(turns())
def test_what_a_turn_chose_is_said_in_it_once_and_is_told_nowhere_else(turn: SpokenTurn) -> None:
    found = find_choices(turn)
    assert all(bare(one.text)[:80] in bare(turn.messages[one.seq].text) for one in found)
    assert [one.seq for one in found] == sorted(one.seq for one in found)
    assert sum(len(one.text.encode()) for one in found) <= 2_400
    told = {likeness(one.text) for one in found}
    assert told.isdisjoint(likeness(one.text) for one in find_choices(turn, told))


@given(turns(changed=False))
def test_a_turn_that_changed_files_tells_at_least_as_much(turn: SpokenTurn) -> None:
    assert len(find_choices(turn)) <= len(find_choices(replace(turn, changed=True)))


def weight_of(by: str, text: str, calls: tuple[int, ...] = (), changed: bool = True) -> float:
    found = find_choices(SpokenTurn((Spoken(text, 5, by),), calls, changed))
    placed = [PlacedChoice(one.text, 0, one.weight, by == "person") for one in found]
    return max(choice_odds(placed, [], 1), default=-9.0)


CHOSEN = "Switched the baskets from Redis to `PostgreSQL`, since they must survive a restart of the shop."


@pytest.mark.parametrize("text", [CHOSEN, "改为使用 `PostgreSQL` 存储购物车，因为 Redis 重启后会丢失数据。"])
def test_a_report_says_more_of_a_choice_than_a_request(text: str) -> None:
    assert weight_of("end", text) > weight_of("person", text)


def test_what_changed_files_and_ends_a_turn_is_likelier_a_choice() -> None:
    assert weight_of("end", CHOSEN) > weight_of("end", CHOSEN, changed=False)
    assert weight_of("between", CHOSEN, (1, 2, 3, 4)) > weight_of("between", CHOSEN, (6, 7, 8, 9))


def test_titles_of_thoughts_are_no_words_of_a_choice() -> None:
    titled = f"**Checking the store****Fixing the baskets** {CHOSEN}"
    found = find_choices(SpokenTurn((Spoken(titled, 0, "end"),), (), True))
    assert [one.text for one in found] == [CHOSEN]


def odds_of(turn: int, turns: int, *later: str, denied: bool = False) -> float:
    return choice_odds([PlacedChoice(CHOSEN, turn, 0.0, denied=denied)], [(turn + 1, text) for text in later], turns)[0]


def test_the_later_of_two_turns_and_the_shorter_session_weigh_more() -> None:
    assert odds_of(3, 5) > odds_of(1, 5)
    assert odds_of(2, 4) > odds_of(8, 16)


def test_what_the_person_says_next_speaks_for_or_against_a_choice() -> None:
    request = "Please print the sums of all shops on one page, with a header that names the month and the shop."
    assert odds_of(0, 2, "yes") > odds_of(0, 2, request) > odds_of(0, 2, f"{request} {CHOSEN}")
    assert odds_of(0, 2, request) > odds_of(0, 2, request, denied=True)


def test_beside_likelier_passages_a_passage_is_less_likely() -> None:
    other = [PlacedChoice(f"The page shows kind {number}.", 0, 1.0) for number in range(6)]
    assert odds_of(0, 1) > choice_odds([*other, PlacedChoice(CHOSEN, 0, 0.0)], [], 1)[-1]


@pytest.mark.parametrize("heading", ["Next steps", "How to use", "使用方法", "Nächste Schritte", "Próximos pasos"])
def test_what_stands_below_a_heading_of_steps_is_no_choice(heading: str) -> None:
    assert find_choices(SpokenTurn((Spoken(f"## Result\n\n- {CHOSEN}", 0, "end"),), (), True))
    assert not find_choices(SpokenTurn((Spoken(f"## {heading}\n\n- {CHOSEN}", 0, "end"),), (), True))


@given(PASSAGES, st.integers(0, 400), st.integers(0, 8))
def test_chosen_passages_fit_and_keep_their_order(passages: list[ChoicePassage], room: int, most: int) -> None:
    chosen = choose_passages(passages, room, most)
    assert sum(len(one.text.encode()) for one in chosen) <= room
    assert len(chosen) <= most
    assert [one.seq for one in chosen] == sorted(one.seq for one in chosen)


def test_of_passages_that_say_the_same_the_last_is_kept() -> None:
    said = ["Baskets moved into PostgreSQL tables.", "The window stays.", "All baskets moved into PostgreSQL tables!"]
    chosen = choose_passages([ChoicePassage(text, 3 - seq, seq) for seq, text in enumerate(said)], 400, 6)
    assert [one.text for one in chosen] == said[1:]


def test_a_document_of_the_person_states_no_choice() -> None:
    line = "We decided to use PostgreSQL instead of Redis because baskets must survive a restart.\n\n"
    assert find_choices(SpokenTurn((Spoken(line, 0, "person"),), (1,), True))
    assert not find_choices(SpokenTurn((Spoken(line * 40, 0, "person"),), (1,), True))


def test_what_was_agreed_to_is_told_even_if_no_passage_is_likely_by_itself() -> None:
    text = "Plan:\n\n- Baskets live in PostgreSQL.\n- The cache goes away.\n\nShall I go on?"
    found = [one.text for one in find_proposed(text, 3)]
    assert "Baskets live in PostgreSQL." in found
    assert find_proposed("", 3) == []
