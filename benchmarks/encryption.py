"""What encryption at rest costs, against the same archive in plain text in the same run."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure, exact
from benchmarks.processes import EVERTURN, MB, Cost, run
from everturn.retrieval.search import search
from everturn.sources.contract import all_sources
from everturn.store.cipher import KeySources, use_key_sources
from everturn.store.contract import SessionFilter, Store, open_store

MOST = 1.25  # times the cost in plain text
ROUNDS = 3
_QUERIES = 40
_NOW = 1_800_000_000_000
_CANARY = re.compile(rb"[A-Za-z]{9,}")


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Ingest, search and the change from one to the other."""
    corpus = corpora.generated
    folder = corpus.place.folder / "encryption"
    key = folder / "key"
    folder.mkdir(parents=True)
    key.write_text("5e" * 32)
    key.chmod(0o600)
    try:
        yield from _ingest(corpus, folder, key)
        yield from _search(folder, key)
        yield from _conversion(corpus, folder, key)
    finally:
        use_key_sources(KeySources())  # the next section has no key


def _ingest(corpus: Corpus, folder: Path, key: Path) -> Iterator[Figure]:
    """The two take turns, so that a busy machine hits both."""
    costs: dict[str, list[Cost]] = {"plain": [], "encrypted": []}
    for _ in range(ROUNDS):
        for name, taken in costs.items():
            shutil.rmtree(folder / name, ignore_errors=True)
            taken.append(run((*EVERTURN, "sync"), _env(corpus, folder / name, key if name == "encrypted" else None)))
    plain, encrypted = (median(cost.cpu for cost in costs[name]) for name in ("plain", "encrypted"))
    note = f"{corpus.size / MB / plain:.1f} and {corpus.size / MB / encrypted:.1f} MB/CPU-s, median of {ROUNDS}"
    yield Figure("ingest, encrypted : plain", encrypted / plain, "×", MOST, note=note)


def _env(corpus: Corpus, home: Path, key: Path | None) -> dict[str, str]:
    return {**corpus.place.env, "EVERTURN_HOME": str(home)} | ({"EVERTURN_KEY": f"file:{key}"} if key else {})


def _search(folder: Path, key: Path) -> Iterator[Figure]:
    """Each query opens the archive anew, so that pages are read and decrypted and not taken from memory."""
    use_key_sources(KeySources(f"file:{key}"))
    words = _words(folder / "plain" / "archive.db")
    took: dict[str, list[float]] = {"plain": [], "encrypted": []}
    found: dict[str, list[int]] = {"plain": [], "encrypted": []}
    sources = all_sources()
    for _ in range(ROUNDS):
        for name, taken in took.items():
            begun = time.process_time()
            hits = [_hits(folder / name / "archive.db", sources, word) for word in words]
            taken.append(time.process_time() - begun)
            found[name] = hits
    plain, encrypted = median(took["plain"]), median(took["encrypted"])
    note = f"{1000 * plain / len(words):.1f} and {1000 * encrypted / len(words):.1f} ms CPU per query, {len(words)} queries"
    yield Figure("search, encrypted : plain", encrypted / plain, "×", MOST, note=note)
    wrong = [word for word, *pair in zip(words, found["plain"], found["encrypted"], strict=True) if pair[0] != pair[1]]
    yield exact("queries with other hits", wrong, f"{len(words)} queries")


def _hits(archive: Path, sources: object, word: str) -> int:
    with closing(open_store(str(archive), create=False)) as store:
        return len(search(store, sources, word, now=_NOW).items)  # type: ignore[arg-type]


def _words(archive: Path) -> list[str]:
    with closing(open_store(str(archive), create=False)) as store:
        texts = " ".join(_first_prompts(store))
    return sorted({word.lower() for word in re.findall(r"[A-Za-z]{5,}", texts)})[:_QUERIES]


def _first_prompts(store: Store) -> list[str]:
    rows, _ = store.sessions(SessionFilter(), 200)
    return [text.first_prompt for _, text in rows]


def _conversion(corpus: Corpus, folder: Path, key: Path) -> Iterator[Figure]:
    home = folder / "plain"
    before = _size(home)
    cost = run((*EVERTURN, "encrypt", "--yes", "--key", f"file:{key}"), _env(corpus, home, None))
    yield Figure("encrypt", before / MB / cost.cpu, "MB/CPU-s", note=f"{before / MB:.0f} MB, start-up included")
    again = run((*EVERTURN, "rekey", "--key", f"file:{folder / 'key-2'}"), _env(corpus, home, None))
    yield Figure("rekey", before / MB / again.cpu, "MB/CPU-s")
    yield exact(
        "words in plain text in any file after encrypt", _plain_words(corpus, home), f"{_size(home) / MB:.0f} MB"
    )


def _size(home: Path) -> int:
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def _plain_words(corpus: Corpus, home: Path) -> list[str]:
    """The long words of a transcript that are in a file of the archive: by chance there is none of this length."""
    words = set(_CANARY.findall(corpus.paths[0].read_bytes()[:2_000_000]))
    files = [path for path in home.rglob("*") if path.is_file()]
    found = {word for path in files for word in set(_CANARY.findall(path.read_bytes())) & words}
    return sorted(word.decode() for word in found)
