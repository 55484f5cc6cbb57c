"""Constraints of a document: the rules of a person with every message that lays them down."""

from __future__ import annotations

import pytest

from everturn.restore.document import section
from everturn.restore.mechanical import build_document
from everturn.store.contract import Store
from tests.recall.archives import Archive
from tests.restore.shop import SOURCES


def test_a_rule_cites_the_messages_that_repeat_it(archive: Archive, store: Store) -> None:
    turn = archive.history.turn
    session = archive.take_in(
        turn("Never push to main.", "ok"), turn("Add a table.", "done"), turn("never push to main!", "ok")
    )
    (rule,) = section(build_document(store, SOURCES, session), "constraints").statements
    assert rule.text == "Never push to main." and rule.verified
    assert [one.turn for one in rule.evidence] == [0, 2]


def test_rules_of_a_message_and_those_repeated_from_another_are_entries_of_their_own(
    archive: Archive, store: Store
) -> None:
    turn = archive.history.turn
    session = archive.take_in(
        turn("Never push to main.\n\nAlways run the tests.", "ok"),
        turn("Never touch the tide tables.\n\nNever push to main.", "ok"),
    )
    first, second = section(build_document(store, SOURCES, session), "constraints").statements
    assert {first.text: len(first.evidence), second.text: len(second.evidence)} == {
        "Never push to main. · Always run the tests.": 2,
        "Never touch the tide tables.": 1,
    }


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Don't commit yet.", False),
        ("Never commit to main.", True),
        ("Do not commit without asking me.", True),
    ],
)
def test_a_prohibition_for_a_while_is_over_when_the_act_is_ordered(
    archive: Archive, store: Store, said: str, kept: bool
) -> None:
    turn = archive.history.turn
    session = archive.take_in(turn(said, "ok"), turn("Add a table.", "done"), turn("now commit it", "ok"))
    told = section(build_document(store, SOURCES, session), "constraints").statements
    assert [one.text for one in told] == [said if kept else f"{said} (taken back later)"]
