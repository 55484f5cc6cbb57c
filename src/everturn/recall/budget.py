"""What fits into an answer. Never more than 8,000 tokens, whatever is in the archive.

When it is too much, tool output and thoughts are cut first: each keeps as much of its two ends as there is room for
all alike, so that short ones stay whole. Then whole messages go, in the order the caller gives (the oldest first). A
single message may take half of the room. `FittedEntries` says what was cut and what was left out, so that an answer can.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from everturn.recall.answer import AnswerEntry, cut_notice, show_entry
from everturn.text.tokens import MARGIN, estimate_tokens

#: The largest answer, and what a token takes at most in bytes on average: 8,000 tokens are about 32 kB.
MAX_TOKENS = 8000
BYTES_PER_TOKEN = 4

#: The smallest budget that still has room for a frame and a hint.
MIN_TOKENS = 200


class FittedEntries(Struct, frozen=True):
    """Entries that fit, in the order given; those that were cut; those that are not there."""

    entries: list[AnswerEntry]
    cut: list[AnswerEntry]
    left_out: list[AnswerEntry]


def cost(text: str) -> int:
    """Tokens of a text, estimated on the safe side, and never fewer than its bytes stand for."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return max(int(estimate_tokens(text) * MARGIN) + 1, -(-size // BYTES_PER_TOKEN))


def fit_entries(
    entries: Sequence[AnswerEntry], tokens: int, leave_first: Sequence[int] | None = None, from_start: bool = False
) -> FittedEntries:
    """As much as `tokens` hold. `leave_first` are the indexes in the order to leave them out (default: as given).

    `from_start`: what is cut keeps its beginning only, so that one can go on where it ends.
    """
    cutter = _Cutter(entries, tokens, from_start)
    for index in leave_first if leave_first is not None else range(len(entries)):
        if cutter.smallest <= tokens or len(cutter.kept) == 1:
            break
        cutter.leave_out(index)
    made = {index: cutter.made(index) for index in sorted(cutter.kept)}
    return FittedEntries(
        entries=list(made.values()),
        cut=[entry for entry in made.values() if entry.is_cut],
        left_out=[entry for index, entry in enumerate(entries) if index not in made],
    )


class _Cutter:
    """Sizes of entries: as they are, and as small as they may become."""

    def __init__(self, entries: Sequence[AnswerEntry], tokens: int, from_start: bool) -> None:
        self._entries = entries
        self._tokens = tokens
        self._from_start = from_start
        self._whole = [cost(show_entry(entry)) + 1 for entry in entries]
        self._least = [self._least_cost(index) for index in range(len(entries))]
        self.kept = set(range(len(entries)))
        self.smallest = sum(self._least)

    def leave_out(self, index: int) -> None:
        self.kept.discard(index)
        self.smallest -= self._least[index]

    def made(self, index: int) -> AnswerEntry:
        """The entry, cut if there is not room for all of it."""
        entry, whole = self._entries[index], self._whole[index]
        room = min(self._least[index] + self._find_level, max(self._tokens - self.smallest + self._least[index], 0))
        return entry if whole <= room else _cut_entry(entry, room, self._from_start)

    def _least_cost(self, index: int) -> int:
        entry, whole = self._entries[index], self._whole[index]
        if entry.is_output:
            return min(whole, cost(show_entry(_bare_entry(entry))) + 1)
        return min(whole, self._tokens // 2)

    @cached_property
    def _find_level(self) -> int:
        """How many tokens each cut entry may have beyond the least, once it is known which ones are kept."""
        needs = sorted(self._whole[index] - self._least[index] for index in self.kept)
        return _water_level(needs, max(self._tokens - self.smallest, 0))


def _water_level(needs: list[int], room: int) -> int:
    """The highest level at which min(need, level) of all of them together fits into the room."""
    for number, need in enumerate(needs):
        if need * (len(needs) - number) > room:
            return room // (len(needs) - number)
        room -= need
    return needs[-1] if needs else 0


def _bare_entry(entry: AnswerEntry) -> AnswerEntry:
    return replace(entry, text=cut_notice(entry.lines), is_cut=True)


def _cut_entry(entry: AnswerEntry, room: int, from_start: bool) -> AnswerEntry:
    """The two ends of the text, or its beginning, with a line between that says how much it was."""
    bare = _bare_entry(entry)
    share = min(1.0, room / max(cost(show_entry(entry)), 1))
    length = int(len(entry.text) * share)
    while length >= 80:
        made = replace(bare, text=_text_ends(entry, length, from_start))
        if cost(show_entry(made)) + 1 <= room:
            return made
        length = int(length * 0.85) - 10
    return bare


def _text_ends(entry: AnswerEntry, length: int, from_start: bool) -> str:
    """At most so many characters of the text, whole lines where there are any to cut between."""
    text = entry.text
    head = _whole_lines(text[: length if from_start else length // 2])
    tail = "" if from_start else _whole_lines(text[len(text) - length // 2 :][::-1])[::-1]
    return "\n".join(filter(None, (head, cut_notice(entry.lines), tail)))


def _whole_lines(text: str) -> str:
    """Without the part of a line at the end, unless that is most of it."""
    head = text[: text.rfind("\n") + 1].rstrip("\n")
    return head if len(head) * 2 > len(text) else text
