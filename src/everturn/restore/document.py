"""The restored document: statements about a session under fixed headings, each with its evidence.

Every `Statement` names its `Evidence`: a message and its byte range in the raw layer. Code checks it
(`restore.evidence`, `restore.check`), and a statement that does not hold is never shown as a fact. Turns, messages and
calls are counted from 0 here and shown from 1.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

#: The eight sections of a SESSION SUMMARY in their order: key in JSON, heading in Markdown.
SECTIONS = {
    "session_name": "Session name",
    "high_level_goal": "High-level goal",
    "primary_task": "Primary task in progress",
    "key_decisions": "Key decisions already made",
    "constraints": "Constraints and assumptions",
    "artifacts": "Artifacts referenced or created",
    "open_questions": "Open questions",
    "next_steps": "Next concrete steps",
}

#: The sections of mechanical facts, which follow the eight.
FACTS = {
    "still_failing": "Still failing",
    "errors_fixed": "Errors and what fixed them",
    "loose_ends": "Loose ends of earlier turns",
    "plan_open": "Plan items open",
    "plan_done": "Plan items done",
    "commits": "Commits",
    "names": "Other names that matter",
    "requests": "Requests, turn by turn",
    "files": "Files only read",
    "mentioned": "Files named but not opened",
    "commands": "Commands and how they ended",
    "summaries": "Summaries the client wrote (a source, not facts)",
}

#: Shown in a section about which the session says nothing.
NOT_STATED = "Not explicitly stated"


#: What a check of a model's statement found: its words are those of a message; acts, numbers, files and words agree with the
#: record; there was nothing to check it against; the record or another statement says otherwise.
QUOTED, AGREES, NOT_CHECKED, CONTRADICTED = "quoted", "agrees with the record", "not checked", "contradicted"
CHECKS = (QUOTED, AGREES, NOT_CHECKED, CONTRADICTED)


class Evidence(Struct, frozen=True):
    """A message that a statement rests on, the byte range of its record, and a quote from it."""

    session: int  # row id in the archive it was made from
    turn: int  # 0-based
    message: int  # seq
    call: int | None = None  # block of that message which holds the call
    start: int = 0  # of the record, in the stored bytes of the session's version
    size: int = 0
    quote: str = ""  # occurs in the message, whitespace aside; "" if the message itself is the evidence
    native_id: str = ""  # of the session, for display


class Statement(Struct, frozen=True):
    text: str
    evidence: tuple[Evidence, ...] = ()
    verified: bool | None = None  # None: not checked yet
    label: str = ""  # where it comes from when that matters: "compaction summary", "subagent", "model", "pin"
    reason: str = ""  # why it could not be verified
    weight: float = 0.0  # how useful it is; the lightest are cut first
    check: str = ""  # of a model's statement: what the check found, one of CHECKS
    around: str = ""  # what a name stands in: a name that is cleaned away there is part of a secret. Never shown


class DocumentSection(Struct, frozen=True):
    """Statements under one heading, and how many were `cut` for lack of room."""

    key: str  # of SECTIONS or FACTS
    statements: tuple[Statement, ...] = ()
    cut: int = 0


class Document(Struct, frozen=True):
    session: int
    native_id: str = ""
    agent: str = ""
    workspace: str = ""
    repository: str = ""  # as version control names it, `owner/name`
    branch: str = ""
    agent_model: str = ""  # of the session, not the one that was asked for this document
    started: int | None = None  # ms UTC
    ended: int | None = None
    turns: int = 0  # how many turns it covers
    last_seq: int = -1  # the last message it covers
    sections: tuple[DocumentSection, ...] = ()  # the eight, in order; an empty one is "Not explicitly stated"
    facts: tuple[DocumentSection, ...] = ()  # mechanical ones, of FACTS
    unverified: tuple[Statement, ...] = ()  # sentences of a model that code could not confirm
    notes: tuple[str, ...] = ()  # for the reader: what was cut, why no model was used
    model: str = ""  # "" if no model was asked
    prompt_version: str = ""
    receipts: tuple[Any, ...] = ()  # of llm.Receipt
    missing: bool = False  # a model failed to write some of it; the notes say what and why


def section(document: Document, key: str) -> DocumentSection:
    """Return the section with that key, an empty one if there is none."""
    return next((one for one in (*document.sections, *document.facts) if one.key == key), DocumentSection(key))


#: The default budget of a document in tokens, and the fewest that its headings need.
BUDGET = 4_000
LEAST = 400
