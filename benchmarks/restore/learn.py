"""`python -m benchmarks.restore.learn`: learn which sentences leave something open, lay down a rule or report trouble, and say how well it goes.

The sentences are those of the last answer, and of all prompts, of labelled sessions:

- `sentences.json`: 1,192 ends of 747 sessions of 162 repositories (some cut at an earlier turn), in which one reader
  marked every sentence that states a question, an offer or a step left to do, a rule of the person, or what still fails.
  A part of them have a second reader. Those with `guide` were marked by `GUIDE.md`. An entry holds places and hashes, no words: `[message, mark]`, and in `read` the sentences
  of a message that the reader saw. Most sessions are not in the corpus; `from` names their repository, commit and path. Put them
  into a folder under `file` and name it with `--also`.
- `reports.json`: 1,940 messages of 508 of these sessions. A reader marked the sentences in which the person says that something does not work:
  `[message, sentences shown, whether the reader hesitated, marks]`.
- The parts of `labels.json` that may be read (`labels.READABLE`). Nothing is learnt from the blind part.

What is printed is cross-validated: each repository is judged by weights learnt from the others. As in a document, the steps of an answer
are one entry, each question is one, the rules of a message are one, and a message reports or not. An entry is right if it holds a marked sentence. One that holds
doubtful ones only is not counted. `--write` learns from everything and writes the weights. Words that fewer than three repositories use are
not learnt. Repositories with many sentences count less for each of them.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import say
from benchmarks.restore.cutting import CORPUS
from benchmarks.restore.labels import READABLE, LabelledItem, archive_labelled, labelled_sessions, mark
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.derive import decisions, open_sentences
from everturn.derive.failures import is_complaint
from everturn.derive.intent import command_words, is_role
from everturn.derive.open_sentences import (
    PLAIN_SIGNS,
    choose_open,
    is_question,
    open_features,
    report_features,
    sum_weights,
)
from everturn.model.archive import Session
from everturn.sessions.messages import read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from everturn.text.sentences import Sentence, split_sentences

SENTENCES = Path(__file__).with_name("sentences.json")
REPORTS = Path(__file__).with_name("reports.json")
WEIGHTS = Path(open_sentences.__file__).parent
FOLDS = 6
#: What is learnt, with the log-odds that are taken for 0: from there on a sentence counts.
TASKS = {"open_sentences": -1.2, "rules": -0.1, "reports": 0.8}
_AROUND = (-0.4, -0.2, 0.0, 0.2, 0.4)
_MANY = 300  # sentences of a repository that count in full
_LEAST_REPOSITORIES = 3
_PENALTY = 5.0
_ROUNDS = 400
_SMALLEST = 0.1  # weights nearer to 0 are left out
_DOUBTFUL = 0.5
_FEW_READERS = 0.7  # what sentences of `labels.json` weigh: its readers named points, not every sentence
_SHARES = (0.125, 0.25, 0.5, 1.0)
_FEWEST = 20  # entries from which a precision says something
_NO_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Row:
    """One sentence: 1 if it was marked, 0 if not, 0.5 if it is doubtful."""

    task: str
    repository: str
    message: str
    text: str
    features: list[str]
    label: float
    weight: float


# --- sentences with labels ---
def _answers(store: Store, session: Session) -> dict[int, str]:
    """Return the answers by seq, without those that a call follows before the person speaks: they announce, others report."""
    found, waiting = dict[int, str](), dict[int, str]()
    for row, message in read_messages(store, all_sources(), session):
        text = "\n".join(one.text for one in message.blocks if one.field == "answer" and one.text.strip())
        if row.origin == "human":
            found, waiting = found | waiting, {}
        elif any(one.call is not None for one in message.blocks):
            waiting = {}
        elif row.origin == "model" and text:
            waiting = {row.seq: text}
    return found | waiting


def _prompts(store: Store, session: Session) -> dict[int, str]:
    """Return what a person wrote, by seq."""
    found = {}
    for row, message in read_messages(store, all_sources(), session):
        text = "\n".join(one.text for one in message.blocks if one.field == "prompt" and one.text)
        if row.origin == "human" and row.kind in ("text", "queued", "command"):
            found[row.seq] = command_words(text).partition(" ")[2] if row.kind == "command" else text
    return {seq: text for seq, text in found.items() if text and not is_role(text)}


def _features(task: str, text: str) -> Iterator[tuple[Sentence, list[str]]]:
    sentences = list(split_sentences(text))
    if task == "rules":
        marks = [decisions.sentence_mark(one) for one in sentences]
        return zip(sentences, decisions.rule_features(text, sentences, marks), strict=True)
    if task == "reports":
        return zip(sentences, report_features(text, sentences), strict=True)
    return zip(sentences, open_features(sentences), strict=True)


def _repository(file: str) -> str:
    return file.split("/")[1]


def marked_rows(folders: Iterable[Path], archive: Path) -> Iterator[Row]:
    """Yield the sentences of `sentences.json` and `reports.json` whose sessions are in one of some folders."""
    entries: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for one in (one for path in (SENTENCES, REPORTS) for one in json.loads(path.read_text("utf-8"))):
        entries[one["file"], one["id"]].append(one)
    for number, folder in enumerate(folders):
        store = archive_files({folder / file for file, _ in entries}, archive / str(number))
        try:
            for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]:
                file, _ = store.file_by_id(store.version(session.version).source)
                name = str(Path(file.path.partition("#")[0]).relative_to(folder))
                if found := entries.pop((name, session.native_id), []):
                    yield from _session_rows(found, _answers(store, session), _prompts(store, session))
        finally:
            store.close()
    if entries:
        say(f"{len(entries)} labelled sessions are in none of the folders")


def _session_rows(entries: list[dict[str, Any]], answers: dict[int, str], prompts: dict[int, str]) -> Iterator[Row]:
    ends = [one for one in entries if "messages" not in one]
    for entry in ends:
        last = entry["answer"] if "answer" in entry else max(answers, default=-1)
        yield from _entry_rows("open_sentences", entry, {last: answers.get(last, "")}, 1)
        yield from _entry_rows("rules", entry, prompts, len(ends))
    for entry in entries:
        for seq, shown, is_doubtful, marks in entry.get("messages", ()):
            yield from _report_rows(
                entry, seq, list(_features("reports", prompts.get(seq, "")))[:shown], is_doubtful, marks
            )


def _report_rows(
    entry: dict[str, Any], seq: int, sentences: list[tuple[Sentence, list[str]]], is_doubtful: bool, marks: list[str]
) -> Iterator[Row]:
    """Yield the sentences of a message; where others report something, one that patterns take for a report is doubtful."""
    for one, features in sentences:
        label = 1.0 if mark(one.text) in marks else _DOUBTFUL if marks and is_complaint(one.text) else 0.0
        label = _DOUBTFUL if is_doubtful else label
        yield Row("reports", _repository(entry["file"]), f"{entry['id']} {seq}", one.text, features, label, 1)


def archive_files(paths: Iterable[Path], folder: Path) -> Store:
    """Take some files into an archive in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    store = open_store(str(folder / "marked.db"))
    places = SearchPlaces(folder, {}, "linux")
    job = SyncJob(store, all_sources(), places, Policy(), "here", "me", lambda: 1_700_000_000_000)
    add_paths(job, sorted(path for path in paths if path.exists()))
    return store


