"""A turn as people read it."""

from __future__ import annotations

from everturn.model.conversation import CallStart
from everturn.sessions.messages import Passage, input_text, is_quiet, passages, read_turns
from everturn.sources.contract import all_sources
from tests.recall.archives import Archive


def told(archive: Archive, *pieces: bytes, results: bool = True) -> list[list[Passage]]:
    session = archive.take_in(*pieces)
    turns = read_turns(archive.store, session)
    return [list(passages(archive.store, all_sources(), session, view, results)) for view in turns]


def test_prompts_thoughts_answers_and_calls_come_in_order(archive: Archive) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    (turn,) = told(
        archive,
        archive.history.line("user", "ask"),
        archive.history.line("assistant", [thought]),
        archive.use("Bash", "t1", command="ls"),
        archive.back("t1", "a.py"),
        archive.history.line("assistant", [{"type": "text", "text": "there is a.py"}]),
    )
    assert [(one.kind, one.text) for one in turn if one.kind != "call"] == [
        ("prompt", "ask"),
        ("thinking", "hm"),
        ("answer", "there is a.py"),
    ]
    assert [one.kind for one in turn] == ["prompt", "thinking", "call", "answer"]


def test_a_result_stands_with_its_call(archive: Archive) -> None:
    first, second = told(
        archive,
        archive.history.line("user", "go"),
        archive.use("Bash", "t1", command="sleep 9"),
        archive.history.turn("meanwhile", "fine"),
        archive.back("t1", "late words"),
    )
    (call,) = [one for one in first if one.kind == "call"]
    assert call.result is not None and call.result.text == "late words"
    assert call.call is not None and call.call.status == "ok"
    assert [one.kind for one in second] == ["prompt", "answer"]


def test_results_are_read_only_when_asked_for(archive: Archive) -> None:
    (turn,) = told(archive, archive.history.tool_turn("go", "ls", "a.py"), results=False)
    assert [(one.kind, one.result) for one in turn] == [("prompt", None), ("call", None)]


def test_a_result_without_a_call_stands_alone(archive: Archive) -> None:
    (turn,) = told(archive, archive.history.line("user", "go"), archive.back("nobody", "words"))
    assert [(one.kind, one.text) for one in turn] == [("prompt", "go"), ("result", "words")]


def test_parallel_calls_know_how_many_they_are(archive: Archive) -> None:
    (turn,) = told(
        archive,
        archive.history.line("user", "go"),
        archive.use("Read", "t1", "m1", file_path="/a"),
        archive.back("t1", "a"),
        archive.use("Read", "t2", "m1", file_path="/b"),
        archive.back("t2", "b"),
        archive.use("Read", "t3", "m2", file_path="/c"),
    )
    assert [one.batch for one in turn if one.kind == "call"] == [2, 2, 1]


def test_interrupts_and_compactions_stand_where_they_happened(archive: Archive) -> None:
    compacted = archive.history.line("system", "", subtype="compact_boundary")
    (turn,) = told(
        archive,
        archive.history.turn("go", "going"),
        compacted,
        archive.history.line("user", [{"type": "text", "text": "[Request interrupted by user]"}]),
    )
    assert [one.kind for one in turn] == ["prompt", "answer", "compaction", "interrupt"]


def test_a_problem_stands_where_the_bytes_are_that_could_not_be_read(archive: Archive) -> None:
    first, second = told(
        archive,
        archive.history.turn("one", "uno"),
        b'{"broken": \n',
        archive.history.turn("two", "dos"),
        b"also broken\n",
    )
    assert [one.kind for one in first] == ["prompt", "answer", "problem"]
    assert [one.kind for one in second] == ["prompt", "answer", "problem"]
    assert "11 bytes" in first[-1].text and "broken" not in first[-1].text


def test_what_the_client_put_in_is_quiet(archive: Archive) -> None:
    (turn,) = told(
        archive,
        archive.history.line("user", "<system-reminder>be nice</system-reminder>really ask"),
        archive.history.line("user", [{"type": "text", "text": "body of a skill"}], isMeta=True),
        archive.history.line("assistant", [{"type": "text", "text": "reply"}]),
    )
    assert [(one.kind, is_quiet(one)) for one in turn] == [
        ("context", True),
        ("prompt", False),
        ("context", True),
        ("answer", False),
    ]


def test_an_error_in_the_place_of_the_model_is_not_quiet(archive: Archive) -> None:
    error = [{"type": "text", "text": "API Error: 529"}]
    (turn,) = told(
        archive,
        archive.history.line("user", "ask"),
        archive.history.line("assistant", error, isApiErrorMessage=True, message={"model": "<synthetic>"}),
    )
    assert [(one.kind, is_quiet(one)) for one in turn] == [("prompt", False), ("notice", False)]


def test_an_image_is_named(archive: Archive) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    (turn,) = told(archive, archive.history.line("user", [image, {"type": "text", "text": "what is it"}]))
    assert [(one.kind, one.text) for one in turn] == [("prompt", "[image]"), ("prompt", "what is it")]


def test_input_is_one_line_per_argument() -> None:
    given = {"file_path": "/a.py", "limit": 3, "edits": [{"old": "x"}], "odd": "\ud800"}
    assert (
        input_text(CallStart("", "Edit", input=given))
        == 'file_path: /a.py\nlimit: 3\nedits: [{"old":"x"}]\nodd: \ud800'
    )
    assert input_text(CallStart("", "X", input=None)) == ""
    assert input_text(CallStart("", "X", input=["a", 1])) == '["a",1]'
    assert input_text(CallStart("", "X", input={"a": ["\ud800"]})) == "a: …"
