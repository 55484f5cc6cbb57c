"""The question sets by name: how each is put into an archive, what is asked, and which figures tell about it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, say
from benchmarks.recall import agent, dialogues, histories
from benchmarks.recall.answers import answers as answers_part
from benchmarks.recall.archive import Archive
from benchmarks.recall.baselines import Ask, Baselines
from benchmarks.recall.inside import inside
from benchmarks.recall.meanings import Model, with_meaning
from benchmarks.recall.measuring import OURS, PLAIN, Answered, asked
from benchmarks.recall.own import FORMS, HALVES, OwnPlaces, corpus_archive, own_questions
from benchmarks.recall.questions import Question
from benchmarks.recall.report import figures_of, parts_of, rows
from benchmarks.recall.times import ASKED_AT, write_times

Measured = tuple[str, dict[str, list[Answered]]]  # name of the figures, answers by method

#: LIKE looks through every text at each question; of large sets a part of the questions is enough to see it.
_LIKE_BUDGET = 600_000_000  # characters looked through


def locomo(folder: Path, model: Model | None) -> Iterator[Measured]:
    """Long dialogues; each question is asked within its own."""
    yield from _dialogues("LoCoMo", dialogues.locomo(folder / "in"), folder, True, model)


def devmembench(folder: Path, model: Model | None) -> Iterator[Measured]:
    """A developer's sessions."""
    yield from _dialogues("devmembench", dialogues.devmembench(folder / "in"), folder, False, model)


def beam100k(folder: Path, model: Model | None) -> Iterator[Measured]:
    """Long conversations with an assistant; each question is asked within the history of its person."""
    yield from _dialogues("BEAM-100K", histories.beam100k(folder / "in"), folder, True, model)


def realmem(folder: Path, model: Model | None) -> Iterator[Measured]:
    """Project work with an assistant; only what was said before the question may be found."""
    yield from _dialogues("RealMem", histories.realmem(folder / "in"), folder, True, model)


def on_agents(folder: Path, model: Model | None) -> Iterator[Measured]:
    """Transcripts of agents: titles, then exact strings."""
    given = agent.transcripts(folder / "in")
    with closing(Archive.of(folder / "in", folder / "archive.db")) as archive:
        documents = list(archive.documents())
        plain = Baselines(("", one.place, one.text, one.at) for one in documents)
        methods = _methods(archive, model)
        if questions := agent.titles(archive, given):
            yield "agent titles", _answers(questions, methods, plain)
        yield "agent exact strings", _answers(agent.exact_strings(documents), methods, plain)


def times(folder: Path, model: Model | None) -> Iterator[Measured]:
    """Made-up sessions that differ in when they were and who said what; asked at a moment of their own."""
    questions = write_times(folder / "in")
    with closing(Archive.of(folder / "in", folder / "archive.db")) as archive:
        archive.now = round(ASKED_AT.timestamp() * 1000)
        plain = Baselines(("", one.place, one.text, one.at) for one in archive.documents())
        yield "times", _answers(questions, _methods(archive, model), plain)


def own(folder: Path, model: Model | None) -> Iterator[Measured]:
    """Our own questions about everything beside the checkout, by half, as sentences and as keywords."""
    archive = corpus_archive(folder.parent)
    if archive is None:
        return
    with closing(archive):
        plain = Baselines(("", one.place, one.text, one.at) for one in archive.documents())
        methods = _methods(archive, model)
        given = own_questions()
        places = OwnPlaces(archive, given)
        for half, form in product(HALVES, FORMS):
            questions = [places.asked(one, form) for one in given if one.half == half]
            yield f"own {half} {form}", _answers(questions, methods, plain)


SETS: dict[str, Callable[[Path, Model | None], Iterator[Measured]]] = {
    "locomo": locomo,
    "devmembench": devmembench,
    "beam100k": beam100k,
    "realmem": realmem,
    "agent": on_agents,
    "own": own,
    "times": times,
}
#: What is judged by the text that is returned, without a simple method beside it.
PARTS: dict[str, Callable[[Path], Iterator[Figure]]] = {"answers": answers_part, "inside": inside}


