"""Sound files that fuzzing starts from: the samples of the tests, what they can build, and real ones beside the checkout."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from everturn.sources.contract import Source, SourceCandidate
from tests.fuzz.mutations import LARGEST
from tests.sources import goldens
from tests.sources.codex.test_files import NAME as ROLLOUT
from tests.sources.codex.test_files import packed
from tests.sources.cursor.test_cursor import database as cursor_database
from tests.sources.goose.test_goose import database as goose_database
from tests.sources.opencode import building
from tests.sources.terminal.random_screens import bytes_of
from tests.sources.terminal.redrawing import Style, played
from tests.sources.terminal.screens import Prompts
from tests.sources.terminal.test_drawn import recorded, with_every_tool, with_queued_messages

SAMPLES = Path(__file__).parents[1] / "sources"

#: Folders of the corpus by source, where they are not called the same.
FOLDERS = {
    "claude_code": ("claude-code", "claude-code-fixture"),
    "opencode": ("opencode-export",),
    "terminal": ("terminal", "opencode-tui"),
    "copilot_cli": ("copilot-cli",),
    "messages": ("openai-messages",),
}
MOST_REAL = 25
#: Formats whose sample is a script that makes a database: the names of the database and of the script.
SCRIPTS = {
    "crush": ("crush.db", "crush.sql"),
    "amazon_q": ("data.sqlite3", "data.sql"),
    "zed": ("threads.db", "threads.sql"),
}


@dataclass(frozen=True)
class Seed:
    """A file as it lies in a folder, and what it is known to be."""

    path: str
    data: bytes
    kind: str = "main"
    native_id: str = "seed"
    lines: bool = False  # records are lines: any cuts give the same
    beside: tuple[tuple[str, bytes], ...] = ()  # the other files of a bundle

    def found(self, folder: Path) -> SourceCandidate:
        """What the sound file was known to be."""
        return SourceCandidate(folder / self.path, self.kind, self.native_id)


def seeds_of(source: Source) -> list[Seed]:
    """Everything there is for one source, in an order that stays."""
    with tempfile.TemporaryDirectory() as folder:
        files = [*_samples(source.name), *_built(source.name, Path(folder)), *_real(source.name)]
        if not files:  # a format without samples of its own
            files = [*_samples("messages"), *_samples("stream_json")]
        if len(files) == 1:
            files += [_written_otherwise(*files[0])]
        seeds = [seed for path, data in files for seed in _known(source, Path(folder), path, data)]
        if source.name == "opencode":
            seeds += _bundle(Path(folder))
    return seeds


def screens() -> list[Seed]:
    """Bytes for a terminal."""
    drawn = [Seed(f"{seed}.raw", bytes_of(seed)) for seed in range(40)]
    real = [Seed(path.name, path.read_bytes()[:40_000]) for path in goldens.corpus_files("terminal")]
    return drawn + real


def _written_otherwise(path: str, data: bytes) -> tuple[str, bytes]:
    """The same JSON as another program writes it: no blanks, and members in another order."""
    lines = [data] if path.endswith(".json") else data.splitlines()
    again = [json.dumps(json.loads(line), separators=(",", ":"), sort_keys=True).encode() for line in lines if line]
    return f"otherwise/{path}", b"\n".join(again) + b"\n"


def _samples(name: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted((SAMPLES / name / "samples").rglob("*")):
        if path.is_file() and not path.name.endswith(".expected.json"):
            yield str(path.relative_to(SAMPLES / name / "samples")), path.read_bytes()


def _real(name: str) -> Iterator[tuple[str, bytes]]:
    files = [path for folder in FOLDERS.get(name, (name,)) for path in goldens.corpus_files(folder)]
    small = sorted((path for path in files if path.stat().st_size < LARGEST), key=lambda path: path.stat().st_size)
    for path in small[:: 1 + len(small) // MOST_REAL]:
        yield path.name, path.read_bytes()
    for path in [path for path in files if path not in small][:3]:
        yield path.name, path.read_bytes()[: LARGEST // 3]


def _built(name: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """What no sample can be: databases, archives, recordings."""
    if name == "cursor":
        yield "state.vscdb", _closed(folder / "a.db", cursor_database)
    if name == "goose":
        yield "sessions.db", _closed(folder / "b.db", goose_database)
    if name in SCRIPTS:
        yield SCRIPTS[name][0], _closed(folder / "e.db", lambda path: scripted_database(path, name))
    if name == "opencode":
        yield "opencode.db", _closed(folder / "c.db", lambda path: building.database(path, building.SESSIONS))
    if name in ("chatgpt", "claude_ai"):
        with ZipFile(folder / "d.zip", "w", ZIP_DEFLATED) as archive:
            archive.write(SAMPLES / name / "samples" / "export.json", "conversations.json")
        yield "export.zip", (folder / "d.zip").read_bytes()
    if name == "codex":
        yield f"{ROLLOUT}.zst", packed((SAMPLES / name / "samples" / "new-era.jsonl").read_bytes())
    if name == "terminal":
        yield from _recordings()


def scripted_database(path: Path, name: str) -> sqlite3.Connection:
    """Make the database of a format whose sample is a script, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript((SAMPLES / name / "samples" / SCRIPTS[name][1]).read_text("utf-8"))
    return connection


