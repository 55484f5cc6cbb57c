"""What everturn costs when little or nothing is new."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure, exact
from benchmarks.processes import PYTHON, everturn, median_cpu, run

HELP = 0.080  # CPU seconds
NOTHING_NEW = 0.2
FEW, SOME, MANY = 10, 1_000, 10_000  # sessions
_SAME = 1.2  # counted work may differ by this between a small and a large archive


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Help, a sync with nothing new, and a sync after one turn was added to one of few and of many sessions."""
    home = corpora.sessions(FEW)
    everturn(home.place, "--help")  # once, so that compiled files are there
    cpu = median_cpu([everturn(home.place, "--help") for _ in range(5)])
    yield Figure("everturn --help", cpu * 1000, "ms CPU", HELP * 1000)
    some = corpora.sessions(SOME)
    everturn(some.place, "sync")
    costs = [everturn(some.place, "sync", "--json") for _ in range(3)]
    yield exact("files read again though nothing changed", _read_again(costs[-1].json["report"]), f"{SOME:,} files")
    yield Figure(f"sync of {SOME:,} files, nothing new", median_cpu(costs), "CPU-s", NOTHING_NEW)
    yield from _one_turn(corpora)


def _read_again(report: dict[str, int]) -> list[str]:
    return [f"{report[key]} {key}" for key in ("new", "grown", "rewritten", "bytes_read") if report[key]]


def _one_turn(corpora: Corpora) -> Iterator[Figure]:
    times: dict[int, float] = {}
    counts: dict[int, dict[str, int]] = {}
    for n in (FEW, MANY):
        corpus = corpora.sessions(n)
        everturn(corpus.place, "sync")
        new = corpora.add_turn(corpus)
        counts[n] = {"new_bytes": new, **_counted(corpus)}
        times[n] = median_cpu([_timed(corpora, corpus) for _ in range(3)])
        yield Figure(f"sync after one turn, {n:,} sessions", times[n], "CPU-s", note=_told(counts[n]))
    yield Figure(f"its CPU time, {MANY:,} : {FEW}", times[MANY] / times[FEW], "×", note="start-up and one stat per file included")
    for what in ("bytes_read", "bytes_asked_for", "rows", "log_pages"):
        per_byte = {n: counts[n][what] / counts[n]["new_bytes"] for n in (FEW, MANY)}
        ratio = per_byte[MANY] / per_byte[FEW]
        yield Figure(f"its work per new byte, {what.replace('_', ' ')}, {MANY:,} : {FEW}", ratio, "×", _SAME)


def _timed(corpora: Corpora, corpus: Corpus):  # type: ignore[no-untyped-def]
    corpora.add_turn(corpus)
    return everturn(corpus.place, "sync")


def _counted(corpus: Corpus) -> dict[str, int]:
    counted: dict[str, int] = run((*PYTHON, "-m", "benchmarks.counting"), corpus.place.env).json
    return counted


def _told(counts: dict[str, int]) -> str:
    return (
        f"{counts['new_bytes']:,} new bytes: {counts['bytes_asked_for']:,} bytes read, "
        f"{counts['rows']} rows and {counts['log_pages']} pages written"
    )
