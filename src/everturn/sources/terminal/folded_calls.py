"""Calls that Claude Code folds into one line: `Reading 3 files… (ctrl+o to expand)`, later `Read 3 files (ctrl+o to expand)`.

While the calls run, the one at work is named below the line (`⎿  src/cli.py`, `⎿  $ ls`); afterwards only their number is
left. Lines of one fold follow each other without anything between them, because the client folds all it can.
"""

from __future__ import annotations

import re

from everturn.sources.terminal.rows import TranscriptRow
from everturn.sources.terminal.transcript import DrawnCall

_FOLD = re.compile(r"(?:[●⏺] |  )(?P<words>[A-Z][^()]{1,200}?)(?P<open>…)? \(ctrl\+[or] to expand\)$")
_PART = re.compile(r"(?P<verb>[A-Za-z]{2,20})(?: for)? (?P<number>\d{1,4}) (?P<thing>[a-z][\w -]{0,40})$")
_VERBS = {  # the beginning of a verb → name and kind of the call
    "read": ("Read", "read"),
    "search": ("Grep", "search"),
    "list": ("LS", "search"),
    "ran": ("Bash", "shell"),
    "run": ("Bash", "shell"),
    "edit": ("Edit", "edit"),
    "wr": ("Write", "create"),
    "fetch": ("WebFetch", "fetch"),
}
_MOST_CALLS = 200  # of one fold


class CallFold:
    """The lines of one fold, as far as they were drawn."""

    def __init__(self) -> None:
        self.rows: list[TranscriptRow] = []
        self._title = ""
        self._numbers: dict[tuple[str, str], int] = {}  # name and kind → how many calls
        self._hints: list[str] = []
        self._done = False

    def add_title(self, row: TranscriptRow) -> bool:
        """Take in a row that says how many calls there are; False for any other row."""
        found = _FOLD.match(row.text)
        parts = [_PART.match(part.strip()) for part in found["words"].split(", ")] if found else []
        if found is None or not all(parts):
            return False
        for part in parts:
            if part is not None:
                call = _call_name(part["verb"])
                self._numbers[call] = max(self._numbers.get(call, 0), int(part["number"]))
        self._title, self._done = found["words"], not found["open"]
        self.rows.append(row)
        return True

    def add_hint(self, row: TranscriptRow, words: str) -> bool:
        """Take in a row that names a call at work; False once all are done."""
        if self._done:
            return False
        if words and words not in self._hints:
            self._hints.append(words)
        self.rows.append(row)
        return True

    def calls(self) -> tuple[DrawnCall, ...]:
        """Return as many calls as the fold counts, and what is known of them."""
        title = "\n".join([self._title, *self._hints])
        status = "ok" if self._done else "open"
        hints = list(self._hints)
        found: list[DrawnCall] = []
        for (name, kind), number in self._numbers.items():
            for _ in range(min(number, _MOST_CALLS)):
                hint = next((one for one in hints if _fits(one, kind)), "")
                if hint:
                    hints.remove(hint)
                found.append(_call(name, kind, title, hint, status))
        return tuple(found[:_MOST_CALLS])


def _call_name(verb: str) -> tuple[str, str]:
    word = verb.lower()
    return next((call for start, call in _VERBS.items() if word.startswith(start)), (verb, "other"))


def _fits(hint: str, kind: str) -> bool:
    """Return whether a call may be the one that is named. What is read or listed may be so by a command."""
    return hint.startswith("$ ") or kind not in ("search", "shell") or (kind == "search") == hint.startswith('"')


def _call(name: str, kind: str, title: str, hint: str, status: str) -> DrawnCall:
    if hint.startswith("$ "):
        return DrawnCall("Bash", "shell", title, command=hint[2:], status=status)
    if kind == "search":
        return DrawnCall(name, kind, title, pattern=hint.strip('"'), status=status)
    path = hint if kind in ("read", "edit", "create") else ""
    action = {"read": "read", "edit": "edited", "create": "created"}.get(kind, "") if path else ""
    return DrawnCall(name, kind, title, path=path, status=status, action=action if status == "ok" else "")
