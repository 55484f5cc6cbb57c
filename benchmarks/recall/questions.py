"""What a set of questions is, and how a dialogue that is no agent's is written so that it can be taken in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

Place = tuple[str, int]  # native id of a session, seq of a message


@dataclass(frozen=True)
class Question:
    """What is asked and what would be right: any of these sessions, and in them these messages."""

    text: str
    sessions: frozenset[str]
    messages: frozenset[Place] = frozenset()  # empty where only the session is known
    scope: str = ""  # the workspace it is asked in; "" = everywhere
    group: str = ""  # kinds of questions that are told apart
    until: int | None = None  # only what was said before this moment may be found; milliseconds


@dataclass(frozen=True)
class Utterance:
    """One thing said in a dialogue."""

    role: str  # user | assistant
    text: str
    at: str  # ISO time


def session_id(name: str) -> str:
    """A native id, the same for the same name always."""
    return str(uuid5(NAMESPACE_URL, name))


def write_dialogue(folder: Path, name: str, workspace: str, said: Sequence[Utterance]) -> str:
    """Write a session that `everturn add` reads, one message for each utterance; its native id."""
    session = session_id(name)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [_line(session, workspace, number, one) for number, one in enumerate(said)]
    (folder / f"{session}.jsonl").write_text("".join(lines), "utf-8")
    return session


def _line(session: str, workspace: str, number: int, said: Utterance) -> str:
    uuid = session_id(f"{session}/{number}")
    message = {"role": said.role, "content": [{"type": "text", "text": said.text}]}
    if said.role == "assistant":
        message |= {"id": f"msg_{uuid}", "model": "person", "type": "message"}
    record = {
        "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": workspace, "sessionId": session,
        "version": "2.0.0", "type": said.role, "message": message, "uuid": uuid, "timestamp": said.at,
    }  # fmt: skip
    return json.dumps(record, ensure_ascii=False) + "\n"
