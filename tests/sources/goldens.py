"""Shared by the tests of every format: reading in any pieces, rendering the result, and checking the contract of readers.

readings(SOURCE, path)            every conversation in a file: candidate, bytes, and the whole result
read(SOURCE, found, data, cuts)   one conversation, read in pieces
assert_golden(path, seen)         compares with PATH.expected.json; `UPDATE_EXPECTED=1` writes that file
assert_keeps_promises(...)        every record counted, words of the vocabulary, viewable, storable
assert_same_in_pieces(...)        any cuts give the same result (formats of lines)
assert_survives(...)              damage does not stop a reader, and is counted
ingest(name, path)                adds files to an archive in memory with `add_paths`, and compares the bytes
corpus(folder)                    real files beside the checkout, or one skipped test that names the reason
assert_claims_only(SOURCE, ...)   the source claims no file of another format
"""

from __future__ import annotations

import importlib
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.model import vocabulary
from everturn.model.conversation import Link, Message, Problem, ReadResult, SessionFacts
from everturn.sources.contract import PartlyUnread, SearchPlaces, Source, SourceCandidate, all_sources
from everturn.sources.toolkit.sqlite_file import is_sqlite, snapshot
from everturn.store.contract import IndexQuery, Store, open_store
from everturn.text.terms import terms

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
UPDATE = bool(os.environ.get("UPDATE_EXPECTED"))
HEAD = 64 << 10


class Whole(msgspec.Struct):
    """Several results of one file combined, as an archive does."""

    facts: dict[str, dict[str, Any]] = {}
    messages: dict[str, list[Message]] = {}
    links: dict[str, list[Link]] = {}
    problems: list[Problem] = []
    tail: list[Problem] = []
    census: Counter[tuple[str, str, str]] = msgspec.field(default_factory=Counter)
    lines: int = 0
    glued: int = 0
    consumed: int = 0

    def add(self, reading: ReadResult) -> None:
        """Add the next result."""
        for part in reading.parts:
            self.facts.setdefault(part.native_id, {}).update(_known_facts(part.facts))
            self.messages.setdefault(part.native_id, []).extend(part.messages)
            self.links.setdefault(part.native_id, []).extend(part.links)
        self.problems += [problem for problem in reading.problems if not problem.provisional]
        self.tail = [problem for problem in reading.problems if problem.provisional]
        for row in reading.census:
            self.census[row.type, row.client, row.disposition] += row.n
        self.lines += reading.lines
        self.glued += reading.glued
        self.consumed += reading.consumed

    def all(self) -> list[Message]:
        """Return the messages of every session."""
        return [message for messages in self.messages.values() for message in messages]

    def texts(self, *fields: str) -> list[str]:
        """Return the texts of all blocks with one of these fields (of all blocks when none is named), in order."""
        return [b.text for message in self.all() for b in message.blocks if b.field in fields or not fields]


# reading ----------------------------------------------------------------------------------------------------------------
def found_for(source: Source, path: Path, data: bytes) -> SourceCandidate:
    """Return the candidate that `add_paths` would use; one by file name where the head is damaged."""
    return source.sniff(path, data[:HEAD]) or SourceCandidate(path, "main", path.stem)


def read(
    source: Source, found: SourceCandidate, data: bytes, cuts: Iterable[int] = (), stops: Sequence[bool] = ()
) -> Whole:
    """Read a conversation in pieces that end at `cuts`; where `stops` is true, a new reader continues after the piece."""
    whole = Whole()
    reader = source.reader(found, b"")
    ends = sorted({*cuts, len(data)})
    for number, end in enumerate(ends):
        last = end == len(data) or (number < len(stops) and stops[number])
        whole.add(reader.feed(data[whole.consumed : end], whole.consumed, last))
        if last:
            reader = source.reader(found, reader.state())
    return whole


def unpacked(source: Source, found: SourceCandidate, path: Path) -> list[tuple[SourceCandidate, bytes]]:
    """Return the conversations in a container or bundle, each with its lines."""
    assert source.unpack is not None
    with tempfile.TemporaryDirectory() as folder:
        if source.is_database and found.kind == "container" and is_sqlite(path.read_bytes()[:16]):
            snapshot(path, Path(folder) / "copy.db")
            path = Path(folder) / "copy.db"
        members = []
        with suppress(PartlyUnread):
            for one in source.unpack(found, path):
                place = Path(f"{found.path}#{one.name}")
                members.append((SourceCandidate(place, one.kind, one.native_id, one.parent), b"".join(one.lines)))
        return members


