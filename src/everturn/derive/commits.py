"""Commits that a call made, as version control reported them.

The line `[branch 1a2b3c4] subject` in the output of a command that commits is the proof. Without it (quiet mode) a commit
counts only when the call went well and nothing hides its exit status; its subject is then that of the message given.
"""

from __future__ import annotations

import re

from msgspec import Struct

from everturn.derive.failures import strip_attempt
from everturn.derive.printable import one_line
from everturn.model.conversation import CallStart

_LOOKED_AT = 20_000
_SUBJECT = 200


class Commit(Struct, frozen=True):
    """One commit; the hash as printed, "" when it was not."""

    hash: str
    subject: str
    amends: bool = False


_COMMITS = re.compile(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+(?:commit|merge|revert|cherry-pick|am|rebase)\b")
_COMMIT = re.compile(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+commit\b(?!-)")
_REPORT = re.compile(r"^\[(?:[^\]\n]{1,200}? )(?:\(root-commit\) )?([0-9a-f]{6,40})\] (.{1,500}?)\r?$", re.MULTILINE)
_MESSAGE = re.compile(r"""(?:^|\s)(?:-[a-z]*m|--message)(?:\s+|=)?("(?:[^"\\]|\\.)*"|'[^']*'|\S+)""")
_DOCUMENT = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n\s*([^\n]{1,500})")
_DRY = re.compile(r"--dry-run|--no-commit|\s-n\b(?=.*cherry)")


def find_commits(start: CallStart, output: str, went_well: bool) -> list[Commit]:
    """What a call committed, in order."""
    text = start.command if start.kind == "shell" else _git_command_line(start)
    if not text or not _COMMITS.search(text[:_LOOKED_AT]) or _DRY.search(text[:_LOOKED_AT]):
        return []
    amends = "--amend" in text
    shown = output if len(output) <= 2 * _LOOKED_AT else f"{output[:_LOOKED_AT]}\n{output[-_LOOKED_AT:]}"
    found = [Commit(report[1], one_line(report[2], _SUBJECT), amends) for report in _REPORT.finditer(shown)]
    if found or not went_well or start.kind != "shell" or _REFUSED.search(shown):
        return found
    quiet = any(_COMMIT.match(part) for part in strip_attempt(text).proven) or ("<<" in text and _COMMIT.search(text))
    subject = _commit_subject(text) if quiet else ""
    return [Commit("", subject, amends)] if subject else []


_REFUSED = re.compile(r"nothing to commit|no changes added|Aborting commit|nothing added to commit")


def _git_command_line(start: CallStart) -> str:
    """The arguments of a tool that speaks to version control, as a command line."""
    if "git" not in start.name.lower() or not isinstance(start.input, dict):
        return ""
    words = [word for value in start.input.values() for word in (value if isinstance(value, list) else [value])]
    return "git " + " ".join(word for word in words if isinstance(word, str)).removeprefix("git ")


def _commit_subject(text: str) -> str:
    after = text[_COMMIT.search(text).end() :] if _COMMIT.search(text) else ""  # type: ignore[union-attr]
    document = _DOCUMENT.search(after)
    if document:
        return one_line(document[2], _SUBJECT)
    message = _MESSAGE.search(after)
    if message is None:
        return ""
    words = message[1][1:-1] if message[1][0] in "\"'" else message[1]
    return one_line(words.lstrip().partition("\n")[0], _SUBJECT)
