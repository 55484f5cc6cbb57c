"""Fit entries into a budget of tokens: at most 8,000, whatever is in the archive (searches: `recall.quotation`).

If it is too much, tool output and thoughts are cut first: each keeps an equal share of the room for its two ends, so short
ones stay whole. Then whole messages are dropped, in the order the caller gives (by default the oldest first). A single
message may take half of the room. `FittedEntries` lists what was cut and what was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from everturn.recall.answer import AnswerEntry, cut_notice, show_entry
from everturn.text.tokens import MARGIN, estimate_tokens

#: The largest answer, and the average bytes per token: 8,000 tokens are about 32 kB.
MAX_TOKENS = 8000
BYTES_PER_TOKEN = 4

#: The budget of a search, if the caller names none. Reading turns by number may take all of `MAX_TOKENS`.
SEARCH_TOKENS = 2000

#: The smallest budget with room for a quotation and a hint.
MIN_TOKENS = 200


class FittedEntries(Struct, frozen=True):
    """The entries that fit, in the order given; those that were cut; those left out."""

    entries: list[AnswerEntry]
    cut: list[AnswerEntry]
    left_out: list[AnswerEntry]


def cost(text: str) -> int:
    """Estimate the tokens of a text on the safe side, at least one for every four bytes."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return max(int(estimate_tokens(text) * MARGIN) + 1, -(-size // BYTES_PER_TOKEN))


def fit_entries(
    entries: Sequence[AnswerEntry], tokens: int, leave_first: Sequence[int] | None = None, from_start: bool = False
) -> FittedEntries:
    """Fit the entries into `tokens`. `leave_first` are the indexes in the order to leave them out (default: as given).

    `from_start`: cut entries keep their beginning only, so that the reader can continue where it ends.
    """
    cutter = _Cutter(entries, tokens, from_start)
    for index in leave_first if leave_first is not None else range(len(entries)):
        if cutter.smallest <= tokens or len(cutter.kept) == 1:
            break
        cutter.leave_out(index)
    fitted = {index: cutter.fit_entry(index) for index in sorted(cutter.kept)}
    return FittedEntries(
        entries=list(fitted.values()),
        cut=[entry for entry in fitted.values() if entry.is_cut],
        left_out=[entry for index, entry in enumerate(entries) if index not in fitted],
    )


class _Cutter:
    """The sizes of entries, whole and as small as they may become."""

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

    def fit_entry(self, index: int) -> AnswerEntry:
        entry, whole = self._entries[index], self._whole[index]
        room = min(self._least[index] + self._level, max(self._tokens - self.smallest + self._least[index], 0))
        return entry if whole <= room else _cut_entry(entry, room, self._from_start)

    def _least_cost(self, index: int) -> int:
        entry, whole = self._entries[index], self._whole[index]
        if entry.is_output:
            return min(whole, cost(show_entry(_bare_entry(entry))) + 1)
        return min(whole, self._tokens // 2)

    @cached_property
    def _level(self) -> int:
        """The tokens each cut entry may have beyond its minimum, once it is known which ones are kept."""
        needs = sorted(self._whole[index] - self._least[index] for index in self.kept)
        return _water_level(needs, max(self._tokens - self.smallest, 0))


def _water_level(needs: list[int], room: int) -> int:
    """Return the highest level at which the sum of min(need, level) fits into the room."""
    for number, need in enumerate(needs):
        if need * (len(needs) - number) > room:
            return room // (len(needs) - number)
        room -= need
    return needs[-1] if needs else 0


def _bare_entry(entry: AnswerEntry) -> AnswerEntry:
    return replace(entry, text=cut_notice(entry.lines), is_cut=True)


def _cut_entry(entry: AnswerEntry, room: int, from_start: bool) -> AnswerEntry:
    """Cut an entry to the two ends of its text, or its beginning, with a notice of its length."""
    bare = _bare_entry(entry)
    share = min(1.0, room / max(cost(show_entry(entry)), 1))
    length = int(len(entry.text) * share)
    text = entry.text
    while length >= 80:
        head = _whole_lines(text[: length if from_start else length // 2])
        tail = "" if from_start else _whole_lines(text[len(text) - length // 2 :][::-1])[::-1]
        cut = replace(bare, text="\n".join(filter(None, (head, cut_notice(entry.lines), tail))))
        if cost(show_entry(cut)) + 1 <= room:
            return cut
        length = int(length * 0.85) - 10
    return bare


def _whole_lines(text: str) -> str:
    """Drop an incomplete last line, unless it is most of the text."""
    head = text[: text.rfind("\n") + 1].rstrip("\n")
    return head if len(head) * 2 > len(text) else text
