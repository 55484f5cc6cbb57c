"""Decides for the lines that a commit added which edit wrote each, or stays silent.

One `CommittedChange` is one file of one commit (or of the working tree). Edits in its window are tried in four ways, the
first answer counts:

- `replayed`: the edits, replayed on the file before, reproduce the line in its place.
- `matched`: exact text beside a neighbour from the same edit, or among several lines of the same turn.
- `likely`: reformatted or rewrapped text, a lone exact line, a trivial line between two answered ones, or text of a commit
  that was moved, if the text is new in the file.

What a replay put into the file and did not reproduce was changed by somebody else, so the text of a replayed edit counts in
its place only; other texts are compared with edits that could not be replayed. Older equal text is never an answer;
`same_text` finds it for those who ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from everturn.attribution.alignment import equal_pairs, formatted_pairs, is_trivial, loose_form, reflowed_pairs
from everturn.attribution.edit_texts import EditTexts
from everturn.attribution.replay import NOBODY, FileReplay
from everturn.attribution.window import EditWindow
from everturn.derive.edits import added_lines
from everturn.model.archive import LINE_HASH
from everturn.store.contract import FoundEdit, Store

_NEAR = 5
_LEAST_NEAR = 2
_LOOSE_CHARS = 6
_JOINED_CHARS = 16
_BETWEEN = 4  # lines between a trivial line and its answered neighbours
_SLACK = 90_000  # milliseconds that the clock of a transcript may be ahead
_MOVED = 90 * 86_400_000  # edits older than this do not count for a commit that was moved


class PlacedEdit(Struct, frozen=True):
    """An edit of a file of the repository, and the working tree in which it was made."""

    found: FoundEdit
    root: str
    path: str

    @property
    def began(self) -> int:
        """When the call was made."""
        row = self.found.row
        return row.began if row.began is not None else row.at or 0

    @property
    def end(self) -> int:
        """When its result came."""
        row = self.found.row
        return row.at if row.at is not None else row.began or 0

    @property
    def turn(self) -> tuple[int, int]:
        """The session and the turn."""
        return self.found.row.session, self.found.row.turn


class CommittedChange(Struct, frozen=True):
    """One file of one commit: before and after, the added lines to answer (from 0), and the window."""

    before: list[str]
    after: list[str]
    wanted: tuple[int, ...]
    window: EditWindow
    amended: frozenset[int] = frozenset()  # sessions that are known to have amended the commit


class LineMatch(Struct, frozen=True):
    """Which edit wrote a line, how sure that is, and by which rule."""

    level: str
    rule: str
    edit: PlacedEdit


class LineMatcher:
    """Matches file changes with edits of an archive."""

    def __init__(self, store: Store, texts: EditTexts) -> None:
        self._store, self._texts = store, texts

    def match(self, change: CommittedChange, edits: Sequence[PlacedEdit]) -> dict[int, LineMatch]:
        """Return the answered lines of a change."""
        fresh = [one for one in edits if _is_fresh(one, change)]
        found: dict[int, LineMatch] = {}
        if fresh:
            found = _FreshMatch(self._store, self._texts, change, fresh).run()
        left = [line for line in change.wanted if line not in found and not is_trivial(change.after[line])]
        if left and change.window.moved:
            older = [one for one in edits if _is_before(one, change.window)]
            found |= self._match_moved(change, older, left)
        return found

    def _match_moved(self, change: CommittedChange, older: list[PlacedEdit], left: list[int]) -> dict[int, LineMatch]:
        """Match lines of a commit that was rebased or picked with edits from before the previous commit."""
        if not older:
            return {}
        present = {line.strip() for line in change.before}
        new = tuple(line for line in left if change.after[line].strip() not in present)
        if not new:
            return {}
        matched = _FreshMatch(self._store, self._texts, replace(change, wanted=new), older).run()
        return {line: LineMatch("likely", f"moved commit, {one.rule}", one.edit) for line, one in matched.items()}

    def also_wrote(
        self, change: CommittedChange, edits: Sequence[PlacedEdit], matches: dict[int, LineMatch], by_turn: bool
    ) -> dict[int, list[PlacedEdit]]:
        """Return, for answered lines, the last edit of each other session (or turn) that wrote the same text in the window."""
        fresh = sorted((one for one in edits if _is_fresh(one, change)), key=lambda one: one.end)
        if len({_author(one, by_turn) for one in fresh}) < 2:
            return {}
        lines = [line for line in matches if not is_trivial(change.after[line])]
        hashes = self._store.line_hashes([change.after[line] for line in lines])
        wanted = set(hashes)
        holders: dict[bytes, dict[object, PlacedEdit]] = {}
        for edit in fresh:
            for value in wanted.intersection(split_hashes(edit)):
                holders.setdefault(value, {})[_author(edit, by_turn)] = edit
        found: dict[int, list[PlacedEdit]] = {}
        for line, value in zip(lines, hashes, strict=True):
            named = matches[line].edit
            others = (one for author, one in holders.get(value, {}).items() if author != _author(named, by_turn))
            # One that writes whole files repeats what it found.
            found[line] = [one for one in others if one.found.row.kind != "write" or one.end < named.end]
        return found

    def same_text(self, change: CommittedChange, edits: Sequence[PlacedEdit], line: int) -> list[PlacedEdit]:
        """Return edits of any time that wrote the text of a line, newest first."""
        if is_trivial(change.after[line]):
            return []
        wanted = self._store.line_hashes([change.after[line]])[0]
        return sorted((one for one in edits if wanted in split_hashes(one)), key=lambda one: one.end, reverse=True)


def _author(edit: PlacedEdit, by_turn: bool) -> object:
    return edit.turn if by_turn else edit.found.row.session


def split_hashes(edit: PlacedEdit) -> list[bytes]:
    """Return the hashes of an edit's lines."""
    packed = edit.found.row.lines
    return [packed[at : at + LINE_HASH] for at in range(0, len(packed), LINE_HASH)]


