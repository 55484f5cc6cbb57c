"""The contract that every format keeps, tested with its samples: a new format has these tests as soon as it has goldens.

A sample is a file below `tests/sources/NAME/samples` with a golden beside it; a script of SQL is a sample too, and is read as
the database it builds. Only where a format differs from the others does it need a line in the table DIFFERENT.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.sources.contract import Source, SourceCandidate, all_sources
from tests.fuzz.seeds import SCRIPTS, scripted_database
from tests.sources import goldens

HERE = Path(__file__).parent
#: Formats with contract tests of their own, in their folders.
OWN = {"terminal"}


class Difference(NamedTuple):
    """How the samples of a format differ from those of most others."""

    unclaimed: frozenset[str] = frozenset()  # samples that are recognised by a name that they do not have
    state: int = 1000  # bytes that a reader may remember of its samples, read again and again
    claimed_by: frozenset[str] = frozenset()  # other formats whose claims on its samples lose to its own
    has_lines: bool = True  # its lines are records; otherwise they are unpacked into a document
    first_decides: bool = False  # whether these are lines or a document; so a good line goes before damaged ones
    stops: bool = True  # a document may be read by several readers in turn


DIFFERENT = {
    "aider": Difference(unclaimed=frozenset({"older.md"})),
    "amp": Difference(claimed_by=frozenset({"messages"})),
    "claude_code": Difference(state=300_000),
    "cline": Difference(claimed_by=frozenset({"messages"})),
    "copilot_chat": Difference(has_lines=False),
    "cursor": Difference(claimed_by=frozenset({"headed_markdown"})),
    "factory_droid": Difference(state=100),
    "inspect_eval": Difference(claimed_by=frozenset({"messages"})),
    "journal": Difference(state=100),
    "kimi": Difference(state=300),
    "kiro": Difference(claimed_by=frozenset({"continue_dev"}), first_decides=True),
    "messages": Difference(first_decides=True, stops=False),
    "opencode": Difference(first_decides=True),
    "pi": Difference(state=100),
    "qwen_code": Difference(claimed_by=frozenset({"claude_code"}), state=5000),
}
#: Real files that are read like samples, in these folders of the corpus.
REAL = {"codex": ("codex", "codex-tui-log"), "copilot_cli": ("copilot-cli",), "pi": ("pi",)}


class Sample(NamedTuple):
    """A sample of a format."""

    name: str
    path: Path

    @property
    def source(self) -> Source:
        return all_sources()[self.name]

    @property
    def difference(self) -> Difference:
        return DIFFERENT.get(self.name, Difference())


class Conversation(NamedTuple):
    """One of the conversations in a sample."""

    found: SourceCandidate
    data: bytes
    whole: goldens.Whole
    shape: str  # lines, document or markdown


def find_samples(name: str) -> list[Sample]:
    """Return the samples of a format that have a golden, or can get one now."""
    files = [path for path in sorted((HERE / name / "samples").rglob("*")) if path.is_file()]
    return [Sample(name, path) for path in files if _has_golden(path) or (goldens.UPDATE and _is_claimed(name, path))]


def _has_golden(path: Path) -> bool:
    return not path.name.endswith(".expected.json") and path.with_suffix(".expected.json").exists()


def _is_claimed(name: str, path: Path) -> bool:
    found = all_sources()[name].sniff(path, path.read_bytes()[: goldens.HEAD])
    return found is not None and found.path == path


SAMPLES = [sample for name in all_sources() if name not in OWN for sample in find_samples(name)]
FORMATS = sorted({sample.name for sample in SAMPLES})


def sample_id(sample: Sample) -> str:
    return f"{sample.name}-{sample.path.relative_to(HERE / sample.name / 'samples').with_suffix('')}"


@contextmanager
def sample_file(sample: Sample) -> Iterator[Path]:
    """Give the file of a sample; of a script, the database it builds."""
    if sample.path.suffix != ".sql":
        yield sample.path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SCRIPTS[sample.name][0]
        scripted_database(path, sample.name).close()
        yield path


@cache
def read_sample(sample: Sample) -> list[Conversation]:
    """Return the conversations in a sample."""
    with sample_file(sample) as path:
        read = goldens.readings(sample.source, path)
    return [Conversation(found, data, whole, _shape(sample, found, data)) for found, data, whole in read]


def _shape(sample: Sample, found: SourceCandidate, data: bytes) -> str:
    if sample.path.suffix == ".md":
        return "markdown"
    first, _, more = data.partition(b"\n")
    is_unpacked, begins_with_record = found.path != sample.path, bool(more) and bool(goldens.parsed([first]))
    has_lines = sample.path.suffix == ".jsonl" or is_unpacked or begins_with_record
    return "lines" if has_lines and sample.difference.has_lines else "document"


def of_shape(*shapes: str) -> list[tuple[str, str]]:
    """Return every format with samples of these shapes, with the shape."""
    return sorted({(s.name, one.shape) for s in SAMPLES for one in read_sample(s) if one.shape in shapes})


@cache
def conversations(name: str, shape: str) -> tuple[Source, list[Conversation], list[bytes]]:
    """Return the source, the conversations of a shape, and the pieces to damage: all of their lines, or whole documents."""
    some = [one for s in SAMPLES if s.name == name for one in read_sample(s) if one.shape == shape]
    lines = [line for one in some for line in one.data.splitlines(keepends=True)]
    return all_sources()[name], some, lines if shape != "document" else [one.data for one in some]


def beginning(name: str, shape: str) -> bytes:
    """Return the line that shows that lines follow, where a format needs one."""
    is_needed = shape == "lines" and DIFFERENT.get(name, Difference()).first_decides
    return conversations(name, shape)[2][0] if is_needed else b""


every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=sample_id)


@every_sample
def test_a_sample_reads_as_expected(sample: Sample) -> None:
    seen: Any = [goldens.shown(one.whole) for one in read_sample(sample)]
    golden = sample.path.with_suffix(".expected.json")
    form = json.loads(golden.read_text("utf-8")) if golden.exists() else []
    if "sessions" in form:  # that of the only conversation
        (seen,) = seen
    elif isinstance(form, dict):
        seen = {one.found.native_id: shown for one, shown in zip(read_sample(sample), seen, strict=True)}
    goldens.assert_golden(sample.path, seen)


@every_sample
def test_every_reading_keeps_what_readers_promise(sample: Sample) -> None:
    for one in read_sample(sample):
        goldens.assert_keeps_promises(sample.source, one.data, one.whole, lines=one.shape == "lines")


@every_sample
def test_no_other_source_takes_a_sample_for_its_own(sample: Sample) -> None:
    expected = set() if sample.path.name in sample.difference.unclaimed else {sample.name}
    with sample_file(sample) as path:
        assert set(goldens.claimants(path)) - sample.difference.claimed_by == expected


@every_sample
@given(seed=st.integers(0, 2**32), stopping=st.booleans())
@settings(max_examples=60)
def test_a_sample_reads_the_same_in_any_pieces(sample: Sample, seed: int, stopping: bool) -> None:
    for found, data, _, shape in read_sample(sample):
        stops = shape == "lines" or (shape == "document" and sample.difference.stops)
        goldens.assert_same_in_pieces(sample.source, found, data, seed, stopping and stops)


@every_sample
def test_a_state_that_is_not_ours_is_a_fresh_start(sample: Sample) -> None:
    for found, data, _, _ in read_sample(sample):
        fresh = sample.source.reader(found, b"").feed(data, 0, True)
        for state in (b"\xff\xfe", b"{}", b"\x93\x01\x02\x03"):
            assert sample.source.reader(found, state).feed(data, 0, True) == fresh


@pytest.mark.parametrize("name", FORMATS)
def test_the_state_stays_small(name: str) -> None:
    for shape in ("lines", "markdown"):
        source, some, lines = conversations(name, shape)
        if some:
            reader = source.reader(some[0].found, b"")
            data = b"".join(line for line in lines if line.endswith(b"\n"))
            reader.feed(data * min(300, 50 + 2_000_000 // len(data)), 0, True)
            assert len(reader.state()) < DIFFERENT.get(name, Difference()).state


@pytest.mark.parametrize(("name", "shape"), of_shape("lines", "document", "markdown"))
@given(seed=st.integers(0, 2**64))
@settings(max_examples=300)
def test_no_damage_stops_the_reader_or_escapes_the_count(name: str, shape: str, seed: int) -> None:
    source, some, pieces = conversations(name, shape)
    dice = random.Random(seed)
    one = dice.choice(some)
    most = {"lines": 6, "markdown": 40, "document": 1}[shape]
    harmed = goldens.damaged(pieces if shape != "document" else [one.data], dice, most)
    harmed = beginning(name, shape) + harmed
    goldens.assert_survives(source, one.found, harmed, seed, lines=shape == "lines")
    if shape == "markdown" and harmed:
        goldens.assert_same_in_pieces(source, one.found, harmed, seed, stopping=False)


@pytest.mark.parametrize(("name", "shape"), of_shape("lines", "document"))
@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=300)
def test_an_odd_value_anywhere_is_read_all_the_same(name: str, shape: str, seed: int, odd: Any) -> None:
    source, some, _ = conversations(name, shape)
    dice = random.Random(seed)
    found = dice.choice(some).found
    if shape == "lines":
        records = [goldens.with_odd_value(dice.choice(records_of(name)), odd, dice) for _ in range(4)]
        data = beginning(name, shape) + b"".join(json.dumps(record).encode() + b"\n" for record in records)
        goldens.assert_survives(source, replace(found, kind="subagent", parent="x"), data, seed)
        if source.original is not None:
            assert all(isinstance(source.original(line), str | None) for line in data.splitlines())
    else:
        document = goldens.with_odd_elements(dice.choice(records_of(name, "document")), odd, dice)
        data = json.dumps(document, indent=dice.choice([None, 1])).encode()
    goldens.assert_survives(source, found, data, seed, lines=shape == "lines")
    assert source.sniff(found.path, data) is None or source.workspace(data) is not None


@cache
def records_of(name: str, shape: str = "lines") -> list[Any]:
    """Return the records or documents of the samples that are whole."""
    return goldens.parsed(conversations(name, shape)[2])


CONTAINERS = [
    sample
    for sample in SAMPLES
    if sample.path.suffix == ".json" and all(one.found.path != sample.path for one in read_sample(sample))
]


@pytest.mark.parametrize("sample", CONTAINERS, ids=sample_id)
@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=120)
def test_no_odd_container_stops_the_unpacking(
    tmp_path_factory: pytest.TempPathFactory, sample: Sample, seed: int, odd: Any
) -> None:
    dice, data = random.Random(seed), sample.path.read_bytes()
    path = tmp_path_factory.getbasetemp() / "odd.json"
    if dice.random() < 0.5:
        path.write_bytes(goldens.damaged([data], dice, most=1))
    else:
        path.write_text(json.dumps(goldens.with_odd_value(json.loads(data), odd, dice)))
    for found, lines, _ in goldens.readings(sample.source, path, SourceCandidate(path, "container")):
        goldens.assert_survives(sample.source, found, lines, seed)


def real_files() -> list[Any]:
    """Return a parameter for each real file; for a format without any, one that is skipped with the reason."""
    return [
        pytest.param(name, *real.values, marks=real.marks, id=f"{name}-{real.id}")
        for name, folders in REAL.items()
        for real in goldens.corpus(*folders)
    ]


@pytest.mark.parametrize(("name", "path"), real_files())
def test_a_real_file_keeps_what_readers_promise(name: str, path: Path) -> None:
    for _, data, whole in goldens.readings(all_sources()[name], path):
        goldens.assert_keeps_promises(all_sources()[name], data, whole)


@pytest.mark.parametrize(("name", "path"), real_files())
def test_a_real_file_reads_the_same_in_any_pieces(name: str, path: Path) -> None:
    source, data = all_sources()[name], path.read_bytes()
    for seed in range(3):
        goldens.assert_same_in_pieces(source, goldens.found_for(source, path, data), data, seed)
