"""The sections of a restored document against the labels of two readers: precision and recall, for both halves.

The document is the one `everturn restore` prints without a model, within its default budget. Statements are taken from the
structure behind it, and only those that the budget has room for. See `labels` for what is firm and doubtful, and `match` for
what counts as the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from benchmarks.figures import Figure
from benchmarks.restore.baseline import plain_document
from benchmarks.restore.cutting import CORPUS
from benchmarks.restore.labels import (
    HALVES,
    LABELS,
    MEASURED,
    READABLE,
    SPOKEN,
    TWICE_READ,
    LabelledItem,
    LabelledSession,
    labelled_sessions,
)
from benchmarks.restore.match import (
    bare_document,
    has_phrase,
    hash_of,
    path_of,
    same_commit,
    same_path,
    says_goal,
    says_item,
)
from benchmarks.restore.measuring import Score, part, total
from everturn.restore.document import BUDGET, Document, Statement, section
from everturn.restore.job import RestoreTarget, restore_session
from everturn.restore.markdown import document_markdown
from everturn.sessions.messages import read_messages
from everturn.sessions.secrets import archive_cleaner
from everturn.sessions.state import session_state
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from everturn.text.printable import Clean

PHRASE_BUDGET = 2_000
_RESAMPLES = 2_000

#: Sections of the document that hold what the readers put under one heading.
KEYS = {
    "decisions": ("key_decisions",),
    "constraints": ("constraints",),
    "open_questions": ("open_questions",),
    "next_steps": ("next_steps", "plan_open"),
    "still_failing": ("still_failing",),
    "files": ("artifacts",),
    "commits": ("commits",),
}
#: An offer at the end is a question and a step: readers put it under either, so a match in the other one is not held against us.
_BESIDE = {"open_questions": "next_steps", "next_steps": "open_questions"}
POOLED = "open questions and next steps"

#: (precision, recall) on the sessions that are only measured.
BARS = {
    "decisions": (0.75, 0.55),
    "constraints": (0.80, 0.60),
    POOLED: (0.80, 0.70),
    "still_failing": (0.85, 0.80),
    "files": (0.98, 0.98),
    "commits": (0.98, 0.98),
}
GOAL_BAR = 0.85
PHRASE_BAR = 0.90
#: What stands between the passages of one entry.
PASSAGE_ENDS = re.compile(r" · | → ")
SECTIONS = ("goal", *KEYS, "key_phrases", "phrases_kept")


@dataclass
class Restored:
    """A labelled session with what its document shows."""

    labelled: LabelledSession
    goal: list[Statement]
    task: list[Statement]
    shown: dict[str, list[Statement]]
    short: str  # the document in 2,000 tokens, bare
    plain: str = ""  # what nobody needs a program for, in as many tokens, bare
    scores: dict[str, Score] = field(default_factory=dict)


def restored_sessions(
    store: Store, halves: tuple[str, ...] = HALVES, labels: Path = LABELS, corpus: Path = CORPUS
) -> list[Restored]:
    """Restore every labelled session of some parts and score it."""
    made = [restore_labelled(store, one) for one in labelled_sessions(store, halves, labels, corpus)]
    for one in made:
        one.scores = dict(_scores(one))
    return made


def restore_labelled(store: Store, labelled: LabelledSession) -> Restored:
    """Restore a labelled session and take what its document shows."""
    document = restore_session(RestoreTarget(store, labelled.session), all_sources())
    clean = archive_cleaner(store)
    text = document_markdown(document, clean, BUDGET)
    shown = {
        name: _distinct(one for key in keys for one in shown_statements(document, text, key, clean))
        for name, keys in KEYS.items()
    }
    short = bare_document(document_markdown(document, clean, PHRASE_BUDGET))
    goal, task = (list(shown_statements(document, text, key, clean)) for key in ("high_level_goal", "primary_task"))
    return Restored(labelled, goal, task, shown, short, bare_document(clean(_plain(store, labelled))))


def _plain(store: Store, labelled: LabelledSession) -> str:
    state = session_state(store, all_sources(), labelled.session)
    return plain_document(read_messages(store, all_sources(), labelled.session), state, PHRASE_BUDGET)


def shown_statements(document: Document, text: str, key: str, clean: Clean) -> Iterator[Statement]:
    """Yield the statements of a section that the written document has room for."""
    written = "".join(part(text, key).split())
    for one in section(document, key).statements:
        if "".join(clean(one.text).split()) in written:
            yield one


def _distinct(statements: Iterable[Statement]) -> list[Statement]:
    """Leave out a plan item that the next steps name already."""
    found: dict[str, Statement] = {}
    for one in statements:
        words = one.text.removeprefix("next in the plan: ").removeprefix("[ ] ").removeprefix("[~] ")
        found.setdefault(words, one)
    return list(found.values())


# --- scores of one session ---
def _scores(one: Restored) -> Iterator[tuple[str, Score]]:
    labelled = one.labelled
    places = (*labelled.goal, *labelled.evolved)
    right = says_goal(one.goal, places, labelled)
    missing = [] if right else [" / ".join(place.quote for place in places)]
    yield "goal", Score(right, 1, missing=missing, wrong=[] if right else [statement.text for statement in one.goal])
    if labelled.evolved:
        yield "grown", Score(says_goal((*one.goal, *one.task), labelled.evolved, labelled), 1)
    for name in KEYS if labelled.half in TWICE_READ else SPOKEN:
        yield name, score_section(one, name)
    yield POOLED, total([score_section(one, name) for name in _BESIDE])
    yield (
        "superseded",
        Score(sum(_matched(one, "decisions", item) for item in _superseded(labelled)), len(_superseded(labelled))),
    )
    for name in ("decisions", "constraints"):
        yield f"{name} by passage", _passages(one, name)
    yield "key_phrases", _phrases(one, firm=True)
    yield "all_phrases", _phrases(one, firm=False)
    yield "plain_phrases", _plain_phrases(one)
    yield "phrases_kept", _phrases_kept(one)


def score_section(one: Restored, name: str) -> Score:
    """Hold one section of a document against what the readers named."""
    items = one.labelled.sections[name]
    beside = one.labelled.sections[_BESIDE[name]] if name in _BESIDE else []
    elsewhere = one.shown[_BESIDE[name]] if name in _BESIDE else []
    matches = _matcher(one, name)
    score = Score()
    for item in items:
        if item.firm:
            found = any(matches(statement, item) for statement in (*one.shown[name], *elsewhere))
            score.add(Score(found, 1, missing=[] if found else [item.words]))
    for statement in one.shown[name]:
        fitting = [item for item in (*items, *beside) if matches(statement, item)]
        if any(item.firm for item in fitting):
            score.add(Score(right=1, listed=1))
        elif not fitting and (name != "commits" or hash_of(statement)):  # a hash that was not printed cannot be judged
            score.add(Score(listed=1, wrong=[statement.text]))
    return score


def _passages(one: Restored, name: str) -> Score:
    """Judge each passage of an entry apart: an entry may hold a request and several passages of a turn, or several rules."""
    score, matches = Score(), _matcher(one, name)
    for statement in one.shown[name]:
        for words in PASSAGE_ENDS.split(statement.text):
            fitting = [item for item in one.labelled.sections[name] if matches(replace(statement, text=words), item)]
            if not fitting or any(item.firm for item in fitting):
                score.add(Score(right=bool(fitting), listed=1))
    return score


def _matcher(one: Restored, name: str) -> Callable[[Statement, LabelledItem], bool]:
    if name == "files":
        return lambda statement, item: same_path(path_of(statement), item.words)
    if name == "commits":
        return lambda statement, item: same_commit(statement, item.words)
    return lambda statement, item: says_item(statement, item, one.labelled)


def _superseded(labelled: LabelledSession) -> list[LabelledItem]:
    return [item for item in labelled.sections["decisions"] if item.taken_back]


def _matched(one: Restored, name: str, item: LabelledItem) -> bool:
    return any(says_item(statement, item, one.labelled) for statement in one.shown[name])


def _phrases(one: Restored, firm: bool) -> Score:
    score = Score()
    for item in one.labelled.sections["key_phrases"]:
        if item.firm or not firm:
            found = has_phrase(one.short, item.words)
            score.add(Score(found, 1, missing=[] if found else [item.words]))
    return score


def _plain_phrases(one: Restored) -> Score:
    """How many key phrases the plain document shows."""
    firm = [item.words for item in one.labelled.sections["key_phrases"] if item.firm]
    return Score(sum(has_phrase(one.plain, words) for words in firm), len(firm))


def _phrases_kept(one: Restored) -> Score:
    """How many of the key phrases that the plain document shows stand in ours too."""
    told = [
        item.words for item in one.labelled.sections["key_phrases"] if item.firm and has_phrase(one.plain, item.words)
    ]
    missing = [words for words in told if not has_phrase(one.short, words)]
    return Score(len(told) - len(missing), len(told), missing=missing)


# --- figures ---
def section_figures(
    store: Store, halves: tuple[str, ...] = HALVES, labels: Path = LABELS, corpus: Path = CORPUS
) -> Iterator[Figure]:
    """Every figure of some parts, with bars on the sessions that are only measured."""
    made = restored_sessions(store, halves, labels, corpus)
    lost = sum(one.labelled.lost for one in made)
    yield Figure("labels whose words are no longer found", lost, "", 0, note=f"{len(made)} sessions")
    for half in halves:
        yield from _half_figures(half, [one.scores for one in made if one.labelled.half == half])


def _half_figures(half: str, scores: list[dict[str, Score]]) -> Iterator[Figure]:
    is_measured = half in MEASURED

    def figure(name: str, told: str, of: Callable[[Score], float | None], bar: float | None) -> Figure:
        given = [one[name] for one in scores if name in one]
        whole = total(given)
        found, all_ = (whole.right, whole.listed) if told == "precision" else (whole.found, whole.all)
        note = f"{found:.0f} of {all_:.0f}; {interval(given, of)}" if all_ else "nothing labelled or listed"
        label = f"{half}: {name.replace('_', ' ')}, {told}"
        return Figure(label, of(whole), "", bar if is_measured else None, True, note)

    recall, precision = (lambda one: one.recall), (lambda one: one.precision)
    yield figure("goal", "right", recall, GOAL_BAR)
    yield figure("grown", "named in the goal or the task", recall, None)
    for name in (
        "decisions",
        "constraints",
        "open_questions",
        "next_steps",
        POOLED,
        "still_failing",
        "files",
        "commits",
    ):
        bars = BARS.get(name, (None, None))
        yield figure(name, "precision", precision, bars[0])
        yield figure(name, "recall", recall, bars[1])
    for name in ("decisions", "constraints"):
        yield figure(f"{name} by passage", "precision", precision, None)
    yield figure("superseded", "decisions that are still listed", recall, None)
    yield figure("key_phrases", f"in {PHRASE_BUDGET:,} tokens", recall, PHRASE_BAR)
    yield figure("all_phrases", "of either reader", recall, None)
    yield figure("plain_phrases", f"in {PHRASE_BUDGET:,} tokens of requests, answer, files and commits", recall, None)
    yield figure("phrases_kept", "of those, in ours too", recall, None)


def interval(scores: list[Score], of: Callable[[Score], float | None], seed: int = 1) -> str:
    """Return the 95 % interval of a share, by drawing sessions with replacement."""
    rng = random.Random(seed)
    counts = [(one.found, one.all, one.right, one.listed) for one in scores]
    drawn = []
    for _ in range(_RESAMPLES):
        sums = [sum(column) for column in zip(*rng.choices(counts, k=len(counts)), strict=True)]
        value = of(Score(*sums))
        if value is not None:
            drawn.append(value)
    drawn.sort()
    if not drawn:
        return "95 %: –"
    return f"95 %: {drawn[int(len(drawn) * 0.025)]:.2f}–{drawn[min(len(drawn) - 1, int(len(drawn) * 0.975))]:.2f}"


# --- misses ---
def misses(store: Store, name: str, half: str = "open") -> Iterator[str]:
    """Yield what is wrong and missing in a section, of a part that may be read."""
    return session_misses(restored_sessions(store, (half,)) if half in READABLE else (), name)


def session_misses(restored: Iterable[Restored], name: str) -> Iterator[str]:
    """Yield what is wrong and missing in a section of some sessions."""
    for one in restored:
        score = one.scores.get(name, Score())
        if score.missing or score.wrong:
            yield f"\n{one.labelled.session.native_id}"
            yield from (f"  missing: {' '.join(words.split())[:300]}" for words in score.missing)
            yield from (f"  wrong:   {' '.join(words.split())[:300]}" for words in score.wrong)
