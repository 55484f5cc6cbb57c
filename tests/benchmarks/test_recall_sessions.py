"""Made-up sessions of the recall benchmark: what they hold, and how recalls from inside them are judged."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.recall.archive import Archive
from benchmarks.recall.decisions import EARLIER, NOW, SCENES, AskedDecision, write_decisions
from benchmarks.recall.drafts import RECALL, SessionDraft
from benchmarks.recall.inside import judge, recalled
from benchmarks.recall.times import spans, write_times
from everturn.recall.answer import AnswerEntry
from everturn.sessions.lineage import lineage
from everturn.sessions.lookup import resolve_session

QUESTION = AskedDecision("live", False, "s", "What did we decide about the boats?", "boats", "green ones")


def entry(turn: int, text: str, head: str = "user:") -> AnswerEntry:
    return AnswerEntry(1, turn, turn, head, text, 1, is_match=True)


def test_a_decision_in_the_first_three_turns_is_found() -> None:
    before = [entry(1, "hello"), entry(1, "hi", "assistant:"), entry(2, "the boats")]

    assert judge(QUESTION, [*before, entry(3, "We take green\n ones")]).is_found
    assert not judge(QUESTION, [*before, entry(3, "more"), entry(4, "We take green ones")]).is_found
    assert not judge(QUESTION, [*before]).is_found
    assert not judge(QUESTION, [*before, entry(3, "We take green ones")]).is_echo


def test_the_question_or_an_earlier_recall_above_the_decision_is_an_echo() -> None:
    decision, asked = entry(1, "green ones"), entry(9, QUESTION.prompt)
    looked_up = entry(8, "[Turn 1] user: green ones", f'tool:{RECALL}(query="boats")')

    assert judge(QUESTION, [asked, decision]).is_echo
    assert judge(QUESTION, [looked_up, decision]).is_echo
    assert judge(QUESTION, [asked]).is_echo
    assert not judge(QUESTION, [decision, asked, looked_up]).is_echo


@pytest.mark.slow
def test_every_scene_is_asked_from_a_session_that_hangs_together_with_the_decision(tmp_path: Path) -> None:
    asked = write_decisions(tmp_path / "in", per_scene=2)
    assert Counter(one.scene for one in asked) == dict.fromkeys(SCENES, 8)
    assert Counter(one.looked_up_before for one in asked) == {True: 16, False: 16}
    archive = Archive.of(tmp_path / "in" / EARLIER, tmp_path / "archive.db")
    try:
        archive.take_in(tmp_path / "in" / NOW)
        texts: dict[str, str] = {}
        for document in archive.documents():
            name = document.place[0]
            texts[name] = f"{texts.get(name, '')}\n{document.text}"
        for one in asked:
            session = resolve_session(archive.store, one.session)
            family = [one.session, *(elder.native_id for elder in lineage(archive.store, session).ancestors)]
            assert any(one.choice in texts.get(name, "") for name in family), one
            assert texts[one.session].count(one.prompt) >= (4 if one.looked_up_before else 1)
            recalled(archive, one)
    finally:
        archive.close()


def test_decisions_are_the_same_each_time(tmp_path: Path) -> None:
    assert write_decisions(tmp_path / "a", 1) == write_decisions(tmp_path / "b", 1)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.jsonl")} for name in ("a", "b")
    )
    assert first == second


def test_a_question_about_a_moment_is_answered_by_messages_of_that_moment_only(tmp_path: Path) -> None:
    questions = write_times(tmp_path / "in")
    assert len(questions) >= 60
    archive = Archive.of(tmp_path / "in", tmp_path / "archive.db")
    try:
        documents = {one.place: one for one in archive.documents()}
    finally:
        archive.close()
    for one in questions:
        kind, _, named = one.group.partition(": ")
        right = [documents[place] for place in one.messages]
        assert right, one
        if kind == "when":
            first, last = (moment.timestamp() * 1000 for moment in spans()[named])
            assert all(first <= document.at < last for document in right), one
        else:
            assert {document.message.origin for document in right} == {"human" if named == "the person" else "model"}


def test_a_call_without_a_result_is_still_running(tmp_path: Path) -> None:
    draft = SessionDraft("x", "/home/ann/x", datetime(2026, 3, 1, tzinfo=UTC))
    draft.prompt("look")
    draft.call(RECALL, {"action": "search"}, None)
    assert [one["type"] for one in draft.records] == ["user", "assistant"]
    draft.call("Bash", {"command": "ls"}, "a")
    assert [one["type"] for one in draft.records][2:] == ["assistant", "user"]
