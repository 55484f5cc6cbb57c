"""Sessions as pages: how fast `export --as html` writes them and in how much memory.

`python -m benchmarks.page` also runs a program that is made for it over the same files, in an environment that is thrown
away.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure, show
from benchmarks.ingest import taken_in
from benchmarks.peers import PEERS, environment, install, run_peer
from benchmarks.processes import MB, Cost, Failed, Place, everturn

SPEED = 3.0  # MB of transcript per CPU-second, at least
MEMORY = 150  # MB
_PEER = "claude-code-log"


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Every session in one file, then one long session, as processes of their own, start-up included."""
    corpus = corpora.real or corpora.generated
    cost, size = _written(corpus)
    note = f"{corpus.size / MB:.0f} MB of transcripts, {size / MB:.0f} MB of HTML, masked, {cost.cpu:.1f} CPU-s"
    yield Figure(f"export --as html, {corpus.name}", corpus.size / MB / cost.cpu, "MB/CPU-s", SPEED, True, note)
    long = corpora.one_long_file()
    cost, size = _written(long)
    note = (
        f"one session of {long.size / MB:.0f} MB, {size / MB:.0f} MB of HTML, {long.size / MB / cost.cpu:.1f} MB/CPU-s"
    )
    yield Figure("export --as html, peak memory", cost.peak / MB, "MB", MEMORY, note=note)


def main() -> int:
    """Print ours, then theirs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everturn-page-") as folder:
        corpora = Corpora(Path(folder))
        for figure in (*figures(corpora), _theirs(Path(folder), corpora.real or corpora.generated)):
            show(figure, options.json)
    return 0


def _written(corpus: Corpus) -> tuple[Cost, int]:
    """What it costs to write every session of a history into one file, and how large that is."""
    taken_in(corpus)
    names = _sessions(corpus.place)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "page.html")
        cost = everturn(corpus.place, "export", *names, "--as", "html", "--out", str(target))
        return cost, target.stat().st_size


def _sessions(place: Place) -> list[str]:
    names, after = [], ""
    while True:
        page = everturn(place, "sessions", "--limit", "100", "--json", *(("--after", after) if after else ())).json
        names += [one["id"] for one in page["items"]]
        after = page["next"]
        if not after:
            return names


def _theirs(folder: Path, corpus: Corpus) -> Figure:
    peer = next(one for one in PEERS if one.name == _PEER)
    try:
        python = environment(folder / "peers")
        version, why = install(python, peer)
        if not version:
            return Figure(peer.name, None, note=f"cannot be installed: {why}")
        cost = run_peer(python, peer, corpus)
    except (OSError, subprocess.CalledProcessError, Failed) as failure:
        return Figure(peer.name, None, note=str(failure))
    return Figure(
        f"{peer.name} {version}", corpus.size / MB / cost.cpu, "MB/CPU-s", note=f"{cost.cpu:.1f} CPU-s; {peer.keeps}"
    )


if __name__ == "__main__":
    sys.exit(main())
