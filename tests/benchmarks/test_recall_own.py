"""Our own questions: found by their records, judged by their message, and half of them kept from view."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.processes import Failed
from benchmarks.recall.__main__ import misses
from benchmarks.recall.answers import is_present, squeezed
from benchmarks.recall.drafts import SessionDraft
from benchmarks.recall.measuring import Answered
from benchmarks.recall.own import FORMS, HALVES, OwnAnswer, OwnPlaces, OwnQuestion, corpus_archive, own_questions
from benchmarks.recall.questions import Question
from benchmarks.recall.report import BARS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_questions_in_the_project_are_complete_and_hold_no_words_of_the_sessions() -> None:
    questions = own_questions()

    assert len({one.id for one in questions}) == len(questions) > 300
    assert {one.half for one in questions} == set(HALVES)
    assert all(one.answers and one.sentence and one.keywords for one in questions)
    assert all(answer.size > 0 <= answer.start for one in questions for answer in one.answers)
    assert not {one.session for one in questions if one.half == "open"} & {
        one.session for one in questions if one.half == "held"
    }


def test_each_half_and_form_has_a_set_whose_bars_are_known() -> None:
    named = {name for name, _, _ in BARS if name.startswith("own")}

    assert named <= {f"own {half} {form}" for half in HALVES for form in FORMS}


def test_an_answer_is_the_message_of_its_record_and_nothing_beside_it(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    draft = SessionDraft("boats", "/home/ann/boats", NOON)
    draft.prompt("Where is the canoe?")
    draft.call("Bash", {"command": "find canoe"}, "harbour 3")
    draft.say("The canoe is in harbour 3.")
    path = draft.write(corpus / "claude-code" / "ann")
    lines = path.read_bytes().splitlines(keepends=True)
    answer = OwnAnswer(99, sum(map(len, lines[:3])), len(lines[3].rstrip()), (4, 5))
    named = str(path.relative_to(corpus)), draft.native_id
    question = OwnQuestion("1", "open", "fact", "Where did we leave the canoe?", "canoe harbour", *named, (answer,))
    archive = corpus_archive(tmp_path, corpus)
    assert archive is not None
    try:
        size = next(row.size for row in archive.store.messages(archive.sessions[0][0].id, 3, 3))
        question = OwnQuestion(
            "1",
            "open",
            "fact",
            question.sentence,
            question.keywords,
            *named,
            (OwnAnswer(99, answer.start, size, None),),
        )
        places = OwnPlaces(archive, [question], corpus)
        asked = places.asked(question, "keywords")
        assert (asked.text, asked.group) == ("canoe harbour", "fact")
        assert asked.messages == {(draft.native_id, 3)}
        moved = OwnQuestion(
            "2", "open", "fact", "", "", question.file, question.session, (OwnAnswer(3, answer.start + 1, size, None),)
        )
        with pytest.raises(Failed, match="no message at byte"):
            places.asked(moved, "keywords")
    finally:
        archive.close()
    again = corpus_archive(tmp_path, corpus)
    assert again is not None
    again.close()
    assert corpus_archive(tmp_path, tmp_path / "nothing here") is None


def test_a_copied_message_counts_where_it_is_indexed(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    old = SessionDraft("old", "/home/ann/boats", NOON)
    old.prompt("The canoe stays in harbour 3.")
    old.say("Noted.")
    old.write(corpus / "a")
    archive = corpus_archive(tmp_path, corpus)
    assert archive is not None
    new = old.copy("new")
    new.prompt("Go on.")
    path = new.write(corpus / "b")
    try:
        archive.take_in(corpus)
        session = next(one for one, _ in archive.sessions if one.native_id == new.native_id)
        row = next(archive.store.messages(session.id, 0, 0))
        assert row.inherited
        given = (OwnAnswer(0, row.start, row.size, None),)
        question = OwnQuestion("1", "open", "who", "", "", str(path.relative_to(corpus)), new.native_id, given)
        asked = OwnPlaces(archive, [question], corpus).asked(question, "sentences")
        assert asked.messages == {(old.native_id, 0)}
        assert asked.sessions == {old.native_id, new.native_id}
    finally:
        archive.close()


def test_misses_of_the_held_half_are_refused() -> None:
    wrong = [Answered(Question("a secret question", frozenset({"a"})), [("b", 0)], 0.0)]

    assert "secret" in next(misses("own open keywords", wrong, 3))
    for form in FORMS:
        assert "secret" not in "".join(misses(f"own held {form}", wrong, 3))
    assert list(misses("own held keywords", wrong, 0)) == []


def test_most_of_a_quotation_in_one_run_is_enough() -> None:
    quote = squeezed("the canoe is in harbour 3")
    assert is_present(quote, squeezed("He said:\n  the canoe is\n  in harbour 3, I think"))
    assert is_present(quote, squeezed("… canoe is in harbour"))
    assert not is_present(quote, squeezed("the canoe … harbour 3"))


def test_questions_are_read_from_json(tmp_path: Path) -> None:
    given = {
        "id": "1", "half": "held", "kind": "fact", "sentence": "s", "keywords": "k", "file": "f", "session": "x",
        "answers": [{"message": 1, "start": 2, "size": 3, "quote": [4, 5]}, {"message": 1, "start": 2, "size": 3, "quote": None}],
    }  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps([given]), "utf-8")
    (question,) = own_questions(tmp_path / "own.json")

    assert [one.quote for one in question.answers] == [(4, 5), None]
    assert [question.text(form) for form in FORMS] == ["s", "k"]
