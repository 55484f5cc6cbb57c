"""What an answer puts to the person, and what a reply settles."""

from __future__ import annotations

import pytest

from everturn.derive.offers import Answered, Offer, find_offer, is_choice, join_reply
from everturn.derive.open_items import find_answers

OFFER = Offer(7, "Which store should hold the baskets?", "", (("1", "Redis"), ("2", "PostgreSQL")))


def test_an_offer_has_a_question_a_proposal_and_options() -> None:
    text = "I looked at it.\n\n## Proposed fix\n\nMove the cache to the temp folder.\n\n1. now\n2. after the release\n\nWhich one?"
    offer = find_offer(text, 3)
    assert offer is not None
    assert (offer.question, offer.proposal) == ("Which one?", "Move the cache to the temp folder.")
    assert offer.options == (("1", "now"), ("2", "after the release"))


def test_a_plain_report_offers_nothing() -> None:
    assert find_offer("All tests are green.", 3) is None


@pytest.mark.parametrize(
    ("reply", "chosen"), [("2", "2: PostgreSQL"), ("option 1", "option 1: Redis"), ("(2)", "(2): PostgreSQL")]
)
def test_a_number_picks_an_option(reply: str, chosen: str) -> None:
    assert join_reply(reply, OFFER) == Answered(OFFER.question, chosen)


def test_an_approval_takes_the_proposal() -> None:
    offer = Offer(7, "Shall I go on?", "Move the cache to the temp folder.")
    assert join_reply("yes", offer) == Answered("Move the cache to the temp folder. Shall I go on?", "yes", agrees=True)


def test_a_few_words_answer_an_open_question() -> None:
    assert join_reply("in a file for now", OFFER) == Answered(OFFER.question, "in a file for now")


@pytest.mark.parametrize("reply", ["9", "why not both?", "continue", "", "add a basket page " * 10, "/clear"])
def test_other_words_answer_nothing(reply: str) -> None:
    assert join_reply(reply, OFFER) is None


def test_a_new_request_after_an_offer_is_no_answer() -> None:
    offer = Offer(7, "Would you like me to change anything else?")
    assert join_reply("now add a command that lists branches", offer) is None
    assert join_reply("no, leave it", offer) == Answered(offer.question, "no, leave it")


def test_answers_of_a_call_that_asks() -> None:
    output = 'User has answered your questions: "Which store?"="Redis", "Which name?"="basket". You can now continue.'
    assert find_answers({}, output) == [Answered("Which store?", "Redis"), Answered("Which name?", "basket")]


def test_answers_in_json_and_in_tags() -> None:
    asked = {"questions": [{"id": "q1", "question": "Which store?"}]}
    assert find_answers(asked, '{"answers": {"q1": {"answers": ["Redis"]}}}') == [Answered("Which store?", "Redis")]
    assert find_answers({"question": "Which store?"}, "<answer>\nRedis\n</answer>") == [
        Answered("Which store?", "Redis")
    ]
    assert find_answers(None, "nothing") == find_answers({"questions": [1]}, "[]") == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Which store?", "You decide"), ("Which store?", "what is Redis?"), ("More questions?", "no")],
)
def test_an_answer_that_settles_nothing_is_no_choice(question: str, answer: str) -> None:
    assert not is_choice(Answered(question, answer))
    assert is_choice(Answered("Which store?", "Redis"))
