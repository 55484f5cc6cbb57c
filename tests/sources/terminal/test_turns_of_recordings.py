"""The turns of real recordings are those a person reads in them.

What is expected comes from tmux: it replays a recording, and a turn that stands whole on its screen is read off it by plain
rules: what is asked stands behind a bar or a mark, the rest below it. The last look counts: answers come after their frame.
Nothing of our own reading takes part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import DrawnSaying
from everturn.sources.terminal.views import transcribe
from tests.sources.terminal.reading import spoken
from tests.sources.terminal.test_replayed_recordings import ALTERNATE, CAST, CORPUS, MAIN, UPDATE_ENDS, output
from tests.sources.terminal.tmux import Tmux

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("tmux"),
    pytest.mark.skipif(not (CORPUS / "terminal").is_dir(), reason="no recordings beside the checkout"),
]

#: What was asked, and the lines of the answer.
Read = tuple[str, list[str]]


def screens(path: Path, most: int = 100) -> Iterator[list[str]]:
    """What tmux shows after every update, or every few."""
    data, columns, rows = output(path)
    ends = [match.end() for match in UPDATE_ENDS.finditer(data)]
    assert len(ends) > 50
    with Tmux() as tmux:
        for end in (*ends[: -1 : 1 + len(ends) // most], ends[-1]):
            yield [line.rstrip() for line in tmux.replay(data[:end], columns, rows).split("\n")]


def ours(path: Path) -> list[list[DrawnSaying]]:
    """The turns we read: each begins with what was asked."""
    (talk,) = read_screens(transcribe(path.read_bytes(), path.name))
    turns: list[list[DrawnSaying]] = []
    for item in spoken(talk):
        if item.role == "user":
            turns.append([])
        turns[-1].append(item)
    return turns


def told(turn: list[DrawnSaying]) -> Read:
    """A turn as the lines that stand on the screen."""
    asked, *answers = turn
    drawn = [text for item in answers for text in (*(call.title for call in item.calls), item.text) if text]
    return asked.text, [line.strip() for text in drawn for line in text.split("\n") if line.strip()]


def test_a_client_with_panels() -> None:
    expected: dict[str, tuple[str, list[str], str]] = {}
    for screen in screens(ALTERNATE):
        for number, line in enumerate(screen):
            asked = max((n for n in range(number) if re.match(r" +┃ +\w", screen[n])), default=-1)
            if asked >= 0 and (end := re.fullmatch(r" +▣ +Build · m · ([\d.]+m?s)", line)):
                answer = [row.strip() for row in screen[asked + 1 : number] if row.strip(" ┃")]
                expected[end[1]] = screen[asked].strip(" ┃"), answer, end[1]
    assert len(expected) == 8
    spans = {f"{span}ms": span for span in (157, 330, 251, 213, 447, 235, 346)} | {"3.5s": 3500}
    found = [(*told(turn), turn[-1].duration_ms) for turn in ours(ALTERNATE)]
    assert found == [(asked, answer, spans[span]) for asked, answer, span in expected.values()]


def test_a_program_with_boxes() -> None:
    expected: dict[str, Read] = {}
    for screen in screens(CAST):
        for number, line in enumerate(screen):
            if line.startswith("  DONE-") and line not in expected:
                name = max(n for n in range(number) if re.match(r"┃ alice \(", screen[n]))
                top = max(n for n in range(name) if screen[n].startswith("┃ Request"))
                asked = "\n".join(row.strip(" ┃") for row in screen[top:name])
                expected[line] = asked, [row.strip() for row in screen[name + 1 : number + 1] if row.strip()]
    assert len(expected) == 12
    assert [told(turn) for turn in ours(CAST)] == list(expected.values())


def test_a_client_on_the_main_screen() -> None:
    data, columns, rows = output(MAIN)
    with Tmux() as tmux:
        shown = tmux.replay(data, columns, rows, "-S", "-").split("\n")
    begin = max(n for n, line in enumerate(shown) if "Claude Code v" in line)  # it draws everything anew once
    end = next(n for n, line in enumerate(shown) if n > begin and line.startswith("────"))
    expected: list[tuple[str, list[str]]] = []
    for line in shown[begin:end]:
        if line.startswith("❯ /"):
            expected[-1][1].append(line[2:].rstrip())  # a command that the client itself answers
            break
        if line.startswith("❯ "):
            expected.append((line[2:].rstrip(), []))
        elif expected and line.startswith("  Listed 1 directory"):
            expected[-1][1].extend(["Listed 1 directory", "$ echo hi; ls /nonexistent_dir"])
        elif expected and line.startswith("● "):
            expected[-1][1].append(line.lstrip("● ").rstrip())
    assert len(expected) == 9
    assert [told(turn) for turn in ours(MAIN)] == expected
