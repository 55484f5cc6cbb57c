"""How long an answer takes at the size at hand. No bars yet: ranking comes later."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from statistics import median

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure
from benchmarks.ingest import taken_in
from benchmarks.processes import MB, everturn, median_cpu
from everturn.export.json_document import as_json
from everturn.export.markdown import as_markdown
from everturn.export.original import raw_bytes
from everturn.model.archive import Session
from everturn.retrieval.search import search
from everturn.secrets.redaction import redact_bytes, redact_text
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store, open_store

#: From one that stands almost everywhere to one that stands nowhere.
WORDS = ("the", "error", "test failed", "json parser", '"no such file"', "auth*", "parse_json_line", "zzyzxq")
_LARGEST = 10  # sessions that are written out


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Search, show and export over the largest archive of this run."""
    corpus = corpora.largest()
    if not corpus.costs:
        corpus.costs.append(taken_in(corpus))
    size = f"{corpus.size / MB:.0f} MB of history"
    with closing(open_store(str(corpus.place.db))) as store:
        slowest = []
        for asked in WORDS:
            took, hits = _searched(store, asked)
            slowest.append(took)
            yield Figure(f"search {asked}", took, "ms", note=f"first {hits} hits, {size}")
        yield Figure("search, middle of these", median(slowest), "ms")
        yield from _written_out(store)
        longest = max(_sessions(store), key=lambda row: row.n_messages)
    for words in (
        ("search", "error"),
        ("sessions",),
        ("show", longest.native_id),
        ("show", longest.native_id, "--tools"),
    ):
        cost = median_cpu([everturn(corpus.place, *words, ok=(0, 3)) for _ in range(3)])
        shown = " ".join("SESSION" if word == longest.native_id else word for word in words)
        note = (
            f"as a process; the longest session, {longest.n_messages:,} messages" if "show" in words else "as a process"
        )
        yield Figure(f"everturn {shown}", cost, "CPU-s", note=note)


def _searched(store: Store, words: str) -> tuple[float, int]:
    """Milliseconds by the clock, the middle of five, and how many hits came."""
    took, hits = [], 0
    for _ in range(5):
        begun = time.perf_counter()
        hits = len(search(store, all_sources(), words).items)
        took.append((time.perf_counter() - begun) * 1000)
    return median(took), hits


def _sessions(store: Store) -> list[Session]:
    rows, after = [], ""
    while True:
        page, after = store.sessions(SessionFilter(), 500, after)
        rows += [session for session, _ in page]
        if not after:
            return rows


def _written_out(store: Store) -> Iterator[Figure]:
    """MB of source per CPU-second: the sessions with most messages, in every form."""
    sources = all_sources()
    chosen = sorted(_sessions(store), key=lambda row: row.n_messages)[-_LARGEST:]
    size = sum(store.version(row.version).size for row in chosen) / MB
    forms: dict[str, Iterable[Iterable[object]]] = {
        "raw": (raw_bytes(store, row.version) for row in chosen),
        "json": (as_json(store, sources, row) for row in chosen),
        "json, secrets masked": (as_json(store, sources, row, redact_bytes) for row in chosen),
        "markdown, secrets masked": (as_markdown(store, sources, row, redact_text) for row in chosen),
    }
    for form, documents in forms.items():
        begun = time.process_time()
        for pieces in documents:
            for _ in pieces:
                pass
        yield Figure(f"export as {form}", size / (time.process_time() - begun), "MB/CPU-s", note=f"{size:.0f} MB")