def measured(name: str, folder: Path, model: Model | None = None) -> Iterator[Measured]:
    """Everything of one set, also by meaning where there is a model; the folder is used and emptied."""
    say(f"{name}: taking it in")
    place = folder / name
    place.mkdir(parents=True)
    try:
        yield from SETS[name](place, model)
    finally:
        shutil.rmtree(place)


def figures_for(name: str, folder: Path) -> Iterator[Figure]:
    """The figures of one set or part, or why there are none."""
    found = False
    for figure in part_figures(name, folder) if name in PARTS else _figures_of_set(name, folder):
        found = True
        yield figure
    if not found:
        yield Figure(name, None, note=f"{name} has no questions: its files are not in ../shared beside the checkout")


def part_figures(name: str, folder: Path) -> Iterator[Figure]:
    """The figures of a part. What it builds for other parts too stays in the folder."""
    say(f"{name}: taking it in")
    folder.mkdir(parents=True, exist_ok=True)
    yield from PARTS[name](folder)


def _figures_of_set(name: str, folder: Path) -> Iterator[Figure]:
    for told, answers in measured(name, folder):
        yield from figures_of(list(rows(told, answers)))
        yield from parts_for(told, answers)


#: (beginning of a set's name, level, metrics) that are told for each kind of question.
_TOLD_BY_GROUP = (
    ("LoCoMo", "message", ("recall@10",)),
    ("BEAM-100K", "message", ("recall@5",)),
    ("RealMem", "session", ("hit@1", "hit@5")),
    ("RealMem", "message", ("recall@5",)),
    ("agent titles", "session", ("hit@1", "hit@5")),
    ("agent exact strings", "session", ("hit@1",)),
    ("agent exact strings", "message", ("hit@1",)),
    ("own", "message", ("hit@1", "hit@5")),
    ("times", "message", ("hit@5",)),
)


def parts_for(told: str, answers: dict[str, list[Answered]]) -> Iterator[Figure]:
    """Halves that were chosen by nobody: what was tuned on one must hold on the other; and kinds of questions."""
    if told == "LoCoMo":
        names = sorted({one.question.scope for one in answers[OURS]})

        def half(question: Question) -> str:
            return "even dialogues" if names.index(question.scope) % 2 else "odd dialogues"

        yield from parts_of(told, answers, "session", ("hit@1", "hit@5", "MRR"), half)
        yield from parts_of(told, answers, "message", ("recall@5", "recall@10"), half)
    for name, level, metrics in _TOLD_BY_GROUP:
        if told.startswith(name):
            yield from parts_of(told, answers, level, metrics, lambda one: one.group)


def _dialogues(
    told: str, questions: list[Question] | None, folder: Path, scoped: bool, model: Model | None
) -> Iterator[Measured]:
    if questions is None:
        return
    with closing(Archive.of(folder / "in", folder / "archive.db")) as archive:
        plain = Baselines((one.scope if scoped else "", one.place, one.text, one.at) for one in archive.documents())
        yield told, _answers(questions, _methods(archive, model), plain)


def _methods(archive: Archive, model: Model | None) -> dict[str, Ask]:
    """Ours, and ours with meaning."""
    return {OURS: archive.ask, **(with_meaning(archive, model) if model else {})}


def _answers(questions: Sequence[Question], ours: dict[str, Ask], plain: Baselines) -> dict[str, list[Answered]]:
    some = questions[:: max(1, round(len(questions) * plain.size / plain.scopes / _LIKE_BUDGET))]
    methods: dict[str, tuple[Ask, Sequence[Any]]] = {name: (ask, questions) for name, ask in ours.items()}
    methods |= {PLAIN: (plain.fts5, questions), "LIKE by words": (plain.words, some), "LIKE": (plain.like, some)}
    answers: dict[str, list[Answered]] = {}
    for name, (ask, which) in methods.items():
        say(f"  {len(which):,} questions to {name}")
        answers[name] = asked(which, ask)
    return answers
