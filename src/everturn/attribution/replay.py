"""Replays edits on the lines of a file and remembers which edit each line comes from.

The base is the file as committed before. Where a transcript holds the text that an edit found, the replay takes it over:
lines that appeared in between belong to nobody, and a line keeps its owner only if it is equal, or if nothing but the format
changed around it. That is the rule for edits, too: the one who indents a line again is its writer. An edit whose old text is not there, but whose new text is, was made again
after something undid the first one; it takes over those lines.

Pure; lines have no line ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import islice

from everturn.attribution.alignment import equal_pairs, formatted_pairs
from everturn.derive.edits import Change, FileEdit

#: The owner of a line of the base, or of one that came from elsewhere.
NOBODY = -1


class FileReplay:
    """The state of a file during a replay: its lines, and the number of the edit that wrote each."""

    def __init__(self, base: Sequence[str]) -> None:
        self.lines = list(base)
        self.owners = [NOBODY] * len(self.lines)

    def take_over(self, original: str) -> None:
        """Continue from the text that an edit found. Known lines keep their owners."""
        self._become(split_text(original), NOBODY)

    def apply(self, number: int, edit: FileEdit, seen: frozenset[str] = frozenset()) -> bool:
        """Apply an edit; return whether all of it could be applied. Lines of a whole file that were `seen` are not new."""
        if edit.kind == "write":
            self._become(split_text(edit.changes[0].new), number)
            for line, text in enumerate(self.lines):
                if self.owners[line] == number and text.strip() in seen:
                    self.owners[line] = NOBODY
            return True
        if edit.kind == "append":
            added = split_text(edit.changes[0].new)
            self.lines += added
            self.owners += [number] * len(added)
            return True
        if edit.kind not in ("replace", "patch"):
            return False
        change_one = self._replace if edit.kind == "replace" else self._patch
        done = [change_one(number, change) for change in edit.changes]
        return all(done)

    def _become(self, lines: list[str], owner: int) -> None:
        owners = [owner] * len(lines)
        for old, new in formatted_pairs(self.lines, lines):
            owners[new] = self.owners[old]
        self.lines, self.owners = lines, owners

    # --- texts ---
    def _replace(self, number: int, change: Change) -> bool:
        old, new = _plain(change.old), _plain(change.new)
        if not old:
            if any(line.strip() for line in self.lines):
                return self._claim(number, split_text(new), [])
            self._become(split_text(new), number)
            return True
        text = "\n".join(self.lines)
        places = _occurrences(text, old, change.every)
        if not places and old.endswith("\n") and text.endswith(old[:-1]):
            old, new = old[:-1], new.removesuffix("\n")
            places = [len(text) - len(old)]
        if not places:
            return self._patch(number, Change(new, old))
        for start in reversed(places):
            self._splice(number, text, start, start + len(old), new)
        return True

    def _splice(self, number: int, text: str, start: int, end: int, new: str) -> None:
        """Replace a range of the text; only the lines that it touches change."""
        first, last = text.count("\n", 0, start), text.count("\n", 0, end)
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", end)
        line_end = len(text) if line_end < 0 else line_end
        made = f"{text[line_start:start]}{new}{text[end:line_end]}"
        self._change_lines(number, first, last + 1, made.split("\n") if made or last + 1 < len(self.lines) else [])

    def _change_lines(self, number: int, first: int, last: int, new: list[str]) -> None:
        owners = [number] * len(new)
        matcher = SequenceMatcher(None, self.lines[first:last], new, autojunk=False)
        for block in matcher.get_matching_blocks():
            owners[block.b : block.b + block.size] = self.owners[first + block.a : first + block.a + block.size]
        self.lines[first:last], self.owners[first:last] = new, owners

    # --- whole lines ---
    def _patch(self, number: int, change: Change) -> bool:
        old, new = split_text(change.old), split_text(change.new)
        if not old:
            if self.lines:
                return self._claim(number, new, [])
            self._become(new, number)
            return True
        for form in (_plain, str.rstrip, str.strip):
            places = _line_places(self.lines, old, form)
            if places:
                self._change_lines(number, places[0], places[0] + len(old), new)
                return True
        return self._claim(number, new, old)

    def _claim(self, number: int, new: list[str], old: list[str]) -> bool:
        """Take over lines that are there already, because the edit was made again after it was undone."""
        places = _line_places(self.lines, new, str.rstrip) if any(line.strip() for line in new) else []
        if len(places) != 1:
            return False
        kept = {pair[1] for pair in equal_pairs(old, new)}
        for offset in range(len(new)):
            if offset not in kept and self.owners[places[0] + offset] != NOBODY:
                self.owners[places[0] + offset] = number
        return True


def split_text(text: str) -> list[str]:
    """Return the lines of a text, of either kind of line end; a line end at the end begins no further line."""
    lines = _plain(text).split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return lines


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _occurrences(text: str, part: str, every: bool) -> list[int]:
    found, at = [], text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + len(part)) if every else -1
    return found


def _line_places(lines: Sequence[str], part: Sequence[str], form: Callable[[str], str]) -> list[int]:
    """Return where a run of lines occurs, at most two places."""
    have, wanted, size = list(map(form, lines)), list(map(form, part)), len(part)
    starts = range(len(have) - size + 1) if size else range(0)
    return list(islice((at for at in starts if have[at] == wanted[0] and have[at : at + size] == wanted), 2))
