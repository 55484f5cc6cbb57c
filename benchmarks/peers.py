"""Other archivers beside ours, over the same files, in the same run: `python -m benchmarks.peers`.

Each is installed into an environment that is thrown away and runs in a home of its own, without a network where the
system can take it away. A peer that cannot be installed or does not work is told about and left out; nothing fails.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure, show
from benchmarks.ingest import taken_in
from benchmarks.processes import MB, Cost, Failed, run


@dataclass(frozen=True)
class Peer:
    """A program that takes in the same history. `words` is its command line; `{claude}` and `{home}` stand for folders."""

    name: str
    package: str  # for the installer: tried first
    words: tuple[str, ...]
    keeps: str  # what it does with the files, to be read beside the number
    env: Mapping[str, str] = field(default_factory=dict)
    made: tuple[str, ...] = ()  # what it leaves behind, below its home: removed before each run
    runs: int = 3


PEERS = (
    Peer(
        "agentsview",
        "agentsview==0.46.*",
        ("agentsview", "sync"),
        "messages and calls in SQLite, full text without what tools were given and gave back; no raw bytes",
        {
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "DO_NOT_TRACK": "1",
        },
        (".agentsview",),
    ),
    Peer(
        "claude-code-log",
        "claude-code-log",
        ("claude-code-log", "{claude}/projects", "--all-projects", "--output", "{home}/pages"),
        "HTML pages and a cache in SQLite; no full text",
        made=("pages", ".cache", ".claude/projects/claude-code-log-cache.db"),
        runs=1,
    ),
)


def main() -> int:
    """Print MB per CPU-second of each, and ours as a multiple of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--copies", type=int, default=2, help="how often the real corpus is repeated (default 2)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everturn-peers-") as folder:
        for figure in compare(Path(folder), options.copies):
            show(figure, options.json)
    return 0


def compare(folder: Path, copies: int) -> Iterator[Figure]:
    """Ours and theirs, one after the other, over the same files."""
    corpora = Corpora(folder)
    corpus = corpora.repeated(copies) or corpora.generated
    told = f"{corpus.name}, {corpus.size / MB:.0f} MB in {corpus.files} files"
    try:
        python = environment(folder / "peers")
    except (OSError, subprocess.CalledProcessError) as failure:
        yield Figure("peers", None, note=f"no environment can be made: {failure}")
        return
    for peer in PEERS:
        version, why = install(python, peer)
        if not version:
            yield Figure(peer.name, None, note=f"cannot be installed: {why}")
            continue
        speeds: dict[str, list[float]] = {"everturn": [], peer.name: []}
        try:
            for _ in range(peer.runs):  # in turns, so that a bad moment of the machine is shared
                speeds["everturn"].append(corpus.size / MB / taken_in(corpus, "--processes", "1", vectors=False).cpu)
                speeds[peer.name].append(corpus.size / MB / run_peer(python, peer, corpus).cpu)
        except Failed as failure:
            yield Figure(f"{peer.name} {version}", None, note=str(failure))
            continue
        theirs, ours = median(speeds[peer.name]), median(speeds["everturn"])
        yield Figure(f"{peer.name} {version}", theirs, "MB/CPU-s", note=f"{told}; {peer.keeps}")
        yield Figure(
            "everturn beside it", ours, "MB/CPU-s", note="every byte, turns and calls, full text of everything"
        )
        yield Figure(f"everturn : {peer.name}", ours / theirs, "×")


def environment(folder: Path) -> Path:
    """The Python of a new environment."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def install(python: Path, peer: Peer) -> tuple[str, str]:
    """The version that was installed, or why none was."""
    why = ""
    for wanted in (peer.package, peer.name):
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            ask = f"import importlib.metadata as m; print(m.version({peer.name!r}))"
            return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip(), ""
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return "", why


def run_peer(python: Path, peer: Peer, corpus: Corpus) -> Cost:
    """One run from nothing, in a home with the same history and nothing else."""
    home = corpus.place.folder / "home"
    for name in peer.made:
        (home / name).unlink() if (home / name).is_file() else shutil.rmtree(home / name, ignore_errors=True)
    words = [word.format(claude=corpus.place.claude, home=home) for word in peer.words]
    command = [*_without_network(), str(python.with_name(words[0])), *words[1:]]
    env = {name: value for name, value in corpus.place.env.items() if not name.startswith(("EVERTURN", "PYTHON"))}
    return run(command, {**env, **peer.env}, cwd=home)


@cache
def _without_network() -> tuple[str, ...]:
    """Words that take the network away from a command, where the system has them."""
    words = ("unshare", "--map-root-user", "--net")
    try:
        worked = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        worked = False
    return words if worked else ()


if __name__ == "__main__":
    sys.exit(main())
