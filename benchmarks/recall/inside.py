"""A question asked from inside a session: is the old decision found, and not the question itself?

Sessions of a fixed seed, and fewer of one that is drawn anew in each run and printed.

The recall tool is asked from the session in which the person has just put the question (`decisions` writes them). *Found*: the
decision stands in the first three matches or in the turns quoted beside them. *Echo*: the asking prompt, an earlier asking of the same question
or an earlier recall is quoted above the decision, or is quoted without it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Figure, say
from benchmarks.recall.archive import Archive
from benchmarks.recall.decisions import EARLIER, NOW, PER_SCENE, SCENES, SEED, AskedDecision, write_decisions
from benchmarks.recall.drafts import RECALL
from everturn.model.archive import Session
from everturn.recall.answer import AnswerEntry
from everturn.recall.tool import ConversationRecall
from everturn.sessions.lookup import resolve_session

FOUND_BAR = 95.0
_PER_SCENE_DRAWN = 3
_FIRST = 3  # quoted turns that are looked at
_ASKED_AT = 1_773_400_000_000  # some days after the last of the sessions


@dataclass(frozen=True)
class JudgedRecall:
    """How one recall went."""

    asked: AskedDecision
    is_found: bool
    is_echo: bool


def inside(folder: Path) -> Iterator[Figure]:
    """Found and echoes over all questions with bars, and by scene."""
    judged = _judged(folder / "inside")
    yield from _figures("inside", judged, FOUND_BAR, 0)
    for scene in SCENES:
        yield from _figures(f"  inside, {scene}", [one for one in judged if one.asked.scene == scene])
    yield from _figures("  inside, after three recalls", [one for one in judged if one.asked.looked_up_before])
    seed = random.SystemRandom().randrange(10**6)
    drawn = _judged(folder / f"inside {seed}", _PER_SCENE_DRAWN, seed)
    yield from _figures(f"inside, seed {seed}", drawn, None, 0)


def _judged(folder: Path, per_scene: int = PER_SCENE, seed: int = SEED) -> list[JudgedRecall]:
    """Write the sessions of a seed, take them in, and ask each question."""
    questions = write_decisions(folder, per_scene, seed)
    with closing(Archive.of(folder / EARLIER, folder.with_suffix(".db"))) as archive:
        archive.take_in(folder / NOW)
        say(f"  {len(questions):,} questions from inside a session")
        return [judge(one, recalled(archive, one)) for one in questions]


def recalled(archive: Archive, question: AskedDecision) -> Sequence[AnswerEntry]:
    """What the tool quotes, in the order in which it stands in the answer."""
    session: Session = resolve_session(archive.store, question.session)
    recall = ConversationRecall(archive.store, archive.sources, session, now=_ASKED_AT)
    return recall.answer({"action": "search", "query": question.query}).entries


def judge(question: AskedDecision, entries: Sequence[AnswerEntry]) -> JudgedRecall:
    """Compare the quoted turns with the decision."""
    turns: list[tuple[int, int]] = []
    is_echo = False
    for entry in entries:
        if entry.is_match and (entry.session, entry.turn) not in turns:
            turns.append((entry.session, entry.turn))
        if RECALL in entry.head or question.prompt in " ".join(entry.text.split()):
            is_echo = True
        elif question.choice in " ".join(entry.text.split()):
            return JudgedRecall(question, len(turns) <= _FIRST, is_echo)
    return JudgedRecall(question, False, is_echo)


def _figures(
    name: str, judged: Sequence[JudgedRecall], found_bar: float | None = None, echo_bar: float | None = None
) -> Iterator[Figure]:
    n = len(judged)
    share = 100 * sum(one.is_found for one in judged) / n if n else None
    echoes = sum(one.is_echo for one in judged) if n else None
    note = f"{n} questions"
    yield Figure(f"{name}: found in the first {_FIRST} quoted turns", share, "%", found_bar, at_least=True, note=note)
    yield Figure(f"{name}: echoes of the question", echoes, "", echo_bar, note=note)
