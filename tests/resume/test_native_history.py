"""What another agent is told of a session: in order, paired, with the truth about what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn.model.archive import Session
from everturn.model.conversation import Message
from everturn.resume.history import INTERRUPTED, History, read_history
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter
from tests.capture.history import SID
from tests.recall.archives import Archive
from tests.sources import goldens

PNG = "iVBORw0KGgo="


def told(kept: Archive, *pieces: bytes, upto: int | None = None, own: bool = False) -> History:
    session: Session = kept.take_in(*pieces)
    return read_history(kept.store, all_sources(), session, upto, own)


def lines(found: History) -> list[str]:
    return [f"{message.role}: {block.text}" for message in found.messages for block in message.blocks]


def shape(found: History) -> list[tuple[str, list[str]]]:
    return [(message.role, [_name(message, n) for n in range(len(message.blocks))]) for message in found.messages]


def _name(message: Message, n: int) -> str:
    block = message.blocks[n]
    return block.call.call_id if block.call else block.result.call_id if block.result else block.text


def test_results_stand_behind_the_answer_that_called_wherever_they_came(kept: Archive) -> None:
    prompt = kept.history.line("user", "look twice")
    first, second = kept.use("Bash", "a", "msg", command="ls"), kept.use("Bash", "b", "msg", command="pwd")
    found = told(kept, prompt, first, kept.back("a", "files"), second, kept.back("b", "folder"))
    assert shape(found) == [("user", ["look twice"]), ("assistant", ["a", "b"]), ("tool", ["a", "b"])]
    assert found.notes == []


def test_a_prompt_typed_between_a_call_and_its_result_comes_after_both(kept: Archive) -> None:
    pieces = (kept.history.line("user", "go"), kept.use("Bash", "a", command="ls"), kept.history.line("user", "faster"))
    found = told(kept, *pieces, kept.back("a", "files"))
    assert shape(found) == [("user", ["go"]), ("assistant", ["a"]), ("tool", ["a"]), ("user", ["faster"])]


def test_a_call_without_a_result_is_answered_with_the_truth(kept: Archive) -> None:
    found = told(kept, kept.history.line("user", "go"), kept.use("Bash", "a", command="rm x"))
    result = found.messages[-1].blocks[0]
    assert result.text == INTERRUPTED and result.result is not None and result.result.is_error
    assert found.notes == ["1 call without a recorded result: the history says so"]


def test_a_result_whose_call_is_not_on_record_goes_over_as_words(kept: Archive) -> None:
    found = told(kept, kept.history.turn("go", "gone"), kept.back("lost", "what it said"))
    assert lines(found)[-1] == "user: [Output of a tool call that is not on record]\nwhat it said"


def test_calls_that_share_an_id_get_ids_of_their_own(kept: Archive) -> None:
    once = (kept.use("Bash", "a", command="one"), kept.back("a", "1"))
    again = (kept.use("Bash", "a", command="two"), kept.back("a", "2"))
    found = told(kept, kept.history.line("user", "go"), *once, *again)
    ids = [block.call.call_id for message in found.messages for block in message.blocks if block.call]
    results = [(b.result.call_id, b.text) for m in found.messages for b in m.blocks if b.result]
    assert len(set(ids)) == 2
    assert results == [(ids[0], "1"), (ids[1], "2")]


def test_only_what_the_agent_would_see_goes_over(kept: Archive) -> None:
    mark = kept.history.line("system", "", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    summary = kept.history.line("user", "They fixed the till.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    found = told(kept, kept.history.turn("old", "older"), mark, summary, kept.history.turn("new", "newer"))
    assert "They fixed the till." in lines(found)[0] and "everturn archive, session" in lines(found)[0]
    assert lines(found)[1:] == ["user: new", "assistant: newer"]
    assert found.compacted == 3
    assert found.notes == ["begins with the summary of 3 messages; recall reaches all of them"]


def test_thoughts_stay_behind_and_are_counted(kept: Archive) -> None:
    thought = kept.history.line("assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}])
    found = told(kept, kept.history.line("user", "go"), thought, kept.history.turn("on", "done"))
    assert found.left_out == {"thoughts": 1}
    assert "left out: 1 thoughts of the model, which only its own provider can read" in found.notes


def test_the_agent_itself_gets_its_thoughts_back(kept: Archive) -> None:
    data = {"type": "thinking", "thinking": "hm", "signature": "s"}
    found = told(kept, kept.history.line("user", "go"), kept.history.line("assistant", [data]), own=True)
    assert found.messages[-1].blocks[0].data == data


def test_what_the_client_put_in_is_left_out_and_counted(kept: Archive) -> None:
    reminder = kept.history.line("user", "<system-reminder>be good</system-reminder>", isMeta=True)
    found = told(kept, reminder, kept.history.turn("go", "done"))
    assert lines(found) == ["user: go", "assistant: done"]
    assert found.left_out == {"context": 1}


def test_it_ends_with_the_turn_that_was_asked_for(kept: Archive) -> None:
    turns = [kept.history.turn(f"ask {n}", f"answer {n}") for n in range(3)]
    assert lines(told(kept, *turns, upto=1)) == [
        "user: ask 0",
        "assistant: answer 0",
        "user: ask 1",
        "assistant: answer 1",
    ]


def test_an_image_goes_over_and_one_without_bytes_is_said(kept: Archive) -> None:
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    asked = kept.history.line("user", [{"type": "text", "text": "see"}, shown, linked])
    found = told(kept, asked)
    assert [block.kind for block in found.messages[0].blocks] == ["text", "image", "text"]
    assert found.left_out == {"images": 1}


def test_an_interruption_is_told(kept: Archive) -> None:
    stopped = kept.history.line("user", [{"type": "text", "text": "[Request interrupted by user]"}])
    found = told(kept, kept.history.turn("go", "well"), stopped)
    assert lines(found)[-1] == "user: [Request interrupted by user]"


# taken back -----------------------------------------------------------------------------------------------------------
def test_turns_that_were_edited_by_going_back_before_them_stay_behind(kept: Archive) -> None:
    """In this format a prompt names what it goes on from; nothing else says that the human went back."""
    one = kept.history.turn("one", "first answer")
    branch = f"00000000-0000-4000-8000-{kept.history.n:012d}"
    two = kept.history.turn("two", "wrong way", parentUuid=branch)
    again = kept.history.turn("two again", "right way", parentUuid=branch)
    after = kept.history.turn("three", "done", parentUuid=f"00000000-0000-4000-8000-{kept.history.n:012d}")
    found = told(kept, one, two, again, after)
    words = [line.partition(": ")[2] for line in lines(found)]
    assert words == ["one", "first answer", "two again", "right way", "three", "done"]
    assert found.notes == ["left out: 2 messages that were taken back or edited by going back before them"]


def test_a_fork_from_a_turn_that_was_taken_back_later_has_it(kept: Archive) -> None:
    one = kept.history.turn("one", "first answer")
    branch = f"00000000-0000-4000-8000-{kept.history.n:012d}"
    two = kept.history.turn("two", "wrong way", parentUuid=branch)
    again = kept.history.turn("two again", "right way", parentUuid=branch)
    assert [line.partition(": ")[2] for line in lines(told(kept, one, two, again, upto=1))][2:] == ["two", "wrong way"]


def _codex(*items: dict[str, object]) -> bytes:
    meta: dict[str, object] = {
        "type": "session_meta",
        "payload": {"id": SID, "cwd": "/home/ann/shop", "cli_version": "0.166.0"},
    }
    records: list[dict[str, object]] = [meta, *items]
    return b"".join(json.dumps({"timestamp": "2026-03-01T10:00:00.000Z", **one}).encode() + b"\n" for one in records)


def _codex_said(role: str, text: str) -> dict[str, object]:
    kind = "input_text" if role == "user" else "output_text"
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"type": "response_item", "payload": payload}


def _gemini(*records: dict[str, object]) -> bytes:
    head = {"sessionId": SID, "projectHash": "p", "startTime": "2026-03-01T10:00:00.000Z", "kind": "main"}
    return b"".join(json.dumps(one).encode() + b"\n" for one in [head, *records])


def _gemini_said(kind: str, name: str, text: str) -> dict[str, object]:
    content = [{"text": text}] if kind == "user" else text
    return {"id": name, "timestamp": "2026-03-01T10:00:01.000Z", "type": kind, "content": content}


ROLLED_BACK = {
    "codex": (
        f"rollout-2026-03-01T10-00-00-{SID}.jsonl",
        _codex(
            *(_codex_said(*one) for one in (("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2"))),
            {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
            *(_codex_said(*one) for one in (("user", "three"), ("assistant", "3"))),
        ),
    ),
    "gemini": (
        f"session-2026-03-01T10-00-{SID[:8]}.jsonl",
        _gemini(
            *(_gemini_said(*one) for one in (("user", "a", "one"), ("gemini", "b", "1"), ("user", "c", "two"))),
            _gemini_said("gemini", "d", "2"),
            {"$rewindTo": "c"},
            *(_gemini_said(*one) for one in (("user", "e", "three"), ("gemini", "f", "3"))),
        ),
    ),
}


@pytest.mark.parametrize("agent", ROLLED_BACK)
def test_turns_that_were_rolled_back_stay_behind(agent: str, tmp_path: Path) -> None:
    name, data = ROLLED_BACK[agent]
    (tmp_path / name).write_bytes(data)
    with goldens.ingest(agent, tmp_path / name) as archive:
        session = archive.store.sessions(SessionFilter())[0][0][0]
        found = read_history(archive.store, all_sources(), session)
    assert [line.partition(": ")[2] for line in lines(found)] == ["one", "1", "three", "3"]
    assert found.left_out["taken back"] == 2
