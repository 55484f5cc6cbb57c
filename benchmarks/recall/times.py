"""Questions about when something was said and by whom, over made-up sessions that otherwise say the same.

*When*: each topic was worked on in many sessions, on most of the last days and in every month before. A question names the topic
and a moment ("3 days ago", "yesterday morning", "in March"), counted from `ASKED_AT`, a Friday. Right are the messages about the
topic of that moment: the day in UTC, the half of the day, the month; "a week ago" also the day before and after. "Last Tuesday"
is the latest Tuesday before today. *Who*: one message of the person among many of the agent about a subject, or the other way
round; the question says whose words are wanted ("what did I say about …", "what did you answer about …").
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.recall.drafts import SessionDraft
from benchmarks.recall.questions import Place, Question

ASKED_AT = datetime(2026, 11, 13, 15, tzinfo=UTC)
SEED = 20261118
_WORKSPACE = "/home/ann/works"
_MIDNIGHT = ASKED_AT.replace(hour=0)
_DAY = timedelta(days=1)

_TOPICS = ("billing import", "search index", "login page", "price feed", "nightly report")
_TASKS = (
    "it dropped rows of {n} customers",
    "it was slow with {n} readers",
    "it wrote {n} lines twice",
    "it lost {n} marks",
)
_RESULTS = ("the limit is {n} now", "it waits {n} seconds first", "it skips {n} old files", "it keeps {n} copies")
_SUBJECTS = """
    loyalty points|gift cards|parcel labels|stock alerts|return slips|shelf plans|tax codes|driver routes|price tags|coupon rules
    guest orders|pallet counts|size charts|till rolls|delivery slots|supplier mails|photo booth|night shift|fuel cards|spare parts
"""
_SUBJECT_LIST = [one.strip() for line in _SUBJECTS.strip().splitlines() for one in line.split("|")]

_WHEN_ASKED = (
    "What did we do about the {topic} {when}?",
    "Which problem did the {topic} have {when}?",
    "What was changed in the {topic} {when}?",
)
_SAID_BY_ME = ("What did I say about the {subject}?", "What did I tell you about the {subject}?")
_SAID_BY_YOU = ("What did you answer about the {subject}?", "What did you say about the {subject}?")

#: Days before today on which each topic was worked on, with the hours; and the months before.
_HOURS = {0: (9, 13), 1: (9, 20), **dict.fromkeys((2, 3, 4, 5, 6, 7, 8, 9, 14, 21, 28, 35), (10,))}
_DATES = ((9, 15), (8, 12), (7, 7), (6, 9), (6, 20), (5, 5), (4, 8), (3, 3), (3, 18), (2, 10), (1, 14))
_NOON = _DAY / 2

Span = tuple[datetime, datetime]


def spans() -> dict[str, Span]:
    """What each way to name a moment means: from, until."""

    def days(back: int, n: int = 1) -> Span:
        return _MIDNIGHT - back * _DAY, _MIDNIGHT - (back - n) * _DAY

    def month(number: int) -> Span:
        return datetime(2026, number, 1, tzinfo=UTC), datetime(2026, number + 1, 1, tzinfo=UTC)

    yesterday, today = days(1), days(0)
    return {
        "this morning": (today[0], today[0] + _NOON),
        "yesterday": yesterday,
        "yesterday morning": (yesterday[0], yesterday[0] + _NOON),
        "yesterday evening": (yesterday[0] + _NOON * 1.5, yesterday[1]),
        "3 days ago": days(3),
        "five days ago": days(5),
        "last Tuesday": days(3),
        "last Monday": days(4),
        "a week ago": days(8, 3),
        "two weeks ago": days(14),
        "three weeks ago": days(21),
        "in March": month(3),
        "in June": month(6),
    }


def write_times(folder: Path, seed: int = SEED) -> list[Question]:
    """Write the sessions; the questions about them."""
    chance = random.Random(seed)
    questions = [one for topic in _TOPICS for one in _about_when(folder, topic, chance)]
    for number, subject in enumerate(_SUBJECT_LIST):
        questions.append(_about_who(folder, subject, number % 2 == 0, number // 2, chance))
    return questions


def _about_when(folder: Path, topic: str, chance: random.Random) -> Iterator[Question]:
    written: list[tuple[datetime, str, list[int]]] = []
    for at in _moments():
        draft = SessionDraft(f"times/{topic}/{at:%m%d%H}", _WORKSPACE, at)
        written.append((at, draft.native_id, _work(draft, topic, chance)))
        draft.write(folder)
    for number, (when, (first, last)) in enumerate(spans().items()):
        right = [(session, seqs) for at, session, seqs in written if first <= at < last]
        places = frozenset((session, seq) for session, seqs in right for seq in seqs)
        text = _WHEN_ASKED[number % len(_WHEN_ASKED)].format(topic=topic, when=when)
        yield Question(text, frozenset(session for session, _ in right), places, group=f"when: {when}")


def _moments() -> Iterator[datetime]:
    for day, hours in _HOURS.items():
        yield from (_MIDNIGHT - day * _DAY + timedelta(hours=hour) for hour in hours)
    yield from (datetime(2026, month, day, 11, tzinfo=UTC) for month, day in _DATES)


def _work(draft: SessionDraft, topic: str, chance: random.Random) -> list[int]:
    """A short session about a topic; the messages that are about it."""
    draft.prompt(f"Look at the {topic}, {chance.choice(_TASKS).format(n=chance.randint(2, 900))}. Please change that.")
    draft.call("Bash", {"command": "make check"}, f"{chance.randint(10, 90)} passed")
    draft.say(f"I changed the {topic}: {chance.choice(_RESULTS).format(n=chance.randint(2, 900))}.")
    return [0, 3]


def _about_who(folder: Path, subject: str, by_person: bool, number: int, chance: random.Random) -> Question:
    """One message of the one about a subject among many of the other."""
    alone = chance.randrange(4)
    right: Place | None = None
    for n in range(4):
        at = _MIDNIGHT - chance.randint(2, 60) * _DAY + timedelta(hours=9)
        draft = SessionDraft(f"times/{subject}/{n}", _WORKSPACE, at)
        for turn in range(4):
            is_right = n == alone and turn == 2
            if is_right:
                right = (draft.native_id, len(draft.records) + (0 if by_person else 1))
            mine, yours = _exchange(subject, is_right, by_person, chance)
            draft.prompt(mine)
            draft.say(yours)
        draft.write(folder)
    assert right is not None
    asked = (_SAID_BY_ME if by_person else _SAID_BY_YOU)[number % 2].format(subject=subject)
    group = "who: the person" if by_person else "who: the agent"
    return Question(asked, frozenset({right[0]}), frozenset({right}), group=group)


def _exchange(subject: str, is_right: bool, by_person: bool, chance: random.Random) -> tuple[str, str]:
    """A prompt and an answer; the subject is named by the one whose words are not wanted, but for the right place."""
    n = chance.randint(2, 900)
    neutral = (f"Go on with step {n}.", f"Step {n} is done.")
    words = f"The {subject} need {n} more days now." if is_right else f"The {subject} passed step {n} today."
    return (words, neutral[1]) if by_person == is_right else (neutral[0], words)
