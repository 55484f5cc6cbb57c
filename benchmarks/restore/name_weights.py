"""`python -m benchmarks.restore.name_weights [FOLDER …]`: learn which names of a session readers call key.

The weights of `derive/key_names.json` are learnt from the key phrases of `labels.json` (the parts that may be read), and of `opened.json` and
`whole.json` if a FOLDER holds their sessions. A name counts if a phrase stands in it and it is not much longer; a phrase of a single reader counts half. Sessions
count alike however many names they have; those of the two other sets, whose guide asks for names, count more. What is printed is cross-validated:
each session is judged by weights learnt from the others. `--write` learns from all and writes the weights.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.figures import say
from benchmarks.restore.labels import (
    LABELS,
    LEARNT_SETS,
    READABLE,
    SETS,
    LabelledSession,
    archive_labelled,
    labelled_sessions,
)
from benchmarks.restore.learn import archive_files
from benchmarks.restore.match import bare_document, has_phrase
from everturn.derive import key_names
from everturn.derive.key_names import KeyName, NameSetting, name_cost, name_features
from everturn.restore.mechanical import name_setting
from everturn.sessions.state import session_state
from everturn.sources.contract import all_sources
from everturn.store.contract import Store

WEIGHTS = Path(key_names.__file__).with_name("key_names.json")
_FOLDS = 10
_PENALTY = 5.0
_NAMED_SHARE = 3.0
_SLACK, _LONGER = 6, 2.5  # characters, and times: a longer name is not what the reader meant
_TOKENS = 600  # of names, in which phrases are looked for


@dataclass
class NamedSession:
    """A session with the features of its names and the phrases that readers marked."""

    names: list[KeyName]
    setting: NameSetting
    firm: list[str]
    labels: list[float]
    weight: float
    features: list[dict[str, float]] = field(default_factory=list)


def read_sessions(store: Store, labelled: Iterator[LabelledSession], weight: float) -> Iterator[NamedSession]:
    """Yield the labelled sessions with their names."""
    for one in labelled:
        state = session_state(store, all_sources(), one.session)
        setting = name_setting(state)
        names = list(state.names.values())
        phrases = [(bare_document(item.words), item.firm) for item in one.sections["key_phrases"]]
        labels = [_label(bare_document(name.text), phrases) for name in names]
        features = [dict(name_features(name, setting)) for name in names]
        firm = [item.words for item in one.sections["key_phrases"] if item.firm]
        yield NamedSession(names, setting, firm, labels, weight / math.sqrt(max(1, len(names))), features)


def _label(name: str, phrases: list[tuple[str, bool]]) -> float:
    fitting = [firm for words, firm in phrases if words in name and len(name) <= _LONGER * len(words) + _SLACK]
    return max((1.0 if firm else 0.5 for firm in fitting), default=0.0)


def learn_weights(sessions: list[NamedSession]) -> dict[str, float]:
    """Return the weights that logistic regression finds, by Newton's method."""
    rows = [(row, label, one.weight) for one in sessions for row, label in zip(one.features, one.labels, strict=True)]
    keys = sorted({key for row, _, _ in rows for key in row})
    place = {key: number for number, key in enumerate(keys)}
    table = np.zeros((len(rows), len(keys)))
    for number, (row, _, _) in enumerate(rows):
        for key, value in row.items():
            table[number, place[key]] = value
    labels, shares = np.array([one[1] for one in rows]), 10 * np.array([one[2] for one in rows])
    spread = table.std(0)
    spread[spread == 0] = 1
    table /= spread
    weights = np.zeros(len(keys))
    for _ in range(25):
        odds = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (shares * (odds - labels)) + _PENALTY * weights
        bend = (table * (shares * odds * (1 - odds))[:, None]).T @ table + _PENALTY * np.eye(len(keys))
        weights -= np.linalg.solve(bend, slope)
    return {key: round(float(weights[place[key]] / spread[place[key]]), 3) for key in keys}


def found_phrases(one: NamedSession, weights: dict[str, float]) -> int:
    """Return how many firm phrases stand in the first names."""
    ranked = key_names.rank_names(one.names, one.setting, 200, weights)
    room, shown = float(_TOKENS), []
    for name in ranked:
        room -= name_cost(name.text) * 1.15
        if room >= 0:
            shown.append(name.text)
    text = bare_document("\n".join(shown))
    return sum(has_phrase(text, words) for words in one.firm)


def main(arguments: list[str] | None = None) -> int:
    """Print what cross-validation finds; write the weights if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.name_weights", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="*", help="a folder with sessions of opened.json or whole.json")
    parser.add_argument("--write", action="store_true", help="write the weights, learnt from all sessions")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="everturn-names-") as folder:
        sessions = list(_sessions(Path(folder), options.folder))
    found = 0
    for fold in range(_FOLDS):
        weights = learn_weights([one for number, one in enumerate(sessions) if number % _FOLDS != fold])
        found += sum(found_phrases(one, weights) for one in sessions[fold::_FOLDS])
    say(f"{found} of {sum(len(one.firm) for one in sessions)} key phrases stand in {_TOKENS} tokens of names alone")
    if options.write:
        weights = learn_weights(sessions)
        WEIGHTS.write_text(json.dumps(weights, indent=0, sort_keys=True) + "\n", "utf-8")
    return 0


def _sessions(archive: Path, folders: list[Path]) -> Iterator[NamedSession]:
    store = archive_labelled(archive / "labels", READABLE)
    yield from read_sessions(store, labelled_sessions(store, READABLE, LABELS), 1.0)
    store.close()
    for number, folder in enumerate(one.resolve() for one in folders):
        for half in LEARNT_SETS:
            paths = {folder / one["file"] for one in json.loads(SETS[half].read_text("utf-8"))}
            store = archive_files(paths, archive / f"{number} {half}")
            labelled = labelled_sessions(store, (half,), SETS[half], folder)
            yield from read_sessions(store, labelled, _NAMED_SHARE)
            store.close()


if __name__ == "__main__":
    raise SystemExit(main())
