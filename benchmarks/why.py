"""Which turn wrote a line: answered and wrong lines on planted repositories, leave-one-out, what it costs, the index."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

import apsw

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure
from benchmarks.ingest import taken_in
from benchmarks.processes import EVERTURN, MB, Cost, Place, everturn, run
from everturn.attribution.job import WhyJob, WhyOptions
from everturn.attribution.report import LineAnswer, count_levels
from everturn.attribution.repository import CommitFacts, Repository
from everturn.clock import now
from everturn.sources.contract import all_sources
from everturn.store.contract import FoundEdit, Store, open_store
from tests.planted_repository import PlantedRepository, tell_story
from tests.planted_score import Score, score_story

_STORIES = 12
_LINE, _FILE, _REPOSITORY = 0.5, 2.0, 60.0  # CPU seconds
_LONG_FILE, _COMMITS = 1_000, 5_000
#: A clone and its archive to try leave-one-out on, as CLONE=ARCHIVE, several separated by the path separator.
_REAL = "EVERTURN_WHY_REPOSITORIES"


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Everything with its bar. Seeds are new in every run; `EVERTURN_WHY_SEED` repeats one."""
    seed = int(os.environ.get("EVERTURN_WHY_SEED", "") or random.SystemRandom().randrange(1 << 20))
    with tempfile.TemporaryDirectory(prefix="everturn-why-") as folder:
        yield from _planted(Path(folder), seed)
        yield from _costs(Path(folder))
    yield from _left_out_real()
    yield from _index(corpora.real or corpora.generated)


# --- planted repositories ---
def _planted(folder: Path, seed: int) -> Iterator[Figure]:
    total, hidden_lines, hidden_wrong, others, credited = Score(), 0, 0, 0, 0
    for number in range(_STORIES):
        place = Place(folder / f"story{number}")
        story = tell_story(place.folder, seed + number)
        everturn(place, "sync", "--json")
        with closing(open_store(str(place.db), create=False)) as store:
            total.add(score_story(story, store))
            lines, wrong = _hide_one_by_one(story, store)
            hidden_lines, hidden_wrong = hidden_lines + lines, hidden_wrong + wrong
            lines, wrong = _ask_for_others(story.root, store)
            others, credited = others + lines, credited + wrong
    note = f"{_STORIES} repositories from seed {seed}, {total.archived:,} archived lines; " + ", ".join(
        f"{name} {n:,}" for name, n in total.levels.most_common(5) if name.strip()
    )
    yield Figure("planted: answered", 100 * total.right / total.archived, "%", 95, at_least=True, note=note)
    yield Figure(
        "planted: wrong of answered",
        100 * total.wrong / total.answered,
        "%",
        0.3,
        note="; ".join(total.wrong_lines[:3]),
    )
    yield Figure("planted: right turn of right session", 100 * total.right_turn / total.right, "%")
    yield Figure(
        "planted: wrong with the writer hidden",
        100 * hidden_wrong / hidden_lines,
        "%",
        0.5,
        note=f"{hidden_lines:,} lines",
    )

    yield Figure("planted: others' lines answered", credited, "lines", 0, note=f"of {others:,}: {_OTHERS}")


_OTHERS = "commits of bots, of other people, and from before the first session"


def _ask_for_others(root: Path, store: Store) -> tuple[int, int]:
    """Ask for the lines of commits that no session had a part in; return how many there are and how many are answered."""
    span = store.edit_span()
    with Repository(root) as repository:
        tip = repository.commit_id("HEAD")
        chosen = [
            one
            for one in repository.range_commits("", tip)
            if one.author != "Ann" or span is None or one.authored < span[0]
        ]
        counts = count_levels(WhyJob(repository, store, all_sources(), now()).all_of(chosen, tip, WhyOptions()))
    return counts.lines, counts.lines - counts.unknown


class _HidingJob(WhyJob):
    """A job that does not see the edits of one session."""

    hidden: frozenset[int] = frozenset()

    def _owners(self, edits: Iterable[FoundEdit]) -> list[FoundEdit]:
        return [one for one in super()._owners(edits) if one.row.session not in self.hidden]


