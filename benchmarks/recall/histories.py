"""The question sets beside the checkout that are one JSON line per session and per question: BEAM-100K and RealMem.

An archive is the history of one person and is a scope: a question is asked within its own. *BEAM-100K*: long conversations
with an assistant. An archive has three to five sessions, so messages are what to look at. *RealMem*: project work over many
short sessions. The questions are prompts of the person, and only what was said before the session they open or stand in may
be found. Questions whose answer is nowhere are left out. Both sets are measured with and never become part of the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.recall.dialogues import BENCH
from benchmarks.recall.questions import Question, Utterance, session_id, write_dialogue

_ISO = "%Y-%m-%dT%H:%M:%S.000Z"


def beam100k(folder: Path) -> list[Question] | None:
    """Write the sessions into a folder; the questions about them. None when the set is not there."""
    return _taken_from(BENCH / "beam100k", folder)


def realmem(folder: Path) -> list[Question] | None:
    """The same for project work."""
    return _taken_from(BENCH / "realmem", folder)


def _taken_from(place: Path, folder: Path) -> list[Question] | None:
    if not (place / "sessions.jsonl").is_file():
        return None
    began: dict[str, datetime] = {}
    for session in _records(place / "sessions.jsonl"):
        name = session["session"]
        began[name] = start = datetime.fromisoformat(session["at"])
        # A second each: the sessions of a day are half an hour apart and must not overlap.
        times = ((start + timedelta(seconds=n)).strftime(_ISO) for n in range(len(session["messages"])))
        said = [Utterance(one["role"], one["text"], at) for one, at in zip(session["messages"], times, strict=True)]
        write_dialogue(folder, name, _workspace(session["archive"]), said)
    return [_question(one, began) for one in _records(place / "questions.jsonl") if one["gold_sessions"]]


def _question(one: dict[str, Any], began: dict[str, datetime]) -> Question:
    before = one.get("before")
    return Question(
        one["question"],
        frozenset(map(session_id, one["gold_sessions"])),
        frozenset((session_id(session), number) for session, number in one["gold"]),
        _workspace(one["archive"]),
        one["type"].partition("/")[0],
        round(began[before].timestamp() * 1000) if before else None,
    )


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _workspace(archive: str) -> str:
    return f"/home/{archive}"
