"""The histories that are measured, made in a temporary folder when first asked for.

Generated ones come from `tests/transcripts.py`. The real one lies beside the checkout, where there is one; it is repeated
with ids and words changed in every copy, so that nothing can be stored once for all of them.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.processes import ROOT, Cost, Place

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.transcripts import alter_copy, append_turn, stream_file, write_history

REAL = ROOT.parent / "shared" / "corpus" / "claude-code"
COPIES = 10
CANARY = "qzwvxkjyqzzvbnmq"
#: Words of generated texts and of a hook's command that are exchanged for the canary.
_COMMON = (b"parser", b"lint")
_CANARY_SEED = 4711
_GENERATED = 80  # sessions
_OUTPUT = 6500  # bytes of a tool's output: makes a line as long as in the real corpus on average, 2.8 kB
_SHORT_OUTPUT = 400
_SHAPES = 100  # different short sessions; more are copies with other ids and words
_LONG_LINE = 100_000_000
_LONG_FILE = 20_000_000
_BIG = 5_000_000_000


@dataclass
class Corpus:
    """A history in its place, and what taking it in has cost so far."""

    name: str
    place: Place
    costs: list[Cost] = field(default_factory=list)

    @cached_property
    def paths(self) -> list[Path]:
        """Every file of the history, as it was made."""
        return sorted(path for path in self.place.claude.rglob("*") if path.is_file())

    @property
    def files(self) -> int:
        """How many there are."""
        return len(self.paths)

    @cached_property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(path.stat().st_size for path in self.paths)

    @cached_property
    def bytes_per_line(self) -> float:
        """Of the transcripts, on average."""
        transcripts = [path for path in self.paths if path.suffix == ".jsonl"]
        lines = sum(path.read_bytes().count(b"\n") for path in transcripts)
        return sum(path.stat().st_size for path in transcripts) / lines


class Corpora:
    """All of them, in one folder."""

    def __init__(self, folder: Path, big: bool = False) -> None:
        self.folder = folder
        self.big = big
        self._turns = 0
        self._short: dict[int, Corpus] = {}

    @cached_property
    def generated(self) -> Corpus:
        """Made up, in every shape the generator knows."""
        return self._made_up("generated", _OUTPUT)

    @cached_property
    def talkative(self) -> Corpus:
        """The same with short outputs: many small records to a megabyte."""
        return self._made_up("generated, short lines", _SHORT_OUTPUT)

    @cached_property
    def real(self) -> Corpus | None:
        """What is beside the checkout, once."""
        return self.repeated(1)

    @cached_property
    def many(self) -> Corpus | None:
        """The same ten times, every copy different."""
        return self.repeated(COPIES)

    def repeated(self, copies: int) -> Corpus | None:
        """What is beside the checkout, so many times, every copy different; None when there is nothing."""
        originals = sorted(REAL.rglob("*.jsonl")) if REAL.is_dir() else []
        if not originals:
            return None
        corpus = self._new("real corpus" if copies == 1 else f"real corpus × {copies}")
        projects = corpus.place.claude / "projects"
        _copies([(path, projects, number, REAL) for number in range(copies) for path in originals])
        return corpus

    @property
    def why_not_real(self) -> str:
        """What to say when there is none."""
        return f"no transcripts in ../{'/'.join(REAL.parts[-3:])} beside the checkout"

    def usual(self) -> Iterator[Corpus]:
        """Ordinary history of every kind there is."""
        for corpus in (self.generated, self.real, self.many):
            if corpus is not None:
                yield corpus

    def largest(self) -> Corpus:
        """The most history there is without asking for more."""
        return self.many or self.generated

    def copies(self) -> Iterator[Corpus]:
        """Fresh copies of the generated and the real one, to be damaged."""
        for corpus in (self.generated, self.real):
            if corpus is not None:
                copy = self._new(corpus.name, "damaged ")
                shutil.copytree(corpus.place.claude, copy.place.claude, dirs_exist_ok=True)
                yield copy
                shutil.rmtree(copy.place.folder)

    def sessions(self, n: int) -> Corpus:
        """So many short sessions, one file each."""
        if n not in self._short:
            self._short[n] = self._make_short(n)
        return self._short[n]

    def one_long_line(self) -> Corpus:
        """A session as any other, but for one output of a hundred megabytes."""
        corpus = self._new("one line of 100 MB")
        path = corpus.place.claude / "projects" / "-home-ann-long" / "00000000-0000-4000-8000-000000000100.jsonl"
        path.parent.mkdir(parents=True)
        append_turn(path, 1)
        _lengthen_last_result(path, _LONG_LINE)
        append_turn(path, 2)
        return corpus

    def one_long_file(self, size: int = _LONG_FILE) -> Corpus:
        """One session of twenty megabytes, or of another size."""
        return self._streamed(f"one file of {size // 1_000_000} MB", 1, size)

    def five_gigabytes(self) -> Corpus:
        """Ten times half a gigabyte."""
        return self._streamed("5 GB", 10, _BIG // 10)

    def add_turn(self, corpus: Corpus) -> int:
        """Let one file of a history grow; by how many bytes."""
        self._turns += 1
        return len(append_turn(corpus.paths[len(corpus.paths) // 2], self._turns))

    def add_canary(self, corpus: Corpus) -> tuple[str, Path]:
        """Put a session with a word all over it beside the others, and a fork that copied it.

        Gives the id of the session, and the file of the fork.
        """
        made = write_history(corpus.place.claude, seed=_CANARY_SEED, sessions=3, turns=8)
        fork = next(one for one in made.sessions.values() if one.forked_from)
        session = made.sessions[fork.forked_from]
        ids = {_id(line) for line in session.path.read_bytes().splitlines()}
        for path in (session.path, *session.path.with_suffix("").rglob("*")):
            if path.is_file():
                path.write_bytes(_marked(path.read_bytes()))
        lines = fork.path.read_bytes().splitlines(keepends=True)
        fork.path.write_bytes(b"".join(_marked(line) if _id(line) in ids else line for line in lines))
        return session.native_id, fork.path

    def _new(self, name: str, why: str = "") -> Corpus:
        place = Place(self.folder / f"{why}{name}".replace(" ", "-").replace("×", "x"))
        place.claude.mkdir(parents=True)
        return Corpus(name, place)

    def _make_short(self, n: int) -> Corpus:
        corpus = self._new(f"{n} sessions")
        shapes = self.folder / f"shapes of {n}"
        made = write_history(shapes, n, min(n, _SHAPES), 1, 100, forks=False, subagents=False, notes=False).files
        _copies([(made[k % len(made)], corpus.place.claude, k // len(made), shapes) for k in range(n)])
        return corpus

    def _made_up(self, name: str, output: int) -> Corpus:
        corpus = self._new(name)
        write_history(corpus.place.claude, seed=1, sessions=_GENERATED, turns=26, bytes_per_output=output)
        return corpus

    def _streamed(self, name: str, files: int, size: int) -> Corpus:
        corpus = self._new(name)
        folder = corpus.place.claude / "projects" / "-home-ann-long"
        folder.mkdir(parents=True)
        for number in range(files):
            made = stream_file(folder / "new", size, seed=number)
            (folder / "new").rename(folder / f"{made.session_id}.jsonl")
        return corpus


def _id(line: bytes) -> bytes:
    """Of a record; a note that has none is like no other."""
    before, _, rest = line.rpartition(b'"uuid":"')
    return rest[:36] if before else line


def _marked(line: bytes) -> bytes:
    for word in _COMMON:
        line = line.replace(word, CANARY.encode())
    return line


def _copies(jobs: list[tuple[Path, Path, int, Path]]) -> None:
    with ProcessPoolExecutor() as pool:
        for _ in pool.map(_copy, jobs, chunksize=48):
            pass


def _copy(job: tuple[Path, Path, int, Path]) -> None:
    """One file into the same folder below `target` as it has below `root`, as it stands in a copy of that number."""
    path, target, number, root = job
    name = alter_copy(path.name.encode(), number).decode()
    place = target / f"{path.parent.relative_to(root)}-{number}" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(alter_copy(path.read_bytes(), number))


def _lengthen_last_result(path: Path, size: int) -> None:
    """Words again and again, all a little different, into the last result of the file."""
    *before, result, after = path.read_bytes().splitlines(keepends=True)
    record = json.loads(result)
    filler = "".join(f"line {number} of a very long output {number * 7919 % 9973:x}\\n" for number in range(20_000))
    record["message"]["content"][0]["content"] = "@@"
    record.pop("toolUseResult", None)
    head, tail = (json.dumps(record) + "\n").split("@@")
    times, rest = divmod(size - len(head) - len(tail), len(filler))
    with path.open("wb") as file:
        file.writelines(before)
        file.write(head.encode())
        for _ in range(times):
            file.write(filler.encode())
        file.write(b"x" * rest + tail.encode() + after)
