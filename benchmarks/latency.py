"""What a search costs in process: at the size at hand and, with --big, at a million messages.

Queries of every kind, from one rare word to the commonest words of all. CPU time of ranking alone: reading the texts that
are shown belongs to a page. `overlap@10` compares the first ten with those of a ranking that looked at every message that
matches. The million messages are made up: words by Zipf's law, each message about few things, so that its words come again.
Where a PostgreSQL can be started, fewer of them are asked there too, by the clock: most of the work is the server's.
"""

from __future__ import annotations

import gc
import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import accumulate, islice
from operator import add
from pathlib import Path
from statistics import median

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, say
from benchmarks.ingest import taken_in
from benchmarks.processes import MB
from everturn.model.archive import IndexRow, MessageRow, Session, SessionGrowth, SourceFile, Version
from everturn.model.vocabulary import FIELDS
from everturn.retrieval import ranking
from everturn.retrieval.attempts import SearchRequest
from everturn.retrieval.meaning import MeaningScope, MeaningSearch, generation
from everturn.retrieval.query import build_index_query, parse_query
from everturn.retrieval.question import understand_query
from everturn.retrieval.scope import SearchFilters
from everturn.sessions.lookup import iterate_sessions
from everturn.sources.contract import all_sources
from everturn.store.contract import IndexQuery, SessionFilter, Store, open_store
from everturn.store.vector_file import VectorFile, numpy_or_none, pack_vectors

USUAL = 20.0  # ms of CPU for queries with up to FEW hits
ANY = 50.0  # for any other
FEW = 5000
MEMORY = 200  # MB of this process, at most
ROOM = 0.35  # of the text, at most

NOWHERE = "qqxzjjkw"
#: Of the archive at hand.
WORDS = (
    *("the", "error", "file", "test failed", "json parser", '"no such file"', "auth*", "parse_json_line", "zzyzxq"),
    *("why does the build fail on windows", "error in the test of the file", "fix the login bug from last week"),
    *("git commit message", "README.md", "TypeError: cannot read properties of undefined", "docker compose up -d"),
)
_MESSAGES = 1_000_000
_ON_A_SERVER = 20_000
_PER_SESSION = 120
_VOCABULARY = 400_000
_STARTED = 1_700_000_000_000
_NOW = 1_790_000_000_000
_SEED = 7
#: Share of messages and sentences in one, by field; the shape of real transcripts.
_SHAPE = (
    ("prompt", 0.06, 3),
    ("answer", 0.24, 6),
    ("thinking", 0.05, 6),
    ("tool_input", 0.3, 4),
    ("tool_output", 0.35, 24),
)


