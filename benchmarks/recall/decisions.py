"""Made-up sessions in which decisions were made, and the moments at which one of them is asked for again.

A session is work on a project: prompts, calls and answers. Decisions on four subjects are planted in it, by the person or by
the agent, and later turns mention the same subjects without saying what was decided. Sessions of another project decide
otherwise about the same subjects. Then the person asks, and the prompt is recorded before the agent looks anything up:

live        later in the same session
compacted   after a compaction: in the same file, or in a new one that begins with the summary
resumed     days later: in the same file, or in a new one that begins with the old records under their old id
forked      in a copy under a new id

In half of the moments the same question was asked and looked up three times before, with nothing said that answers it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.recall.drafts import RECALL, SessionDraft

SEED = 20261117
#: Folders: sessions that had ended when the others began, and these.
EARLIER, NOW = "earlier", "now"
SCENES = ("live", "compacted", "resumed", "forked")
PER_SCENE = 8  # sessions of each scene; four questions each
_TURNS = 18
_PLANTED = 4
_BEGUN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_OWN, _OTHER = "/home/ann/shop", "/home/ann/depot"

_SUBJECTS = """
    session cookie lifetime|retry policy of the payment client|column names of the invoice table|log format of the workers
    cache in front of the price list|order of the database migrations|name of the release branch|upload size limit
    rounding of the tax amounts|date format in the exports|queue for outgoing mail|timeout of the search requests
    layout of the settings page|key of the customer records|backup schedule of the archive disk|error page of the checkout
    colour of the status badges|naming of the feature flags|storage of the product pictures|locking of the stock counters
    version scheme of the mobile client|test data of the nightly run|shape of the webhook payload|deletion of inactive accounts
"""
_CHOICES = """
    forty-five minutes, sliding|three tries with doubled waits|snake case with the prefix bil|one JSON object on each line
    a read-through map of ten thousand entries|oldest first, never skipping one|calendar weeks such as w2614|twelve megabytes
    half to even, at the very end|day, month in words, year|a table polled each second|seven hundred milliseconds
    two columns with the menu on the left|a random 128-bit number|each Sunday and after every deploy|plain text with the request id
    amber, teal and grey|verb first, then the team|content hashes in two levels of folders|optimistic, with a version column
    year dot month dot build|a frozen copy of last August|flat, with a list of changed fields|after twenty-six months, by hand
