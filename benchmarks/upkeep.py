"""What everturn costs when little or nothing is new."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure, exact
from benchmarks.processes import MB, PYTHON, Cost, everturn, median_cpu, run
from everturn import hook
from everturn.capture.file_reader import COMPARED
from tests.transcripts import append_turn

HELP = 0.080  # CPU seconds
NOTHING_NEW = 0.2
FEW, SOME, MANY = 10, 1_000, 10_000  # sessions
#: The beginning, and the stored pieces that hold the last bytes before the cursor: they are compared, so that an edit in place is noticed.
OLD_BYTES = 2 * COMPARED
_DRAINS = 3
_SETTLED = 8
_LONG_FILE = 80_000_000  # well above the bar
_SAME = 1.2  # counted work may differ by this between a small and a large archive


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Help, a sync with nothing new, and a sync after one turn was added to one of few and of many sessions."""
    home = corpora.sessions(FEW)
    everturn(home.place, "--help")  # once, so that compiled files are there
    cpu = median_cpu([everturn(home.place, "--help") for _ in range(5)])
    yield Figure("everturn --help", cpu * 1000, "ms CPU", HELP * 1000)
    some = corpora.sessions(SOME)
    for _ in range(_SETTLED):  # with the extra `meaning`, each sync makes some of the vectors that are missing
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
        first = everturn(corpus.place, "sync")
        if n == MANY:
            yield Figure(
                f"ingest, {n:,} short sessions", corpus.size / MB / first.cpu, "MB/CPU-s", note=_per_file(corpus, first)
            )
        counts[n] = _counted(corpora, corpus)
        times[n] = median_cpu([_timed(corpora, corpus) for _ in range(3)])
        yield Figure(f"sync after one turn, {n:,} sessions", times[n], "CPU-s", note=_told(counts[n]))
    yield _drain(corpus, times[MANY])
    yield Figure(
        f"its CPU time, {MANY:,} : {FEW}",
        times[MANY] / times[FEW],
        "×",
        note="start-up and a stat of every file included",
    )
    for what in ("bytes_read", "bytes_asked_for", "rows"):
        per_byte = {n: counts[n][what] / counts[n]["new_bytes"] for n in (FEW, MANY)}
        ratio = per_byte[MANY] / per_byte[FEW]
        yield Figure(f"its work per new byte, {what.replace('_', ' ')}, {MANY:,} : {FEW}", ratio, "×", _SAME)
    yield from _long_file(corpora)


def _long_file(corpora: Corpora) -> Iterator[Figure]:
    """What was taken in before must not be read again, however much it is, but for the last bytes before the cursor."""
    corpus = corpora.one_long_file(_LONG_FILE)
    everturn(corpus.place, "sync")
    counts = _counted(corpora, corpus)
    old = counts["bytes_asked_for"] - counts["new_bytes"]
    yield Figure("old bytes read after one turn, file of 80 MB", old, "bytes", OLD_BYTES, note=_told(counts))


def _drain(corpus: Corpus, whole: float) -> Figure:
    """The drain that a hook starts at the end of a turn looks at the transcript it was told of, not at every file."""
    costs = []
    for number, path in enumerate(corpus.paths[: _DRAINS + 1]):
        append_turn(path, 9_000 + number)
        event = {"session_id": path.stem, "transcript_path": str(path), "hook_event_name": "Stop"}
        line = hook.event_line(json.dumps(event).encode(), True, number + 1, 1)
        hook.append(str(corpus.place.archive / "state" / "spool"), line)
        costs.append(everturn(corpus.place, "drain"))
    # The first one looks at everything, because no drain ever has.
    ratio = median_cpu(costs[1:]) / whole
    return Figure(f"drain after one turn beside a sync, {MANY:,} sessions", ratio, "×", 0.8)


def _timed(corpora: Corpora, corpus: Corpus) -> Cost:
    corpora.add_turn(corpus)
    return everturn(corpus.place, "sync")


def _counted(corpora: Corpora, corpus: Corpus) -> dict[str, int]:
    new = corpora.add_turn(corpus)
    counted: dict[str, int] = run((*PYTHON, "-m", "benchmarks.counting"), corpus.place.env).json
    return {"new_bytes": new, **counted}


def _told(counts: dict[str, int]) -> str:
    return (
        f"{counts['new_bytes']:,} new bytes: {counts['bytes_asked_for']:,} bytes read, "
        f"{counts['rows']} rows and {counts['log_pages']} pages written"
    )


def _per_file(corpus: Corpus, cost: Cost) -> str:
    return f"{corpus.size / corpus.files / 1000:.1f} kB each, {cost.cpu / corpus.files * 1000:.2f} CPU-ms per file"
