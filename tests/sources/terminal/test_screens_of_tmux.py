"""Our screen shows what tmux shows, on more than a thousand random streams of output.

What tmux showed is kept in goldens/screens.json.gz. `UPDATE_EXPECTED=1` asks tmux again and writes it anew; the slow test
compares with the tmux at hand on streams that are not in the file.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from everturn.sources.terminal.grid import FILLER, width_of
from everturn.sources.terminal.screen import TerminalScreen
from tests.sources.terminal.random_screens import bytes_of, colours_of, size_of
from tests.sources.terminal.tmux import Cell, Tmux, painted, trimmed

GOLDENS = Path(__file__).parent / "goldens" / "screens.json.gz"
SEEDS = range(1200)
FRESH = range(1_000_000, 1_000_100)
PARTS = 12


class Watched(TerminalScreen):
    """Notices when half of a wide character is written over in a way that tmux 3.3a makes a mess of."""

    messy = False

    def put(self, cells: str) -> None:
        row, end = self.cells[self.y], self.x + len(cells)
        halves = [place for place in range(self.x, min(end + 1, self.columns)) if row[place] == FILLER]
        self.messy |= any(not self._is_wide(row, place - 1) for place in halves) or (halves[:1] == [1] == [self.x])
        super().put(cells)

    def insert_cells(self, count: int) -> None:
        self.messy |= self.x < self.columns and self.cells[self.y][self.x] == FILLER
        super().insert_cells(count)

    def _is_wide(self, row: str, place: int) -> bool:
        return place >= 0 and width_of(self.alphabet.characters(row[place])[:1] or " ") == 2


def replayed(seed: int) -> Watched:
    screen = Watched(*size_of(seed))
    screen.feed(bytes_of(seed) + b"\x1b\\")
    screen.close()
    return screen


def is_comparable(seed: int) -> bool:
    """Whether no lone half of a wide character was written over: tmux then shows halves, or wipes out what is beside
    them. On all other screens there is nothing to forgive."""
    return not replayed(seed).messy


def ours(seed: int) -> list[list[Cell]]:
    screen = replayed(seed)
    rows = []
    for cells, colours in zip(screen.cells, colours_of(screen), strict=True):
        characters = map(screen.alphabet.characters, cells)
        rows.append([(char, colour) for cell, colour in zip(characters, colours, strict=True) for char in cell])
    return list(map(trimmed, rows))


def packed(rows: list[list[Cell]]) -> list[Any]:
    """Texts, and the stretches of one colour in each."""
    colours: list[list[Any]] = []
    for row in rows:
        runs: list[list[Any]] = []
        for place, (char, colour) in enumerate(row):
            if colour is None:
                continue
            if runs and runs[-1][2] == colour and not "".join(char for char, _ in row[runs[-1][1] : place]).strip(" "):
                runs[-1][1] = place + 1
            else:
                runs.append([place, place + 1, colour])
        colours.append(runs)
    return [["".join(char for char, _ in row) for row in rows], colours]


def shown(tmux: Tmux, seed: int) -> list[list[Cell]]:
    return painted(tmux.replay(bytes_of(seed), *size_of(seed), "-e"))


@cache
def goldens() -> dict[str, Any]:
    if os.environ.get("UPDATE_EXPECTED"):
        with Tmux() as tmux:
            screens = {str(seed): packed(shown(tmux, seed)) for seed in SEEDS if is_comparable(seed)}
            told = {"tmux": tmux.version(), "screens": screens}
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        GOLDENS.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    told = json.loads(gzip.decompress(GOLDENS.read_bytes()))
    assert isinstance(told, dict)
    return told


@pytest.mark.few(3)
@pytest.mark.parametrize("part", range(PARTS))
def test_our_screen_equals_that_of_tmux(part: int) -> None:
    screens = goldens()["screens"]
    wrong = [seed for seed in list(screens)[part::PARTS] if packed(ours(int(seed))) != screens[seed]]
    assert wrong == []


@pytest.mark.slow
def test_there_are_more_than_a_thousand_screens_of_tmux_and_few_were_left_out() -> None:
    screens = goldens()["screens"]
    assert len(screens) >= 1000
    assert len(screens) >= 0.9 * len(SEEDS)
    assert {seed for seed in SEEDS if is_comparable(seed)} == set(map(int, screens))
    assert sum(bool(text) for texts, _ in screens.values() for text in texts) > 6 * len(screens)


def test_the_golden_file_is_small() -> None:
    assert GOLDENS.stat().st_size < 500_000


@pytest.mark.slow
@pytest.mark.needs("tmux")
def test_our_screen_equals_that_of_the_tmux_at_hand_on_streams_never_seen_before() -> None:
    seeds = [seed for seed in FRESH if is_comparable(seed)]
    with Tmux() as tmux:
        wrong = [seed for seed in seeds if ours(seed) != shown(tmux, seed)]
    assert wrong == []
