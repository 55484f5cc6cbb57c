"""`python -m benchmarks.restore.learn`: learn which sentences leave something open, lay down a rule, report trouble or state a choice.

The weights are learnt from single messages and turns that readers marked by `UNITS.md`, sentence by sentence:

- `units.json`: 5,900 prompts (rules, reports of trouble) and 4,270 last answers of a turn (what they leave open), of 167 repositories.
- `turns.json`: 1,566 turns of 172 repositories, with what was chosen in them.

A reader gave each sentence a firm mark, a doubtful one or none. A doubtful sentence counts as one that is meant with the share of
`TASKS`. Entries hold places and hashes, no words; `from` names repository, commit or blob, and path. Put the files into a folder
under `file` and name it with `--also`.

Other sets are learnt from too:

- Whole sessions: `opened.json` and `whole.json` (`unseen`), of which all prompts, all turns and the last answer.
- `sentences.json`: 1,192 ends of 747 sessions of 162 repositories, in which one reader marked every sentence that states a question, an offer
  or a step left to do, a rule of the person, or what still fails. A part of them have a second reader. Those with `guide` were marked by `GUIDE.md`.
- The parts of `labels.json` that may be read (`labels.READABLE`), of decisions all turns of its sessions. Nothing is learnt from the blind part. The figures of
  `sections` on the readable parts are those of sessions that were learnt from; what is printed here is not.

What is printed is cross-validated: each repository is judged by weights learnt from the others. As in a document, the steps of an answer are one entry, each question is one, the rules of a message
are one, the choices of a turn are one, and a message reports or not. An entry is right if it holds a firm sentence. One that holds doubtful ones only
is not counted in the first figure; in the second ("doubtful accepted") it is right too. `--write` learns from everything and writes the weights. Words that
fewer than three repositories use are not learnt. Repositories with many sentences count less for each of them.
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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.figures import say
from benchmarks.restore.cutting import CORPUS
from benchmarks.restore.labels import (
    LEARNT_SETS,
    READABLE,
    SETS,
    LabelledItem,
    LabelledSession,
    Place,
    archive_labelled,
    labelled_sessions,
    mark,
)
from benchmarks.restore.match import says_place
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.derive import choices, decisions, open_sentences
from everturn.derive.failures import report_features
from everturn.derive.intent import command_words, is_role
from everturn.derive.open_sentences import (
    WeighedSentence,
    asks_person,
    choose_open,
    open_features,
    open_odds,
    sum_weights,
)
from everturn.model.archive import Session
from everturn.sessions.messages import read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from everturn.text.sentences import Sentence, split_sentences

HERE = Path(__file__).parent
SENTENCES, UNITS, TURNS = (HERE / f"{name}.json" for name in ("sentences", "units", "turns"))
WEIGHTS = Path(open_sentences.__file__).parent
FOLDS = 6


class Task(NamedTuple):
    """What is learnt: the log-odds that are taken for 0, from which a sentence counts, what a doubtful sentence counts for, how weights are held down, and from what."""

    least: float
    doubtful: float
    penalty: float = 5.0
    smallest: float = 0.1  # weights nearer to 0 are left out
    whole: bool = True  # learnt from whole sessions too


TASKS = {
    "open_sentences": Task(-1.4, 0.3),
    "rules": Task(-0.4, 0.6),
    "reports": Task(0.3, 0.5),
    "choices": Task(-2.0, 0.5, 10.0, 0.05, whole=False),  # with them, sessions of other readers were told worse
}
_AROUND = (-0.4, 0.0, 0.4, 0.8)
_MANY = 300  # sentences of a repository that count in full
_LEAST_REPOSITORIES = 3
_ROUNDS, _REMEMBERED, _LEVEL = 60, 10, 1e-6
_DOUBTFUL = 0.5
_PARTS = ("units", "sentences.json", "labels.json", "whole sessions")
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


def session_prompts(store: Store, session: Session) -> dict[int, str]:
    """Return what a person wrote, by seq."""
    found = {}
    for row, message in read_messages(store, all_sources(), session):
        text = "\n".join(one.text for one in message.blocks if one.field == "prompt" and one.text)
        if row.origin == "human" and row.kind in ("text", "queued", "command"):
            found[row.seq] = command_words(text).partition(" ")[2] if row.kind == "command" else text
    return {seq: text for seq, text in found.items() if text and not is_role(text)}


def _features(task: str, text: str, by: str = "", has_acted: bool = False) -> Iterator[tuple[Sentence, list[str]]]:
    sentences = list(split_sentences(text))
    if task == "rules":
        marks = [decisions.sentence_mark(one) for one in sentences]
        return zip(sentences, decisions.rule_features(text, sentences, marks), strict=True)
    if task == "reports":
        return zip(sentences, report_features(text, sentences), strict=True)
    if task == "choices":
        return zip(sentences, choices.choice_features(text, sentences, by, has_acted), strict=True)
    return zip(sentences, open_features(sentences), strict=True)


def _repository(file: str) -> str:
    return file.split("/")[1]


def source_repository(store: Store, session: Session, corpus: Path) -> str:
    """Return the repository that the file of a session comes from."""
    file, _ = store.file_by_id(store.version(session.version).source)
    return _repository(str(Path(file.path.partition("#")[0]).relative_to(corpus)))


def unit_rows(folders: Iterable[Path], archive: Path) -> Iterator[Row]:
    """Yield the sentences of `units.json` and `turns.json` whose sessions are in one of some folders."""
    for entry, said in _found_entries((UNITS, TURNS), folders, archive):
        for seq, shown, rules, maybe_rules, *reports in entry.get("prompts", ()):
            yield from _unit_rows("rules", entry, seq, said, (shown, 0), (rules, maybe_rules))
            if reports:
                yield from _unit_rows("reports", entry, seq, said, (shown, 0), (reports[0], reports[1]))
        for seq, head, tail, opened, maybe in entry.get("answers", ()):
            yield from _unit_rows("open_sentences", entry, seq, said, (head, tail), (opened, maybe))
        for number, (has_acted, parts) in enumerate(entry.get("turns", ())):
            for seq, by, shown, chosen, maybe in parts:
                rows = _unit_rows("choices", entry, seq, said, (shown, 0), (chosen, maybe), by, has_acted)
                yield from (replace(one, message=f"{entry['id']} turn {number}") for one in rows)


def _unit_rows(
    task: str, entry: dict[str, Any], seq: int, said: Said, shown: tuple[int, int],
    marks: tuple[list[str], list[str]], by: str = "", has_acted: bool = False,
) -> Iterator[Row]:  # fmt: skip
    """Yield the sentences of a message that a reader saw: the first and the last so many; `marks` are firm and doubtful."""
    firm, doubtful = marks
    text = said.prompts.get(seq) or said.answers.get(seq, "")
    sentences = list(_features(task, text, by, has_acted))
    for at, (one, features) in enumerate(sentences):
        if at < shown[0] or at >= len(sentences) - shown[1]:
            words = mark(one.text)
            label = 1.0 if words in firm else _DOUBTFUL if words in doubtful else 0.0
            yield Row(task, _repository(entry["file"]), f"{entry['id']} {seq}", one.text, features, label, 1)


class Said(NamedTuple):
    """What the person and the model wrote, by seq."""

    prompts: dict[int, str]
    answers: dict[int, str]


def _found_entries(
    paths: Iterable[Path], folders: Iterable[Path], archive: Path
) -> Iterator[tuple[dict[str, Any], Said]]:
    """Yield the entries of some label files whose sessions are in one of some folders, with what was said."""
    entries: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for one in (one for path in paths for one in json.loads(path.read_text("utf-8"))):
        entries[one["file"], one["id"]].append(one)
    for number, folder in enumerate(folders):
        store = archive_files({folder / file for file, _ in entries}, archive / str(number))
        try:
            for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]:
                file, _ = store.file_by_id(store.version(session.version).source)
                name = str(Path(file.path.partition("#")[0]).relative_to(folder))
                if found := entries.pop((name, session.native_id), []):
                    said = Said(session_prompts(store, session), _spoken(store, session))
                    yield from ((one, said) for one in found)
        finally:
            store.close()
    if entries:
        say(f"{len(entries)} labelled sessions are in none of the folders")


def _spoken(store: Store, session: Session) -> dict[int, str]:
    """Return what the model wrote, by seq."""
    found = {}
    for row, message in read_messages(store, all_sources(), session):
        text = "\n".join(one.text for one in message.blocks if one.field == "answer" and one.text.strip())
        if row.origin == "model" and text:
            found[row.seq] = text
    return found


def end_rows(folders: Iterable[Path], archive: Path) -> Iterator[Row]:
    """Yield the sentences of `sentences.json` whose sessions are in one of some folders."""
    counts = Counter((one["file"], one["id"]) for one in json.loads(SENTENCES.read_text("utf-8")))
    for entry, said in _found_entries((SENTENCES,), folders, archive):
        last = entry.get("answer", max(said.answers, default=-1))
        yield from _entry_rows("open_sentences", entry, {last: said.answers.get(last, "")}, 1)
        yield from _entry_rows("rules", entry, said.prompts, counts[entry["file"], entry["id"]])


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
    """Yield the sentences of the sessions in `labels.json` that may be read: of their prompts, their last answers and their turns."""
    store = archive_labelled(archive, READABLE)
    try:
        yield from _session_rows(store, labelled_sessions(store, READABLE), CORPUS)
    finally:
        store.close()


def whole_rows(folders: Iterable[Path], archive: Path) -> Iterator[Row]:
    """Yield the same of the sessions in `opened.json` and `whole.json` that are in one of some folders."""
    for number, folder in enumerate(folders):
        for half in LEARNT_SETS:
            files = {folder / one["file"] for one in json.loads(SETS[half].read_text("utf-8"))}
            store = archive_files(files, archive / f"{number} {half}")
            try:
                yield from _session_rows(store, labelled_sessions(store, (half,), SETS[half], folder), folder)
            finally:
                store.close()


def _session_rows(store: Store, labelled: Iterable[LabelledSession], corpus: Path) -> Iterator[Row]:
    for one in labelled:
        answers, prompts = _answers(store, one.session), session_prompts(store, one.session)
        last = max(answers, default=-1)
        repository = source_repository(store, one.session, corpus)
        opened = [*one.sections["open_questions"], *one.sections["next_steps"]]
        for task, items, texts in (
            ("open_sentences", opened, {last: answers.get(last, "")}),
            ("rules", one.sections["constraints"], prompts),
        ):
            for seq, text in texts.items():
                quotes = [(_bare(place.quote), item) for item in items for place in item.places if place.message == seq]
                message = f"{one.session.native_id} {seq}"
                for sentence, features in _features(task, text):
                    label = _label(_bare(sentence.text), quotes)
                    yield Row(task, repository, message, sentence.text, features, label, 1)
        yield from _choice_rows(store, one, repository)


def _choice_rows(store: Store, labelled: LabelledSession, repository: str) -> Iterator[Row]:
    """Yield the sentences of all turns of a session: those that say a decision which both readers named, or one of them, and the others."""
    decided: dict[int, list[tuple[Place, bool]]] = defaultdict(list)
    for item in labelled.sections["decisions"]:
        for place in item.places:
            decided[place.message].append((place, item.firm))
    for number, (acted, messages) in spoken_turns(store, labelled.session).items():
        last = max((seq for seq, by, _ in messages if by != "person"), default=-1)
        for seq, by, text in messages:
            for one, features in _features("choices", text, "end" if seq == last else by, acted):
                firm = [is_firm for place, is_firm in decided[seq] if says_place(one.text, place)]
                label = 1.0 if any(firm) else _DOUBTFUL if firm else 0.0
                yield Row(
                    "choices", repository, f"{labelled.session.native_id} turn {number}", one.text, features, label, 1
                )


def spoken_turns(store: Store, session: Session) -> dict[int, tuple[bool, list[tuple[int, str, str]]]]:
    """Return for each turn whether the agent made calls, and its messages: seq, who speaks, and the text."""
    turns: dict[int, tuple[bool, list[tuple[int, str, str]]]] = {}
    prompts = session_prompts(store, session)
    for row, message in read_messages(store, all_sources(), session):
        acted, messages = turns.get(row.turn, (False, []))
        answer = "\n".join(one.text for one in message.blocks if one.field == "answer" and one.text.strip())
        if row.seq in prompts:
            messages.append((row.seq, "person", prompts[row.seq]))
        elif row.origin == "model" and answer:
            messages.append((row.seq, "between", answer))
        turns[row.turn] = acted or any(one.call is not None for one in message.blocks), messages
    return turns


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
    known = list(rows)
    task = TASKS[known[0].task]
    table = _Table(known)
    sizes = Counter(one.repository for one in known)
    labels = np.array([task.doubtful if one.label == _DOUBTFUL else one.label for one in known])
    shares = np.array([one.weight * min(1.0, math.sqrt(_MANY / sizes[one.repository])) for one in known])
    penalty = np.array([0.0 if name == "=" else task.penalty for name in table.names])

    def slope(weights: Vector) -> tuple[float, Vector]:
        odds = table.sums(weights)
        error = shares * (1 / (1 + np.exp(-odds)) - labels)
        loss = float(np.sum(shares * (np.logaddexp(0, odds) - labels * odds)) + np.sum(penalty * weights**2) / 2)
        return loss, table.back(error) + penalty * weights

    learnt = dict(zip(table.names, map(float, _descend(slope, len(table.names))), strict=True))
    return learnt | {"=": learnt["="] - task.least}


Vector = np.ndarray[Any, np.dtype[np.float64]]


class _Table:
    """Which sentence has which feature: summed along sentences, or along features."""

    def __init__(self, rows: list[Row]) -> None:
        users: dict[str, set[str]] = defaultdict(set)
        for one in rows:
            for name in one.features:
                users[name].add(one.repository)
        self.names = sorted(name for name, found in users.items() if len(found) >= _LEAST_REPOSITORIES)
        places = {name: at for at, name in enumerate(self.names)}
        pairs = [(at, places[name]) for at, one in enumerate(rows) for name in set(one.features) if name in places]
        self._row, self._column = np.array(pairs).T
        order = np.argsort(self._column, kind="stable")
        self._starts = np.searchsorted(self._row, np.arange(len(rows)))  # every sentence has "="
        self._sorted = self._row[order]
        self._ends = np.searchsorted(self._column[order], np.arange(len(self.names)))

    def sums(self, weights: Vector) -> Vector:
        """Return the sum of the weights of each sentence."""
        return np.add.reduceat(weights[self._column], self._starts)

    def back(self, values: Vector) -> Vector:
        """Return for each feature the sum of the values of its sentences."""
        return np.add.reduceat(values[self._sorted], self._ends)


def _descend(slope: Callable[[Vector], tuple[float, Vector]], size: int) -> Vector:
    """Return the weights at the foot of a smooth slope (L-BFGS with backtracking)."""
    at = np.zeros(size)
    loss, down = slope(at)
    moves: list[tuple[Vector, Vector]] = []
    for _ in range(_ROUNDS):
        if float(np.abs(down).max()) < _LEVEL:
            break
        step = -_bend(down, moves)
        pace, slant = 1.0 if moves else 1.0 / float(np.abs(down).sum()), float(down @ step)
        while True:
            ahead, there = slope(at + pace * step)
            if ahead <= loss + 1e-4 * pace * slant or pace < 1e-8:
                break
            pace /= 2
        if float(step @ (there - down)) > 0:
            moves = [*moves, (pace * step, there - down)][-_REMEMBERED:]
        at, loss, down = at + pace * step, ahead, there
    return at


def _bend(down: Vector, moves: list[tuple[Vector, Vector]]) -> Vector:
    """Return the slope, bent by how it changed along the last moves."""
    bent, shares = down.copy(), []
    for move, change in reversed(moves):
        share = float(move @ bent) / float(move @ change)
        shares.append(share)
        bent -= share * change
    if moves:
        move, change = moves[-1]
        bent *= float(move @ change) / float(change @ change)
    for (move, change), share in zip(moves, reversed(shares), strict=True):
        bent += (share - float(change @ bent) / float(move @ change)) * move
    return bent


def cross_validated(rows: list[Row], judged: list[Row], share: float = 1.0) -> list[float]:
    """Return the log-odds of each judged sentence by weights that were learnt without its repository, from a share of the others."""
    repositories = sorted({one.repository for one in (*rows, *judged)})
    random.Random(1).shuffle(repositories)
    fold = {name: at % FOLDS for at, name in enumerate(repositories)}
    used = set(random.Random(2).sample(repositories, round(share * len(repositories))))
    learnt = [
        learn(one for one in rows if fold[one.repository] != at and one.repository in used) for at in range(FOLDS)
    ]
    weigh = open_odds if judged[0].task == "open_sentences" else sum_weights
    return [weigh(one.features, learnt[fold[one.repository]]) for one in judged]


def best_recall(rows: list[Row], odds: list[float], precision: float) -> float:
    """Return the highest recall at any threshold with at least this precision."""
    thresholds = sorted((value for value in odds if math.isfinite(value)), reverse=True)[:: max(1, len(odds) // 300)]
    scores = (entry_scores(rows, odds, threshold) for threshold in thresholds)
    return max((recall for right, recall, listed in scores if right >= precision and listed >= _FEWEST), default=0.0)


def entry_scores(
    rows: list[Row], odds: list[float], threshold: float, accepted: float = 1.0
) -> tuple[float, float, int]:
    """Return precision and recall of the entries that a document would show, and how many there are.

    An entry is right if it holds a sentence with at least the label `accepted`.
    """
    messages: dict[str, list[tuple[float, Row]]] = defaultdict(list)
    for one, value in zip(rows, odds, strict=True):
        messages[one.message].append((value, one))
    right = listed = found = there = 0
    for sentences in messages.values():
        if rows[0].task == "open_sentences":
            weighed = [
                WeighedSentence(odds, asks_person(one.features), "=item" in one.features) for odds, one in sentences
            ]
            chosen = [sentences[at] for at in choose_open(weighed, threshold)]
        else:
            beside = (
                decisions.BESIDE if rows[0].task == "rules" and any(one[0] >= threshold for one in sentences) else 0.0
            )
            chosen = [one for one in sentences if one[0] >= threshold - beside]
        asked = {at for at, (_, one) in enumerate(chosen) if one.task == "open_sentences" and asks_person(one.features)}
        labels = [one.label for at, (_, one) in enumerate(chosen) if at not in asked]
        entries = [[chosen[at][1].label] for at in asked] + ([labels] if labels else [])
        right += sum(max(one) >= accepted for one in entries)
        listed += sum(max(one) != _DOUBTFUL or accepted <= _DOUBTFUL for one in entries)
        is_report = rows[0].task == "reports"  # of a message, not of each sentence
        given = [max(one.label for _, one in sentences)] if is_report else [one.label for _, one in sentences]
        there += sum(one >= accepted for one in given)
        found += sum(one >= accepted for one in given) if is_report and chosen else 0
        found += 0 if is_report else sum(one.label >= accepted for _, one in chosen)
    return right / max(1, listed), found / max(1, there), listed


def main(arguments: list[str] | None = None) -> int:
    """Print what cross-validation says, and write the weights if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.learn", description=__doc__)
    parser.add_argument(
        "--also", type=Path, action="append", default=[], help="a folder with sessions that are not in the corpus"
    )
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    parser.add_argument("--task", action="append", choices=list(TASKS), help="only this (may be repeated)")
    parser.add_argument(
        "--curve", action="store_true", help="say how recall grows with the number of repositories instead"
    )
    options = parser.parse_args(arguments)
    folders = (CORPUS, *(one.resolve() for one in options.also))
    with tempfile.TemporaryDirectory(prefix="everturn-learn-") as name:
        units = list(unit_rows(folders, Path(name) / "units"))
        ends = list(end_rows(folders, Path(name) / "ends"))
        labelled = list(labelled_rows(Path(name) / "labelled"))
        whole = list(whole_rows(folders[1:], Path(name) / "whole"))
    for task in options.task or TASKS:
        learnt, *judged = ([one for one in part if one.task == task] for part in (units, ends, labelled, whole))
        parts = dict(zip(_PARTS, (learnt, *judged), strict=True))
        if not TASKS[task].whole:
            del parts[_PARTS[-1]]
        if options.curve:
            _print_curve(task, learnt)
        else:
            _learn_task(task, parts, options.write)
    return 0


