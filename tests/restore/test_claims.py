"""What a model says was done, wanted or decided is held against the record, in whatever words it says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from everturn.restore.check import check_sentence, check_together
from everturn.restore.claim_acts import find_acts
from everturn.restore.claim_counts import find_count_faults
from everturn.restore.claim_polarity import read_phrases
from everturn.restore.claim_speech import find_attributions
from everturn.restore.document import AGREES, CONTRADICTED, NOT_CHECKED, QUOTED
from everturn.restore.grounds import Ground
from everturn.sessions.state import session_state
from everturn.store.contract import open_store
from tests.restore.ferry import FALSE, TRUE, ferry
from tests.restore.shop import SOURCES


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    store = open_store("memory:")
    session = ferry(store, Path(tmp_path_factory.mktemp("ferry")) / "agent")
    yield Ground(store, SOURCES, session, session_state(store, SOURCES, session), str)
    store.close()


@pytest.mark.parametrize("line", TRUE.strip().splitlines())
def test_a_true_statement_is_kept(ground: Ground, line: str) -> None:
    key, _, sentence = line.partition("|")
    checked = check_sentence(ground, key, sentence)
    assert checked.reasons == ()
    assert checked.statement.check in (QUOTED, AGREES)


@pytest.mark.parametrize("line", FALSE.strip().splitlines())
def test_a_false_statement_is_not_confirmed(ground: Ground, line: str) -> None:
    key, _, sentence = line.partition("|")
    checked = check_sentence(ground, key, sentence)
    assert not checked.holds and checked.statement.verified is False
    assert checked.statement.check in (NOT_CHECKED, CONTRADICTED)


@pytest.mark.parametrize(("sentence", "word"), [
    ('"Do not use a subagent for this" [t1 #1]', QUOTED),
    ("Do not use a subagent for this [t1 #1]", QUOTED),
    ("A subagent must not be used [t1 #1]", AGREES),
    ("Always use a subagent [t1 #1]", CONTRADICTED),
    ("The user wants quarterly audits [t1 #1]", NOT_CHECKED),
    ("The user wants quarterly audits [t1 #6]", CONTRADICTED),
    ("Quarterly audits by harbour masters [t1 #1]", NOT_CHECKED),
    ("Quarterly audits by harbour masters", NOT_CHECKED),
    ("Do not use a subagent [t99 #1]", NOT_CHECKED),
])  # fmt: skip
def test_the_word_says_what_was_checked(ground: Ground, sentence: str, word: str) -> None:
    assert check_sentence(ground, "constraints", sentence).statement.check == word


PAIRS = [
    ("Email reminders are deferred [t6 #34]", "Email reminders wait until next month [t6 #31]", True),
    ("Seat reservations were added to the timetable [t1 #6]", "Seat reservations in the timetable are postponed [t1 #1]", False),
    ("Use a window function for the waiting list [t5 #30]", "No window function for the waiting list [t5 #30]", False),
    ("Bookings are stored in MariaDB [t6 #31]", "mariadb was installed with pip [t6 #32]", True),
    ("Every query needs a timeout [t1 #1]", "No subagent for this work [t1 #1]", True),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "hold"), PAIRS)
def test_of_two_statements_that_contradict_each_other_at_most_the_quoted_one_stays(ground: Ground, one: str, other: str, hold: bool) -> None:  # fmt: skip
    alone = [check_sentence(ground, "key_decisions", sentence) for sentence in (one, other)]
    together = check_together({"key_decisions": alone})["key_decisions"]
    assert all(checked.holds for checked in together) is hold


def test_both_of_two_contradicting_statements_are_taken_back(ground: Ground) -> None:
    held = check_sentence(ground, "key_decisions", "Bookings are stored in MariaDB [t6 #31]")
    other = replace(held, statement=replace(held.statement, text="Bookings are stored in DuckDB"))
    together = check_together({"key_decisions": [held], "artifacts": [other]})
    both = [*together["key_decisions"], *together["artifacts"]]
    assert [one.statement.check for one in both] == [CONTRADICTED, CONTRADICTED]
    assert all("another statement by the model" in one.statement.reason for one in both)


@pytest.mark.parametrize(("text", "denied"), [
    ("Never push", [True]), ("Push it", [False]), ("keep notes, not drafts", [False, True]),
    ("Never commit without tests", [False]), ("Bitte nicht pushen", [True]), ("Ne touche pas au schéma", [True]),
    ("No toques el esquema", [True]), ("プッシュしないで", [True]), ("不要推送", [True]), ("not only drafts", [False]),
])  # fmt: skip
def test_a_negation_reaches_as_far_as_its_clause(text: str, denied: list[bool]) -> None:
    assert [one.denied for one in read_phrases(text)] == denied


@pytest.mark.parametrize(("text", "acts"), [
    ("It was merged", [("merge", False)]), ("It was not merged", [("merge", True)]), ("It should be merged", []),
    ("Merge it next", []), ("It has yet to be merged", []), ("If it was merged, stop", []),
    ("The change to log addresses was merged", [("merge", False)]), ("Fix the failing tests", []),
    ("`git merged` is no command", []),
])  # fmt: skip
def test_only_what_is_told_as_done_is_an_act(text: str, acts: list[tuple[str, bool]]) -> None:
    assert [(one.kind, one.denied) for one in find_acts(text)] == acts


@pytest.mark.parametrize(("text", "faults"), [
    ("3 failed, 40 passed", 0), ("40 failed, 3 passed", 2), ("3 tests do not pass", 0), ("40 tests do not pass", 1),
    ("LIMIT is 12", 0), ("LIMIT is 40", 1), ("9 files changed", 1),
])  # fmt: skip
def test_a_number_must_stand_with_the_same_word(text: str, faults: int) -> None:
    assert len(list(find_count_faults(text, "3 failed, 40 passed\nLIMIT = 12"))) == faults


@pytest.mark.parametrize(("text", "speakers"), [
    ("The user wants Redis", ["person"]), ("As the user asked, Redis it is", ["person"]), ("Redis was requested by the user", ["person"]),
    ("The agent suggested Redis", ["agent"]), ("The user does not want the agent to push", ["person"]), ("Redis is used", []),
    ("Der Nutzer möchte Redis", ["person"]), ("L'utilisateur veut Redis", ["person"]), ("El usuario quiere Redis", ["person"]),
])  # fmt: skip
def test_who_is_said_to_have_said_it(text: str, speakers: list[str]) -> None:
    assert [one.speaker for one in find_attributions(text)] == speakers
