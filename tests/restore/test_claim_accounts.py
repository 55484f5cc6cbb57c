"""A statement of a model agrees with the record only if the messages that it cites account for what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.model.archive import Session
from everturn.restore.check import check_sentence
from everturn.restore.document import AGREES, NOT_CHECKED, QUOTED
from everturn.restore.grounds import Ground
from everturn.sessions.state import session_state
from everturn.store.contract import Store, open_store
from tests.recall.archives import Archive
from tests.restore.shop import SOURCES


def greenhouse(store: Store, folder: Path) -> Session:
    """Two turns: a pump fails, nothing is changed, and two valves are listed."""
    archive = Archive(store, folder)
    line, use, back = archive.history.line, archive.use, archive.back

    def says(text: str) -> bytes:
        return line("assistant", [{"type": "text", "text": text}])

    return archive.take_in(
        line("user", "Water the tomatoes from the tank. The curtains of zone 3 are new."),  # 1
        use("Bash", "c1", command="python pump.py --zone 3"),  # 2
        back("c1", "Exit code 1\nPumpError: tank empty", failed=True),  # 3
        says(
            "The pump stopped because the tank is empty. No leaks were found in zone 3, and its curtains are closed. "
            "The fans are not blocked. I could add a sensor to the tank."
        ),  # 4
        line("user", "List the valves with the hoses of model HX12."),  # 5
        says(
            "- north valve\n- south valve\n\nThe drip line is less reliable than the hose. Zone 3 has 14 plants."
        ),  # 6
    )


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    store = open_store("memory:")
    session = greenhouse(store, Path(tmp_path_factory.mktemp("greenhouse")) / "agent")
    yield Ground(store, SOURCES, session, session_state(store, SOURCES, session), str)
    store.close()


@pytest.mark.parametrize("sentence", [
    "No leaks were found in zone 3 [t1 #4]",
    "The curtains of zone 3 are closed [t1 #4]",
    "The tank is empty, so the pump stopped [t1 #4]",
    "There are two valves, north and south [t2 #6]",
    "Less reliable than the hose is the drip line [t2 #6]",
    "The pump failed with an empty tank [t1 #2]",
    "The hoses are of model HX12 [t2 #5]",
])  # fmt: skip
def test_what_the_cited_messages_account_for_agrees(ground: Ground, sentence: str) -> None:
    checked = check_sentence(ground, "open_questions", sentence)
    assert checked.reasons == ()
    assert checked.statement.check in (AGREES, QUOTED)


@pytest.mark.parametrize(("sentence", "reason"), [
    ("The drip line is more reliable than the hose [t2 #6]", "the other way round"),
    ("There are five valves, north and south [t2 #6]", "the number 5 does not occur"),
    ("The hoses of the valves are of model HX13 [t2 #5]", '"HX13" does not occur'),
    ("The tank and the pump of zone 3 were insulated [t1 #4]", 'does not speak of "insulated"'),
    ("The pump of zone 3 delivered water [t1 #2]", "the call in message 2 failed"),
    ("The review found leaks in zone 3 [t1 #4]", ""),
    ("Every curtain is closed in zone 3 [t1 #4]", "does not say this of all"),
    ("A sensor was deployed at the tank of zone 3 [t1 #4]", ""),
    ("Nine gardeners prune the roses weekly [t2 #6]", "does not speak of"),
])  # fmt: skip
def test_what_they_do_not_account_for_is_not_confirmed(ground: Ground, sentence: str, reason: str) -> None:
    checked = check_sentence(ground, "open_questions", sentence)
    assert not checked.holds
    assert reason in checked.statement.reason


def test_other_words_of_whoever_wrote_the_message_are_no_contradiction(ground: Ground) -> None:
    checked = check_sentence(ground, "key_decisions", "The user demands ripe cucumbers by Friday [t1 #1]")
    assert checked.statement.check == NOT_CHECKED


def test_the_option_of_a_command_is_no_negation(ground: Ground) -> None:
    checked = check_sentence(ground, "open_questions", "The tank is empty with --no-check as well [t1 #4]")
    assert "opposite" not in checked.statement.reason
