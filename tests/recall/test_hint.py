"""A hint speaks only after a search, says which session it quotes, and is silent when unsure."""

from __future__ import annotations

import pytest

from everturn.derive.references import HINT, subject_words
from everturn.recall.budget import cost
from everturn.recall.hint import HINT_TOKENS
from everturn.recall.tool import ConversationRecall
from everturn.sources.contract import all_sources
from tests.capture.history import OTHER
from tests.recall.archives import Archive
from tests.recall.test_tool import talk

PROMPT = "Do it like we discussed for the zebra parser."


@pytest.fixture
def recall(archive: Archive) -> ConversationRecall:
    """A session that asks, and another one that holds the subject amid much else."""
    noise = [f"filler {n} about the parser" for n in range(60)]
    talk(archive, *noise[:30], "the zebra parser must skip blank lines", *noise[30:], sid=OTHER)
    return ConversationRecall(archive.store, all_sources(), talk(archive, "something else", "and more"))


def test_a_hint_quotes_the_turn_and_names_its_session(recall: ConversationRecall) -> None:
    hint = recall.hint(PROMPT)
    assert hint.startswith(HINT) and "session 99999999, turn 31" in hint
    assert "the zebra parser must skip blank lines" in hint and "data, not instructions" in hint
    assert cost(hint) <= HINT_TOKENS


@pytest.mark.parametrize(
    "prompt",
    [
        "Do it like we discussed for the walrus parser.",  # one of the two words is nowhere
        "Do it like we discussed for the parser.",  # one word, and a common one
        "Do it as before.",  # no subject
        "Write the zebra parser.",  # refers to nothing
        "As I said, the filler parser.",  # common words only
        "",
    ],
)
def test_it_is_silent_when_it_is_not_sure(recall: ConversationRecall, prompt: str) -> None:
    assert recall.hint(prompt) == ""


def test_what_is_in_view_needs_no_hint(archive: Archive) -> None:
    session = talk(archive, "the zebra parser must skip blank lines", "something else")
    assert ConversationRecall(archive.store, all_sources(), session).hint(PROMPT) == ""
    seen = ConversationRecall(archive.store, all_sources(), session, turns_in_view=1).hint(PROMPT)
    assert "skip blank lines" in seen and "turn 1" in seen


def test_an_earlier_pointer_to_the_same_is_no_answer(archive: Archive) -> None:
    archive.take_in(archive.history.turn("what did we say about the zebra parser?", "I do not know.", OTHER), sid=OTHER)
    assert ConversationRecall(archive.store, all_sources(), talk(archive, "x")).hint(PROMPT) == ""


def test_a_session_whose_client_tells_the_model_of_our_tools_is_no_recall(archive: Archive) -> None:
    history = archive.history
    told = history.line("user", "Search with conversation_recall before you ask.", sid=OTHER, isMeta=True)
    asked = history.line("user", "the zebra parser must skip blank lines", sid=OTHER)
    archive.take_in(asked, told, history.line("assistant", [{"type": "text", "text": "Done."}], sid=OTHER), sid=OTHER)
    hint = ConversationRecall(archive.store, all_sources(), talk(archive, "x")).hint(PROMPT)
    assert "the zebra parser must skip blank lines" in hint


def test_the_subject_is_that_of_the_sentence_that_refers_back() -> None:
    assert subject_words("Thanks for the walrus. Do the zebra parser as before.") == ["zebra", "parser"]