def _closed(path: Path, make: Callable[[Path], sqlite3.Connection]) -> bytes:
    connection = make(path)
    connection.commit()
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    return path.read_bytes()


def _recordings() -> Iterator[tuple[str, bytes]]:
    prompts = Prompts()
    prompts.ask("count the walruses")
    prompts.call("Bash(ls zoo)", ["walrus", "otter"])
    prompts.answer("One walrus. " * 20)
    prompts.end("3s", 3000)
    yield "typescript", recorded(prompts)
    yield "boxes.typescript", recorded(with_every_tool())
    yield "queued.typescript", recorded(with_queued_messages())
    style = Style(marks="none", drawing="scrolling", columns=60, rows=16, turns=3)
    shown = played(3, style)
    yield "plain.raw", shown.data
    head = {"version": 2, "width": style.columns, "height": style.rows, "timestamp": 1_772_000_000}
    events = [[n / 4, "o", write.decode("utf-8", "replace")] for n, write in enumerate(shown.writes)]
    yield "two.cast", "".join(json.dumps(one) + "\n" for one in (head, *events)).encode()
    first = {"version": 1, "width": 60, "height": 16, "duration": 9.5, "stdout": [event[::2] for event in events]}
    yield "one.cast", json.dumps(first).encode()
    third = {"version": 3, "term": {"cols": 60, "rows": 16}, "timestamp": 1_772_000_000}
    more = [[0.1, "r", "80x20"], *([0.2, *event[1:]] for event in events), [0.1, "x", "0"]]
    yield "three.cast", "".join(json.dumps(one) + "\n" for one in (third, *more)).encode()


def _known(source: Source, folder: Path, path: str, data: bytes) -> Iterator[Seed]:
    """The file, and what it is taken apart into."""
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    found = source.sniff(place, data[: goldens.HEAD]) or SourceCandidate(place, native_id=place.stem)
    is_lines = place.suffix == ".jsonl" and found.kind not in ("output", "meta")
    yield Seed(path, data, found.kind, found.native_id or place.stem, is_lines)
    if source.unpack is not None and found.kind in ("container", "bundle"):
        try:
            members = goldens.unpacked(source, found, place)
        except OSError:
            return
        for one, lines in members[:6]:
            is_lines = all(line.startswith(b"{") and line.endswith(b"}") for line in lines.splitlines() if line)
            yield Seed(f"{path}#{len(lines)}", lines[:LARGEST], one.kind, one.native_id, is_lines)


def _bundle(folder: Path) -> list[Seed]:
    root = building.storage(folder / "bundle")
    files = [(str(path.relative_to(root)), path.read_bytes()) for path in sorted(root.rglob("*")) if path.is_file()]
    return [
        Seed(path, data, "bundle", beside=tuple(other for other in files if other[0] != path)) for path, data in files
    ]
