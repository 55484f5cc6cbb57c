"""What must hold for any bytes at all: the readers that are fuzzed, each a function that raises when it does not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.model.conversation import Message
from everturn.sources.contract import SearchPlaces, Source, SourceCandidate, all_sources
from everturn.sources.terminal.rounds import TurnParser
from everturn.sources.terminal.screen import TerminalScreen
from everturn.sources.terminal.views import transcribe
from everturn.sources.toolkit.sqlite_file import is_sqlite, snapshot
from everturn.store.contract import open_store
from tests.fuzz import broken
from tests.fuzz.seeds import Seed, screens, seeds_of
from tests.sources import goldens

#: Takes a seed, the bytes that became of it, an empty folder and dice.
Check = Callable[[Seed, bytes, Path, Random], None]

#: One input in so many goes through the whole of `add_paths` into an archive, which takes longer.
ARCHIVED = 8

TERMINAL = ("terminal.screen", "terminal.stitch")

#: Formats of lines or of one document, which the first line tells: where that is damaged, a file need not be read as lines.
TOLD_BY_FIRST = ("kiro",)


def readers() -> list[str]:
    """The names of everything that is fuzzed."""
    return [*all_sources(), *TERMINAL]


def prepared(reader: str) -> tuple[Sequence[Seed], Check]:
    """Where a reader's inputs come from, and what is checked."""
    if reader in broken.CHECKS:
        return [Seed("a.txt", b"a walrus\n" * 9)], broken.CHECKS[reader]
    if reader in TERMINAL:
        return screens(), _screen if reader == "terminal.screen" else _stitched
    source = all_sources()[reader]
    return seeds_of(source), partial(_source, source)


# formats ----------------------------------------------------------------------------------------------------------------
def _source(source: Source, seed: Seed, data: bytes, folder: Path, dice: Random) -> None:
    path = folder / seed.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for name, other in seed.beside:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(other)
    head = data[: goldens.HEAD]
    assert isinstance(source.workspace(head), str)
    claimed = source.sniff(path, head)
    in_folder = list(source.find(folder))
    founds = [one for one in in_folder if one.kind == "bundle"] if seed.beside else [claimed or seed.found(folder)]
    for found in founds:
        for conversation, lines, is_lines in _conversations(source, found, data, seed.lines):
            _read(source, conversation, lines, is_lines, dice.randrange(1 << 30))
    if dice.randrange(ARCHIVED) == 0 and (claimed is not None or seed.beside):
        _archived(source, folder if seed.beside else path, data)


def _conversations(
    source: Source, found: SourceCandidate, data: bytes, lines: bool
) -> Iterator[tuple[SourceCandidate, bytes, bool]]:
    if source.unpack is None or found.kind not in ("container", "bundle"):
        is_lines = lines and found.kind not in ("output", "meta") and data.lstrip()[:1] == b"{"
        if source.name in TOLD_BY_FIRST:
            is_lines = is_lines and data.lstrip().partition(b"\n")[0].rstrip().endswith(b"}")
        yield found, data, is_lines  # other beginnings may be taken for other forms of the same format
        return
    path = found.path
    try:
        if source.is_database and found.kind == "container":
            path = found.path.parent / "copy of it"
            snapshot(found.path, path, source.private)
        names = set()
        for member in source.unpack(found, path):
            assert member.name not in names, "two members of one name"
            names.add(member.name)
            written = list(member.lines)
            assert all(line.find(b"\n") == len(line) - 1 for line in written[:-1]), "a line that is none"
            name = Path(f"{found.path}#{member.name}")
            # A member is lines of records, or a document written line by line.
            is_lines = all(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in written)
            yield SourceCandidate(name, member.kind, member.native_id, member.parent), b"".join(written), is_lines
    except OSError:  # the file cannot be read at all, and that is what is said of it
        pass


def _read(source: Source, found: SourceCandidate, data: bytes, lines: bool, seed: int) -> None:
    whole = goldens.read(source, found, data)
    assert whole.consumed <= len(data)
    goldens.assert_accounted(data, whole, lines)
    goldens.assert_vocabulary(whole)
    goldens.assert_storable(whole)
    for message in whole.all():
        assert isinstance(source.view(data[message.start : message.start + message.size]), Message)
    if data:
        goldens.assert_same_in_pieces(source, found, data, seed, stopping=lines)


def _archived(source: Source, path: Path, data: bytes) -> None:
    store = open_store("memory:")
    try:
        places = SearchPlaces(Path("/nowhere"), {}, "linux")
        report = add_paths(
            SyncJob(store, {source.name: source}, places, Policy(), "box", "ann", lambda: 1_772_000_000_000), [path]
        )
        files = store.files()
        assert report.failed or files
        for file, version in files:
            assert version.parser != -1, "kept without being read"
            copied = source.is_database and file.kind == "container" and is_sqlite(data)
            if file.path == str(path) and not copied and not report.failed:
                assert store.read_raw(version.id, 0, version.size) == data
        taken_apart = source.unpack is not None and (
            path.is_dir() or files[:1] == [] or files[0][0].kind == "container"
        )
        assert taken_apart or not report.failed, report.failed
    finally:
        store.close()


# the terminal -----------------------------------------------------------------------------------------------------------
def _screen(seed: Seed, data: bytes, folder: Path, dice: Random) -> None:
    columns, rows = dice.choice(((20, 6), (80, 24), (2, 2), (300, 3), (7, 60)))
    whole, pieces = TerminalScreen(columns, rows), TerminalScreen(columns, rows)
    whole.feed(data)
    cuts = sorted(dice.choices(range(len(data) + 1), k=dice.randint(1, 30)))
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        pieces.feed(data[start:end])
    assert whole.lines() == pieces.lines()
    assert len(whole.lines()) <= rows


def _stitched(seed: Seed, data: bytes, folder: Path, dice: Random) -> None:
    size = f'Script started on 2025-12-22 14:19:12-06:00 [TERM="xterm" COLUMNS="{dice.choice((40, 80))}" LINES="20"]\n'
    recording = dice.choice((data, size.encode() + data))
    transcript = transcribe(recording, dice.choice(("typescript", seed.path)))
    for segment in transcript.segments:
        for line in segment.lines:
            assert 0 <= line.first <= line.last <= len(recording)
            assert "\x1b" not in line.text
            line.text.encode()
    parser = TurnParser()
    for found in parser.parse("\n".join(line.text for segment in transcript.segments for line in segment.lines)):
        assert 0 <= found.start_line_index <= found.end_line_index < len(parser.lines)


def emptied(folder: Path) -> Path:
    """The folder, with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