def readings(
    source: Source, path: Path, found: SourceCandidate | None = None
) -> list[tuple[SourceCandidate, bytes, Whole]]:
    """Return every conversation in a file, unpacked where necessary: candidate, bytes and result."""
    data = path.read_bytes() if path.is_file() else b""
    found = found or found_for(source, path, data)
    whole_file = source.unpack is None or found.kind not in ("container", "bundle")
    conversations = [(found, data)] if whole_file else unpacked(source, found, path)
    return [(one, lines, read(source, one, lines)) for one, lines in conversations]


def put(path: Path, data: bytes = b"{}\n") -> Path:
    """Write a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# showing ----------------------------------------------------------------------------------------------------------------
def shown(whole: Whole) -> dict[str, Any]:
    """Return a result as plain data that people can compare: without empty fields and original blocks."""
    return {
        "sessions": [
            {
                "native_id": native_id,
                "facts": whole.facts[native_id],
                "links": [_pruned(msgspec.to_builtins(link)) for link in whole.links[native_id]],
                "messages": [_message(message) for message in whole.messages[native_id]],
            }
            for native_id in whole.messages
        ],
        "problems": [_pruned(msgspec.to_builtins(problem)) for problem in whole.problems + whole.tail],
        "census": [[*key, n] for key, n in sorted(whole.census.items())],
        "lines": whole.lines,
        "glued": whole.glued,
        "consumed": whole.consumed,
    }


def assert_golden(path: Path, seen: Any) -> None:
    """Compare a result with the golden of its sample: `a.jsonl` → `a.expected.json`."""
    seen = json.loads(json.dumps(seen))
    expected = path.with_suffix(".expected.json")
    if UPDATE:
        expected.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert seen == json.loads(expected.read_text(encoding="utf-8"))


# the contract of readers ------------------------------------------------------------------------------------------------
def assert_keeps_promises(source: Source, data: bytes, whole: Whole, lines: bool = True) -> None:
    """Check all that holds for any result; `lines=False` for documents."""
    assert_accounted(data, whole, lines)
    assert_vocabulary(whole)
    assert_viewed(source, data, whole)
    assert_storable(whole)


def assert_accounted(data: bytes, whole: Whole, lines: bool = True) -> None:
    """Check that every record is counted once and every byte is consumed or reported."""
    assert sum(whole.census.values()) == whole.lines + whole.glued
    left = data[whole.consumed :]
    assert not left.strip() or [(p.start, p.size) for p in whole.tail] == [(whole.consumed, len(left))]
    if lines:
        assert b"\n" not in left
        complete = data.count(b"\n")
        assert whole.lines in (complete, complete + 1)
        troubled = sum(n for (_, _, disposition), n in whole.census.items() if disposition == "problem")
        assert troubled <= len(whole.problems)
    things: list[Problem | Message] = [*whole.problems, *whole.tail, *whole.all()]
    for thing in things:
        assert 0 <= thing.start <= thing.start + thing.size <= len(data)


def assert_vocabulary(whole: Whole) -> None:
    """Check that only words of the closed lists are used."""
    for message in whole.all():
        assert message.role in vocabulary.ROLES
        assert message.origin in vocabulary.ORIGINS
        assert message.kind in vocabulary.MESSAGE_KINDS
        assert message.precision in vocabulary.PRECISIONS
        assert message.fidelity in vocabulary.FIDELITIES
        assert (message.at is None) == (message.precision == "")
        for block in message.blocks:
            assert block.field in ("", *vocabulary.FIELDS)
            assert block.call is None or block.call.kind in vocabulary.CALL_KINDS
            assert block.result is None or block.result.error_class in vocabulary.ERROR_CLASSES
            assert block.result is None or block.result.action in ("", *vocabulary.ACTIONS)
    assert {link.relation for links in whole.links.values() for link in links} <= set(vocabulary.RELATIONS)
    assert {facts.get("kind", "main") for facts in whole.facts.values()} <= set(vocabulary.SESSION_KINDS)
    assert {disposition for _, _, disposition in whole.census} <= set(vocabulary.DISPOSITIONS)


def assert_viewed(source: Source, data: bytes, whole: Whole) -> None:
    """Check that `view` gives the reader's message from its bytes alone."""
    for message in whole.all():
        viewed = source.view(data[message.start : message.start + message.size])
        assert viewed is not None
        assert [block.text for block in viewed.blocks] == [block.text for block in message.blocks]
        assert viewed.role == message.role