def _hide_one_by_one(story: PlantedRepository, store: Store) -> tuple[int, int]:
    """Hide one session after another; return its lines, and how many of them another one is named for."""
    lines = wrong = 0
    writers = {line.writer[0] for file in story.truth().values() for line in file if line.writer is not None}
    for writer in sorted(writers)[:6]:
        rows = [one for one in store.sessions_like(writer) if one.native_id.rpartition("agent-")[2] == writer]
        rows += [one for one in store.sessions_like(f"agent-{writer}") if one.native_id.endswith(writer)]
        if not rows:
            continue
        with Repository(story.root) as repository:
            job = _HidingJob(repository, store, all_sources(), now())
            job.hidden = frozenset(one.id for one in rows)
            for path, truth in story.truth().items():
                if not any(line.writer is not None and line.writer[0] == writer for line in truth):
                    continue
                answers = job.file(story.root / path, None, WhyOptions()).files[0].lines
                own = [
                    one
                    for one, line in zip(answers, truth, strict=True)
                    if line.writer and line.writer[0] == writer and line.text.strip()
                ]
                lines, wrong = lines + len(own), wrong + sum(bool(one.level) for one in own)
    return lines, wrong


# --- real repositories ---
def _left_out_real() -> Iterator[Figure]:
    given = [one for one in os.environ.get(_REAL, "").split(os.pathsep) if "=" in one]
    if not given:
        yield Figure("leave-one-out, real repositories", None, note=f"set {_REAL}=CLONE=ARCHIVE to measure it")
        return
    total = hidden = 0
    for one in given:
        clone, _, archive = one.partition("=")
        with Repository(Path(clone)) as repository, closing(open_store(archive, create=False)) as store:
            chosen = repository.range_commits("", repository.commit_id("HEAD"))
            lines = _all_lines(repository, store, chosen)
            others = _outside(lines, chosen, store)
            wrong, told = _leave_one_out(repository, store, chosen, lines)
        answered, name = sum(bool(line.level) for line in lines), Path(clone).name
        total, hidden = total + wrong, hidden + answered
        note = f"{wrong:,} wrong; {answered:,} of {len(lines):,} added lines answered"
        yield Figure(f"leave-one-out, {name}", 100 * wrong / max(answered, 1), "%", 0.5, note=note)
        note = f"of the {wrong:,}: with nothing hidden, the answer lists this session as one that wrote the same text"
        yield Figure(f"wrong, but told beside the answer, {name}", told, "lines", note=note)
        credited = sum(bool(line.level) for line in others)
        note = f"of {len(others):,}: commits of bots, and from before the first session"
        yield Figure(f"others' lines answered, {name}", credited, "lines", 0, note=note)
    note = f"{total:,} wrong of {hidden:,} answered lines, {len(given)} repositories"
    yield Figure("leave-one-out, all", 100 * total / max(hidden, 1), "%", 0.5, note=note)


def _all_lines(repository: Repository, store: Store, chosen: list[CommitFacts]) -> list[LineAnswer]:
    """Ask for every added line of every commit."""
    job = WhyJob(repository, store, all_sources(), now())
    report = job.all_of(chosen, repository.commit_id("HEAD"), WhyOptions())
    return [line for file in report.files for line in file.lines if line.text.strip()]


def _outside(lines: list[LineAnswer], chosen: list[CommitFacts], store: Store) -> list[LineAnswer]:
    """Return the lines of bots, and those from before the first archived edit."""
    span = store.edit_span()
    shas = {one.sha for one in chosen if "[bot]" in one.author or span is None or one.authored < span[0]}
    return [line for line in lines if line.commit in shas]


def _leave_one_out(
    repository: Repository, store: Store, chosen: list[CommitFacts], lines: list[LineAnswer]
) -> tuple[int, int]:
    """Ask again with the session hidden that was named for a line: any answer is wrong.

    Return how many there are, and for how many of them the full answer lists the session that is named now.
    """
    tip = repository.commit_id("HEAD")
    named: dict[tuple[str, str], set[str]] = {}
    for line in lines:
        if line.writer is not None:
            named.setdefault((line.writer.agent, line.writer.session), set()).add(line.commit)
    wrong = told = 0
    for (agent, session), shas in named.items():
        job = _HidingJob(repository, store, all_sources(), now())
        job.hidden = frozenset(one.id for one in store.sessions_of(agent, session))
        again = job.all_of([one for one in chosen if one.sha in shas], tip, WhyOptions())
        answered = {
            (line.commit, line.path, line.line_there): line.writer
            for file in again.files
            for line in file.lines
            if line.writer is not None
        }
        for line in lines:
            if line.writer is None or (line.writer.agent, line.writer.session) != (agent, session):
                continue
            if (other := answered.get((line.commit, line.path, line.line_there))) is not None:
                wrong += 1
                told += other.session in {one.session for one in line.alternatives}
    return wrong, told


