"""What a turn says was chosen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everturn.derive.choices import SPEAKERS, ChoicePassage, Spoken, choose_passages, find_choices, find_proposed
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


@given(MESSAGES, st.booleans(), st.booleans())
def test_what_a_turn_chose_is_said_in_it_once_and_is_told_nowhere_else(
    messages: list[Spoken], acted: bool, changed: bool
) -> None:
    found = find_choices(messages, acted, changed, ())
    assert all(bare(one.text)[:80] in bare(messages[one.seq].text) for one in found)
    assert [one.seq for one in found] == sorted(one.seq for one in found)
    assert sum(len(one.text.encode()) for one in found) <= 1_200
    told = {likeness(one.text) for one in found}
    assert told.isdisjoint(likeness(one.text) for one in find_choices(messages, acted, changed, told))


@given(MESSAGES, st.booleans())
def test_a_turn_that_changed_files_tells_at_least_as_much(messages: list[Spoken], acted: bool) -> None:
    assert set(find_choices(messages, acted, False, ())) <= set(find_choices(messages, acted, True, ()))


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
    assert find_choices([Spoken(line, 0, "person")], True, True, ())
    assert not find_choices([Spoken(line * 40, 0, "person")], True, True, ())


def test_what_was_agreed_to_is_told_even_if_no_passage_is_likely_by_itself() -> None:
    text = "Plan:\n\n- Baskets live in PostgreSQL.\n- The cache goes away.\n\nShall I go on?"
    found = [one.text for one in find_proposed(text, 3)]
    assert "Baskets live in PostgreSQL." in found
    assert find_proposed("", 3) == []
