"""`python -m benchmarks.restore.rule_weights FOLDER …`: learn which messages of a session lay down rules.

`learn` weighs the sentences of a message by words. Here the weights of `derive/rule_messages.json` are learnt: what the two likeliest sentences
of a message, the number of likely ones and its length count for. They come from the constraints of whole sessions: `opened.json` and `whole.json`, if
a FOLDER holds their sessions, and the parts of `labels.json` that may be read. Sentences are weighed by weights that were learnt without the
repository of their session, so that words which `learn` has seen do not count for more than they will in a new session.

What is printed is cross-validated in the same way: precision of the messages that are told, and the share of the constraints that
stand in their rules, for several thresholds. `--write` learns from all and writes the weights.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.figures import say
from benchmarks.restore.choice_weights import RatedPassage, learn_weights
from benchmarks.restore.cutting import CORPUS
from benchmarks.restore.labels import LEARNT_SETS, READABLE, SETS, LabelledSession, archive_labelled, labelled_sessions
from benchmarks.restore.learn import (
    FOLDS,
    Row,
    archive_files,
    end_rows,
    labelled_rows,
    learn,
    session_prompts,
    source_repository,
    unit_rows,
    whole_rows,
)
from benchmarks.restore.match import says_place
from everturn.derive import decisions
from everturn.derive.decisions import BESIDE, message_features, sentence_mark, weigh_rules
from everturn.derive.intent import is_role
from everturn.store.contract import Store
from everturn.text.sentences import split_sentences

WEIGHTS = Path(decisions.__file__).with_name("rule_messages.json")
_AROUND = (0.25, 0.0, -0.25, -0.5, -0.75)
_LEAST = -3.5  # log-odds of a sentence that can make its message one with rules
_TASK = "rules"

Weights = Mapping[str, float]


class RatedMessage(NamedTuple):
    """A message with its features, and the constraints that stand in what would be told of it."""

    passage: RatedPassage
    opens: bool
    told: frozenset[int]


def fold_of(names: Iterable[str]) -> dict[str, int]:
    """Return the fold of each repository."""
    known = sorted(set(names))
    random.Random(1).shuffle(known)
    return {name: at % FOLDS for at, name in enumerate(known)}


def rate_messages(labelled: LabelledSession, repository: str, prompts: Mapping[int, str], weights: Weights) -> Iterator[RatedMessage]:  # fmt: skip
    """Yield the messages of a session that may lay down rules."""
    items = list(enumerate(labelled.sections["constraints"]))
    for seq, text in prompts.items():
        sentences = list(split_sentences(text))
        if is_role(text):  # there the patterns decide
            continue
        weighed = weigh_rules(text, sentences, [sentence_mark(one) for one in sentences], weights)
        told = [one for one in weighed if one.is_certain or one.odds >= -BESIDE]
        possible = [one for one in weighed if one.is_certain or one.odds >= _LEAST]
        here = [(number, item, one) for number, item in items for one in item.places if one.message == seq]
        fitting = {
            (number, item.firm)
            for number, item, place in here
            if any(says_place(one.mark.text, place) for one in possible)
        }
        firm = frozenset(number for number, is_firm in fitting if is_firm)
        shown = frozenset(
            number
            for number, item, place in here
            if item.firm and any(says_place(one.mark.text, place) for one in told)
        )
        features = dict(message_features([one.odds for one in weighed], len(sentences)))
        passage = RatedPassage(
            labelled.session.id, seq, repository, features, firm, bool(fitting) and not firm, float(bool(weighed))
        )
        yield RatedMessage(passage, any(one.opens for one in weighed), shown)


def main(arguments: list[str] | None = None) -> int:
    """Print what cross-validation finds; write the weights if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.rule_weights", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("folder", type=Path, nargs="+", help="a folder with sessions of opened.json or whole.json")
    parser.add_argument("--write", action="store_true", help="write the weights, learnt from all sessions")
    options = parser.parse_args(arguments)
    folders = [one.resolve() for one in options.folder]
    with tempfile.TemporaryDirectory(prefix="everturn-rules-") as name:
        rows = [one for one in _rows(folders, Path(name) / "learn") if one.task == _TASK]
        fold = fold_of(one.repository for one in rows)
        learnt = [learn(one for one in rows if fold[one.repository] != number) for number in range(FOLDS)]
        sessions = list(_sessions(folders, Path(name) / "rate"))
    rated = [
        message
        for labelled, repository, prompts in sessions
        for message in rate_messages(labelled, repository, prompts, learnt[fold.get(repository, 0)])
    ]
    there = sum(item.firm for labelled, _, _ in sessions for item in labelled.sections["constraints"])
    odds = np.zeros(len(rated))
    for number in range(FOLDS):
        weights = learn_weights(one.passage for one in rated if fold.get(one.passage.repository, 0) != number)
        for at, one in enumerate(rated):
            if fold.get(one.passage.repository, 0) == number:
                odds[at] = sum(weights[key] * value for key, value in one.passage.features.items())
    say(f"{len(rated):,} messages of {len(sessions)} sessions with {there} constraints")
    for threshold in _AROUND:
        told = [one for one, value in zip(rated, odds, strict=True) if value >= threshold or one.opens]
        right, doubtful = sum(bool(one.told) for one in told), sum(one.passage.is_doubtful for one in told)
        found = len({(one.passage.session, number) for one in told for number in one.told})
        listed = len(told) - doubtful
        print(f"from {threshold} on: precision {right / max(1, listed):.2f}, recall {found / max(1, there):.2f}, {len(told)} entries")  # fmt: skip
    weights = learn_weights(one.passage for one in rated)
    print(json.dumps(weights))
    if options.write:
        WEIGHTS.write_text(json.dumps(weights, indent=0, sort_keys=True) + "\n", "utf-8")
    return 0


def _rows(folders: list[Path], archive: Path) -> Iterator[Row]:
    everywhere = (CORPUS, *folders)
    yield from unit_rows(everywhere, archive / "units")
    yield from end_rows(everywhere, archive / "ends")
    yield from labelled_rows(archive / "labelled")
    yield from whole_rows(folders, archive / "whole")


def _sessions(folders: list[Path], archive: Path) -> Iterator[tuple[LabelledSession, str, dict[int, str]]]:
    store = archive_labelled(archive / "labels", READABLE)
    yield from _read(store, labelled_sessions(store, READABLE), CORPUS)
    for number, folder in enumerate(folders):
        for half in LEARNT_SETS:
            paths = {folder / one["file"] for one in json.loads(SETS[half].read_text("utf-8"))}
            store = archive_files(paths, archive / f"{number} {half}")
            yield from _read(store, labelled_sessions(store, (half,), SETS[half], folder), folder)


def _read(store: Store, labelled: Iterable[LabelledSession], corpus: Path) -> Iterator[tuple[LabelledSession, str, dict[int, str]]]:  # fmt: skip
    for one in labelled:
        yield one, source_repository(store, one.session, corpus), session_prompts(store, one.session)
    store.close()


if __name__ == "__main__":
    raise SystemExit(main())