def _is_fresh(edit: PlacedEdit, change: CommittedChange) -> bool:
    if not edit.end or edit.end <= change.window.after:
        return False
    limit = change.window.amended if edit.found.row.session in change.amended else change.window.until
    # One that writes whole files repeats what it found, so after the commit it says nothing.
    return edit.began <= limit + (_SLACK if edit.found.row.kind in ("replace", "patch") else 0)


def _is_before(edit: PlacedEdit, window: EditWindow) -> bool:
    return window.after - _MOVED < edit.end <= window.after and edit.began <= window.until


class _FreshMatch:
    """One change and the edits in its window."""

    def __init__(self, store: Store, texts: EditTexts, change: CommittedChange, fresh: list[PlacedEdit]) -> None:
        self._store, self._texts, self._change = store, texts, change
        self._edits = sorted(
            fresh, key=lambda one: (one.end, one.found.row.session, one.found.row.seq, one.found.row.n)
        )
        self._found: dict[int, LineMatch] = {}
        self._foreign: set[int] = set()  # lines that the replay found to be nobody's
        self._placed: set[tuple[int, int]] = set()  # (line, edit) of all lines that a replay put into place
        self._replayed: set[int] = set()  # numbers of edits that were replayed as a whole

    def run(self) -> dict[int, LineMatch]:
        self._replay_all()
        self._match_exact()
        self._match_loose()
        self._fill_between()
        return self._found

    def _missing_lines(self) -> list[int]:
        return [line for line in self._change.wanted if line not in self._found]

    def _is_late(self, number: int) -> bool:
        """Whether an edit was made after the commit as far as the clocks tell."""
        window, edit = self._change.window, self._edits[number]
        limit = window.amended if edit.found.row.session in self._change.amended else window.until
        return edit.began > limit

    # --- replay ---
    def _replay_all(self) -> None:
        roots: dict[str, list[int]] = {}
        for number, edit in enumerate(self._edits):
            if not self._is_late(number):
                roots.setdefault(edit.root, []).append(number)
        replays = [self._replay(numbers) for numbers in roots.values()]
        replays.sort(key=lambda owned: -sum(owner != NOBODY for owner in owned.values()))
        for owned in replays:
            for line, owner in owned.items():
                if owner != NOBODY and line not in self._found:
                    self._found[line] = LineMatch("replayed", "in place", self._edits[owner])
        if replays:
            self._foreign = {line for line, owner in replays[0].items() if owner == NOBODY} - set(self._found)

    def _replay(self, numbers: list[int]) -> dict[int, int]:
        """Replay the edits of one working tree; return the owner of each wanted line that it reproduces."""
        state = FileReplay(self._change.before)
        for number in numbers:
            edit = self._texts.edit(self._edits[number].found)
            if edit is None:
                continue
            original = self._texts.original(self._edits[number].found)
            seen: frozenset[str] = frozenset()
            if original is not None:
                state.take_over(original)
            elif edit.kind == "write":  # a file that was there may have changed unseen, or appeared unseen
                seen = self._texts.seen_before(self._edits[number].found, of_file=not state.lines)
            if state.apply(number, edit, seen):
                self._replayed.add(number)
        after = [line.rstrip() for line in self._change.after]
        pairs = list(equal_pairs([line.rstrip() for line in state.lines], after))
        owners = {new: state.owners[old] for old, new in pairs}
        self._check_trivial(owners)
        self._placed |= {(line, owner) for line, owner in owners.items() if owner != NOBODY}
        wanted = set(self._change.wanted)
        owners |= self._loose_in_place(state, pairs, wanted)
        return {line: owner for line, owner in owners.items() if line in wanted}

    def _check_trivial(self, owners: dict[int, int]) -> None:
        """Drop trivial lines that no telling line of the same turn stands beside."""
        after = self._change.after
        for line in [one for one, owner in owners.items() if owner != NOBODY and is_trivial(after[one])]:
            turn = self._edits[owners[line]].turn
            near = range(max(0, line - _BETWEEN), min(len(after), line + _BETWEEN + 1))
            if not any(
                owners.get(one, NOBODY) != NOBODY
                and self._edits[owners[one]].turn == turn
                and not is_trivial(after[one])
                for one in near
            ):
                del owners[line]

    def _loose_in_place(self, state: FileReplay, pairs: list[tuple[int, int]], wanted: set[int]) -> dict[int, int]:
        """Match lines in gaps between reproduced ones that differ only in format; return those that are nobody's."""
        after, foreign = self._change.after, {}
        ends = [(-1, -1), *pairs, (len(state.lines), len(after))]
        gaps = [(a, b, c, d) for (a, c), (b, d) in pairwise(ends) if b - a > 1 and d - c > 1]
        for a, b, c, d in gaps:
            for x, y in reflowed_pairs(state.lines[a + 1 : b], after[c + 1 : d]):
                if state.owners[a + 1 + x] == NOBODY:
                    foreign[c + 1 + y] = NOBODY
        reproduced = {line for _, line in pairs}
        for old, line in formatted_pairs(state.lines, after) if gaps else ():
            owner = state.owners[old]
            if owner != NOBODY and line in wanted and line not in reproduced and line not in self._found:
                self._found[line] = LineMatch("likely", "reformatted", self._edits[owner])
        return foreign

    # --- exact text ---
    def _match_exact(self) -> None:
        wanted = [line for line in self._missing_lines() if not is_trivial(self._change.after[line])]
        if not wanted:
            return
        solid = [line for line, text in enumerate(self._change.after) if text.strip()]
        rank = {line: number for number, line in enumerate(solid)}
        hashes = self._store.line_hashes([self._change.after[line] for line in solid])
        holders: dict[bytes, list[tuple[int, int]]] = {}  # hash → (edit, position)
        packed = [split_hashes(edit) for edit in self._edits]
        for number, one in enumerate(packed):
            for position, value in enumerate(one):
                holders.setdefault(value, []).append((number, position))
        left = Counter((number, value) for number, one in enumerate(packed) for value in one)
        left.subtract((number, hashes[rank[line]]) for line, number in self._placed if line in rank)
        lone: dict[int, list[int]] = {}
        for line in wanted:
            at = rank[line]
            # A text that the edit wrote once and that is in its place already was copied here by somebody else.
            candidates = [
                (n, p) for n, p in holders.get(hashes[at], ()) if left[n, hashes[at]] > 0 and n not in self._replayed
            ]
            beside = [n for n, p in candidates if _has_neighbour(packed[n], p, hashes, at)]
            if beside:
                self._found[line] = LineMatch("matched", "beside a neighbour", self._edits[self._newest(beside)])
            elif candidates:
                lone[line] = [number for number, _ in candidates]
        self._match_lone(lone)

    def _newest(self, numbers: Iterable[int]) -> int:
        """Return the last edit; one after the commit only if there is no other."""
        ordered = sorted(numbers)
        return next((one for one in reversed(ordered) if not self._is_late(one)), ordered[0])

    def _match_lone(self, lone: dict[int, list[int]]) -> None:
        for line, numbers in lone.items():
            number = self._newest(numbers)
            turn = self._edits[number].turn
            near = sum(
                one in self._found and self._found[one].edit.turn == turn
                for one in range(line - _NEAR, line + _NEAR + 1)
            )
            sessions = {self._edits[one].found.row.session for one in numbers}
            if near >= _LEAST_NEAR:
                self._found[line] = LineMatch("matched", "among lines of the turn", self._edits[number])
            elif len(sessions) == 1:
                self._found[line] = LineMatch("likely", "exact text", self._edits[number])

    # --- reformatted text ---
    def _match_loose(self) -> None:
        forms = {line: loose_form(self._change.after[line]) for line in self._missing_lines()}
        wanted = {line: form for line, form in forms.items() if len(form) >= _LOOSE_CHARS and line not in self._foreign}
        if not wanted:
            return
        present = Counter(loose_form(line) for line in self._change.before)
        for number in reversed(range(len(self._edits))):
            is_known = number in self._replayed or self._is_late(number)
            edit = None if is_known else self._texts.edit(self._edits[number].found)
            parts = [] if edit is None else [[loose_form(line) for line in lines] for lines in added_lines(edit)]
            left, joined = Counter(form for part in parts for form in part), ["".join(part) for part in parts]
            # What is in its place already was written there; a copy elsewhere is somebody else's.
            used = Counter(loose_form(self._change.after[line]) for line in self._lines_of(number))
            for line, form in wanted.items():
                if line in self._found or present[form] or is_trivial(self._change.after[line]):
                    continue
                if left[form] > used[form]:
                    self._found[line] = LineMatch("likely", "reformatted", self._edits[number])
                elif (
                    not left[form]
                    and len(form) >= _JOINED_CHARS
                    and sum(text.count(form) for text in joined) > used[form]
                ):
                    self._found[line] = LineMatch("likely", "rewrapped", self._edits[number])
                else:
                    continue
                used[form] += 1

    def _lines_of(self, number: int) -> set[int]:
        """Return the lines that an edit is known to have written."""
        placed = {line for line, owner in self._placed if owner == number}
        return placed | {line for line, match in self._found.items() if match.edit is self._edits[number]}

    # --- trivial lines ---
    def _fill_between(self) -> None:
        """Answer trivial lines between two answered lines of the same turn."""
        after = self._change.after
        wanted = set(self._change.wanted)
        for line in self._missing_lines():
            if not is_trivial(after[line]) or line in self._foreign:
                continue
            above = self._first_match(range(line - 1, max(-1, line - 1 - _BETWEEN), -1), wanted)
            below = self._first_match(range(line + 1, min(len(after), line + 1 + _BETWEEN)), wanted)
            if above is not None and below is not None and above.edit.turn == below.edit.turn:
                self._found[line] = LineMatch("likely", "between lines of the turn", above.edit)

    def _first_match(self, lines: Iterable[int], wanted: set[int]) -> LineMatch | None:
        """Return the match of the first line that says something; None if it has none."""
        for line in lines:
            if line in self._found:
                return self._found[line]
            if line not in wanted or not is_trivial(self._change.after[line]):
                return None
        return None


def _has_neighbour(packed: list[bytes], position: int, hashes: list[bytes], at: int) -> bool:
    """Whether the line above or below is beside this one in the edit, too."""
    above = at > 0 and position > 0 and packed[position - 1] == hashes[at - 1]
    below = at + 1 < len(hashes) and position + 1 < len(packed) and packed[position + 1] == hashes[at + 1]
    return above or below
