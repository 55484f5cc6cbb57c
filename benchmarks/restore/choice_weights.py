"""`python -m benchmarks.restore.choice_weights FOLDER …`: learn which passages of a session readers call decisions.

`learn` weighs the words of a passage by turns that readers marked. Here the weights of `derive/choice_places.json` are learnt: what the words
count for beside who says them, what follows and whether files were changed, and then, in the session, how late they stand, beside which others, and what
is said after them. They come from the decisions of whole
sessions: `opened.json` and `whole.json`, if a FOLDER holds their sessions, and the parts of `labels.json` that may be read, which count half, since
their guide asks for fewer. A passage counts if it holds half of the words of a decision, or lies within its sentence and has a
part of its words. What is printed is cross-validated: each repository is judged by weights learnt from the others. `--write` learns from
all and writes the weights.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from benchmarks.figures import say
from benchmarks.restore.cutting import CORPUS
from benchmarks.restore.labels import (
    LEARNT_SETS,
    READABLE,
    SETS,
    LabelledSession,
    Place,
    archive_labelled,
    labelled_sessions,
)
from benchmarks.restore.learn import FOLDS, archive_files, source_repository, spoken_turns
from benchmarks.restore.match import content_words
from everturn.derive import choices
from everturn.derive.choices import (
    POSSIBLE,
    ChoicePassage,
    PlacedChoice,
    Spoken,
    SpokenTurn,
    place_features,
    session_features,
)
from everturn.sessions.state import session_facts
from everturn.sources.contract import all_sources
from everturn.store.contract import Store

WEIGHTS = Path(choices.__file__).with_name("choice_places.json")
_PENALTY = 5.0
_HALF = 0.5  # what a session of the other guide counts for
_QUOTE_SHARE, _SENTENCE_SHARE, _LEAST_SHARE, _LEAST_WORDS = 0.5, 0.8, 0.25, 4

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class RatedPassage:
    """A passage with its features, the firm decisions that it states, and whether it states a doubtful one."""

    session: int
    turn: int
    repository: str
    features: dict[str, float]
    firm: frozenset[int]
    is_doubtful: bool
    weight: float
    passage: ChoicePassage
    by_person: bool


@dataclass(frozen=True)
class RatedSession:
    """The passages of a session, with what was asked in it and the turns that a report of trouble follows."""

    passages: list[RatedPassage]
    prompts: list[tuple[int, str]]
    denied: frozenset[int]
    turns: int


def read_sessions(
    store: Store, labelled: Iterable[LabelledSession], corpus: Path, weight: float
) -> Iterator[RatedSession]:
    """Yield the labelled sessions with the passages that may state what was chosen."""
    for one in labelled:
        repository = source_repository(store, one.session, corpus)
        items = one.sections["decisions"]
        spoken = spoken_turns(store, one.session)
        found, prompts, denied, before = list[RatedPassage](), list[tuple[int, str]](), set[int](), -1
        for facts in session_facts(store, all_sources(), one.session):
            prompts += [(facts.turn, said.text) for said in facts.requests if facts.starter == "human"]
            denied |= {before} if facts.complaints else set()
            messages = spoken.get(facts.turn, (False, []))[1]
            last = max((seq for seq, by, _ in messages if by != "person"), default=-1)
            said = tuple(Spoken(text, seq, "end" if seq == last else by) for seq, by, text in messages)
            changed = any(file.action != "read" for file in facts.files)
            turn = SpokenTurn(said, tuple(call.seq for call in facts.deeds), changed)
            for passage, features in place_features(turn):
                before = facts.turn
                fitting = [
                    (number, item.firm)
                    for number, item in enumerate(items)
                    if any(place.message == passage.seq and _states(passage.text, place) for place in item.places)
                ]
                firm = frozenset(number for number, is_firm in fitting if is_firm)
                by_person = ("person", 1.0) in features
                found.append(
                    RatedPassage(
                        one.session.id, facts.turn, repository, dict(features), firm, bool(fitting) and not firm,
                        weight, passage, by_person,
                    )
                )  # fmt: skip
        yield RatedSession(found, prompts, frozenset(denied), max(spoken, default=0) + 1)


def _states(text: str, place: Place) -> bool:
    """Whether a passage states what a reader marked. Stricter than `match.says_place`: a few words within its sentence are not enough."""
    words, quote = content_words(text), content_words(place.quote)
    shared = len(words & quote)
    if shared >= _QUOTE_SHARE * len(quote):
        return True
    is_inside = len(words & content_words(place.sentence)) >= _SENTENCE_SHARE * len(words)
    return len(words) >= _LEAST_WORDS and is_inside and shared >= _LEAST_SHARE * len(quote)


def learn_weights(passages: Iterable[RatedPassage]) -> dict[str, float]:
    """Return the weights that logistic regression finds, by Newton's method. What only states a doubtful decision is left out."""
    rows = [one for one in passages if not one.is_doubtful]
    keys = sorted({key for one in rows for key in one.features})
    table = np.array([[one.features.get(key, 0.0) for key in keys] for one in rows])
    labels, shares = np.array([float(bool(one.firm)) for one in rows]), np.array([one.weight for one in rows])
    spread = table.std(0)
    spread[spread == 0] = 1
    table /= spread
    penalty = np.array([0.0 if key in ("bias", "session") else _PENALTY for key in keys])
    weights = np.zeros(len(keys))
    for _ in range(25):
        odds = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (shares * (odds - labels)) + penalty * weights
        bend = (table * (shares * odds * (1 - odds))[:, None]).T @ table + np.diag(penalty) + 1e-9 * np.eye(len(keys))
        weights -= np.linalg.solve(bend, slope)
    return {key: round(float(value / width), 3) for key, value, width in zip(keys, weights, spread, strict=True)}


