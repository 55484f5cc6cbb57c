"""Helpers of this source's tests: the transcripts at hand, and reading one in any pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from everturn.sources.claude_code import SOURCE
from everturn.sources.contract import SourceCandidate
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"


def samples() -> list[Path]:
    """Every sample transcript."""
    return sorted(SAMPLES.glob("*.jsonl"))


def corpus() -> list[Path]:
    """Every real transcript at hand."""
    folders = (goldens.CORPUS / "claude-code", goldens.CORPUS / "claude-code-fixture")
    return sorted(path for folder in folders for path in folder.rglob("*.jsonl"))


def found_for(path: Path, data: bytes) -> SourceCandidate:
    """Return the candidate for a file, even if its head is damaged."""
    return goldens.found_for(SOURCE, path, data)


def read(found: SourceCandidate, data: bytes, cuts: Iterable[int] = (), stops: Sequence[bool] = ()) -> goldens.Whole:
    """Read a file in pieces that end at `cuts`; where `stops` says so, by a new reader after an end of file."""
    return goldens.read(SOURCE, found, data, cuts, stops)
