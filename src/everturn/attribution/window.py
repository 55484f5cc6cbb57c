"""When an edit must have been made to count for a commit: after the path's previous commit, and before the author time.

Text that was written before the previous commit of the file is a coin toss, so freshness decides. "Previous" means the
nearest commits that touched the path in the ancestry of the commit. The author time counts, not the committer time: a
rebase makes the latter days late. A rebased commit sits on commits that are younger than itself; those are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from everturn.attribution.repository import CommitFacts, Repository

_SECOND = 1000
#: A commit that was committed so much later than authored was rebased, picked or amended.
_SAME = 60 * _SECOND
#: More commits than this are not compared with each other by their ancestors.
_MOST_COMMITS = 20_000


class EditWindow(Struct, frozen=True):
    """The time in which an edit counts for one file of one commit, in milliseconds."""

    after: int
    until: int
    amended: int  # edits between `until` and this count if a session shows that it amended the commit
    moved: bool  # rebased or picked: the previous commit may be younger than the edits


class CommitHistory(Protocol):
    """Finds the previous commits of a path."""

    def before(self, commit: CommitFacts, base: str, path: str, base_path: str) -> list[CommitFacts]:
        """Return commits that touched the path before this one: the nearest, and those behind younger ones."""


def window_of(commit: CommitFacts, earlier: Iterable[CommitFacts]) -> EditWindow:
    """Return the window of one file of a commit, from the commits that touched it before."""
    older, has_younger = 0, False
    for one in earlier:
        if one.authored <= commit.authored:
            older = max(older, one.authored)
        else:
            has_younger = True
    moved = has_younger or commit.committed - commit.authored > _SAME
    return EditWindow(older, commit.authored + _SECOND - 1, commit.committed + _SECOND - 1, moved)


class PathHistories:
    """The history of one path after another: for one file or one commit. Without a tip, each starts at the commit asked about."""

    def __init__(self, repository: Repository, tip: str) -> None:
        self._repository, self._tip = repository, tip
        self._known: dict[tuple[str, str], dict[str, CommitFacts]] = {}

    def before(self, commit: CommitFacts, base: str, path: str, base_path: str) -> list[CommitFacts]:
        """Return the nearest commits before this one, and older ones behind those that are younger."""
        if base and base_path and base_path != path:
            history = self._history(base, base_path)
            starts: Iterable[str] = list(history)[:1]
        else:
            history = self._history(self._tip or commit.sha or base, path)
            if commit.sha and commit.sha not in history:
                history = self._history(commit.sha, path)
            starts = history[commit.sha].parents if commit.sha in history else list(history)[:1]
        return list(_walk_back(history, starts, commit.authored))

    def _history(self, tip: str, path: str) -> dict[str, CommitFacts]:
        key = (tip, path)
        if key not in self._known:
            self._known[key] = self._repository.path_history(tip, path)
        return self._known[key]


def _walk_back(history: dict[str, CommitFacts], starts: Iterable[str], limit: int) -> Iterable[CommitFacts]:
    waiting, seen = list(starts), set[str]()
    while waiting:
        one = history.get(waiting.pop())
        if one is None or one.sha in seen:
            continue
        seen.add(one.sha)
        yield one
        if one.authored > limit:
            waiting += one.parents


class WholeHistory:
    """The history of all paths at once: for a range of many commits."""

    def __init__(self, repository: Repository, tip: str) -> None:
        self._numbers: dict[str, int] = {}
        self._ancestors: list[int] = []  # one bit per commit
        self._touched: dict[str, list[tuple[int, CommitFacts]]] = {}
        for number, (facts, paths) in enumerate(repository.touched_paths(tip)):
            self._numbers[facts.sha] = number
            if number < _MOST_COMMITS:
                self._ancestors.append(self._bits(facts.parents))
            for path in paths:
                self._touched.setdefault(path, []).append((number, facts))

    def _bits(self, parents: Iterable[str]) -> int:
        found = 0
        for parent in parents:
            number = self._numbers.get(parent, -1)
            if 0 <= number < len(self._ancestors):
                found |= self._ancestors[number] | 1 << number
        return found

    def before(self, commit: CommitFacts, base: str, path: str, base_path: str) -> list[CommitFacts]:
        """Return all commits before this one that touched the path."""
        number = self._numbers.get(commit.sha, -1)
        known = self._touched.get(base_path or path, [])
        if not 0 <= number < len(self._ancestors):
            return [facts for at, facts in known if at < number]
        bits = self._ancestors[number]
        return [facts for at, facts in known if bits >> at & 1]
