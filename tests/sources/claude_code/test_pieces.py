"""Reading in any pieces gives what reading at once gives, and no damage stops a reader."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from everturn.sources.claude_code import SOURCE
from everturn.sources.contract import SourceCandidate
from tests.quick import QUICK
from tests.sources.claude_code.reading import corpus, found_for, read, samples
from tests.sources.goldens import assert_same

SMALL = [path for path in corpus() if path.stat().st_size < 100_000]
STATE_LIMIT = 300_000


@pytest.mark.parametrize("name", ["glued", "nul", "torn", "queue-old"])
def test_a_file_that_grows_byte_by_byte_reads_the_same(name: str) -> None:
    path = next(path for path in samples() if path.stem == name)
    data = path.read_bytes()
    found, cuts = found_for(path, data), range(1, len(data))
    assert_same(read(found, data, cuts, [True] * len(data)), read(found, data))


@pytest.mark.skipif(not SMALL, reason="no real transcripts beside the checkout")
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_real_transcript_reads_the_same_in_any_pieces(path: Path) -> None:
    data = path.read_bytes()
    found, dice = found_for(path, data), random.Random(path.stem)
    at_once = read(found, data)
    for _ in range(6):
        cuts = sorted(dice.sample(range(len(data)), 20))
        assert_same(read(found, data, cuts, [dice.random() < 0.7 for _ in cuts]), at_once)


@pytest.mark.parametrize("path", samples() + corpus(), ids=lambda path: path.stem)
def test_the_state_stays_small(path: Path) -> None:
    data = path.read_bytes()
    reader = SOURCE.reader(found_for(path, data), b"")
    reader.feed(data, 0, True)
    assert len(reader.state()) < 10_000


@pytest.mark.slow
def test_the_state_stays_bounded_however_much_there_is_to_remember() -> None:
    lines = []
    many = 3000 if QUICK else 6000
    for n in range(many):
        uuid = f"{n:08x}-1111-4222-8333-{n:012x}"
        lines.append(
            f'{{"type":"user","uuid":"{uuid}","isSidechain":true,"sessionId":"s","message":{{"content":"{n}"}}}}'
        )
        lines.append(f'{{"type":"queue-operation","operation":"enqueue","content":"{n} {"word " * 20}"}}')
        lines.append(f'{{"type":"summary","summary":"title {n}","leafUuid":"gone-{n}"}}')
    reader = SOURCE.reader(SourceCandidate(Path("s.jsonl"), "main", "s"), b"")
    reading = reader.feed("\n".join(lines).encode(), 0, True)
    assert len(reader.state()) < STATE_LIMIT
    queued = [message for part in reading.parts for message in part.messages if message.kind == "queued"]
    assert len(queued) > many - 2000  # what there was no room for was said at once, not lost
