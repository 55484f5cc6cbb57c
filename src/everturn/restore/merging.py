"""A model's statements and the mechanical ones put together into one document.

What a model said and code confirmed stands first in its section; mechanical statements that it says nothing of follow, so
that nothing certain is lost because a model left it out. What was not confirmed stands apart with the reason, never among
the facts.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from everturn.restore import SECTIONS, Document, DocumentSection, Statement
from everturn.restore.checking import CheckedStatement, check_sentence
from everturn.restore.citations import find_named_things
from everturn.restore.grounds import Ground, same_file, stems
from everturn.restore.replies import SessionSummary
from everturn.restore.stating import weight_by_rank

#: The weight of the first statement of a model in each section, and how many may stand there.
_TOP_WEIGHTS = {
    "session_name": 100.0, "high_level_goal": 99.5, "primary_task": 98.5, "next_steps": 93.0, "constraints": 91.0,
    "open_questions": 89.0, "key_decisions": 85.0, "artifacts": 80.0,
}  # fmt: skip
_MOST_BY_SECTION = {"session_name": 1, "high_level_goal": 2, "primary_task": 3}
_MOST_PER_SECTION = 60
_LEAST_WEIGHT = 40.0
_UNVERIFIED = 45.0
_SAME = 0.6


def weigh_statements(ground: Ground, summary: SessionSummary) -> dict[str, list[CheckedStatement]]:
    """Every statement of the model, checked."""
    return {
        key: [check_sentence(ground, key, sentence) for sentence in summary.sections.get(key, ())[:_MOST_PER_SECTION]]
        for key in SECTIONS
    }


def any_holds(checked: dict[str, list[CheckedStatement]]) -> bool:
    """Whether a single statement was confirmed."""
    return any(one.holds for entries in checked.values() for one in entries)


def merge_documents(document: Document, checked: dict[str, list[CheckedStatement]]) -> Document:
    """The mechanical document with what the model added."""
    sections = tuple(_merge_section(one, checked.get(one.key, ())) for one in document.sections)
    failed = [one.statement for entries in checked.values() for one in entries if not one.holds]
    unverified = tuple(
        replace(one, weight=weight_by_rank(_UNVERIFIED, rank, 10.0))
        for rank, one in enumerate(_unique_statements(failed))
    )
    return replace(document, sections=sections, unverified=(*document.unverified, *unverified))


def _merge_section(section: DocumentSection, checked: Iterable[CheckedStatement]) -> DocumentSection:
    confirmed = _unique_statements(one.statement for one in checked if one.holds)[
        : _MOST_BY_SECTION.get(section.key, _MOST_PER_SECTION)
    ]
    ours = [
        replace(
            one,
            weight=max(
                weight_by_rank(_TOP_WEIGHTS[section.key], rank, _LEAST_WEIGHT), _same_weight(one, section.statements)
            ),
        )
        for rank, one in enumerate(confirmed)
    ]
    if section.key == "session_name" and ours:
        return replace(section, statements=tuple(ours))
    rest = (one for one in section.statements if not any(_is_same(one, other) for other in ours))
    return replace(section, statements=(*ours, *rest))


def _same_weight(one: Statement, statements: Iterable[Statement]) -> float:
    return max((other.weight for other in statements if _is_same(other, one)), default=0.0)


def _is_same(mechanical: Statement, other: Statement) -> bool:
    """Whether a model's statement says what a mechanical one says: about the same file, or mostly in its words."""
    files, others = find_named_things(mechanical.text).files, find_named_things(other.text).files
    if files and others:
        return any(same_file(one, path) or same_file(path, one) for one in files for path in others)
    telling = stems(mechanical.text)
    if not telling:
        return False
    places = {(one.session, one.message) for one in mechanical.evidence}
    shares_place = any((one.session, one.message) in places for one in other.evidence)
    return shares_place and len(telling & stems(other.text)) >= _SAME * len(telling)


def _unique_statements(statements: Iterable[Statement]) -> list[Statement]:
    return list({" ".join(one.text.lower().split()): one for one in reversed(list(statements))}.values())[::-1]
