"""The truth beside a recording: what happened in the terminal, written down by the code that made it happen.

A recording is a folder with `recording.raw` and `recording.timing` (made by `script`), `truth.json` (a `Truth`) and
`screens.jsonl` (a `Screen` after every step).
Everything in it has a `Moment`: seconds since the recording began, and how many bytes of `recording.raw` were written by
then. What a person caused (prompts, keys) happens at that moment and is on the screen after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

SCHEMA = "everturn/recording@1"
RECORDING, TIMING, TRUTH, SCREENS = "recording.raw", "recording.timing", "truth.json", "screens.jsonl"


class Moment(msgspec.Struct, frozen=True):
    """A place in a recording."""

    at: float  # seconds since it began
    offset: int  # bytes written so far, the header line of `script` included


class Prompt(msgspec.Struct, frozen=True):
    """What was submitted."""

    text: str
    when: Moment
    session: int  # from 1
    pasted: bool = False


class Answer(msgspec.Struct, frozen=True):
    """What the model said in one response."""

    text: str
    when: Moment  # when its first byte was sent
    prompt: int  # index of the prompt it belongs to
    cut: bool = False  # it was interrupted: not all of it was drawn


class ToolRun(msgspec.Struct, frozen=True):
    """A tool the model called."""

    kind: str  # shell | write | edit | read | todo
    key: str  # the command or the file, as it is on the screen
    name: str  # in the program's words
    arguments: dict[str, Any]
    when: Moment
    prompt: int
    status: str = "none"  # ok: a result came back; denied: the user refused; none: never run
    result: str | None = None  # as the model was told


class Notice(msgspec.Struct, frozen=True):
    """Something on the screen that is no part of the conversation."""

    kind: str  # failure | dialog | toast | interrupt
    text: str
    when: Moment


class Event(msgspec.Struct, frozen=True):
    """Something else a person did."""

    kind: str  # new | resize | scroll | interrupt | agent | toast
    value: str  # the size, the direction; of `new` and `agent` what is on the screen since
    when: Moment


class Screen(msgspec.Struct, frozen=True):
    """What was on the screen after a step, as another terminal emulator (tmux) saw it: one line of `screens.jsonl`."""

    after: str
    when: Moment
    lines: list[str]


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known about a recording."""

    program: str
    version: str
    scenario: str
    seed: int
    size: tuple[int, int]
    form: str  # typescript | log-out
    started: float  # seconds since 1970
    bytes: int
    complete: bool = True  # False: a step did not end in time
    prompts: list[Prompt] = []
    answers: list[Answer] = []
    calls: list[ToolRun] = []
    notices: list[Notice] = []
    events: list[Event] = []
    schema: str = SCHEMA

    @property
    def sessions(self) -> int:
        """How many sessions had a prompt."""
        return len({prompt.session for prompt in self.prompts})

    @property
    def runs(self) -> list[ToolRun]:
        """The calls that were run or refused: those a reader can see."""
        return [call for call in self.calls if call.status != "none"]


def write_truth(folder: Path, truth: Truth) -> None:
    """Write the truth beside its recording."""
    data = msgspec.json.format(msgspec.json.encode(truth), indent=1)
    (folder / TRUTH).write_bytes(data + b"\n")


def read_truth(folder: Path) -> Truth:
    """The truth of a recording."""
    return msgspec.json.decode((folder / TRUTH).read_bytes(), type=Truth)


# text -----------------------------------------------------------------------------------------------------------------
_FENCE = re.compile(r"^\s*(```|\|[-| ]+\|\s*$)")
_MARKER = re.compile(r"^\s*(?:(?:[-*•>#]+|\d+\.)\s+)+")


def answer_lines(answer: Answer) -> list[str]:
    """The letters of each line of an answer, without what Markdown makes of it."""
    return [
        bare for line in answer.text.splitlines() if not _FENCE.match(line) and (bare := squash(_MARKER.sub("", line)))
    ]


def squash(text: str) -> str:
    """The letters and digits of a text: what wrapping, borders and Markdown leave alone."""
    return re.sub(r"[\W_]", "", text).lower()


def added_lines(before: str, after: str) -> str:
    """The lines of a screen that an earlier one did not have."""
    known = {squash(line) for line in before.splitlines()}
    return "\n".join(line.strip() for line in after.splitlines() if squash(line) and squash(line) not in known)


# timing ---------------------------------------------------------------------------------------------------------------
def read_timing(timing: str) -> Iterator[tuple[float, int]]:
    """The output entries of a timing file, in either format: seconds since the beginning and size."""
    clock = 0.0
    for line in timing.splitlines():
        words = line.split()
        if len(words) == 2:
            words = ["O", *words]
        if len(words) < 3 or not re.fullmatch(r"\d+\.\d+", words[1]):
            continue
        clock += float(words[1])
        if words[0] == "O":
            yield clock, int(words[2])


def offset_at(timing: str, header: int, seconds: float) -> int:
    """How many bytes of a recording were written by then; `header` is the length of the first line of `script`."""
    return header + sum(size for at, size in read_timing(timing) if at <= seconds)
