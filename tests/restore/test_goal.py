"""What a session is for: requests that point are told with what they point at, and lists of sessions use the same words."""

from __future__ import annotations

import pytest

from everturn.model.archive import Session
from everturn.restore.document import Document, section
from everturn.restore.mechanical import build_document
from everturn.sessions.lookup import session_title
from everturn.store.contract import Store
from tests.recall.archives import Archive
from tests.restore.shop import SOURCES

PLAN = "/home/ann/shop/docs/baskets-plan.md"


def texts(document: Document, key: str) -> list[str]:
    return [one.text for one in section(document, key).statements]


def says(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def goal_of(store: Store, session: Session) -> str:
    document = build_document(store, SOURCES, session)
    assert not document.unverified
    return texts(document, "high_level_goal")[0]


@pytest.mark.parametrize(
    "asked",
    [
        "Implement this plan. Ask me if something is not clear",
        f"execute {PLAN} step 2",
        "setze den Plan um",
        "exécute ce plan",
        "この計画を実装してください",
        "根据这个计划进行执行",
    ],
)
def test_a_request_that_points_to_a_document_is_told_with_its_title(archive: Archive, store: Store, asked: str) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", asked),
        line("assistant", says("I'll read the plan first.")),
        use("Read", "c1", file_path="/home/ann/shop/basket.py"),
        back("c1", "class Basket:\n    pass\n"),
        use("Read", "c2", file_path=PLAN),
        back("c2", "1\t# Plan: Baskets that expire\n2\t\n3\t## TL;DR\n4\tA basket goes away after a day.\n"),
        line("assistant", says("The baskets expire now.")),
    )
    document = build_document(store, SOURCES, session)
    (goal,) = section(document, "high_level_goal").statements
    assert goal.text == f"{asked} → Plan: Baskets that expire: A basket goes away after a day."
    assert [one.message for one in goal.evidence] == [0, 5] and not document.unverified
    assert texts(document, "primary_task")[0] == goal.text
    assert texts(document, "session_name")[0].startswith(f"{asked} → Plan"[:60])


@pytest.mark.parametrize(
    "asked", ["Update docs/baskets-plan.md with the new dates", "Implement the search of the shop page with filters"]
)
def test_a_request_that_says_what_it_is_about_needs_no_document(archive: Archive, store: Store, asked: str) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    session = archive.take_in(
        line("user", asked), use("Read", "c1", file_path=PLAN), back("c1", "# Plan: Baskets that expire\n")
    )
    assert goal_of(store, session) == asked


@pytest.mark.parametrize(
    "asked",
    [
        "please help me fix this",
        "me ajude a resolver",
        "[Image #1] why this error?",
        "修复这个问题",
        "これを直してください",
    ],
)
def test_a_request_without_an_object_is_told_with_what_the_answer_says_is_wrong(
    archive: Archive, store: Store, asked: str
) -> None:
    line = archive.history.line
    session = archive.take_in(
        line("user", asked),
        line("assistant", says("I'll look at it.\n\nThe push is blocked because a key is in the file `.env`. Next I remove it.")),
        line("user", "ok"),
        line("assistant", says("The key is gone.")),
    )  # fmt: skip
    assert goal_of(store, session) == f"{asked} → The push is blocked because a key is in the file `.env`."


def test_an_option_is_told_with_its_text(archive: Archive, store: Store) -> None:
    line = archive.history.line
    session = archive.take_in(
        line("user", "how can the shop send mails? give me two ways"),
        line("assistant", says("**Option 1: Send through a queue**\n\n**Option 2: Send at once**\n\nI recommend option 1.")),
        line("user", "implement option 2"),
        line("assistant", says("Mails are sent at once.")),
    )  # fmt: skip
    document = build_document(store, SOURCES, session)
    assert texts(document, "requests")[0].startswith("implement option 2: Send at once")