# --- costs ---
def _costs(folder: Path) -> Iterator[Figure]:
    place = Place(folder / "large")
    story = PlantedRepository(place.folder, 1)
    session = story.agent("claude")
    story.prompt(session, "write a long file")
    story.write(session, "src/long.py", story.block(_LONG_FILE // 2))
    story.commit("Long")
    while len(story.lines("src/long.py")) < _LONG_FILE:
        story.prompt(session, "more of it")
        story.edit(session, "src/long.py")
        story.commit("More")
    _many_commits(story)
    story.save_transcripts()
    everturn(place, "sync", "--json")
    lines = sorted(_ask(story, place, "src/long.py:500").cpu for _ in range(_RUNS))
    note = f"the least of {_RUNS} runs, up to {lines[-1]:.2f}: other programs cost it cache"
    yield Figure("one line", lines[0], "CPU-s", _LINE, note=note)
    yield Figure("one file of 1,000 lines", _ask(story, place, "src/long.py").cpu, "CPU-s", _FILE)
    count = story.git("rev-list", "--count", "HEAD").strip()
    yield Figure(
        "a repository of 5,000 commits", _ask(story, place, "..HEAD").cpu, "CPU-s", _REPOSITORY, note=f"{count} commits"
    )


def _many_commits(story: PlantedRepository) -> None:
    """Add commits of others up to the number, quickly, and come back to the files of the story."""
    have = int(story.git("rev-list", "--count", "HEAD"))
    head, lines = story.head(), list[str]()
    for number in range(max(0, _COMMITS - have)):
        text = f"value_{number} = {number}\nother_{number} = {number * 7}\n"
        when = int(story.now) + number
        lines.append(
            f"commit refs/heads/main\nauthor Bot <bot@example.org> {when} +0000\ncommitter Bot <bot@example.org> {when} +0000\n"
        )
        lines.append(
            f"data 5\nBump\n{f'from {head}' + chr(10) if number == 0 else ''}M 100644 inline lib/file{number % 400}.py\ndata {len(text)}\n{text}\n"
        )
    subprocess.run(["git", "-C", str(story.root), "fast-import", "--quiet"], input="".join(lines).encode(), check=True)
    story.git("reset", "-q", "--hard", "main")


def _ask(story: PlantedRepository, place: Place, target: str) -> Cost:
    return run((*EVERTURN, "why", target, "-C", str(story.root), "--json"), place.env)


# --- the index ---
def _index(corpus: Corpus) -> Iterator[Figure]:
    costs = [taken_in(corpus) for _ in range(3)]
    with closing(apsw.Connection(str(corpus.place.db), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        (size,) = next(iter(connection.execute("SELECT SUM(pgsize) FROM dbstat WHERE name IN ('edit', 'edit_name')")))
        (rows,) = next(iter(connection.execute('SELECT COUNT(*) FROM "edit"')))
    yield Figure(
        "index / raw bytes", 100 * size / corpus.size, "%", 1, note=f"{rows:,} edits, {size / MB:.2f} MB, {corpus.name}"
    )
    shares = sorted(_index_share(corpus) for _ in range(_RUNS))
    note = f"{_RUNS} runs, each in itself: {shares[0]:.2f} to {shares[-1]:.2f} %; {min(one.cpu for one in costs):.2f} CPU-s for all, {corpus.name}"
    yield Figure("index / ingest CPU", median(shares), "%", 3, note=note)


_RUNS = 5
#: A sync that meters the functions which make the index; their share of its CPU time goes to stderr.
_METERED = """
import sys, time
import everturn.derive.turns as turns
from everturn.cli import main
from everturn.store.edits import EditStore

spent = [0.0]

def meter(place, name):
    work = getattr(place, name)
    def timed(*given):
        begun = time.process_time()
        done = work(*given)
        done = list(done) if done is not None else None
        spent[0] += time.process_time() - begun
        return done
    setattr(place, name, timed)

for place, name in ((turns, "file_edits"), (turns, "added_lines"), (EditStore, "add_edits")):
    meter(place, name)
main(["sync", "--json", "--processes", "1"])
print(100 * spent[0] / time.process_time(), file=sys.stderr)
"""


def _index_share(corpus: Corpus) -> float:
    """Return the share of the CPU time of a sync that goes into the index, in percent; both are of the same run."""
    shutil.rmtree(corpus.place.archive, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-c", _METERED], env=corpus.place.env, capture_output=True, text=True, check=True
    )
    return float(done.stderr.strip().splitlines()[-1])
