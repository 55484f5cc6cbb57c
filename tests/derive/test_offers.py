"""What an answer puts to the person, and what a reply settles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


# --- questions, options and picks in several languages ---
@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("两个方案都可行。你想用哪个存储？", "你想用哪个存储？"),
        ("二つの案があります。どちらにしますか？\n\n**A.** Redis\n**B.** PostgreSQL", "どちらにしますか？"),
        ("Fertig. Welchen Speicher soll ich nehmen?", "Welchen Speicher soll ich nehmen?"),
        ("¿Qué almacén prefieres?", "¿Qué almacén prefieres?"),
    ],
)
def test_a_question_is_found_whatever_its_mark(text: str, question: str) -> None:
    offer = find_offer(text, 3)
    assert offer is not None
    assert offer.question == question


@pytest.mark.parametrize(
    "listed",
    [
        "**A.** Redis\n**B.** PostgreSQL",
        "A) Redis\nB) PostgreSQL",
        "- 方案 A：Redis\n- 方案 B：PostgreSQL",
        "Option A: Redis\nOption B: PostgreSQL",
    ],
)
def test_options_are_found_however_they_are_written(listed: str) -> None:
    offer = find_offer(f"Which store should it be?\n\n{listed}\n\nI lean to the first.", 3)
    assert offer is not None
    assert [(name, text.strip("* ")) for name, text in offer.options] == [("a", "Redis"), ("b", "PostgreSQL")]


def test_options_without_a_question_can_be_picked_by_name_only() -> None:
    offer = find_offer("Stores that fit:\n\n1. Redis\n2. PostgreSQL\n\nTell me the number.", 3)
    assert offer is not None
    assert join_reply("2", offer) == Answered("Stores that fit:", "2: PostgreSQL")
    assert join_reply("the second store", offer) is None
    assert join_reply("yes", offer) is None


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("2, but keep the old table", "2, but keep the old table: PostgreSQL"),
        ("方案 2, 可以", "方案 2, 可以: PostgreSQL"),
        ("1 and 2", "1 and 2: Redis / PostgreSQL"),
        ("1、2", "1、2: Redis / PostgreSQL"),
    ],
)
def test_a_pick_may_say_more_or_name_two_options(reply: str, chosen: str) -> None:
    assert join_reply(reply, OFFER) == Answered(OFFER.question, chosen)


@pytest.mark.parametrize("reply", ["a basket page", "2 baskets are missing on the page", "1 and 3", "e-mail it"])
def test_words_that_begin_like_an_option_pick_none(reply: str) -> None:
    lettered = Offer(7, "Which store?", "", (("a", "Redis"), ("e", "PostgreSQL"), ("1", "SQLite"), ("2", "files")))
    joined = join_reply(reply, lettered)
    assert joined is None or joined.answer == reply


@pytest.mark.parametrize(
    "question",
    [
        "What do you need help with?",
        "¿En qué puedo ayudarte hoy?",
        "Comment puis-je vous aider ?",
        "Wie kann ich dir helfen?",
        "有什么可以帮您的吗？",
        "何かお手伝いできますか？",
        "Can you try it again and tell me what the log says?",
        "Do you see any errors in the console?",
    ],
)
@pytest.mark.parametrize("reply", ["Hola", "add a basket page to the shop", "结账页面加一个按钮", "it works now"])
def test_what_follows_an_invitation_is_no_answer(question: str, reply: str) -> None:
    assert join_reply(reply, Offer(7, question)) is None


def test_praise_settles_nothing() -> None:
    offer = Offer(7, "Want me to add a link to the page, or write a test next?")
    assert join_reply("great work!", offer) is None
    assert join_reply("yes, add the link", offer) == Answered(offer.question, "yes, add the link")


def test_a_question_for_the_reason_leaves_no_choice() -> None:
    assert join_reply("两种缓存", Offer(7, "为什么会这样？")) is None
    assert join_reply("两种缓存", Offer(7, "你想用什么缓存？")) is not None


def test_a_request_about_something_else_answers_nothing() -> None:
    assert join_reply("rename the checkout window to saved carts", OFFER) is None
    assert join_reply("baskets belong into PostgreSQL tables", OFFER) is not None


@given(st.text(max_size=400), st.text(max_size=60))
def test_any_text_can_be_read_as_an_offer_and_a_reply(text: str, reply: str) -> None:
    offer = find_offer(text, 1)
    joined = join_reply(reply, offer) if offer is not None else None
    assert joined is None or joined.answer.startswith(reply.strip())


@given(st.lists(st.sampled_from(["Redis", "SQLite", "files", "etcd"]), min_size=2, max_size=4, unique=True), st.data())
def test_every_option_can_be_picked_by_its_letter_and_its_number(names: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(names) - 1))
    for marks in ("abcd", "1234"):
        listed = "\n".join(f"{mark}. {name}" for mark, name in zip(marks, names, strict=False))
        offer = find_offer(f"Which store?\n\n{listed}", 1)
        assert offer is not None
        assert join_reply(marks[at], offer) == Answered("Which store?", f"{marks[at]}: {names[at]}")


@pytest.mark.parametrize(
    "reply", ["可以让前端也使用共享令牌查询吗", "トークンを共有できますか", "can the page read it too?"]
)
def test_a_question_settles_nothing_with_or_without_its_mark(reply: str) -> None:
    assert join_reply(reply, OFFER) is None
    assert not is_choice(Answered(OFFER.question, reply))
