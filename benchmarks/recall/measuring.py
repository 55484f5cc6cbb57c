"""Asks every question of a set with every method and judges the answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.recall.baselines import Ask
from benchmarks.recall.metrics import Scores, judge, mean, percentile
from benchmarks.recall.questions import Place, Question

OURS = "everturn"


@dataclass(frozen=True)
class Answered:
    """One question, what came back and what it cost."""

    question: Question
    places: list[Place]
    cpu: float  # seconds

    @property
    def sessions(self) -> dict[str, float]:
        """The metrics of the sessions, in the order in which they first come."""
        return judge([session for session, _ in self.places], self.question.sessions)

    @property
    def messages(self) -> dict[str, float]:
        """The metrics of the messages; what is a session's own is no message."""
        return judge([place for place in self.places if place[1] >= 0], self.question.messages)


def asked(questions: Sequence[Question], ask: Ask) -> list[Answered]:
    """Ask them one after another."""
    found = []
    for question in questions:
        begun = time.process_time()
        places = ask(question.text, question.scope)
        found.append(Answered(question, places, time.process_time() - begun))
    return found


def by_session(answers: Sequence[Answered], keep: Callable[[Question], bool] = lambda one: True) -> Scores:
    """How well the right session was found. A question whose session is unknown is not counted."""
    return mean([one.sessions for one in answers if one.question.sessions and keep(one.question)])


def by_message(answers: Sequence[Answered], keep: Callable[[Question], bool] = lambda one: True) -> Scores:
    """How well the right message was found."""
    return mean([one.messages for one in answers if one.question.messages and keep(one.question)])


def milliseconds(answers: Sequence[Answered]) -> tuple[float, float]:
    """CPU time of a question: the middle one, and what 95 of 100 stay below."""
    times = [one.cpu * 1000 for one in answers]
    return percentile(times, 0.5), percentile(times, 0.95)
