"""Real recordings, where they are at hand, show the same in tmux and here, and their transcripts are what tmux showed.

The transcripts themselves are not part of the project: only how many lines they have and a digest, written down after
looking at tmux replaying the recordings.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from everturn.sources.terminal.frames import is_telling
from everturn.sources.terminal.recordings import read_recording, recognise_recording
from everturn.sources.terminal.screen import TerminalScreen
from everturn.sources.terminal.transcript import TranscriptSegment
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.tmux import Tmux

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
MAIN, ALTERNATE, CAST = (
    CORPUS / "terminal" / name for name in ("claude-code-2.1.raw", "opencode-1.18.raw", "demo.cast")
)
UPDATE_ENDS = re.compile(rb"\x1b\[\?2026l")

pytestmark = pytest.mark.skipif(not (CORPUS / "terminal").is_dir(), reason="no recordings beside the checkout")


def text(segment: TranscriptSegment) -> list[str]:
    return [line.text for line in segment.lines if line.text]


def digest(lines: list[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def output(path: Path) -> tuple[bytes, int, int]:
    recording = read_recording(path.read_bytes(), path.name)
    return b"".join(chunk.data for chunk in recording.chunks()), recording.columns, recording.rows


def full_screen(path: Path) -> list[TranscriptSegment]:
    segments = transcribe(path.read_bytes(), path.name).segments
    return [segment for segment in segments if segment.alternate and not segment.gone]


def test_all_recordings_at_hand_are_recognised() -> None:
    kinds = {
        path.name: recognise_recording(path.read_bytes()[:65536], path.name) for path in (CORPUS / "terminal").iterdir()
    }
    assert kinds == {MAIN.name: "raw", ALTERNATE.name: "raw", CAST.name: "asciicast"}
    captured = list((CORPUS / "opencode-tui").rglob("*.txt"))
    assert {recognise_recording(path.read_bytes(), path.name) for path in captured} == {"captured"}


def test_no_other_file_at_hand_is_taken_for_a_recording() -> None:
    ours = {CORPUS / "terminal", CORPUS / "opencode-tui"}
    claimed = [
        path
        for path in CORPUS.rglob("*")
        if path.is_file()
        and ours.isdisjoint(path.parents)
        and recognise_recording(path.read_bytes()[:65536], path.name)
    ]
    assert claimed == []


@pytest.mark.parametrize(
    ("path", "number", "count", "expected"),
    [
        (MAIN, 0, 50, "5b817273296de0a8"),
        (ALTERNATE, 2, 41, "5cbd33bca0f3bd44"),
        (CAST, 0, 168, "0bf491f6f0f29175"),
    ],
    ids=["main screen", "session", "cast"],
)
def test_a_transcript_is_the_one_that_was_looked_at(path: Path, number: int, count: int, expected: str) -> None:
    lines = text(transcribe(path.read_bytes(), path.name).segments[number])
    assert (len(lines), digest(lines)) == (count, expected)


@pytest.mark.slow
@pytest.mark.needs("tmux")
def test_every_line_that_tmux_keeps_of_the_main_screen_is_kept_once() -> None:
    data, columns, rows = output(MAIN)
    with Tmux() as tmux:
        shown = tmux.replay(data, columns, rows, "-S", "-").split("\n")
    (segment,) = transcribe(MAIN.read_bytes(), MAIN.name).segments
    kept = [line.rstrip() for line in shown if line.strip()]
    assert len(kept) > 50
    assert set(kept) <= set(text(segment))
    prompts = [line for line in text(segment) if line.startswith("❯ ")]
    assert prompts == list(dict.fromkeys(line for line in kept if line.startswith("❯ ")))


@pytest.mark.slow
@pytest.mark.needs("tmux")
@pytest.mark.parametrize("path", [ALTERNATE, CAST], ids=["session", "cast"])
def test_every_screen_and_every_line_is_one_that_tmux_showed(path: Path) -> None:
    data, columns, rows = output(path)
    ends = [match.end() for match in UPDATE_ENDS.finditer(data)]
    assert len(ends) > 100
    seen: set[str] = set()
    screen, fed = TerminalScreen(columns, rows), 0
    with Tmux() as tmux:
        for end in (*ends[: -1 : 1 + len(ends) // 100], ends[-1]):
            screen.feed(data[fed:end])
            fed = end
            shown = [line.rstrip() for line in tmux.replay(data[:end], columns, rows).removesuffix("\n").split("\n")]
            assert screen.lines() == shown
            seen.update(shown)
    segments = full_screen(path)
    assert max(len(text(segment)) for segment in segments) > 40
    for segment in segments:
        assert [line for line in text(segment) if line not in seen] == []
    footer = segments[-1].footer.split("\n")
    last = [line for line in shown if is_telling(line) and line.strip() not in footer]
    assert len(last) > 5
    assert [line for line in text(segments[-1]) if is_telling(line)][-len(last) :] == last


def test_each_request_and_its_answer_come_once_and_in_order() -> None:
    *_, session = full_screen(ALTERNATE)
    told = [line.text for line in session.lines]
    assert re.findall(r"request number (\d)", "\n".join(told)) == [str(number) for number in range(1, 9)]
    assert sum("scripted answer" in line for line in told) == 8
    (cast,) = full_screen(CAST)
    assert re.findall(r"Request (\d+):", "\n".join(text(cast))) == [str(number) for number in range(1, 13)]
    assert re.findall(r"DONE-(\d+)", "\n".join(text(cast))) == [str(number) for number in range(1, 13)]