def _entry_rows(task: str, entry: dict[str, Any], texts: dict[int, str], ends: int) -> Iterator[Row]:
    """Yield the sentences of some messages that a reader saw; a session with several ends counts once."""
    read: dict[int, set[int]] = defaultdict(set)
    for seq, first, last in entry["read"]:
        read[seq].update(range(first, last + 1))
    section = "open" if task == "open_sentences" else "constraints"
    marked = {(seq, words) for seq, words in entry[section]}
    doubtful = {(seq, words) for seq, words in (*entry.get("doubtful", ()), *entry.get(f"{section}?", ()))}
    for seq in texts.keys() & read.keys():
        for at, (one, features) in enumerate(_features(task, texts[seq])):
            place = (seq, mark(one.text))
            label = 1.0 if place in marked else _DOUBTFUL if place in doubtful else 0.0
            if at in read[seq]:
                message = f"{entry['id']} {entry.get('before', '')} {entry.get('guide', '')} {seq}"
                yield Row(task, _repository(entry["file"]), message, one.text, features, label, 1 / ends)


def labelled_rows(archive: Path) -> Iterator[Row]:
    """Yield the sentences of the sessions in `labels.json` that may be read: of their prompts and their last answers."""
    store = archive_labelled(archive, READABLE)
    try:
        for one in labelled_sessions(store, READABLE):
            answers, prompts = _answers(store, one.session), _prompts(store, one.session)
            last = max(answers, default=-1)
            file, _ = store.file_by_id(store.version(one.session.version).source)
            repository = _repository(str(Path(file.path.partition("#")[0]).relative_to(CORPUS)))
            opened = [*one.sections["open_questions"], *one.sections["next_steps"]]
            for task, items, texts in (
                ("open_sentences", opened, {last: answers.get(last, "")}),
                ("rules", one.sections["constraints"], prompts),
            ):
                for seq, text in texts.items():
                    quotes = [
                        (_bare(place.quote), item) for item in items for place in item.places if place.message == seq
                    ]
                    message = f"{one.session.native_id} {seq}"
                    for sentence, features in _features(task, text):
                        label = _label(_bare(sentence.text), quotes)
                        yield Row(task, repository, message, sentence.text, features, label, _FEW_READERS)
    finally:
        store.close()


