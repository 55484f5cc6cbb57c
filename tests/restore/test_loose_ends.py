"""What a session leaves open: requests on which no answer reports, what was agreed to, and what stays when a turn does no work."""

from __future__ import annotations

import pytest

from everturn.restore.document import Document, section
from everturn.restore.mechanical import build_document
from everturn.store.contract import Store
from tests.recall.archives import Archive
from tests.restore.shop import SOURCES

OFFER = "The page is there.\n\nShall I add a price list to the shop page too?"


def texts(document: Document, key: str) -> list[str]:
    return [one.text for one in section(document, key).statements]


def restored(store: Store, archive: Archive, *said: bytes) -> Document:
    return build_document(store, SOURCES, archive.take_in(*said))


@pytest.mark.parametrize("reply", ["yes please", "ja bitte", "はい"])
def test_what_the_person_agreed_to_is_left_to_do_until_an_answer_reports_on_it(
    archive: Archive, store: Store, reply: str
) -> None:
    line = archive.history.line
    said = [line("user", "add a shop page"), line("assistant", OFFER), line("user", reply)]
    agreed = "Shall I add a price list to the shop page too?"
    document = restored(store, archive, *said)
    assert texts(document, "next_steps")[0] == f"agreed to, not reported as done: {agreed} → {reply}"
    done = restored(store, archive, *said, line("assistant", "The price list is there."))
    assert not any("agreed to" in one for one in texts(done, "next_steps"))


def test_every_request_since_the_last_report_is_left_to_do(archive: Archive, store: Store) -> None:
    line, use = archive.history.line, archive.use
    session = [
        line("user", "add a shop page"),
        line("assistant", "The shop page is there."),
        line("user", "now paint the harbour wall green"),
        use("Bash", "c1", command="cat wall.html"),
        line("user", "and count the lamps of the pier"),
    ]
    (found,) = texts(restored(store, archive, *session), "next_steps")
    assert found.startswith(
        "last request, not reported as done: and count the lamps of the pier → now paint the harbour wall green"
    )


def test_a_command_of_the_client_leaves_the_steps_before_it(archive: Archive, store: Store) -> None:
    line = archive.history.line
    said = [
        line("user", "add a shop page"),
        line("assistant", "It is there. Next, write the price list of the shop."),
        line("user", "/mcp list"),
        line("assistant", "No servers are configured."),
    ]
    document = restored(store, archive, *said)
    assert "Next, write the price list of the shop." in texts(document, "next_steps")
    assert texts(document, "primary_task")[0] == "add a shop page"


def test_a_question_stays_open_if_the_person_asks_something_else_and_gets_no_answer(
    archive: Archive, store: Store
) -> None:
    line = archive.history.line
    said = [line("user", "add a shop page"), line("assistant", OFFER), line("user", "where is the harbour file?")]
    asked = "Shall I add a price list to the shop page too?"
    assert asked in texts(restored(store, archive, *said), "open_questions")
    answered = restored(store, archive, *said, line("assistant", "In docs/harbour.md."))
    assert asked not in texts(answered, "open_questions")


def test_work_that_the_service_stopped_is_left_to_do_however_often_the_agent_is_told_to_go_on(
    archive: Archive, store: Store
) -> None:
    line = archive.history.line
    notice = [{"type": "text", "text": "API Error: Server error mid-response."}]
    said = [
        line("user", "write the pages of the harbour"),
        line("assistant", "The shop page is there. Trang bến cảng là trang tiếp theo."),
        line("assistant", notice, isApiErrorMessage=True, model="<synthetic>"),
        line("user", "continue"),
        line("user", "continue"),
    ]
    (found,) = texts(restored(store, archive, *said), "next_steps")
    assert "started but interrupted: Trang bến cảng là trang tiếp theo" in found
