"""How much of what happened, and of what comes next, a document names; and whether its citations hold.

A file is named where its path stands, as seen from the workspace, or the end of it from a folder on; commands, commits and
plan items where their words stand. Everything is looked for in the written document, not in the structs it was made from.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.restore.cutting import Cut
from benchmarks.restore.truth import Truth
from everturn.restore.document import FACTS, SECTIONS

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LISTED = re.compile(r"^- `(.+?)` (?:edited|created|deleted)(?: ×(\d+))?", re.MULTILINE)
_WORD = re.compile(r"[\w.@~-]+(?:/[\w.@~-]+)*")
_FAILED = re.compile(r"^- `(.+?)` failed(?: (\d+) times)?", re.MULTILINE)


@dataclass
class Score:
    """Weights: found of all, right of listed."""

    found: float = 0.0
    all: float = 0.0
    right: float = 0.0
    listed: float = 0.0
    missing: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Score) -> None:
        """Count another one in."""
        self.found, self.all = self.found + other.found, self.all + other.all
        self.right, self.listed = self.right + other.right, self.listed + other.listed
        self.missing += other.missing
        self.wrong += other.wrong

    @property
    def recall(self) -> float | None:
        """Of what there was, how much is named."""
        return self.found / self.all if self.all else None

    @property
    def precision(self) -> float | None:
        """Of what is named, how much there was."""
        return self.right / self.listed if self.listed else None


def part(document: str, key: str) -> str:
    """The text of one section."""
    title = (SECTIONS | FACTS)[key]
    begun = document.find(f"\n## {title}\n")
    if begun < 0:
        return ""
    body = document[begun + len(title) + 5 :]
    following = _HEADING.search(body)
    return body[: following.start()] if following else body


def edited_files(document: str, truth: Truth) -> Score:
    """Files that were edited, weighed by how often."""
    listed = {path.replace("\\", "/"): int(times or 1) for path, times in _LISTED.findall(part(document, "artifacts"))}
    score = Score()
    for path, times in truth.edited.items():
        named = any(_same_file(path, one) for one in listed)
        score.add(Score(times * named, times, missing=[] if named else [path]))
    for path, times in listed.items():
        right = any(_same_file(path, one) for one in truth.edited) or _written(path, truth)
        score.add(Score(right=times * right, listed=times, wrong=[] if right else [path]))
    return score


def failing_commands(document: str, truth: Truth, commands: list[str]) -> Score:
    """Commands that fail to the end, weighed by how often they failed."""
    listed = {" ".join(one.split()): int(times or 1) for one, times in _FAILED.findall(part(document, "still_failing"))}
    known = [" ".join(one.split()) for one in commands]
    score = Score()
    for command, times in truth.failing.items():
        named = any(_same_words(command, one) for one in listed)
        score.add(Score(times * named, times, missing=[] if named else [command[:100]]))
    for one, times in listed.items():
        if any(_same_words(command, one) for command in known):  # what else failed was no command
            right = any(_same_words(command, one) for command in truth.failing)
            score.add(Score(right=times * right, listed=times, wrong=[] if right else [one[:100]]))
    return score


def commits(document: str, truth: Truth) -> Score:
    """Commits, each counted once."""
    listed = set(re.findall(r"^- `([0-9a-f]{6,40})`", part(document, "commits"), re.MULTILINE))
    score = Score(sum(one in listed for one in truth.commits), len(truth.commits))
    score.missing = [one for one in truth.commits if one not in listed]
    score.add(Score(right=sum(one in truth.commits for one in listed), listed=len(listed)))
    score.wrong = [one for one in listed if one not in truth.commits]
    return score


def open_items(document: str, truth: Truth) -> Score:
    """Items of the plan that are not done."""
    listed = re.findall(r"^- \[[ ~]\] (.+?)(?:…| \[t)", part(document, "plan_open"), re.MULTILINE)
    score = Score()
    for item in truth.open_items:
        named = any(_same_words(item, one) for one in listed)
        score.add(Score(named, 1, missing=[] if named else [item]))
    for one in listed:
        right = any(_same_words(item, one) for item in truth.open_items)
        score.add(Score(right=right, listed=1, wrong=[] if right else [one]))
    return score


def files_to_come(document: str, cut: Cut) -> Score:
    """Files that the rest touches and that stood somewhere in the first part, each weighed by how often it is touched."""
    before = cut.data[: cut.offset].decode("utf-8", "replace").replace("\\\\", "/")
    named = names_in(document)
    score = Score()
    for path, times in cut.after.touched.items():
        if _tail(path) in before:
            is_named = any(_same_file(path, one) for one in named)
            score.add(Score(times * is_named, times, missing=[] if is_named else [path]))
    return score


def names_in(text: str) -> set[str]:
    """Everything in a text that may be a path."""
    return {found.strip(".").replace("\\", "/") for found in _WORD.findall(text.replace("\\", "/")) if "." in found}


def total(scores: list[Score]) -> Score:
    """All of them together."""
    made = Score()
    for one in scores:
        made.add(one)
    return made


def _tail(path: str) -> str:
    """The last two parts of a path: enough to know it again however it was written."""
    return "/".join(path.split("/")[-2:])


def _same_file(path: str, other: str) -> bool:
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")


def _written(path: str, truth: Truth) -> bool:
    """Whether a command or the report of a commit names the file as one that it wrote."""
    name = path.rpartition("/")[2]
    return any(name in text for text in truth.writing)


def _same_words(text: str, excerpt: str) -> bool:
    words = " ".join(text.split()).replace("`", "")
    start = excerpt.rstrip("…").rstrip().replace("`", "")
    return words.startswith(start) or words[:40] in start  # some clients wrap a command into another


def weighed(counter: Counter[str]) -> int:
    """The sum of the weights."""
    return sum(counter.values())