"""
_SUBJECT_LIST = [one.strip() for line in _SUBJECTS.strip().splitlines() for one in line.split("|")]
_CHOICE_LIST = [one.strip() for line in _CHOICES.strip().splitlines() for one in line.split("|")]

_BY_PERSON = (
    "Decision for the {subject}: {choice}. Please keep to it.",
    "About the {subject}: let us go with {choice}, the other way was too fragile.",
    "I thought about the {subject} again. We use {choice} from now on.",
)
_BY_AGENT = (
    "Then the {subject} is settled: {choice}. I wrote it down in the notes and changed the code.",
    "Agreed. For the {subject} we take {choice}, and nothing else depends on it.",
)
_MENTIONS = (
    ("Please run the checks of the {subject} once more.", "The checks of the {subject} pass."),
    ("Is anybody else working on the {subject}?", "No, the {subject} was last touched by you."),
    ("Add a comment on the {subject}.", "There is a comment on the {subject} now."),
)
_QUESTIONS = (
    "What did we decide about the {subject}?",
    "Which way did we choose for the {subject}?",
    "What was it again that we settled on for the {subject}?",
    "How did we want to handle the {subject}?",
)
_WORK = (
    ("Tidy up the imports in the order module.", "Done, {n} imports are gone."),
    ("Why is the build slow today?", "The cache was cold; it took {n} seconds."),
    ("Update the change log.", "I added {n} lines to it."),
    ("Look at the failing job.", "It ran out of disk; I removed {n} old images."),
    ("Rename the helper in utils.", "Renamed in {n} places."),
)


@dataclass(frozen=True)
class AskedDecision:
    """A question at the moment it is asked: from which session, and what would answer it."""

    scene: str
    looked_up_before: bool
    session: str  # native id of the session it is asked in
    prompt: str  # as the person wrote it, already recorded
    query: str  # as the agent looks it up
    choice: str  # words that answer it


def write_decisions(folder: Path, per_scene: int = PER_SCENE, seed: int = SEED) -> list[AskedDecision]:
    """Write the sessions into two folders, `EARLIER` and `NOW`; the questions, each in a file in which it was just asked."""
    chance = random.Random(seed)
    _write_others(folder / EARLIER, chance)
    asked: list[AskedDecision] = []
    for scene in SCENES:
        for number in range(per_scene):
            asked += _write_scene(folder, scene, number, chance)
    return asked


def _write_scene(folder: Path, scene: str, number: int, chance: random.Random) -> Iterator[AskedDecision]:
    """One session of work for each question, so that no other question has been asked in it."""
    chosen = chance.sample(range(len(_SUBJECT_LIST)), _PLANTED)
    for which in range(_PLANTED):
        draft = SessionDraft(f"inside/{scene}/{number}/{which}", f"{_OWN}-{scene}-{number}-{which}", _BEGUN)
        decided = _work(draft, [_SUBJECT_LIST[one] for one in chosen], chance)
        subject, choice = decided[which]
        prompt = chance.choice(_QUESTIONS).format(subject=subject)
        looked_up_before = (number + which) % 2 == 1
        now = _continued(draft, scene, number, subject, folder / EARLIER)
        if looked_up_before:
            for _ in range(3):
                _look_up(now, prompt, subject, choice)
        now.prompt(prompt)
        query = prompt if which < 2 else subject
        now.call(RECALL, {"action": "search", "query": query}, None)
        now.write(folder / NOW)
        yield AskedDecision(scene, looked_up_before, now.native_id, prompt, query, choice)


def _work(draft: SessionDraft, subjects: list[str], chance: random.Random) -> list[tuple[str, str]]:
    """Work with decisions in it, each followed by turns that only mention its subject; what was decided."""
    decided = list(zip(subjects, chance.sample(_CHOICE_LIST, len(subjects)), strict=True))
    at = sorted(chance.sample(range(1, _TURNS // 2), len(decided)))
    mentions = [(subject, one) for subject, _ in decided for one in chance.sample(_MENTIONS, chance.randint(1, 2))]
    chance.shuffle(mentions)
    for turn in range(_TURNS):
        if turn in at:
            _decide(draft, *decided[at.index(turn)], chance)
        elif turn > at[-1] and mentions:
            subject, (ask, reply) = mentions.pop()
            draft.prompt(ask.format(subject=subject))
            draft.call("Bash", {"command": f"make check TOPIC='{subject}'"}, f"{subject}: ok\n12 passed")
            draft.say(reply.format(subject=subject))
        else:
            ask, reply = chance.choice(_WORK)
            draft.prompt(ask)
            draft.call("Bash", {"command": "git status --short"}, f" M src/module_{turn}.py")
            draft.say(reply.format(n=chance.randint(2, 90)))
        draft.wait(minutes=chance.randint(1, 20))
    return decided


def _decide(draft: SessionDraft, subject: str, choice: str, chance: random.Random) -> None:
    if chance.random() < 0.6:
        draft.prompt(chance.choice(_BY_PERSON).format(subject=subject, choice=choice))
        draft.say("Understood, I keep to it.")
    else:
        draft.prompt(f"We still have to settle the {subject}. What do you think?")
        draft.say(chance.choice(_BY_AGENT).format(subject=subject, choice=choice))


def _continued(draft: SessionDraft, scene: str, number: int, subject: str, folder: Path) -> SessionDraft:
    """The session in which the question is asked, after what the scene does to the old one."""
    name = f"inside/{scene}/{draft.native_id}/next"
    summary = f"The work touched the {subject} and other parts; the tests pass."
    new_file = number % 2 == 1
    now = draft
    if scene == "compacted" and new_file:
        draft.write(folder)
        now = SessionDraft(name, draft.workspace, draft.at)
        now.compact(summary)
        now.records[-1]["sessionId"] = draft.native_id
    elif scene == "compacted":
        draft.compact(summary)
    elif scene == "resumed" and not new_file:
        draft.resume()
    elif scene in ("resumed", "forked"):
        draft.write(folder)
        now = draft.copy(name, keep_id=scene == "resumed")
    now.prompt("Go on with the next point on the list.")
    now.say("The next point is done.")
    return now


def _look_up(draft: SessionDraft, prompt: str, subject: str, choice: str) -> None:
    """An earlier recall of the same question; what the agent says afterwards does not answer it."""
    draft.prompt(prompt)
    found = f"1 matching turn in this session: turn 4\n\n[Turn 4] user:\n  About the {subject}: {choice}."
    draft.call(RECALL, {"action": "search", "query": prompt}, found)
    draft.say("I looked it up and go on with the work.")
    draft.wait(minutes=4)


def _write_others(folder: Path, chance: random.Random) -> None:
    """Another project, with other decisions about the same subjects."""
    for number in range(len(_SUBJECT_LIST) // _PLANTED):
        draft = SessionDraft(f"inside/other/{number}", _OTHER, _BEGUN)
        _work(draft, _SUBJECT_LIST[number * _PLANTED : (number + 1) * _PLANTED], chance)
        draft.write(folder)