#: Role, origin and kind of a message, by field.
_ROLES = {
    "prompt": ("user", "human", "text"),
    "answer": ("assistant", "model", "text"),
    "thinking": ("assistant", "model", "thinking"),
    "tool_input": ("assistant", "model", "tool_call"),
    "tool_output": ("tool", "tool", "tool_result"),
}
#: CPU milliseconds of a long natural question at a million messages: the median, and 95 of 100.
LONG_MEDIAN, LONG_P95 = 40.0, 80.0
MEANING_MEDIAN, MEANING_P95 = 60.0, 110.0
_LONG_QUESTIONS = 60


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Over the largest archive of this run; with --big also over a million messages."""
    corpus = corpora.largest()
    if not corpus.costs:
        corpus.costs.append(taken_in(corpus))
    with closing(open_store(str(corpus.place.db))) as store:
        yield from asked(store, f"{corpus.size / MB:.0f} MB of history", WORDS)
    yield from _on_a_server()
    if not corpora.big:
        yield Figure("search at a million messages", None, note="made and asked with --big")
        return
    path = corpora.folder / "million.db"
    size, words = million(path)
    with closing(open_store(str(path))) as store:
        index = store.sizes()["index"]
        yield Figure("index / text, a million messages", index / size, "", ROOM, note=f"{size / MB:,.0f} MB of text")
        yield from asked(store, "a million messages", queries(words))
        yield from _asked_at_length(store, words)
        yield from _asked_by_meaning(store, words, corpora.folder / "million.vectors.db")


def _asked_at_length(store: Store, words: Sequence[str]) -> Iterator[Figure]:
    """Long natural questions, understood as a search does: who spoke, when, what kind of answer."""
    took = []
    for text in long_questions(words):
        query, filters = parse_query(text), SearchFilters()
        begun = time.process_time()
        understood = understand_query(query, filters, _NOW)
        SearchRequest(store, all_sources(), query, filters, _NOW, None, understood).rank()
        took.append((time.process_time() - begun) * 1000)
    took.sort()
    note = f"{len(took)} questions of 12 to 24 words, half of them about what someone said"
    yield Figure("long questions, a million messages, median", median(took), "CPU-ms", LONG_MEDIAN, note=note)
    yield Figure("long questions, a million messages, p95", took[len(took) * 95 // 100], "CPU-ms", LONG_P95, note=note)


class _MadeUpModel:
    """Vectors at random: what a search costs does not depend on what they mean."""

    name, dimensions, where, sent = "made-up", 256, "", 0

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [_random_vector(random.Random(text)) for text in texts]


def _random_vector(chance: random.Random) -> list[float]:
    return [chance.gauss(0, 1) for _ in range(_MadeUpModel.dimensions)]


def _asked_by_meaning(store: Store, words: Sequence[str], path: Path) -> Iterator[Figure]:
    """The same with vectors of everything that was said, in a file as everturn keeps it."""
    if numpy_or_none() is None:
        yield Figure("long questions with meaning, a million messages", None, note="needs numpy")
        return
    model = _MadeUpModel()
    with closing(VectorFile(path)) as vectors:
        say("making vectors, some minutes…")
        made = _make_vectors(store, model, vectors)
        meaning = MeaningSearch(model, vectors, str)
        everywhere = MeaningScope(None, lambda session, seq: True)
        took = []
        for text in long_questions(words):
            query, filters = parse_query(text), SearchFilters()
            begun = time.process_time()
            understood = understand_query(query, filters, _NOW)
            found = SearchRequest(store, all_sources(), query, filters, _NOW, None, understood).rank()
            meaning.mix_hits(store, found.hits, text, everywhere)
            took.append((time.process_time() - begun) * 1000)
    took = sorted(took[1:])  # the first question reads the sketches, which then stay in memory
    note = f"{made:,} vectors of {model.dimensions} numbers; {len(took)} questions"
    yield Figure("… with meaning, median", median(took), "CPU-ms", MEANING_MEDIAN, note=note)
    yield Figure("… with meaning, p95", took[len(took) * 95 // 100], "CPU-ms", MEANING_P95, note=note)


def _make_vectors(store: Store, model: _MadeUpModel, vectors: VectorFile) -> int:
    """Give a vector to every text that was said; how many there are."""
    chance, made = random.Random(_SEED), 0
    pool = [_random_vector(chance) for _ in range(2000)]
    for session in iterate_sessions(store, SessionFilter()):
        seqs = [row.seq for row in store.messages(session.id) if row.kind == "text"]
        packed = pack_vectors([[*map(add, chance.choice(pool), chance.choice(pool))] for _ in seqs])
        current = generation(store.version(session.version), session, model)
        vectors.put(session.id, current, zip(seqs, packed, strict=True), len(seqs))
        made += len(seqs)
    return made


def asked(store: Store, where: str, texts: Sequence[str]) -> Iterator[Figure]:
    """Every query, its cost and what bounding the work changed; then the worst of each sort."""
    asking = [(text, build_index_query(parse_query(text))) for text in texts]
    took = {text: _took(store, query) for text, query in asking}
    yield Figure("memory after searching", _memory(), "MB", MEMORY, note=f"most that this process took, {where}")
    worst = {USUAL: 0.0, ANY: 0.0}
    for text, query in asking:
        everything = _everything(store, query)
        cost, first = took[text]
        bar = USUAL if len(everything) <= FEW else ANY
        worst[bar] = max(worst[bar], cost)
        note = f"{len(everything):,} hits, overlap@10 {_overlap(first, everything):.1f}; {where}"
        yield Figure(f"rank {text[:48]}", cost, "CPU-ms", bar, note=note)
    yield Figure(f"slowest with up to {FEW:,} hits", worst[USUAL], "CPU-ms", USUAL, note=where)
    yield Figure("slowest of any query", max(worst.values()), "CPU-ms", ANY, note=where)


def _on_a_server() -> Iterator[Figure]:
    """No bars: the figure is there to see that no kind of query takes seconds."""
    where = f"PostgreSQL, {_ON_A_SERVER:,} messages"
    try:
        from tests.postgres_server import running

        with running() as server:
            url = f"{server}{'&' if '?' in server else '?'}schema=latency"
            _, words = million(url, _ON_A_SERVER)
            with closing(open_store(url)) as store:
                took = {text: _by_the_clock(store, build_index_query(parse_query(text))) for text in queries(words)}
    except (ImportError, RuntimeError) as failure:
        yield Figure(f"search on {where}", None, note=str(failure))
        return
    slowest = max(took, key=lambda text: took[text])
    yield Figure(f"rank, middle of {len(took)} queries, {where}", median(took.values()), "ms")
    yield Figure(f"rank, slowest of them, {where}", took[slowest], "ms", note=slowest[:48])
    yield Figure(f"rank a word that stands nowhere, {where}", took[NOWHERE], "ms", note="its neighbours are tried too")


def _by_the_clock(store: Store, query: IndexQuery) -> float:
    """Milliseconds, the middle of three."""
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        ranking.rank_candidates(store, query, _NOW)
        took.append((time.perf_counter() - begun) * 1000)
    return median(took)


def million(archive: Path | str, messages: int = _MESSAGES) -> tuple[int, list[str]]:
    """Make an archive of made-up messages; bytes of its text, and its words from the commonest to the rarest."""
    say(f"making {messages:,} messages, some minutes…")
    chance = random.Random(_SEED)
    words = [_word(number) for number in range(_VOCABULARY)]
    weights = list(accumulate(1 / (number + 4) for number in range(_VOCABULARY)))
    sentences = [" ".join(chance.choices(words, cum_weights=weights, k=10)) for _ in range(150_000)]
    size = 0
    with closing(open_store(str(archive))) as store:
        texts = _texts(chance, sentences)
        for number in range(0, messages, _PER_SESSION):
            batch = list(islice(texts, min(_PER_SESSION, messages - number)))
            size += sum(len(text) for _, text in batch)
            _write_session(store, number // _PER_SESSION, batch)
    return size, words


def queries(words: Sequence[str]) -> list[str]:
    """From the commonest words to the rarest, alone and together."""
    at = [0, 1, 5, 20, 100, 400, 600, 800, 1000, 1200, 1500, 5000, 20_000, 100_000]
    alone = [words[number] for number in at]
    together = [
        (0, 1, 5),
        (20, 30, 45),
        (100, 150),
        (0, 400, 1500),
        (400, 500, 600, 700, 800),
        (1500, 1600),
        (3000, 4000, 5000, 6000),
        (5000, 20),
        (20_000, 25_000, 0, 5),
    ]
    joined = [" ".join(words[number] for number in some) for some in together]
    quoted = [f'"{words[0]} {words[5]}"', f'"{words[20]} {words[30]}"', f"{words[400][:4]}*", f"{words[3]}_{words[9]}"]
    return [*alone, *joined, *quoted, NOWHERE]


def long_questions(words: Sequence[str], count: int = _LONG_QUESTIONS) -> list[str]:
    """Questions as people ask them: words from common to rare around a few frames."""
    chance = random.Random(_SEED)
    weights = list(accumulate(1 / (number + 4) for number in range(20_000)))
    frames = ("what did you say about {} in the {}", "why is the {} and where was the {}",
              "what did I say about {} and the {}", "how do we make sure that {} before the {}")  # fmt: skip

    def word() -> str:
        number = chance.choices(range(20_000), cum_weights=weights)[0]
        return words[number if number >= 100 else chance.randint(100, 3000)]

    return [
        frames[number % len(frames)].format(
            " ".join(word() for _ in range(chance.randint(7, 15))), words[chance.randint(1000, 20_000)]
        )
        for number in range(count)
    ]


def _took(store: Store, query: IndexQuery) -> tuple[float, list[tuple[int, int]]]:
    """CPU milliseconds, the middle of five, and the first ten."""
    took, first = [], []
    ranking.rank_candidates(store, query)  # what is read from disk first is not what is measured
    for _ in range(5):
        gc.collect()
        begun = time.process_time()
        hits = ranking.rank_candidates(store, query, _NOW).hits
        took.append((time.process_time() - begun) * 1000)
        first = [(hit.session, hit.seq) for hit in hits[:10]]
    return median(took), first


def _everything(store: Store, query: IndexQuery) -> list[tuple[int, int]]:
    """The order when every message that matches is looked at."""
    found = ranking.rank_hits(store, store.candidates(query), query, _NOW, ranking.WEIGHTS, sys.maxsize)
    return [(hit.session, hit.seq) for hit in found]


def _overlap(first: Sequence[tuple[int, int]], everything: Sequence[tuple[int, int]]) -> float:
    wanted = everything[:10]
    return len(set(first) & set(wanted)) / len(wanted) if wanted else 1.0


def _memory() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MB * (1 if sys.platform == "darwin" else 1024)


def _word(number: int) -> str:
    """Syllables that no stemmer takes for an ending, all different: the commoner, the shorter."""
    made, rest = "", number + 30
    while rest:
        made += "bdfgkmnprtvz"[rest % 12] + "aou"[rest // 12 % 3]
        rest //= 36
    return made + "k"


def _texts(chance: random.Random, sentences: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Field and text of one message after the other, without end."""
    fields = [name for name, _, _ in _SHAPE]
    shares = [share for _, share, _ in _SHAPE]
    lengths = {name: length for name, _, length in _SHAPE}
    while True:
        field = chance.choices(fields, shares)[0]
        length = chance.randint(1, 2 * lengths[field])
        about = chance.choices(sentences, k=max(1, length // 3))  # what a message is about, it says several times
        yield field, "\n".join(chance.choice(about) for _ in range(length))


def _write_session(store: Store, number: int, batch: Sequence[tuple[str, str]]) -> None:
    at = _STARTED + number * 3_600_000
    rows = [MessageRow(0, seq, seq // 6, -1, *_ROLES[field], at + seq * 1000) for seq, (field, _) in enumerate(batch)]
    index = [
        IndexRow(seq, tuple(text if name == field else None for name in FIELDS))
        for seq, (field, text) in enumerate(batch)
    ]
    with store.write():
        source = store.add_file(SourceFile(format="made-up", machine="box", path=f"/{number}"))
        version = store.add_version(Version(source=source))
        session = store.open_session(Session(agent="made-up", native_id=f"s{number}", version=version))
        store.append(
            session.id, SessionGrowth(rows, [], [], [], [], [], index, [], started=at, ended=at + len(batch) * 1000)
        )
