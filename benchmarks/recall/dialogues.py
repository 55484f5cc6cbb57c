"""The published question sets beside the checkout, where they are: LoCoMo and devmembench.

LoCoMo (ten long dialogues between two people): the questions that name the utterances their answer rests on; each is asked
within its own dialogue. devmembench (sessions of a developer with an assistant): the questions that name their sessions;
asked everywhere. Both are measured with and never become part of the project.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from benchmarks.recall.questions import Question, Utterance, session_id, write_dialogue

BENCH = ROOT.parent / "shared" / "bench"
_LOCOMO = BENCH / "locomo" / "locomo10.json"
_DEVMEMBENCH = BENCH / "devmembench"
#: Evidence is written in many ways: `D1:3`, `D8:6; D9:17`, `D:11:26`, `D30:05`.
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


def locomo(folder: Path) -> list[Question] | None:
    """Write the dialogues into a folder; the questions about them. None when the set is not there."""
    if not _LOCOMO.is_file():
        return None
    questions: list[Question] = []
    for dialogue in json.loads(_LOCOMO.read_text("utf-8")):
        name = f"locomo/{dialogue['sample_id']}"
        lengths = {n: _write_talk(folder, name, n, dialogue["conversation"]) for n in _numbers(dialogue)}
        questions += [_about(name, lengths, one) for one in dialogue["qa"] if one.get("evidence")]
    return questions


def devmembench(folder: Path) -> list[Question] | None:
    """The same for developers' sessions."""
    if not (_DEVMEMBENCH / "sessions.json").is_file():
        return None
    for session in json.loads((_DEVMEMBENCH / "sessions.json").read_text("utf-8")):
        told = session["metadata"]
        start = datetime.fromisoformat(told["date"]).replace(hour=9, tzinfo=UTC)
        said = [Utterance(one["role"], one["content"], _minute(start, n)) for n, one in enumerate(session["messages"])]
        write_dialogue(folder, f"devmembench/{session['sessionId']}", f"/home/dev/{told['project']}", said)
    asked = json.loads((_DEVMEMBENCH / "questions.json").read_text("utf-8"))
    return [
        Question(
            one["question"],
            frozenset(session_id(f"devmembench/{name}") for name in one["haystackSessionIds"]),
            group=one["questionType"],
        )
        for one in asked
        if one["haystackSessionIds"]
    ]


def places(evidence: list[str]) -> Iterator[tuple[int, int]]:
    """(session, utterance), both counted from 1, of what a question rests on."""
    for text in evidence:
        for session, number in _EVIDENCE.findall(text):
            yield int(session), int(number)


def _numbers(dialogue: dict[str, Any]) -> list[int]:
    """Of the sessions that have words."""
    held = dialogue["conversation"]
    return [int(key[8:]) for key in held if re.fullmatch(r"session_\d+", key) and held[key]]


def _write_talk(folder: Path, name: str, number: int, held: dict[str, Any]) -> int:
    start = datetime.strptime(held[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    said = []
    for n, one in enumerate(held[f"session_{number}"]):
        role = "user" if one["speaker"] == held["speaker_a"] else "assistant"
        said.append(Utterance(role, f"{one['speaker']}: {one['text']}{_picture(one)}", _minute(start, n)))
    write_dialogue(folder, f"{name}/{number}", _workspace(name), said)
    return len(said)


def _picture(one: dict[str, Any]) -> str:
    """What is known of a picture that was sent along."""
    told = [one[key] for key in ("blip_caption", "query") if one.get(key)]
    return f" [shares {'; '.join(told)}]" if told else ""


def _about(name: str, lengths: dict[int, int], one: dict[str, Any]) -> Question:
    rests_on = [(session, number) for session, number in places(one["evidence"]) if session in lengths]
    return Question(
        one["question"],
        frozenset(session_id(f"{name}/{session}") for session, _ in rests_on),
        frozenset((session_id(f"{name}/{session}"), n - 1) for session, n in rests_on if n <= lengths[session]),
        _workspace(name),
        _CATEGORIES.get(one["category"], "other"),
    )


#: As the publication numbers them.
_CATEGORIES = {1: "several hops", 2: "time", 3: "open", 4: "one hop", 5: "adversarial"}


def _workspace(name: str) -> str:
    return f"/home/talk/{name}"


def _minute(start: datetime, n: int) -> str:
    return (start + timedelta(minutes=n)).isoformat().replace("+00:00", ".000Z")
