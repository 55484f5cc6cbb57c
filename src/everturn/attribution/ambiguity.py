"""Takes back answers that rest on a coin toss of git.

Where a block of lines was put in beside a line that it repeats (`}` … `}`), a comparison cannot tell which of the equal lines
is the new one: the block can slide. Blame picks one. Where the equal lines have different writers, neither has an answer. And a
line that says nothing alone (`}`, `else:`) is answered only as a part of its block: it was committed with a telling neighbour of
the same turn, or stands between two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from everturn.attribution.alignment import is_trivial
from everturn.attribution.report import AMBIGUOUS, LineAnswer

#: Lines to both sides that decide about a line.
REACH = 40


def lines_around(texts: Sequence[str], asked: range) -> range:
    """Return the lines (from 0) that must be answered too, so that the answers of the asked lines can be checked."""
    counts: dict[str, int] = {}
    for text in texts[max(0, asked.start - REACH) : asked.stop + REACH]:
        counts[text.strip()] = counts.get(text.strip(), 0) + 1
    if not any(
        text.strip() and (counts[text.strip()] > 1 or is_trivial(text)) for text in texts[asked.start : asked.stop]
    ):
        return asked
    return range(max(0, asked.start - REACH), min(len(texts), asked.stop + REACH))


def drop_ambiguous(answers: Sequence[LineAnswer]) -> list[LineAnswer]:
    """Return consecutive lines of a file without the answers that may as well belong to an equal line beside them."""
    texts = [one.text.strip() for one in answers]
    writers = [(one.writer.agent, one.writer.session) if one.writer is not None else None for one in answers]
    doubtful = {
        line
        for kind in (attrgetter("commit"), _turn_of)
        for pair in _slides(texts, [kind(one) for one in answers])
        if writers[pair[0]] != writers[pair[1]]
        for line in pair
    }
    doubtful.update(_stray_lines(answers))
    return [_without(one) if number in doubtful and one.level else one for number, one in enumerate(answers)]


def _turn_of(answer: LineAnswer) -> object:
    return answer.writer.turn_key if answer.writer is not None else None


def _without(answer: LineAnswer) -> LineAnswer:
    return replace(answer, level="", rule="", writer=None, silence=AMBIGUOUS, alternatives=())


def _slides(texts: Sequence[str], keys: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Yield pairs of equal lines at both ends of a block by which the block can slide."""
    for first, end in _blocks(keys):
        if end - first > REACH:
            continue
        for a, b, step in ((first, end, 1), (end - 1, first - 1, -1)):
            while min(a, b) >= 0 and max(a, b) < len(texts) and first <= a < end and texts[a] == texts[b]:
                yield a, b
                a, b = a + step, b + step


def _blocks(keys: Sequence[object]) -> Iterator[tuple[int, int]]:
    first = 0
    for line in range(1, len(keys) + 1):
        if line == len(keys) or keys[line] != keys[first]:
            yield first, line
            first = line


def _stray_lines(answers: Sequence[LineAnswer]) -> Iterator[int]:
    """Yield answered lines that say nothing alone and are no part of a block of the same turn."""
    for line, one in enumerate(answers):
        if not one.level or not is_trivial(one.text) or not one.text.strip():
            continue
        above = _telling(answers, range(line - 1, max(-1, line - 1 - REACH), -1))
        below = _telling(answers, range(line + 1, min(len(answers), line + 1 + REACH)))
        same = [near is not None and _turn_of(answers[near]) == _turn_of(one) for near in (above, below)]
        if not all(same) and not any(
            is_same and _is_beside(answers, line, near) for is_same, near in zip(same, (above, below), strict=True)
        ):
            yield line


def _telling(answers: Sequence[LineAnswer], lines: range) -> int | None:
    return next((line for line in lines if not is_trivial(answers[line].text)), None)


def _is_beside(answers: Sequence[LineAnswer], line: int, near: int | None) -> bool:
    """Whether a line was committed together with its neighbour, at the same distance."""
    if near is None:
        return False
    one, other = answers[line], answers[near]
    return one.commit == other.commit and one.path == other.path and one.line_there - other.line_there == line - near
