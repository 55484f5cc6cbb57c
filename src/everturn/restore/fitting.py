"""What of a document fits into a budget of tokens: the weightiest statements, and how many were left out where.

The caller says what a statement costs in the form it will be written in, and what the rest costs. Statements go in by
weight; one that is too long for what is left lets shorter ones behind it in. Nothing is cut in the middle.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from everturn.derive.tokens import MARGIN, estimate_tokens
from everturn.restore import Document, DocumentSection, Statement

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
