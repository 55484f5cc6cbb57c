"""Compare what was read with the truth.

Prompts are compared in order and by their letters: wrapping may move spaces, nothing else may differ. A prompt that was never
on the screen as a whole counts as found where a prompt stands in its place. A line of an answer is
found where its letters stand together in what the model is said to have said, as many times as it was said. A call is found
where a call with its command or file stands in its place.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tests.recordings.reading import Found, read_directly, read_recording
from tests.recordings.truth import RECORDING, ToolRun, Truth, answer_lines, squash
from tests.recordings.witness import Shown, shown_of


@dataclass(frozen=True)
class Score:
    """Counts, found beside had."""

    prompts_found: int = 0
    prompts: int = 0
    strange: int = 0  # prompts nobody submitted
    lines_found: int = 0
    lines: int = 0
    repeated: int = 0  # lines that are there more often than they were said
    calls_found: int = 0
    calls: int = 0
    strange_calls: int = 0
    sessions_found: int = 0
    sessions: int = 0
    strange_sessions: int = 0  # more than there were

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Score)))


@dataclass(frozen=True)
class Row:
    """The score of one recording."""

    program: str
    scenario: str
    seed: int
    score: Score
    lost_prompts: tuple[str, ...] = ()
    strange_prompts: tuple[str, ...] = ()
    lost_calls: tuple[str, ...] = ()
    problem: str = ""
    undrawn_calls: int = 0  # run, but never on the screen: they are not among the calls

    def as_json(self) -> dict[str, object]:
        """The row as plain values."""
        return asdict(self)


def score_recording(folder: Path, truth: Truth, direct: bool = False) -> Row:
    """Read a recording with everturn, `direct`: without an archive, and compare."""
    signs = set((folder / RECORDING).read_bytes().decode(errors="ignore"))
    found = read_directly(folder / RECORDING) if direct else read_recording(folder / RECORDING)
    return compare(truth, found, shown_of(folder, truth), signs)


def compare(truth: Truth, found: Found, shown: Shown | None = None, signs: set[str] | None = None) -> Row:
    """The score of what was found.

    `shown` are the lines and calls that were on the screen, `signs` the characters that were ever drawn; None: all of them.
    """
    drawn_lines = shown.lines if shown is not None else None
    submitted = [letters(prompt.text, signs) if is_shown(prompt.text, drawn_lines) else ANY for prompt in truth.prompts]
    said = [letters(text, signs) for text in found.prompts]
    kept = common(submitted, said)
    lines_found, repeated, lines = match_lines(truth, found, drawn_lines)
    drawn = shown.calls if shown is not None else set(range(len(truth.runs)))
    calls_kept, calls_seen = match_calls(truth.runs, found.calls, drawn)
    drawn = drawn | calls_kept
    score = Score(
        prompts_found=len(kept),
        prompts=len(submitted),
        strange=len(said) - len(kept),
        lines_found=lines_found,
        lines=lines,
        repeated=repeated,
        calls_found=len(calls_kept),
        calls=len(drawn),
        strange_calls=len(found.calls) - len(calls_seen),
        sessions_found=min(found.sessions, truth.sessions),
        sessions=truth.sessions,
        strange_sessions=max(found.sessions - truth.sessions, 0),
    )
    return Row(
        truth.program,
        truth.scenario,
        truth.seed,
        score,
        _without(truth.prompts, {mine for mine, _ in kept}),
        tuple(text for place, text in enumerate(found.prompts) if place not in {theirs for _, theirs in kept}),
        tuple(f"{run.kind} {run.key}" for place, run in enumerate(truth.runs) if place in drawn - calls_kept),
        found.problem,
        len(truth.runs) - len(drawn),
    )


_TODO = re.compile("todo|plan|update")

#: A prompt that was never on the screen as a whole (it is taller, or the program garbled it): any prompt in its place is it.
ANY = "\0any"


def is_shown(text: str, shown: set[str] | None) -> bool:
    """Whether every line of a prompt was on the screen at some time."""
    return shown is None or all(line in shown for line in map(squash, text.splitlines()) if line)


def letters(text: str, signs: set[str] | None = None) -> str:
    """A prompt without its white space, in one Unicode form; without emoji and other signs that are not among `signs`.

    OpenCode 0.5 does not draw every emoji that is typed.
    """
    bare = re.sub(r"\s", "", unicodedata.normalize("NFC", text))
    return bare if signs is None else "".join(one for one in bare if one.isalnum() or one in signs)


def common(mine: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of a longest common subsequence."""
    best = [[0] * (len(theirs) + 1) for _ in range(len(mine) + 1)]
    for i in reversed(range(len(mine))):
        for j in reversed(range(len(theirs))):
            same = best[i + 1][j + 1] + 1 if mine[i] in (theirs[j], ANY) else 0
            best[i][j] = max(same, best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(mine) and j < len(theirs):
        if mine[i] in (theirs[j], ANY) and best[i][j] == best[i + 1][j + 1] + 1:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def match_lines(truth: Truth, found: Found, shown: set[str] | None) -> tuple[int, int, int]:
    """Lines found, lines there too often, lines shown."""
    every = (line for answer in truth.answers for line in answer_lines(answer))
    said = Counter(line for line in every if shown is None or line in shown)
    text = squash("".join(found.answers))
    counts = {line: text.count(line) for line in said}
    kept = sum(min(counts[line], times) for line, times in said.items())
    # A line of few letters occurs in others by chance.
    surplus = sum(max(counts[line] - times, 0) for line, times in said.items() if len(line) > 20)
    return kept, surplus, said.total()


def match_calls(runs: Sequence[ToolRun], found: Sequence[str], drawn: set[int]) -> tuple[set[int], set[int]]:
    """The calls that were found, and the found ones that were run. A call that is not among the `drawn` is any call.

    A call that the program never drew at all (a folded row of reads, a list that is not shown) cannot be lost.
    """
    texts = [squash(text) for text in found]
    used: set[int] = set()
    kept: set[int] = set()

    def find(place: int, fits: Callable[[str], bool]) -> None:
        match = next((n for n, text in enumerate(texts) if n not in used and fits(text)), None)
        if match is not None:
            used.add(match)
            kept.add(place)

    for place, run in enumerate(runs):
        key = squash(run.key)
        find(place, lambda text, key=key, kind=run.kind: key in text and kind in text.casefold())  # type: ignore[misc]
    for place, run in enumerate(runs):
        if place in kept:
            continue
        key = squash(run.key)
        is_todo = run.kind == "todo"
        find(place, lambda text, key=key, todo=is_todo: key in text or (todo and _TODO.search(text) is not None))  # type: ignore[misc]
    for place in range(len(runs)):
        if place not in kept and place not in drawn:
            find(place, lambda text: True)
    return kept, used


def _without(prompts: Iterable[object], kept: set[int]) -> tuple[str, ...]:
    return tuple(getattr(prompt, "text", "") for place, prompt in enumerate(prompts) if place not in kept)


# the table ------------------------------------------------------------------------------------------------------------
def table(rows: Sequence[Row]) -> str:
    """One line for each program and scenario, and one for all of a program."""
    lines = [_HEAD]
    for program in dict.fromkeys(row.program for row in rows):
        own = [row for row in rows if row.program == program]
        for scenario in dict.fromkeys(row.scenario for row in own):
            some = [row for row in own if row.scenario == scenario]
            name = f"{scenario} ({len(some)})" if len(some) > 1 else scenario
            lines.append(_line(program, name, [row.score for row in some]))
        lines += [_line(program, "all", [row.score for row in own]), ""]
    return "\n".join(lines)


_HEAD = f"{'program':16} {'scenario':14} {'prompts':>9} {'strange':>7} {'lines':>11} {'repeated':>8} {'calls':>7} {'strange':>7} {'sessions':>8} {'strange':>7}"  # fmt: skip


def _line(program: str, scenario: str, scores: Sequence[Score]) -> str:
    one = sum(scores, Score())
    return (
        f"{program:16} {scenario:14} {one.prompts_found:4}/{one.prompts:<4} {one.strange or '':>7} "
        f"{one.lines_found:5}/{one.lines:<5} {one.repeated or '':>8} {one.calls_found:3}/{one.calls:<3} "
        f"{one.strange_calls or '':>7} {one.sessions_found:4}/{one.sessions:<3} "
        f"{one.strange_sessions or '':>7}"
    ).rstrip()
