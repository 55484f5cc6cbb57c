"""More recording never gives less: cut a recording at many places, and compare what is read of each piece with the next.

A prompt that is read from the first n bytes must be read from the first m > n bytes. It may have been cut off at the first
place, and be longer at the second; one that is marked as partial may have had gaps at the ends of its rows. The witness of a whole recording says how much of the screen is in a talk.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from everturn.sources.terminal.coverage import ScreenCoverage, ScreenWitness, compare
from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.recordings import read_recording
from everturn.sources.terminal.transcript import DrawnSaying, OutputChunk, ScreenTalk, TerminalRecording
from everturn.sources.terminal.views import transcribe_recording
from tests.recordings.score import letters
from tests.recordings.truth import RECORDING, TIMING


@dataclass(frozen=True)
class CutReport:
    """What the cuts of one recording showed."""

    name: str
    cuts: int
    lost: tuple[tuple[int, int, str], ...]  # read at the first place, not at the second, and the words
    coverage: ScreenCoverage

    def line(self) -> str:
        """The report in one line."""
        share = f"{self.coverage.share:7.2%} of the screen" if self.coverage.shown else "no witness"
        doubts = f", {len(self.coverage.unanswered)} typed and not found" if self.coverage.unanswered else ""
        lost = "".join(f"\n    {first}–{second}: {words[:60]}" for first, second, words in self.lost[:5])
        return f"{self.name:36} {self.cuts:4} cuts {len(self.lost):3} lost  {share}{doubts}{lost}"


def cut_recording(folder: Path, cuts: int) -> CutReport:
    """Read a recording whole and cut off at `cuts` places."""
    data = (folder / RECORDING).read_bytes()
    timing = (folder / TIMING).read_bytes() if (folder / TIMING).exists() else None
    places = sorted({len(data) * number // cuts for number in range(1, cuts + 1)})
    witness = ScreenWitness()
    found, talks = _read_pieces(read_recording(data, RECORDING, timing), places, witness)
    lost: list[tuple[int, int, str]] = []
    for (first, before), (second, now) in pairwise(zip(places, found, strict=True)):
        lost += [(first, second, words) for words in missing_prompts(before, now)]
    return CutReport(folder.name, len(places), tuple(lost), compare(witness, talks))


def _read_pieces(
    recording: TerminalRecording, places: list[int], witness: ScreenWitness
) -> tuple[list[list[str]], list[ScreenTalk]]:
    """Return the words of the prompts up to each place, the last of which is the end, and the talks of all of it.

    The recording is replayed once. At each place the process divides: the child takes the recording for ended there, and
    tells what it found.
    """
    told: list[bytes] = []
    child: list[int] = []

    def chunks() -> Iterator[OutputChunk]:
        for chunk, ends in _split(recording, places[:-1]):
            yield chunk
            if ends:
                ours, theirs = os.pipe()
                if os.fork() == 0:
                    child.append(theirs)
                    return
                os.close(theirs)
                with os.fdopen(ours, "rb") as told_by_child:
                    told.append(told_by_child.read())
                os.wait()

    talks = read_screens(transcribe_recording(recording._replace(chunks=chunks), witness))
    prompts = [_words_of(item) for talk in talks for item in talk.said if item.starts_turn and item.text]
    if child:
        with os.fdopen(child[0], "wb") as parent:
            parent.write(json.dumps(prompts).encode())
        os._exit(0)
    return [*(json.loads(text) for text in told), prompts], talks


def _split(recording: TerminalRecording, places: list[int]) -> Iterator[tuple[OutputChunk, bool]]:
    """Yield the chunks of a recording, divided at the places, and whether a place is at the end of each."""
    left = list(places)
    for chunk in recording.chunks():
        rest = chunk
        while left and left[0] <= rest.end:
            size = max(0, left.pop(0) - rest.start)
            yield rest._replace(data=rest.data[:size], end=rest.start + size), True
            rest = rest._replace(data=rest.data[size:], start=rest.start + size, size=None)
        yield rest, False


def _words_of(prompt: DrawnSaying) -> str:
    """Return the letters of a prompt; those of each row by themselves where the ends of rows may be missing."""
    rows = prompt.text.split("\n") if prompt.fidelity == "partial" else [prompt.text]
    return "\n".join(filter(None, map(letters, rows)))


def missing_prompts(before: list[str], now: list[str]) -> list[str]:
    """Return the prompts that were read before and are not read now; each of now stands for one of before."""
    left = Counter(now)
    missing = []
    for words in before:
        found = words if left[words] else next((one for one in left if left[one] and _goes_on(words, one)), None)
        if found is None:
            missing.append(words)
        else:
            left[found] -= 1
    return missing


def _goes_on(part: str, whole: str) -> bool:
    """Return whether the rows of a prompt stand in another one in their order; all of it at its beginning, if it is one row."""
    rows, text = part.split("\n"), whole.replace("\n", "")
    if len(rows) == 1:
        return text.startswith(part)
    place = 0
    for row in rows:
        if (place := text.find(row, place)) < 0:
            return False
        place += len(row)
    return True