def assert_storable(whole: Whole) -> None:
    """Check for lone surrogates anywhere and NUL in facts: databases accept neither."""
    msgspec.json.encode(shown(whole))
    for facts in whole.facts.values():
        assert not any("\0" in value for value in facts.values() if isinstance(value, str))


def assert_same(one: Whole, other: Whole) -> None:
    """Check that two ways of reading gave the same."""
    assert shown(one)["problems"] == shown(other)["problems"]
    assert one.census == other.census
    assert (one.lines, one.glued, one.consumed) == (other.lines, other.glued, other.consumed)
    assert one.messages == other.messages
    assert one.links == other.links
    assert one.facts == other.facts


def assert_same_in_pieces(
    source: Source, found: SourceCandidate, data: bytes, seed: int, stopping: bool = True
) -> None:
    """Check that reading in random pieces, with readers stopped at random, gives the same as reading at once."""
    dice = random.Random(seed)
    cuts = sorted(dice.sample(range(len(data)), min(dice.randint(1, 12), len(data))))
    stops = [stopping and dice.random() < 0.7 for _ in cuts]
    assert_same(read(source, found, data, cuts, stops), read(source, found, data))


# damage -----------------------------------------------------------------------------------------------------------------
STRAY = [b"\n", b"\r\n", b'"', b"{", b"}", b"[", b"\\", b"\xff", b"\xef\xbb\xbf", b"\\ud800"]


def damaged(pieces: Sequence[bytes], dice: random.Random, most: int = 6) -> bytes:
    """Return a file assembled from pieces of good ones (lines, or one document) and damaged at random."""
    data = b"".join(dice.choices(pieces, k=dice.randint(1, most)))
    for _ in range(dice.randint(1, 6)):
        at, size = dice.randrange(len(data) + 1), dice.randint(1, 80)
        before, hit, after = data[:at], data[at : at + size], data[at + size :]
        harms = [
            before + bytes([dice.randrange(256)]) + hit[1:] + after,
            before + after,
            before + hit + hit + after,
            before + bytes(size) + hit + after,
            before + bytes(len(hit)) + after,
            before,
            before + dice.choice(STRAY) + hit + after,
        ]
        data = dice.choice(harms)
    return data


def assert_survives(source: Source, found: SourceCandidate, data: bytes, seed: int = 0, lines: bool = True) -> None:
    """Check that any bytes are read and counted; for lines, in any pieces."""
    whole = read(source, found, data)
    assert_accounted(data, whole, lines)
    assert_vocabulary(whole)
    assert_storable(whole)
    for message in whole.all():
        assert source.view(data[message.start : message.start + message.size]) is not None
    if lines and data:
        assert_same_in_pieces(source, found, data, seed)


def parsed(pieces: Iterable[bytes]) -> list[Any]:
    """Return the values of the pieces that are JSON."""
    values = []
    for piece in pieces:
        with suppress(ValueError, RecursionError):
            values.append(json.loads(piece))
    return values


def with_odd_value(record: Any, value: Any, dice: random.Random) -> Any:
    """Return a copy of a record with one of its values, at any depth, replaced."""
    record = json.loads(json.dumps(record))
    holder = record
    while isinstance(holder, (dict, list)) and holder:
        key = dice.choice(list(holder)) if isinstance(holder, dict) else dice.randrange(len(holder))
        if not isinstance(holder[key], (dict, list)) or not holder[key] or dice.random() < 0.3:
            holder[key] = value
            break
        holder = holder[key]
    return record


def with_odd_elements(document: Any, value: Any, dice: random.Random) -> Any:
    """Return a copy of a document with one of its values replaced, and one in each of four elements of its longest list."""
    document = deepcopy(with_odd_value(document, value, dice))  # the value is not changed
    lists = document.values() if isinstance(document, dict) else [document]
    longest = max((one for one in lists if isinstance(one, list)), key=len, default=[])
    for place in dice.sample(range(len(longest)), min(4, len(longest))):
        longest[place] = with_odd_value(longest[place], value, dice)
    return document


