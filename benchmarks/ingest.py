"""How fast history is taken in, with everything on (bytes, turns, full text), and how much room it takes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure
from benchmarks.processes import MB, Cost, everturn, median_cpu

SPEED = 25.0  # MB per CPU-second, at least
ROOM = 0.50  # of the source, at most


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Speed of `everturn sync` as a process of its own, start-up included; size of the archive it leaves."""
    yield from _speed(corpora.generated, runs=3)
    yield from _speed(corpora.talkative, runs=3, bar=None)
    if corpora.real is None or corpora.many is None:
        yield Figure("ingest, real corpus", None, note=corpora.why_not_real)
        return
    yield from _speed(corpora.real, runs=3)
    yield from _room(corpora.real)
    yield from _speed(corpora.many, runs=1)
    yield from _room(corpora.many)


def taken_in(corpus: Corpus) -> Cost:
    """Sync into a new archive."""
    shutil.rmtree(corpus.place.archive, ignore_errors=True)
    return everturn(corpus.place, "sync", "--json")


def _speed(corpus: Corpus, runs: int, bar: float | None = SPEED) -> Iterator[Figure]:
    costs = [taken_in(corpus) for _ in range(runs)]
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
