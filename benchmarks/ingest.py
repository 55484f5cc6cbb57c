"""How fast history is taken in, with everything on (bytes, turns, full text), and how much room it takes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from statistics import median

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure
from benchmarks.processes import MB, Cost, everturn, median_cpu

SPEED = 25.0  # MB per CPU-second, at least
ROOM = 0.50  # of the source, at most
TOGETHER = 0.6  # time by the clock with two processes, of that with one, at most
EXTRA = 1.1  # CPU time with two processes, of that with one, at most
_PAIRS = 3


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Speed of `everturn sync` in one process, start-up included, without vectors; size of the archive; two processes beside one."""
    yield from _speed(corpora.generated, runs=3)
    yield from _speed(corpora.talkative, runs=3, bar=None)
    if corpora.real is None or corpora.many is None:
        yield Figure("ingest, real corpus", None, note=corpora.why_not_real)
        return
    yield from _speed(corpora.real, runs=3)
    yield from _room(corpora.real)
    yield from _speed(corpora.many, runs=1)
    yield from _together(corpora.many)
    yield from _room(corpora.many)


def taken_in(corpus: Corpus, *options: str, vectors: bool = True) -> Cost:
    """Sync into a new archive. Without `vectors`, as if the extra `meaning` were not installed."""
    shutil.rmtree(corpus.place.archive, ignore_errors=True)
    if not vectors:
        corpus.place.archive.mkdir(parents=True)
        (corpus.place.archive / "config.toml").write_text("[meaning]\nenabled = false\n")
    return everturn(corpus.place, "sync", "--json", *options)


def _speed(corpus: Corpus, runs: int, bar: float | None = SPEED) -> Iterator[Figure]:
    costs = [taken_in(corpus, "--processes", "1", vectors=False) for _ in range(runs)]
    corpus.costs.extend(costs)
    cpu = median_cpu(costs)
    note = (
        f"{corpus.size / MB:.0f} MB in {corpus.files:,} files, {corpus.bytes_per_line:,.0f} bytes a line, "
        f"{cpu:.2f} CPU-s, {min(c.wall for c in costs):.1f} s by the clock"
    )
    yield Figure(f"ingest, {corpus.name}", corpus.size / MB / cpu, "MB/CPU-s", bar, at_least=True, note=note)
    missing = corpus.files - costs[-1].json["report"]["new"]
    if missing:
        yield Figure(f"files not taken in, {corpus.name}", missing, "files", 0)


def _together(corpus: Corpus) -> Iterator[Figure]:
    """Two processes beside one, in turns, so that both have the machine's good and bad moments."""
    if (os.cpu_count() or 1) < 2:
        yield Figure("two processes beside one", None, note="there is only one core")
        return
    alone, together = [], []
    for _ in range(_PAIRS):
        alone.append(taken_in(corpus, "--processes", "1", vectors=False))
        together.append(taken_in(corpus, "--processes", "2", vectors=False))
    walls = [median(cost.wall for cost in costs) for costs in (alone, together)]
    note = f"{walls[1]:.1f} and {walls[0]:.1f} s, middle of {_PAIRS}; at best {min(c.wall for c in together):.1f} and {min(c.wall for c in alone):.1f} s"
    yield Figure(f"time by the clock, two processes / one, {corpus.name}", walls[1] / walls[0], "", TOGETHER, note=note)
    cpu = median_cpu(together), median_cpu(alone)
    note = f"{cpu[0]:.1f} and {cpu[1]:.1f} CPU-s"
    yield Figure(f"CPU time, two processes / one, {corpus.name}", cpu[0] / cpu[1], "", EXTRA, note=note)


def _room(corpus: Corpus) -> Iterator[Figure]:
    from everturn.store.contract import open_store

    store = open_store(str(corpus.place.db), create=False)
    sizes = store.sizes()
    store.close()
    on_disk = sum(path.stat().st_size for path in corpus.place.archive.rglob("*") if path.is_file())
    parts = ", ".join(f"{name} {sizes[name] / corpus.size:.3f}" for name in ("raw", "index", "rest"))
    yield Figure(
        f"archive / source, {corpus.name}", on_disk / corpus.size, "", ROOM, note=f"{parts}; {on_disk / MB:.0f} MB"
    )