#: Values that a reader does not expect.
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 2**70, 1.5, "", "x", "\ud800", "\0", [], {}, [None], [[]], [{}], {"": None}, ["x", 1],
    {"type": "text"}, [{"type": 1}], {"text": ["x"]}, "2026-01-01T00:00:00Z", 10**30, {"type": {"type": None}},
]  # fmt: skip


# the archive ------------------------------------------------------------------------------------------------------------
@dataclass
class Taken:
    """An archive in memory with some files added."""

    store: Store
    report: SyncReport

    def hits(self, text: str) -> list[str]:
        """Return the native ids of the sessions with a message that contains this phrase."""
        found = self.store.search(IndexQuery(((tuple(terms(text)),),), limit=100))
        return sorted({self.store.session(hit.session)[0].native_id for hit in found})


@contextmanager
def ingest(source_name: str, *paths: Path) -> Iterator[Taken]:
    """Add files with `add_paths`, recognised by their content, and check that the archive has their exact bytes."""
    source: Source = importlib.import_module(f"everturn.sources.{source_name}").SOURCE
    store = open_store("memory:")
    try:
        places = SearchPlaces(Path("/nowhere"), {}, "linux")
        job = SyncJob(store, {source_name: source}, places, Policy(), "box", "ann", lambda: 1_772_000_000_000)
        report = add_paths(job, paths)
        assert report.failed == []
        assert report.skipped == []
        assert store.files()
        _assert_bytes_kept(store, source)
        yield Taken(store, report)
    finally:
        store.close()


def _assert_bytes_kept(store: Store, source: Source) -> None:
    for file, version in store.files():
        if not file.container and file.kind != "bundle":
            kept = store.read_raw(version.id, 0, version.size)
            if source.is_database and file.kind == "container" and is_sqlite(Path(file.path).read_bytes()[:16]):
                assert kept.startswith(b"SQLite format 3\0")
            else:
                assert kept == Path(file.path).read_bytes()


# real files -------------------------------------------------------------------------------------------------------------
def corpus_files(folder: str) -> list[Path]:
    """Return every real file of a folder of the corpus beside the checkout; none without a corpus."""
    return sorted(path for path in (CORPUS / folder).rglob("*") if path.is_file() and not path.is_symlink())


def corpus(*folders: str) -> list[Any]:
    """Return parameters for a test of each real file, or one that is skipped with the reason."""
    paths = [path for folder in folders for path in corpus_files(folder)]
    if not paths:
        reason = f"no real files of {', '.join(folders)} beside the checkout: only samples were read"
        return [pytest.param(Path(), marks=pytest.mark.skip(reason=reason), id="none")]
    return [pytest.param(path, id=str(path.relative_to(CORPUS))) for path in paths]


def claimants(path: Path) -> list[str]:
    """Return the names of all sources that claim a file: exactly one, if all is well."""
    head = _head(path)
    return sorted(name for name, source in all_sources().items() if source.sniff(path, head) is not None)


def claimed(source: Source) -> list[str]:
    """Return the files of the whole corpus that a source claims, relative to it."""
    return [str(path.relative_to(CORPUS)) for path in corpus_files(".") if source.sniff(path, _head(path)) is not None]


def assert_claims_only(source: Source, *folders: str, besides: Iterable[str] = ()) -> None:
    """Check that a source claims every file of these folders of the corpus, except `besides`, and nothing else."""
    if not CORPUS.is_dir():
        pytest.skip("no real files beside the checkout")
    own = {str(path.relative_to(CORPUS)) for folder in folders for path in corpus_files(folder)}
    assert set(claimed(source)) == own - set(besides)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _message(message: Message) -> Any:
    plain = msgspec.to_builtins(message)
    for block in plain["blocks"]:
        block.pop("data", None)
        (block["call"] or {}).pop("input", None)
    return _pruned(plain)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item not in (None, "", False, [], ())}
    return [_pruned(item) for item in value] if isinstance(value, (list, tuple)) else value


def _known_facts(facts: SessionFacts) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(facts).items() if value}