def _bare(text: str) -> str:
    return _NO_WORD.sub("", text.lower())


def _label(words: str, quotes: list[tuple[str, LabelledItem]]) -> float:
    fitting = [item for quote, item in quotes if quote and words and (quote in words or words in quote)]
    return 1.0 if any(item.firm for item in fitting) else _DOUBTFUL if fitting else 0.0


# --- learning ---
def learn(rows: Iterable[Row]) -> dict[str, float]:
    """Return the weight of each feature by logistic regression with a quadratic penalty; that of "=" belongs to every sentence.

    A sentence counts from a sum of 0 on.
    """
    known = [one for one in rows if one.label != _DOUBTFUL]
    sizes = Counter(one.repository for one in known)
    users: dict[str, set[str]] = defaultdict(set)
    for one in known:
        for name in one.features:
            users[name].add(one.repository)
    names = sorted(name for name, found in users.items() if len(found) >= _LEAST_REPOSITORIES)
    places = {name: at for at, name in enumerate(names)}
    pairs = [(at, places[name]) for at, one in enumerate(known) for name in one.features if name in places]
    row, column = np.array(pairs).T
    labels = np.array([one.label for one in known])
    shares = np.array([one.weight * min(1.0, math.sqrt(_MANY / sizes[one.repository])) for one in known])
    penalty = np.array([0.0 if name == "=" else _PENALTY for name in names])
    weights, drift, spread = (np.zeros(len(names)) for _ in range(3))
    for turn in range(1, _ROUNDS + 1):  # Adam, with smaller steps at the end
        odds = np.bincount(row, weights[column], minlength=len(known))
        error = shares * (1 / (1 + np.exp(-odds)) - labels)
        slope = np.bincount(column, error[row], minlength=len(names)) + penalty * weights
        drift, spread = 0.9 * drift + 0.1 * slope, 0.999 * spread + 0.001 * slope**2
        pace = 0.05 if turn < _ROUNDS * 0.6 else 0.01
        weights -= pace * (drift / (1 - 0.9**turn)) / (np.sqrt(spread / (1 - 0.999**turn)) + 1e-8)
    learnt = dict(zip(names, map(float, weights), strict=True))
    return learnt | {"=": learnt["="] - TASKS[known[0].task]}


def cross_validated(rows: list[Row], share: float = 1.0) -> list[float]:
    """Return the log-odds of each sentence by weights that were learnt without its repository, from a share of the others."""
    repositories = sorted({one.repository for one in rows})
    random.Random(1).shuffle(repositories)
    fold = {name: at % FOLDS for at, name in enumerate(repositories)}
    used = set(random.Random(2).sample(repositories, round(share * len(repositories))))
    learnt = [
        learn(one for one in rows if fold[one.repository] != at and one.repository in used) for at in range(FOLDS)
    ]
    return [sum_weights(one.features, learnt[fold[one.repository]]) for one in rows]


