"""Bring a lost session back, with proof: from an archived session or a recording to a document a fresh agent can work from.

A `Document` is made of `Statement`s, and every statement names its `Evidence`: message and byte range in the raw layer.
Code checks it (`restore.checking`); what does not hold is never shown as a fact. Numbers of turns, messages and calls are
0-based here and shown 1-based. Without a model the document is made of mechanical facts alone (`restore.document`).

What of a document fits into a budget of tokens: the weightiest statements, and how many were left out where.

The caller says what a statement costs in the form it will be written in, and what the rest costs. Statements go in by
weight; one that is too long for what is left lets shorter ones behind it in. Nothing is cut in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.text.tokens import MARGIN, estimate_tokens

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

Place = tuple[str, int]  # key of the section, number of the statement in it

_UNVERIFIED = "unverified"


def cost(text: str) -> float:
    """Tokens of a text on the safe side."""
    return estimate_tokens(text) * MARGIN if text else 0.0


def fit_document(document: Document, budget: int, price: Callable[[str, Statement], float], rest: float) -> Document:
    """The document with what `budget` has room for; all of it when the budget is 0."""
    if not budget:
        return document
    left = budget - rest
    kept: set[Place] = set()
    for key, number, one in sorted(_all_statements(document), key=lambda entry: -entry[2].weight):
        priced = price(key, one)
        if priced <= left:
            left -= priced
            kept.add((key, number))
    return _keep_statements(document, kept)


def drop_lightest(document: Document, share: float = 0.03) -> Document:
    """The same with its lightest statements gone: a few of every hundred, one at least."""
    entries = sorted(_all_statements(document), key=lambda entry: entry[2].weight)
    gone = {(key, number) for key, number, _ in entries[: max(1, int(len(entries) * share))]}
    return _keep_statements(document, {(key, number) for key, number, _ in entries} - gone)


def is_empty(document: Document) -> bool:
    """Whether there is nothing left that could go."""
    return not _all_statements(document)


def _all_statements(document: Document) -> list[tuple[str, int, Statement]]:
    sections = (*document.sections, *document.facts, DocumentSection(_UNVERIFIED, document.unverified))
    return [(one.key, number, said) for one in sections for number, said in enumerate(one.statements)]


def _keep_statements(document: Document, kept: set[Place]) -> Document:
    return replace(
        document,
        sections=tuple(_thin_section(one, kept) for one in document.sections),
        facts=tuple(_thin_section(one, kept) for one in document.facts),
        unverified=_thin_section(DocumentSection(_UNVERIFIED, document.unverified), kept).statements,
    )


def _thin_section(section: DocumentSection, kept: set[Place]) -> DocumentSection:
    left = tuple(one for number, one in enumerate(section.statements) if (section.key, number) in kept)
    return DocumentSection(section.key, left, section.cut + len(section.statements) - len(left))