def _print_curve(task: str, rows: list[Row]) -> None:
    for share in _SHARES:
        odds = cross_validated(rows, rows, share)
        found = ", ".join(f"{best_recall(rows, odds, least):.2f} at {least:.2f}" for least in (0.6, 0.7, 0.8))
        print(f"{task}, learnt from {share:.1%} of the repositories: recall at precision {found}")


def _learn_task(task: str, parts: dict[str, list[Row]], write: bool) -> None:
    rows = [one for part in parts.values() for one in part]
    firm, doubtful = (sum(one.label == label for one in rows) for label in (1, _DOUBTFUL))
    repositories = len({one.repository for one in rows})
    say(f"{task}: {len(rows):,} sentences of {repositories} repositories, {firm:,} firm, {doubtful:,} doubtful")
    odds = iter(cross_validated(rows, rows))
    for name, part in parts.items():
        own = list(islice(odds, len(part)))
        for threshold in _AROUND if part else ():
            strict, mild = (_shown(entry_scores(part, own, threshold, least)) for least in (1.0, _DOUBTFUL))
            print(f"{task}, {name}, from {threshold} on: {strict}; doubtful accepted: {mild}")
    if write:
        smallest = TASKS[task].smallest
        weights = {name: round(value, 2) for name, value in sorted(learn(rows).items()) if abs(value) >= smallest}
        (WEIGHTS / f"{task}.json").write_text(json.dumps(weights, indent=0, ensure_ascii=False) + "\n", "utf-8")
        say(f"{task}.json: {len(weights):,} weights")


def _shown(scores: tuple[float, float, int]) -> str:
    return "precision {:.2f}, recall {:.2f}, {} entries".format(*scores)


if __name__ == "__main__":
    sys.exit(main())
