"""Peak memory of a sync: bounded by the longest line, whatever else there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure
from benchmarks.ingest import taken_in
from benchmarks.processes import MB

FIXED = 150.0  # MB, and for each byte of the longest line
PER_LINE = 4


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Ordinary history, one line of 100 MB, and on request five gigabytes."""
    for corpus in corpora.usual():
        if not corpus.costs:
            corpus.costs.append(taken_in(corpus))
        yield _peak(corpus)
    yield from _one_long_line(corpora)
    if corpora.big:
        corpus = corpora.five_gigabytes()
        cost = taken_in(corpus)
        corpus.costs.append(cost)
        yield _peak(corpus)
        yield Figure(f"ingest, {corpus.name}", corpus.size / MB / cost.cpu, "MB/CPU-s", 25.0, at_least=True)


def _one_long_line(corpora: Corpora) -> Iterator[Figure]:
    corpus = corpora.one_long_line()
    cost = taken_in(corpus)
    corpus.costs.append(cost)
    yield _peak(corpus)
    report = cost.json["report"]
    kept = report["bytes_stored"] == corpus.size and not report["failed"]
    note = f"{report['messages']} messages, {report['problems']} told to be indexed in part, {cost.cpu:.1f} CPU-s"
    yield Figure("bytes lost of it", 0 if kept else corpus.size - report["bytes_stored"], "bytes", 0, note=note)


def _peak(corpus: Corpus) -> Figure:
    line = longest_line(corpus.place.claude)
    peak = max(cost.peak for cost in corpus.costs) / MB
    note = f"150 + 4 × the longest line, {line / MB:.2f} MB"
    return Figure(f"peak memory, {corpus.name}", peak, "MB", FIXED + PER_LINE * line / MB, note=note)


def longest_line(folder: Path) -> int:
    """Of all transcripts below a folder, read without holding a line."""
    longest = 0
    for path in folder.rglob("*.jsonl"):
        length = 0
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                first, *others = piece.split(b"\n")
                length += len(first)
                if others:
                    longest = max(longest, length, *map(len, others))
                    length = len(others[-1])
        longest = max(longest, length)
    return longest