def rate_session(session: RatedSession, weights: dict[str, float]) -> list[RatedPassage]:
    """Return the passages of a session that a document would keep, with their features in the session."""
    odds = _odds(session.passages, weights)
    rated = [
        (one, replace(one.passage, weight=float(value)))
        for one, value in zip(session.passages, odds, strict=True)
        if value >= POSSIBLE
    ]
    placed = [
        PlacedChoice(passage.text, one.turn, passage.weight, one.by_person, one.turn in session.denied)
        for one, passage in rated
    ]
    features = session_features(placed, session.prompts, session.turns)
    return [dataclasses.replace(one, features=dict(own)) for (one, _), own in zip(rated, features, strict=True)]


def learn_both(sessions: Iterable[RatedSession]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weights of a passage in its turn, and those of its odds and its place in the session."""
    known = list(sessions)
    in_turn = learn_weights(one for session in known for one in session.passages)
    return in_turn, learn_weights(one for session in known for one in rate_session(session, in_turn))


def mean_precision(passages: list[RatedPassage], odds: Vector, total: int) -> float:
    """Return the average precision of passages, the likeliest first, if there are so many right ones in all."""
    right = np.array([bool(one.firm) for one in passages])[np.argsort(-odds, kind="stable")]
    shares = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float((shares * right).sum() / max(1, total))


def _odds(passages: list[RatedPassage], weights: dict[str, float]) -> Vector:
    return np.array([sum(weights.get(key, 0.0) * value for key, value in one.features.items()) for one in passages])


def main(arguments: list[str] | None = None) -> int:
    """Print what cross-validation finds; write the weights if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.choice_weights", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+", help="a folder with sessions of opened.json or whole.json")
    parser.add_argument("--write", action="store_true", help="write the weights, learnt from all sessions")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="everturn-choices-") as folder:
        found = list(_sessions(Path(folder), options.folder))
    names = sorted({one.repository for session in found for one in session.passages})
    np.random.default_rng(1).shuffle(names)
    fold = {name: number % FOLDS for number, name in enumerate(names)}
    stages: list[tuple[list[RatedPassage], list[Vector]]] = [([], []), ([], [])]
    for number in range(FOLDS):
        rest, part = (
            [one for one in found if one.passages and (fold[one.passages[0].repository] == number) == is_part]
            for is_part in (False, True)
        )
        in_turn, in_session = learn_both(rest)
        of_turns = [one for session in part for one in session.passages]
        of_sessions = [one for session in part for one in rate_session(session, in_turn)]
        for (judged, odds), passages, weights in zip(
            stages, (of_turns, of_sessions), (in_turn, in_session), strict=True
        ):
            counted = [one for one in passages if one.weight == 1 and not one.is_doubtful]
            judged += counted
            odds.append(_odds(counted, weights))
    total = sum(bool(one.firm) for one in stages[0][0])
    plain = mean_precision(stages[0][0], np.array([one.features["words"] for one in stages[0][0]]), total)
    in_turn_, in_session_ = (mean_precision(judged, np.concatenate(odds), total) for judged, odds in stages)
    say(
        f"{len(stages[0][0]):,} passages; average precision {plain:.3f} by words, {in_turn_:.3f} by place in the turn, {in_session_:.3f} in the session too"
    )
    weights = {name: value for part in learn_both(found) for name, value in part.items()}
    print(json.dumps(weights))
    if options.write:
        WEIGHTS.write_text(json.dumps(weights, indent=0, sort_keys=True) + "\n", "utf-8")
    return 0


def _sessions(archive: Path, folders: list[Path]) -> Iterator[RatedSession]:
    store = archive_labelled(archive / "labels", READABLE)
    yield from read_sessions(store, labelled_sessions(store, READABLE), CORPUS, _HALF)
    store.close()
    for number, folder in enumerate(one.resolve() for one in folders):
        for half in LEARNT_SETS:
            paths = {folder / one["file"] for one in json.loads(SETS[half].read_text("utf-8"))}
            store = archive_files(paths, archive / f"{number} {half}")
            yield from read_sessions(store, labelled_sessions(store, (half,), SETS[half], folder), folder, 1.0)
            store.close()


if __name__ == "__main__":
    raise SystemExit(main())