def test_answers_by_number_are_joined_to_the_questions_with_these_numbers(archive: Archive, store: Store) -> None:
    line = archive.history.line
    asked = "Before I start:\n\n1. **Key** — Should I cut it at the colon?\n2. **Log** — In the text, or in a field?\n\nAnything else?"
    session = archive.take_in(
        line("user", "add the import of boats to the harbour page"),
        line("assistant", says(asked)),
        line("user", "For 1. use the regex\nfor 2. in a field"),
        line("assistant", says("The import is there.")),
    )
    document = build_document(store, SOURCES, session)
    said = "1. Key — Should I cut it at the colon? / 2. Log — In the text, or in a field?"
    assert texts(document, "key_decisions")[0].startswith(f"{said} → For 1. use the regex for 2. in a field")
    assert "(answers: 1. Key — Should I cut it" in texts(document, "requests")[0]


def test_the_goal_is_the_requirement_and_not_the_question_before_it(archive: Archive, store: Store) -> None:
    line, use, back = archive.history.line, archive.use, archive.back
    wanted = (
        "change how files are sent: only send a markdown file when the user writes its name, and never twice in a chat"
    )
    asked = "explain how markdown files are sent to a chat and when"
    session = archive.take_in(
        line("user", asked),
        line("assistant", says("A watcher sends each file that changes.")),
        line("user", wanted),
        use("Edit", "c1", file_path="/home/ann/shop/send.py", old_string="a", new_string="b"),
        back("c1", "updated"),
        line("assistant", says("Files are sent on request.")),
    )
    assert goal_of(store, session) == f"{wanted} — asked first: {asked}"


@pytest.mark.parametrize("later", ["It still crashes with an error", "works now, thanks", "please fix this"])
def test_a_later_report_is_no_part_of_the_goal(archive: Archive, store: Store, later: str) -> None:
    line = archive.history.line
    session = archive.take_in(
        line("user", "add baskets to the shop page"), line("assistant", says("Done.")), line("user", later)
    )
    assert goal_of(store, session) == "add baskets to the shop page"


def test_a_long_last_answer_keeps_its_end(archive: Archive, store: Store) -> None:
    answer = "Part one. " * 200 + "In the middle. " * 200 + "Please confirm that the berth is free."
    session = archive.take_in(
        archive.history.line("user", "list all the berths"), archive.history.line("assistant", says(answer))
    )
    shown = texts(build_document(store, SOURCES, session), "primary_task")[-1]
    assert shown.startswith("the agent's last answer, beginning and end: Part one.") and shown.endswith(
        "that the berth is free."
    )
    assert "[… the middle is left out …]" in shown and len(shown) < 2_500


_SPECIFY = "\n## User Input\n\n```text\n{}\n```\n\nYou **MUST** consider the user input before proceeding (if not empty).\n\n## Outline\n\n1. Run it.\n"


@pytest.mark.parametrize(
    "prompts",
    [
        ("add baskets to the shop page",),
        ("hi", "add baskets to the shop page"),
        (_SPECIFY.format("add baskets to the shop page"),),
        (_SPECIFY.format("add baskets to the shop page").replace("\n", "\r\n"), "and a till"),
        (_SPECIFY.format(""),),
        ("add baskets to the shop page\n\n--- Cursor Command: go.md ---\n# Go\n\nDo the work at once please.\n",),
        ("<command-name>/set-up</command-name>\n<command-args></command-args>", "can we just talk for a moment here?"),
        ("<command-name>/review</command-name>\n<command-args>all the baskets</command-args>",),
        ("<command-name>/clear</command-name>\n<command-args></command-args>", "add baskets to the shop page"),
    ],
)
def test_lists_of_sessions_name_them_as_their_documents_do(
    archive: Archive, store: Store, prompts: tuple[str, ...]
) -> None:
    session = archive.take_in(*(archive.history.turn(one, "Done and tested well.") for one in prompts))
    (name,) = texts(build_document(store, SOURCES, session), "session_name")
    listed = " ".join(session_title(*store.session(session.id)).split())
    assert name.partition(" → ")[0].removesuffix("…") == listed[: len(name.partition(" → ")[0].removesuffix("…"))]
