"""Terminal recordings: how fast screens are replayed and stitched, and how much of what was shown comes out."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import product
from math import inf
from pathlib import Path

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure
from everturn.sources.terminal.recordings import read_recording
from everturn.sources.terminal.screen import TerminalScreen
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.known_content import Agreement, agreement, read, text, typescript
from tests.sources.terminal.redrawing import Style, played

FLOOR = 2.0  # MB for each CPU second
GOOD = 0.99  # recall and precision
SEEDS = range(6)
_RECORDINGS = Path(__file__).parents[2] / "shared" / "corpus" / "terminal"
_MB = 1e6
_PER_RECORDING = 3.0  # MB fed to the clock: short recordings are gone through several times
_LONG = 60  # turns of a long session


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Speed of the screen alone and of the whole way, memory, and agreement with known content."""
    for name, data in _recordings():
        yield from _speed(name, data)
    yield _memory()
    yield from _agreements()


def _recordings() -> Iterator[tuple[str, bytes]]:
    """Real ones where they are at hand, and drawn ones."""
    if _RECORDINGS.is_dir():
        yield from ((path.name, path.read_bytes()) for path in sorted(_RECORDINGS.iterdir()))
    for drawing in ("whole", "changes", "scrolling"):
        style = Style(drawing=drawing, columns=120, rows=50, turns=20)
        yield f"program drawing its {drawing}", typescript(style, played(5, style).data)


def _speed(name: str, data: bytes) -> Iterator[Figure]:
    recording = read_recording(data, name)
    output = b"".join(chunk.data for chunk in recording.chunks())

    def replay() -> None:
        screen = TerminalScreen(recording.columns, recording.rows)
        for start in range(0, len(output), 1 << 16):
            screen.feed(output[start : start + (1 << 16)])

    speed = _megabytes_per_second(replay, len(output))
    yield Figure(f"screen, {name}", speed, "MB/CPU-s", FLOOR, at_least=True, note=f"{len(output) / 1e3:,.0f} kB")
    speed = _megabytes_per_second(lambda: transcribe(data, name), len(data))
    yield Figure(f"transcript, {name}", speed, "MB/CPU-s", FLOOR, at_least=True)


def _megabytes_per_second(work: Callable[[], object], size: int) -> float:
    """Of the fastest time: other programs on the machine make the same work take more CPU time, never less."""
    best = inf
    for _ in range(max(2, round(_PER_RECORDING * _MB / size))):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return size / _MB / best


def _memory() -> Figure:
    """Frames are not kept: what a transcript takes follows the text, of which redrawing makes a small part."""
    style = Style(turns=_LONG, columns=160, rows=50)
    data = typescript(style, played(1, style).data)
    tracemalloc.start()
    transcribe(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    note = f"a recording of {len(data) / _MB:.0f} MB"
    return Figure("memory beside the recording itself", peak / len(data), "× its size", 0.5, note=note)


def _agreements() -> Iterator[Figure]:
    """Of programs of every style, each drawn with known content."""
    for marks in ("sync", "cursor", "none"):
        found: list[Agreement] = []
        for drawing, sidebar, timed, seed in product(("whole", "changes", "scrolling"), (0, 30), (False, True), SEEDS):
            style = Style(
                marks=marks, drawing=drawing, columns=100 + sidebar, sidebar=sidebar, rows=24 + 4 * (seed % 4)
            )
            session = played(seed, style)
            found.append(agreement(session.truth, text(read(style, session, timed), style)))
        for what in ("recall", "precision"):
            values = [getattr(one, what) for one in found]
            note = f"{len(found)} sessions, the worst {min(values):.3f}"
            mean = sum(values) / len(values)
            yield Figure(f"{what} of lines, marks: {marks}", mean, "", GOOD, at_least=True, note=note)
