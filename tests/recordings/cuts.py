"""More recording never gives less: cut a recording at many places, and compare what is read of each piece with the next.

A prompt that is read from the first n bytes must be read from the first m > n bytes. It may have been cut off at the first
place, and be longer at the second. The witness of a whole recording says how much of the screen is in a talk.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from everturn.sources.terminal.coverage import ScreenCoverage, ScreenWitness, compare
from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.views import transcribe
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
    witness = ScreenWitness()
    coverage = compare(witness, read_screens(transcribe(data, RECORDING, timing, witness)))
    places = [len(data) * number // cuts for number in range(1, cuts + 1)]
    lost: list[tuple[int, int, str]] = []
    before: list[str] = []
    for first, second in zip([0, *places], places, strict=False):
        now = _prompts(data[:second], timing)
        lost += [(first, second, words) for words in _missing(before, now)]
        before = now
    return CutReport(folder.name, cuts, tuple(lost), coverage)


def _prompts(data: bytes, timing: bytes | None) -> list[str]:
    talks = read_screens(transcribe(data, RECORDING, timing))
    return [letters(item.text) for talk in talks for item in talk.said if item.starts_turn and item.text]


def _missing(before: list[str], now: list[str]) -> list[str]:
    left = Counter(now)
    missing = []
    for words in before:
        found = words if left[words] else next((one for one in left if left[one] and one.startswith(words)), None)
        if found is None:
            missing.append(words)
        else:
            left[found] -= 1
    return missing
