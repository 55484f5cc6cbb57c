"""How much of what a screen showed is in the archive, and what of it is not.

`ScreenWitness` looks at the frames on its own, beside the stitching: it remembers every row that the conversation's part of the
screen showed, and what was in the input field when it became empty. `compare` holds that against the talks that were read.
What is in none of them is reported with its place in the recording, never dropped.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from msgspec import Struct

from everturn.sources.terminal.frames import PaintedRow, ScreenFrame, ScreenLayout, is_telling
from everturn.sources.terminal.redraws import holds_in_order
from everturn.sources.terminal.rows import without_secret
from everturn.sources.terminal.talks import squash
from everturn.sources.terminal.tools import PENDING
from everturn.sources.terminal.transcript import DrawnSaying, ScreenTalk

_FRAME = " ┃│|║█╹▀"
_MARK = re.compile(
    r"^[⠁-⣿▣$→←✱›>•◦└■✔✓✗+#]+|·(?:[\d.]+(?:ms|[hms]))+$|·interrupted$"
)  # a spinner, an icon; how long it took
_PASSING = re.compile(
    r"~|#NewSession-|/sharetocreate|Workedfor|Working\(|\d+lines\(\^ttoexpand\)|Showdetails|Running|Explor(?:ing|ed)(?:·|$)|\(nooutput\)$"
)  # what a program says of itself
_PASTED = re.compile(r"\[[Pp]asted [^\]\n]{1,60}\]")  # stands in the input field for lines that were pasted
_MOST_ROWS = 200_000
_FEW = 3  # letters: less says nothing
_NOISE = frozenset(map(squash, PENDING)) | {"QUEUED", "Clicktoexpand", "Clicktocollapse"}


class ScreenPassage(Struct, frozen=True):
    """Text that was shown and is in no talk, and the bytes of the recording that drew it."""

    text: str
    first: int
    last: int


class ScreenCoverage(Struct, frozen=True):
    """How much of the text on the screen was read."""

    shown: int = 0  # letters, each row counted once
    lost: int = 0  # of them, in no talk
    missing: tuple[ScreenPassage, ...] = ()
    unanswered: tuple[ScreenPassage, ...] = ()  # texts that left the input field and are no prompt of any talk

    @property
    def share(self) -> float:
        """Return the share of the letters that is in a talk."""
        return 1 - self.lost / self.shown if self.shown else 1.0


class ScreenWitness:
    """Everything that frames of known programs showed."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, int]] = {}  # text → the bytes in which it was first drawn
        self.sent: list[ScreenPassage] = []
        self.emptied: list[int] = []  # the bytes up to which the field had become empty, whatever was in it
        self._before: list[str] = []
        self._typed = ""
        self._place = 0

    def see(self, layout: ScreenLayout, frame: ScreenFrame) -> None:
        """Take in a frame."""
        if layout.state == "talk":
            self._note(layout.rows, frame)
        self.see_field(layout.typed, frame)

    def see_field(self, typed: str | None, frame: ScreenFrame) -> None:
        """Take in what is in the input field; None where it is not shown. A field that becomes empty was sent.

        A field that goes on with what it held before was only caught while it was being drawn.
        """
        if typed is None or typed == self._typed:
            return
        if not typed:
            self.emptied.append(frame.end)
        if not typed and _is_prompt(self._typed):
            self.sent.append(ScreenPassage(self._typed, self._place, frame.end))
        elif not self._typed and self.sent and typed.startswith(self.sent[-1].text) and typed != self.sent[-1].text:
            self.sent.pop()
        self._typed, self._place = typed, frame.start

    def see_other(self, frame: ScreenFrame) -> None:
        """Take in a frame that the program's layout does not fit: a menu, a dialog, another program."""
        self._note(frame.rows, frame)

    def _note(self, rows: Sequence[PaintedRow], frame: ScreenFrame) -> None:
        """Remember the rows. One that was only the beginning of what stands there now is forgotten again."""
        texts = [row.text for row in rows]
        for number, (row, text) in enumerate(zip(rows, texts, strict=True)):
            before = self._before[number] if number < len(self._before) else ""
            if text == before or row.covered:
                continue
            if before and text.startswith(before.rstrip(_FRAME)):
                self.rows.pop(before, None)
            if text and text not in self.rows and len(self.rows) < _MOST_ROWS:
                self.rows[text] = frame.start, frame.end
        self._before = texts


def _is_prompt(typed: str) -> bool:
    """Return whether a text in the input field would be sent to the model; commands are for the program itself."""
    return len(squash(typed)) >= _FEW and is_telling(typed) and not typed.startswith(("/", "!"))


def compare(witness: ScreenWitness, talks: Sequence[ScreenTalk]) -> ScreenCoverage:
    """Hold what was shown against what was read."""
    said = [item for talk in talks for item in talk.said]
    titles = [title for talk in talks for title in talk.titles]
    known = _Known([*titles, *(words for item in said for words in _words(item))])
    shown = lost = 0
    missing: list[ScreenPassage] = []
    for text, (first, last) in witness.rows.items():
        words = without_secret(text).strip(_FRAME)
        letters = _MARK.sub("", squash(words))
        if len(letters) < _FEW or not is_telling(letters) or letters in _NOISE or _PASSING.match(letters):
            continue
        shown += len(letters)
        if letters not in known:
            lost += len(letters)
            missing.append(ScreenPassage(words, first, last))
    prompts = [(squash(item.text), item.bytes[1]) for item in said if item.role == "user"]
    return ScreenCoverage(shown, lost, tuple(missing), tuple(_find_unanswered(witness.sent, prompts)))


def _find_unanswered(sent: Iterable[ScreenPassage], prompts: list[tuple[str, int]]) -> Iterable[ScreenPassage]:
    """Yield the texts that were sent and are a part of no prompt; each prompt answers for one of them."""
    left = list(prompts)
    for passage in sent:
        parts = [squash(part) for part in _PASTED.split(passage.text)]
        known = any(parts)  # of pasted lines the field shows only how many they are: any prompt drawn since may be it
        found = next(
            (
                n
                for n, (prompt, end) in enumerate(left)
                if holds_in_order(prompt, parts) and (known or end >= passage.first)
            ),
            None,
        )
        if found is None:
            yield passage
        else:
            del left[: found + 1]


def _words(item: DrawnSaying) -> Iterable[str]:
    yield from (item.text, item.thinking, "".join(item.attached), f"{item.mode}·{item.model}", item.mode + item.model)
    yield f"{item.author}({item.time_text})"
    yield f"{item.mode}{item.model}({item.time_text})"
    if len(item.calls) > 1:  # may be drawn in one row
        yield item.calls[0].name.capitalize() + ",".join(call.path for call in item.calls)
    for call in item.calls:
        yield from (call.title, call.command, call.output, "".join(call.steps), "".join(call.diagnostics))
        yield call.name.capitalize() + call.path  # before it was run, the title may have been another one


class _Known:
    """The letters of all talks, to be asked for a row quickly: whole lines and their beginnings first."""

    def __init__(self, texts: Iterable[str]) -> None:
        lines: set[str] = set()
        whole: list[str] = []
        for text in texts:
            lines.update(squash(line.strip(_FRAME)) for line in text.split("\n"))
            whole.append(squash(text))
        self._lines = sorted(lines)
        self._whole = "\n".join(whole)

    def __contains__(self, letters: str) -> bool:
        place = bisect_left(self._lines, letters)
        return (place < len(self._lines) and self._lines[place].startswith(letters)) or letters in self._whole
