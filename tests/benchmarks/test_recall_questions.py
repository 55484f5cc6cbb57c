"""How the recall benchmark makes questions: from dialogues, from titles, from what was said."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.recall import agent
from benchmarks.recall.archive import Archive, Document
from benchmarks.recall.baselines import Baselines, keywords
from benchmarks.recall.dialogues import places
from benchmarks.recall.measuring import asked, by_message, by_session
from benchmarks.recall.questions import Question, Utterance, write_dialogue
from benchmarks.recall.titles import without_titles
from everturn.model.conversation import Block, CallStart, Message


def prompt(session: str, seq: int, text: str) -> Document:
    return Document("", (session, seq), Message("user", "human", blocks=(Block("text", text, "prompt"),)))


def command(session: str, seq: int, text: str) -> Document:
    call = CallStart("c", "shell", "shell", command=text)
    return Document(
        "", (session, seq), Message("assistant", "model", blocks=(Block("call", text, "tool_input", call),))
    )


def output(session: str, seq: int, text: str) -> Document:
    return Document("", (session, seq), Message("tool", "tool", blocks=(Block("result", text, "tool_output"),)))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["D1:3"], [(1, 3)]),
        (["D8:6; D9:17"], [(8, 6), (9, 17)]),
        (["D9:1 D4:4"], [(9, 1), (4, 4)]),
        (["D:11:26"], [(11, 26)]),
        (["D30:05"], [(30, 5)]),
        (["D"], []),
    ],
)
def test_evidence_is_read_however_it_is_written(written: list[str], meant: list[tuple[int, int]]) -> None:
    assert list(places(written)) == meant


def test_every_utterance_becomes_a_message_with_its_time_in_its_workspace(tmp_path: Path) -> None:
    said = [
        Utterance("user", "Ann: I bought a canoe", "2024-05-01T09:00:00.000Z"),
        Utterance("user", "Ann: a green one", "2024-05-01T09:01:00.000Z"),
        Utterance("assistant", "Bob: where do you keep it?", "2024-05-01T09:02:00.000Z"),
    ]
    session = write_dialogue(tmp_path / "in", "talk/1", "/home/talk/1", said)
    archive = Archive.of(tmp_path / "in", tmp_path / "archive.db")
    try:
        documents = list(archive.documents())
        assert [one.place for one in documents] == [(session, 0), (session, 1), (session, 2)]
        assert [one.text for one in documents] == [one.text for one in said]
        assert {one.scope for one in documents} == {"/home/talk/1"}
        assert all(one.message.precision == "ms" for one in documents)
        assert archive.ask("canoe", "/home/talk/1")[0] == (session, 0)
        assert archive.ask("canoe", "/home/talk/2") == []
    finally:
        archive.close()


def test_a_string_is_asked_for_only_when_it_stands_in_one_session() -> None:
    shared = "please look at the failing build today"
    alone = "why does the canoe have four wheels"
    documents = [prompt("one", 0, shared), prompt("two", 0, shared), prompt("two", 3, alone), output("two", 4, alone)]
    questions = [one for one in agent.exact_strings(documents, wanted=5) if one.group.startswith("prompt")]

    assert {one.sessions for one in questions} == {frozenset({"two"})}
    assert {one.messages for one in questions} == {frozenset({("two", 3), ("two", 4)})}
    assert {one.text.startswith('"') for one in questions} == {True, False}


def test_strings_come_from_prompts_commands_and_outputs_and_are_the_same_each_time() -> None:
    documents = [
        prompt("one", 0, "find out why the parser is slow on long lines"),
        command("one", 1, "python tools/measure.py samples lines=5000 importtime"),
        output("one", 2, "import time: self 93 cumulative 120 encodings aliases"),
    ]
    questions = agent.exact_strings(documents, wanted=2)

    assert [one.group.split(",")[0] for one in questions] == ["prompt"] * 2 + ["command"] * 2 + ["output"] * 2
    assert questions == agent.exact_strings(documents, wanted=2)


def test_words_that_mean_something_in_a_request_are_not_asked_for() -> None:
    chance = random.Random(1)

    assert agent.some_words("remove -yaml from all parser options", chance) == ""
    assert agent.some_words('say "hello" to everybody in town', chance) == ""
    assert agent.some_words("one two", chance) == ""
    assert agent.some_words("remove yaml from parser options", chance) != ""


def test_titles_are_taken_out_of_lines_also_when_two_stand_on_one(tmp_path: Path) -> None:
    said = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hello"}}
    titles = [
        {"type": "custom-title", "customTitle": "Boats and trailers"},
        {"type": "summary", "summary": "Repairing boats", "leafUuid": "u1"},
        {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"},
        {"type": "system", "subtype": "away_summary", "content": "Repaired the boat. Next: paint."},
    ]
    dump = json.JSONEncoder(separators=(",", ":")).encode
    path = tmp_path / "session.jsonl"
    path.write_text(dump(said) + dump(titles[0]) + "\n" + "".join(dump(one) + "\n" for one in titles[1:]), "utf-8")
    data, found = without_titles(path)

    assert found == ["Boats and trailers", "Repairing boats", "Repaired the boat."]
    assert [json.loads(line) for line in data.splitlines() if line] == [said]


def test_titles_are_taken_out_of_documents(tmp_path: Path) -> None:
    exported = tmp_path / "export.json"
    exported.write_text(json.dumps({"info": {"id": "ses_1", "title": "Boats"}, "messages": []}), "utf-8")
    chat = tmp_path / "chat.md"
    chat.write_text("<!-- made -->\n\n# Boats and trailers (2025-04-27 17:51:55)\n\nhello\n", "utf-8")

    assert without_titles(exported)[1] == ["Boats"]
    assert b"Boats" not in without_titles(exported)[0]
    assert without_titles(chat) == (b"<!-- made -->\n\n# 2025-04-27 17:51:55\n\nhello\n", ["Boats and trailers"])


@pytest.mark.slow
def test_without_transcripts_beside_the_checkout_made_up_ones_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "CORPUS", tmp_path / "nothing here")
    assert agent.transcripts(tmp_path / "in") == {}
    archive = Archive.of(tmp_path / "in", tmp_path / "archive.db")
    try:
        questions = agent.exact_strings(archive.documents(), wanted=3)
        assert agent.titles(archive, {}) == []
        assert {one.group for one in questions} >= {"prompt, in quotes", "output, in quotes"}
        assert by_session(asked(questions, archive.ask)).values["hit@5"] > 0
    finally:
        archive.close()


def test_simple_methods_find_what_they_can() -> None:
    plain = Baselines(
        [
            ("", ("one", 0), "the boats are in the harbour", 1000),
            ("", ("one", 1), "a boat", 2000),
            ("", ("two", 0), "nothing of that kind", 3000),
        ]
    )

    assert plain.like("boats are in", "") == [("one", 0)]
    assert plain.like("harbour boats", "") == []
    assert plain.words("harbour boats", "") == [("one", 0)]
    assert set(plain.fts5("boat", "")) == {("one", 0), ("one", 1)}
    assert plain.fts5("boat", "elsewhere") == []
    assert plain.fts5("boat", "", 2000) == plain.words("boat", "", 2000) == plain.like("boat", "", 2000) == [("one", 0)]


def test_words_that_stand_everywhere_are_kept_only_when_there_are_no_others() -> None:
    assert keywords("What did you do with the boats?") == ["boats"]
    assert keywords("what was it") == ["what", "was", "it"]


def test_questions_without_known_messages_do_not_count_for_messages() -> None:
    questions = [Question("a", frozenset({"one"})), Question("b", frozenset({"one"}), frozenset({("one", 2)}))]
    answers = asked(questions, lambda text, scope, until: [("one", -1), ("one", 2)])

    assert (by_session(answers).n, by_message(answers).n) == (2, 1)
    assert by_message(answers).values["hit@1"] == 1
