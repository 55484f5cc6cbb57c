"""`python -m benchmarks.restore.choice_weights FOLDER …`: learn which passages of a session readers call decisions.

`learn` weighs the words of a passage by turns that readers marked. Here the weights of `derive/choice_places.json` are learnt: what the words
count for beside who says them, what follows, whether files were changed, and how late in the session. They come from the decisions of whole
sessions: `opened.json` and `whole.json`, if a FOLDER holds their sessions, and the parts of `labels.json` that may be read, which count half, since
their guide asks for fewer. A passage counts if it holds half of the words of a decision, or lies within its sentence and has a
part of its words. What is printed is cross-validated: each repository is judged by weights learnt from the others. `--write` learns from
all and writes the weights.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
from everturn.derive.choices import Spoken, SpokenTurn, place_features, session_features
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


def read_passages(
    store: Store, labelled: Iterable[LabelledSession], corpus: Path, weight: float
) -> Iterator[RatedPassage]:
    """Yield the passages of labelled sessions that may state what was chosen."""
    for one in labelled:
        repository = source_repository(store, one.session, corpus)
        items = one.sections["decisions"]
        spoken = spoken_turns(store, one.session)
        turns = max(spoken, default=0) + 1
        for facts in session_facts(store, all_sources(), one.session):
            messages = spoken.get(facts.turn, (False, []))[1]
            last = max((seq for seq, by, _ in messages if by != "person"), default=-1)
            said = tuple(Spoken(text, seq, "end" if seq == last else by) for seq, by, text in messages)
            changed = any(file.action != "read" for file in facts.files)
            turn = SpokenTurn(said, tuple(call.seq for call in facts.deeds), changed)
            for passage, features in place_features(turn):
                fitting = [
                    (number, item.firm)
                    for number, item in enumerate(items)
                    if any(place.message == passage.seq and _states(passage.text, place) for place in item.places)
                ]
                firm = frozenset(number for number, is_firm in fitting if is_firm)
                placed = dict((*features, *session_features(facts.turn, turns)))
                yield RatedPassage(
                    one.session.id, facts.turn, repository, placed, firm, bool(fitting) and not firm, weight
                )


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
    penalty = np.array([0.0 if key == "bias" else _PENALTY for key in keys])
    weights = np.zeros(len(keys))
    for _ in range(25):
        odds = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (shares * (odds - labels)) + penalty * weights
        bend = (table * (shares * odds * (1 - odds))[:, None]).T @ table + np.diag(penalty) + 1e-9 * np.eye(len(keys))
        weights -= np.linalg.solve(bend, slope)
    return {key: round(float(value / width), 3) for key, value, width in zip(keys, weights, spread, strict=True)}


def mean_precision(passages: list[RatedPassage], odds: Vector) -> float:
    """Return the average precision of the passages, the likeliest first."""
    right = np.array([bool(one.firm) for one in passages])[np.argsort(-odds, kind="stable")]
    shares = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float((shares * right).sum() / max(1, right.sum()))


def _odds(passages: list[RatedPassage], weights: dict[str, float]) -> Vector:
    return np.array([sum(weights.get(key, 0.0) * value for key, value in one.features.items()) for one in passages])


def main(arguments: list[str] | None = None) -> int:
    """Print what cross-validation finds; write the weights if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.choice_weights", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+", help="a folder with sessions of opened.json or whole.json")
    parser.add_argument("--write", action="store_true", help="write the weights, learnt from all sessions")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="everturn-choices-") as folder:
        found = list(_passages(Path(folder), options.folder))
    names = sorted({one.repository for one in found})
    np.random.default_rng(1).shuffle(names)
    fold = {name: number % FOLDS for number, name in enumerate(names)}
    judged, odds = list[RatedPassage](), list[Vector]()
    for number in range(FOLDS):
        weights = learn_weights(one for one in found if fold[one.repository] != number)
        part = [one for one in found if fold[one.repository] == number and one.weight == 1 and not one.is_doubtful]
        judged += part
        odds.append(_odds(part, weights))
    plain = np.array([one.features["words"] for one in judged])
    placed = mean_precision(judged, np.concatenate(odds))
    say(
        f"{len(judged):,} passages; average precision {mean_precision(judged, plain):.3f} by words, {placed:.3f} by place too"
    )
    weights = learn_weights(found)
    print(json.dumps(weights))
    if options.write:
        WEIGHTS.write_text(json.dumps(weights, indent=0, sort_keys=True) + "\n", "utf-8")
    return 0


def _passages(archive: Path, folders: list[Path]) -> Iterator[RatedPassage]:
    store = archive_labelled(archive / "labels", READABLE)
    yield from read_passages(store, labelled_sessions(store, READABLE), CORPUS, _HALF)
    store.close()
    for number, folder in enumerate(one.resolve() for one in folders):
        for half in LEARNT_SETS:
            paths = {folder / one["file"] for one in json.loads(SETS[half].read_text("utf-8"))}
            store = archive_files(paths, archive / f"{number} {half}")
            yield from read_passages(store, labelled_sessions(store, (half,), SETS[half], folder), folder, 1.0)
            store.close()


if __name__ == "__main__":
    raise SystemExit(main())