def best_recall(rows: list[Row], odds: list[float], precision: float) -> float:
    """Return the highest recall at any threshold with at least this precision."""
    thresholds = sorted((value for value in odds if math.isfinite(value)), reverse=True)[:: max(1, len(odds) // 300)]
    scores = (entry_scores(rows, odds, threshold) for threshold in thresholds)
    return max((recall for right, recall, listed in scores if right >= precision and listed >= _FEWEST), default=0.0)


def entry_scores(rows: list[Row], odds: list[float], threshold: float) -> tuple[float, float, int]:
    """Return precision and recall of the entries that a document would show, and how many there are."""
    messages: dict[str, list[tuple[float, Row]]] = defaultdict(list)
    for one, value in zip(rows, odds, strict=True):
        messages[one.message].append((value, one))
    right = listed = found = there = 0
    for sentences in messages.values():
        if rows[0].task == "open_sentences":
            asks = [is_question(one.text) for _, one in sentences]
            chosen = [sentences[at] for at in choose_open([odds for odds, _ in sentences], asks, threshold)]
        else:
            chosen = [one for one in sentences if one[0] >= threshold]
        asked = {at for at, (_, one) in enumerate(chosen) if one.task == "open_sentences" and is_question(one.text)}
        labels = [one.label for at, (_, one) in enumerate(chosen) if at not in asked]
        entries = [[chosen[at][1].label] for at in asked] + ([labels] if labels else [])
        right += sum(max(one) == 1 for one in entries)
        listed += sum(max(one) != _DOUBTFUL for one in entries)
        is_report = rows[0].task == "reports"  # of a message, not of each sentence
        given = [max(one.label for _, one in sentences)] if is_report else [one.label for _, one in sentences]
        there += given.count(1.0)
        found += given.count(1.0) if is_report and chosen else sum(one.label == 1 for _, one in chosen)
    return right / max(1, listed), found / max(1, there), listed


def main(arguments: list[str] | None = None) -> int:
    """Print what cross-validation says, and write the weights if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.learn", description=__doc__)
    parser.add_argument(
        "--also", type=Path, action="append", default=[], help="a folder with sessions that are not in the corpus"
    )
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    parser.add_argument(
        "--curve", action="store_true", help="say how recall grows with the number of repositories instead"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="everturn-learn-") as folder:
        marked = list(marked_rows((CORPUS, *(one.resolve() for one in options.also)), Path(folder)))
        labelled = list(labelled_rows(Path(folder) / "labelled"))
    if options.curve:
        _print_curves([*marked, *labelled])
        return 0
    for task in TASKS:
        parts = {"sentences.json": marked, "labels.json": labelled}
        _learn_task(
            task, {name: [one for one in part if one.task == task] for name, part in parts.items()}, options.write
        )
    return 0


def _print_curves(rows: list[Row]) -> None:
    for task in TASKS:
        own = [one for one in rows if one.task == task]
        for share in _SHARES:
            odds = cross_validated(own, share)
            found = ", ".join(f"{best_recall(own, odds, least):.2f} at {least:.2f}" for least in (0.6, 0.7, 0.8))
            print(f"{task}, learnt from {share:.1%} of the repositories: recall at precision {found}")


def _learn_task(task: str, parts: dict[str, list[Row]], write: bool) -> None:
    rows, start = [one for part in parts.values() for one in part], 0
    known = f"{len(rows):,} sentences of {len({one.repository for one in rows})} repositories"
    say(f"{task}: {known}, {sum(one.label == 1 for one in rows)} marked")
    odds = cross_validated(rows)
    rules = [0.0 if _by_patterns(one) else -math.inf for one in rows]
    for name, part in parts.items():
        own = slice(start, start := start + len(part))
        if not part:
            continue
        print(f"{task}, {name}: patterns alone, {_shown(entry_scores(part, rules[own], 0.0))}")
        for threshold in _AROUND:
            pairs = zip(odds[own], rules[own], strict=True)
            counted = [max(one, threshold) if rule == 0 else one for one, rule in pairs]
            print(f"{task}, {name}: and learnt from {threshold} on, {_shown(entry_scores(part, counted, threshold))}")
    if write:
        weights = {name: round(value, 2) for name, value in sorted(learn(rows).items()) if abs(value) >= _SMALLEST}
        (WEIGHTS / f"{task}.json").write_text(json.dumps(weights, indent=0, ensure_ascii=False) + "\n", "utf-8")
        say(f"{task}.json: {len(weights):,} weights")


def _by_patterns(row: Row) -> bool:
    if row.task == "rules":
        return {"=rule", decisions.SHORT} <= set(row.features)
    return is_complaint(row.text) if row.task == "reports" else not PLAIN_SIGNS.isdisjoint(row.features)


def _shown(scores: tuple[float, float, int]) -> str:
    return "precision {:.2f}, recall {:.2f}, {} entries".format(*scores)


if __name__ == "__main__":
    sys.exit(main())
