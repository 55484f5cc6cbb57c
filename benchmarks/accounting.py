"""Nothing is lost: every line accounted for, every byte given back, every row made again, and what is forgotten gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks import recount
from benchmarks.archives import derived_rows, original, places_of
from benchmarks.corpora import CANARY, Corpora, Corpus
from benchmarks.figures import Figure, exact
from benchmarks.processes import everturn
from everturn.model.archive import SourceFile, Version
from everturn.store.contract import Store, open_store
from tests.transcripts import append_turn

_ASKED = 5  # sessions exported with the real command as well


def figures(corpora: Corpora) -> Iterator[Figure]:
    """The same promises on every corpus there is. The files are copies: they are damaged on the way."""
    yield from recount.figures(corpora)
    for corpus in corpora.copies():
        before = _contents(corpus)
        everturn(corpus.place, "sync")
        with closing(open_store(str(corpus.place.db))) as store:
            yield _accounted(store, corpus, before)
            yield exact(
                f"files given back differently, {corpus.name}", _changed(store, before), f"{len(before):,} files"
            )
            yield exact(
                f"`export --as raw` differs, {corpus.name}", _exported(store, corpus, before), f"{_ASKED} asked for"
            )
        yield from _after_damage(corpus, before)
        yield _made_again(corpus)
        yield from _forgotten(corpora, corpus)
    if corpora.real is None:
        yield Figure("accounting, real corpus", None, note=corpora.why_not_real)


def _contents(corpus: Corpus) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(corpus.place.claude.rglob("*")) if path.is_file()}


def _accounted(store: Store, corpus: Corpus, before: dict[str, bytes]) -> Figure:
    """Lines are counted here without any code of ours."""
    wrong, n = [], {"message": 0, "known": 0, "unknown": 0, "problem": 0, "lines": 0, "glued": 0}
    rows = {file.path: version for file, version in store.files()}
    for path, data in before.items():
        version = rows.get(path)
        if version is None:
            wrong.append(f"{path} was not taken in")
            continue
        census = store.census(version.id)
        for row in census:
            n[row.disposition] += row.n
        n["lines"] += version.lines
        n["glued"] += version.glued
        unfinished = _unfinished(store, version, data)
        n["problem"] += unfinished
        n["lines"] += unfinished
        if sum(row.n for row in census) != version.lines + version.glued:
            wrong.append(
                f"{path}: {version.lines} lines + {version.glued} glued, {sum(row.n for row in census)} records"
            )
        if path.endswith(".jsonl") and version.lines + unfinished != _lines(data):
            wrong.append(f"{path}: {_lines(data)} lines, {version.lines + unfinished} were seen")
    told = f"{n['message']:,} messages + {n['known']:,} known + {n['unknown']:,} unknown + {n['problem']:,} problems"
    return exact(
        f"files not accounted for, {corpus.name}", wrong, f"{told} = {n['lines']:,} lines + {n['glued']:,} glued"
    )


def _lines(data: bytes) -> int:
    return data.count(b"\n") + bool(data[data.rfind(b"\n") + 1 :].strip())


def _unfinished(store: Store, version: Version, data: bytes) -> int:
    """A last line that is not complete is a problem for the time being and no record yet."""
    tails = [row.start for row in store.problems(version.id) if row.provisional]
    return sum(start == 0 or not data[data.rfind(b"\n", 0, start) + 1 : start].strip() for start in tails)


def _changed(store: Store, before: dict[str, bytes], number: int = 1) -> list[str]:
    found = {file.path: file for file, _ in store.files()}
    return [path for path, data in before.items() if _version(store, found.get(path), number) != data]


def _version(store: Store, file: SourceFile | None, number: int) -> bytes | None:
    versions = [] if file is None else [one for one in store.versions(file.id) if one.number == number]
    return original(store, versions[0].id) if versions else None


def _exported(store: Store, corpus: Corpus, before: dict[str, bytes], number: int = 1) -> list[str]:
    """The same through the real command, for a few."""
    differ = []
    for file, _ in [row for row in store.files() if row[0].kind == "main"][:: max(1, len(before) // _ASKED)][:_ASKED]:
        first = store.versions(file.id)[number - 1]
        session = store.sessions_in(first.id)[0]
        given = everturn(
            corpus.place, "export", session.native_id, "--as", "raw", "--version", str(number), "--out", "-"
        )
        if given.out != before[file.path]:
            differ.append(file.path)
    return differ


def _after_damage(corpus: Corpus, before: dict[str, bytes]) -> Iterator[Figure]:
    """A quarter each is truncated, rewritten, deleted and left alone."""
    after = {path: _damage(Path(path), data, number % 4) for number, (path, data) in enumerate(before.items())}
    everturn(corpus.place, "sync")
    changed = {path: data for path, data in after.items() if data is not None and data != before[path]}
    told = f"{len(changed)} truncated or rewritten, {sum(data is None for data in after.values())} deleted"
    with closing(open_store(str(corpus.place.db))) as store:
        yield exact(f"older versions lost by damage, {corpus.name}", _changed(store, before), told)
        yield exact(f"newer versions given back differently, {corpus.name}", _changed(store, changed, 2), told)
        yield exact(f"`export --as raw --version 1` differs, {corpus.name}", _exported(store, corpus, before), told)
    everturn(corpus.place, "verify")


def _damage(path: Path, data: bytes, kind: int) -> bytes | None:
    if kind == 0:
        data = data[: len(data) * 2 // 3]
    elif kind == 1:
        middle = len(data) // 2
        data = data[:middle] + data[middle:].replace(b"e", b"E", 50)
    elif kind == 2:
        path.unlink()
        return None
    path.write_bytes(data)
    return data


def _made_again(corpus: Corpus) -> Figure:
    before = derived_rows(corpus.place.db)
    everturn(corpus.place, "rebuild")
    after = derived_rows(corpus.place.db)
    wrong = [f"{name}: {before[name]} before, {after[name]} after" for name in before if before[name] != after[name]]
    rows = sum(int(digest.split()[0]) for name, digest in before.items() if name != "index")
    words = before["index"].split()[0]
    return exact(f"tables different after rebuild, {corpus.name}", wrong, f"{rows:,} rows, {int(words):,} words")


def _forgotten(corpora: Corpora, corpus: Corpus) -> Iterator[Figure]:
    session, fork = corpora.add_canary(corpus)
    everturn(corpus.place, "sync")
    word = CANARY.encode()
    if len(places_of(word, corpus.place.archive, corpus.place.db)) < 2:
        yield Figure(
            f"forget, {corpus.name}", None, note="the word was not in the archive to begin with: the search is no proof"
        )
        return
    everturn(corpus.place, "forget", session, "--yes")
    left = places_of(word, corpus.place.archive, corpus.place.db)
    yield exact(f"places of a word after forget, {corpus.name}", left, "index, packed bytes, log, free pages")
    append_turn(fork)  # so that the next sync looks into a file that still has the copies
    everturn(corpus.place, "sync")
    left = places_of(word, corpus.place.archive, corpus.place.db)
    yield exact(
        f"the same after one more sync, {corpus.name}", left, "the agent's own files still hold it, a fork has grown"
    )
