"""Which of some texts a recording shows: replayed piece by piece, looking at the screen after each.

A line of an answer that a program never drew, because the next frame came first or something covered it, is not a reader's
to find. Nor is the command or the file of a call, if it was not on the screen between that call and the next one of the same
command or file. Texts are compared by their letters (`squash`), so that wrapping and borders do not matter.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from tests.recordings.emulator import Emulator
from tests.recordings.truth import RECORDING, TIMING, ToolRun, Truth, answer_lines, read_timing, squash

_PIECE = 4096  # bytes, where there is no timing


class Shown(NamedTuple):
    """What was on the screen, or has scrolled off it, as a whole at some time."""

    lines: set[str]  # of the answers and of the prompts, as letters
    calls: set[int]  # the places of calls whose key was shown while it could be theirs


def shown_of(folder: Path, truth: Truth) -> Shown:
    """What was shown of the answers, the prompts and the calls."""
    lines = {line for answer in truth.answers for line in answer_lines(answer)}
    lines |= {squash(line) for prompt in truth.prompts for line in prompt.text.splitlines()}
    missing = {line for line in lines if line}
    waiting = {(place, squash(run.key)): _times_of(truth.runs, run) for place, run in enumerate(truth.runs)}
    shown = Shown(set(), set())
    for end, screen in _screens(folder, truth):
        shown.lines.update(text for text in missing if text in screen)
        missing -= shown.lines
        drawn = {one for one, (since, until) in waiting.items() if since <= end <= until and one[1] in screen}
        shown.calls.update(place for place, _ in drawn)
        waiting = {one: times for one, times in waiting.items() if one not in drawn and end <= times[1]}
        if not missing and not waiting:
            break
    return shown


def _times_of(runs: Sequence[ToolRun], run: ToolRun) -> tuple[int, float]:
    """The bytes between a call and the next one with the same key."""
    since = run.when.offset
    later = (one.when.offset for one in runs if squash(one.key) == squash(run.key) and one.when.offset > since)
    return since, min(later, default=inf)


def _screens(folder: Path, truth: Truth) -> Iterator[tuple[int, str]]:
    """After every piece of output its end, and the letters on the screen with what has scrolled off since."""
    raw = (folder / RECORDING).read_bytes()
    resizes = [(event.when.offset, event.value) for event in truth.events if event.kind == "resize"]
    terminal = Emulator(*truth.size)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = ""
    for start, end in _pieces(folder, raw):
        while resizes and resizes[0][0] <= start:
            width, height = resizes.pop(0)[1].split("x")
            terminal.resize(int(width), int(height))
        terminal.feed(decoder.decode(raw[start:end]))
        if (text := terminal.take_left() + "\n" + terminal.text) != last:
            last = text
            yield end, squash(text)


def _pieces(folder: Path, raw: bytes) -> Iterator[tuple[int, int]]:
    """The byte ranges of the output, after the header of `script`."""
    at = raw.find(b"\n") + 1 if raw.startswith(b"Script started") else 0
    timing = folder / TIMING
    sizes = [size for _, size in read_timing(timing.read_text())] if timing.exists() else []
    for size in sizes:
        yield at, at + size
        at += size
    while at < len(raw):
        yield at, at + _PIECE
        at += _PIECE
