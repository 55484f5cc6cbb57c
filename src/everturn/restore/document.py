"""Bring a lost session back, with proof: from an archived session or a recording to a document a fresh agent can work from.

A `Document` is made of `Statement`s, and every statement names its `Evidence`: message and byte range in the raw layer.
Code checks it (`restore.checking`); what does not hold is never shown as a fact. Numbers of turns, messages and calls are
0-based here and shown 1-based. Without a model the document is made of mechanical facts alone (`restore.document`).

What of a document fits into a budget of tokens: the weightiest statements, and how many were left out where.

The caller says what a statement costs in the form it will be written in, and what the rest costs. Statements go in by
weight; one that is too long for what is left lets shorter ones behind it in. Nothing is cut in the middle.
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

#: What mechanical facts stand under, behind the eight.
FACTS = {
    "still_failing": "Still failing",
    "errors_fixed": "Errors and what fixed them",
    "plan_open": "Plan items open",
    "plan_done": "Plan items done",
    "commits": "Commits",
    "requests": "Requests, turn by turn",
    "files": "Files only read",
    "mentioned": "Files named but not opened",
    "commands": "Commands and how they ended",
    "summaries": "Summaries the client wrote (a source, not facts)",
}

#: What stands where a session says nothing.
NOT_STATED = "Not explicitly stated"


class Evidence(Struct, frozen=True):
    """What a statement rests on: a message of a session, the bytes of its record, and words that stand in it."""

    session: int  # row id in the archive it was made from
    turn: int  # 0-based
    message: int  # seq
    call: int | None = None  # block of that message which holds the call
    start: int = 0  # of the record, in the stored bytes of the session's version
    size: int = 0
    quote: str = ""  # stands in the message's text, blanks aside; "" when the place itself is the proof
    native_id: str = ""  # of the session, to be shown


class Statement(Struct, frozen=True):
    """One thing that is said about a session."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    verified: bool | None = None  # None: nobody has looked yet
    label: str = ""  # where it comes from when that matters: "compaction summary", "subagent", "model", "pin"
    reason: str = ""  # why it could not be verified
    weight: float = 0.0  # how useful it is; what is cut goes from the lowest up


class DocumentSection(Struct, frozen=True):
    """Statements under one heading. `cut` are those that there was no room for."""

    key: str  # of SECTIONS or FACTS
    statements: tuple[Statement, ...] = ()
    cut: int = 0


class Document(Struct, frozen=True):
    """A restored session."""

    session: int
    native_id: str = ""
    agent: str = ""
    workspace: str = ""
    turns: int = 0  # how many turns it covers
    last_seq: int = -1  # the last message it covers
    sections: tuple[DocumentSection, ...] = ()  # the eight, in order; an empty one is "Not explicitly stated"
    facts: tuple[DocumentSection, ...] = ()  # mechanical ones, of FACTS
    unverified: tuple[Statement, ...] = ()  # what a model said and code could not confirm
    notes: tuple[str, ...] = ()  # what a reader must know: what was cut, why no model was used
    model: str = ""  # "" when no model was asked
    prompt_version: str = ""
    receipts: tuple[Any, ...] = ()  # of llm.Receipt
    missing: bool = False  # a model was to write something that is not there; the notes say what and why


def section(document: Document, key: str) -> DocumentSection:
    """The section of that key, empty when there is none."""
    return next((one for one in (*document.sections, *document.facts) if one.key == key), DocumentSection(key))


#: Tokens of a document when nothing else is asked for, and the fewest that its headings need.
BUDGET = 4_000
LEAST = 400
