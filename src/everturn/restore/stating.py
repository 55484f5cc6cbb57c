"""How a fact becomes a statement: its words, its citations, its weight.

A `DraftStatement` is a statement that has not been proven yet: proving reads the messages it rests on, so only those that may have
room in a document are proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log2
from typing import TypeVar

from msgspec import Struct

from everturn.derive.printable import one_line
from everturn.derive.state import FileMention, FileState, SessionState
from everturn.model.archive import MessageRow, SessionText
from everturn.restore import Evidence, Statement
from everturn.restore.proof import Proofs

T = TypeVar("T")

#: Words and the message they stand in.
Words = tuple[int, str]


class DraftStatement(Struct, frozen=True):
    """A statement still to be proven."""

    weight: float
    make: Callable[[], Statement]


class StatementMaterial(Struct, frozen=True):
    """What the sections of a document are made from."""

    state: SessionState
    proofs: Proofs
    results: dict[int, int]  # message of a call → message of its result
    text: SessionText
    summaries: tuple[MessageRow, ...] = ()


def proven_statement(draft: DraftStatement) -> Statement:
    """The statement of a draft."""
    made = draft.make()
    return Statement(made.text, made.evidence, made.verified, made.label, made.reason, draft.weight)


def saying_statement(
    material: StatementMaterial,
    weight: float,
    words: Words,
    lead: str = "",
    tail: str = "",
    label: str = "",
    width: int = 400,
) -> DraftStatement:
    """Words that somebody said, as they were said, between words of ours."""

    def make() -> Statement:
        seq, text = words
        shown = safe_excerpt(material, words, width)
        return _make_statement(f"{lead}{shown}{tail}", find_evidence(material, [(seq, text)]), label)

    return DraftStatement(weight, make)


def fact_statement(
    material: StatementMaterial, weight: float, text: Callable[[], str], refs: Sequence[Words], label: str = ""
) -> DraftStatement:
    """Words of ours about what happened in some messages."""
    return DraftStatement(weight, lambda: _make_statement(text(), find_evidence(material, refs), label))


def safe_excerpt(material: StatementMaterial, words: Words, width: int) -> str:
    """The beginning of some words; never half of a secret."""
    seq, text = words
    return material.proofs.whole(seq, one_line(text, width))


def find_evidence(material: StatementMaterial, refs: Iterable[Words]) -> tuple[Evidence, ...]:
    """The evidence of each message that is there."""
    found = (material.proofs.evidence(seq, quote) for seq, quote in refs if seq >= 0)
    return tuple(one for one in found if one is not None)


def _make_statement(text: str, evidence: tuple[Evidence, ...], label: str) -> Statement:
    return Statement(text, evidence, True if evidence else None, label)


# weights --------------------------------------------------------------------------------------------------------------
def weight_by_rank(top: float, rank: int, floor: float, by: float = 0.94) -> float:
    """The weight of the one at `rank`: the first has the top, the last ones the floor."""
    return float(floor + (top - floor) * by**rank)


def rank_latest(items: Sequence[T]) -> Iterator[tuple[int, T]]:
    """Items with their rank, the last first."""
    return enumerate(reversed(items))


def weigh_by_use(files: Sequence[FileState]) -> Iterator[tuple[float, FileState]]:
    """Files, given in the order in which they were last touched, with a number from 0 to 1: the late and much used first."""
    weighed = []
    for rank, one in rank_latest(files):
        use = min(1.0, log2(1 + 2 * one.count + one.reads) / 5)
        weighed.append((0.6 * 0.95**rank + 0.4 * use, one))
    return iter(sorted(weighed, key=lambda pair: -pair[0]))


def weigh_by_mention(named: Sequence[FileMention]) -> list[tuple[float, FileMention]]:
    """Files that were only named, given in the order in which they last were, with a number from 0 to 1."""
    weighed = [(0.5 * 0.98**rank + 0.5 * min(1.0, log2(1 + one.count) / 5), one) for rank, one in rank_latest(named)]
    return sorted(weighed, key=lambda pair: -pair[0])
