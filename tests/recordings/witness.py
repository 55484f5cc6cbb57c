"""Which of some texts a recording shows: replayed piece by piece, looking at the screen after each.

A line of an answer that a program never drew, because the next frame came first or something covered it, is not a reader's
to find. Texts are compared by their letters (`squash`), so that wrapping and borders do not matter.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.recordings.emulator import Emulator
from tests.recordings.truth import RECORDING, TIMING, Truth, answer_lines, read_timing, squash

_PIECE = 4096  # bytes, where there is no timing


def shown_texts(folder: Path, truth: Truth, texts: Iterable[str]) -> set[str]:
    """Those of the texts that were on the screen, or have scrolled off it, as a whole at some time."""
    missing = {text for text in texts if text}
    shown: set[str] = set()
    for screen in _screens(folder, truth):
        now = {text for text in missing if text in screen}
        shown |= now
        missing -= now
        if not missing:
            break
    return shown


def shown_of(folder: Path, truth: Truth) -> set[str]:
    """The lines of the answers and of the prompts, and the keys of the calls, that were shown."""
    lines = {line for answer in truth.answers for line in answer_lines(answer)}
    lines |= {squash(line) for prompt in truth.prompts for line in prompt.text.splitlines()}
    return shown_texts(folder, truth, lines | {squash(run.key) for run in truth.runs})


def _screens(folder: Path, truth: Truth) -> Iterator[str]:
    """The letters on the screen after every piece of output, with what has scrolled off since."""
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
            yield squash(text)


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
