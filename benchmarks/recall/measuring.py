"""Asks every question of a set with every method and judges the answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.recall.baselines import Ask
from benchmarks.recall.metrics import Scores, judge, mean, percentile
from benchmarks.recall.questions import Place, Question

OURS, PLAIN = "everturn", "FTS5"
#: What is looked for: the session, or the message itself.
LEVELS = ("session", "message")


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
        places = ask(question.text, question.scope, question.until)
        found.append(Answered(question, places, time.process_time() - begun))
    return found


def judged(answers: Sequence[Answered], level: str) -> list[dict[str, float]]:
    """The metrics of each question at a level. A question for which nothing is known to be right is not counted."""
    if level == "session":
        return [one.sessions for one in answers if one.question.sessions]
    return [one.messages for one in answers if one.question.messages]


def by_session(answers: Sequence[Answered]) -> Scores:
    """How well the right session was found."""
    return mean(judged(answers, "session"))


def by_message(answers: Sequence[Answered]) -> Scores:
    """How well the right message was found."""
    return mean(judged(answers, "message"))


def milliseconds(answers: Sequence[Answered]) -> tuple[float, float]:
    """CPU time of a question: the middle one, and what 95 of 100 stay below."""
    times = [one.cpu * 1000 for one in answers]
    return percentile(times, 0.5), percentile(times, 0.95)
