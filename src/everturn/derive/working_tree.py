"""What a session says about changed files besides its own edits: the state of the working tree, the report of a subagent.

`tree_changes` reads the output of `git status` and `git diff --stat`. It shows which files were changed before the agent
began, and what a subagent left behind whose own transcript is not archived. `stated_changes` reads the report of such a
subagent. Both return (action, path) pairs and never raise.
"""

from __future__ import annotations

import re

from everturn.derive.file_commands import Touch, has_ending, is_generated

_MAX_CHARS = 20_000
_MOST = 200
_ASKS = re.compile(r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+(status|diff)\b([^;&|\n]{0,200})")
_OTHER_TREE = re.compile(
    r"\.\.|\bHEAD[~^]|--cached\b.{0,40}\b[0-9a-f]{7,40}\b|\b(?:origin|upstream)/|\bmain\b|\bmaster\b|--no-index"
)
_SHORT = re.compile(
    r"^(?:([ MADRC?][MD ?]) |(?:\t| {8})?(modified|deleted|new file): {1,8})(\S.{0,400}?)\r?$", re.MULTILINE
)
_STAT = re.compile(r"^ (\S.{0,400}?) +\| +(?:\d+ [+-]*|Bin .{0,60})\r?$", re.MULTILINE)


def tree_changes(command: str, output: str) -> list[Touch]:
    """Return the files that differ from the last commit; empty for a command that shows something else."""
    asks = _ASKS.search(command[:_MAX_CHARS]) if "git" in command else None
    if asks is None or not output or _OTHER_TREE.search(asks[2]):
        return []
    shown = output[:_MAX_CHARS]
    found: dict[str, str] = {}
    for code, word, path in _SHORT.findall(shown):
        if code and not code.strip():
            continue
        is_new = "?" in code or "A" in code or word == "new file"
        is_gone = "D" in code or word == "deleted"
        found[_last_name(path)] = "created" if is_new else "deleted" if is_gone else "edited"
    if "stat" in asks[2] or not found:
        for path in _STAT.findall(shown):
            found.setdefault(_last_name(path), "edited")
    kept = [(action, path) for path, action in found.items() if not path.endswith("/") and not is_generated(path)]
    return kept if len(kept) <= _MOST else []


def _last_name(path: str) -> str:
    """Return the new name of a renamed file, without quotes."""
    name = path.rpartition(" -> ")[2].strip('"')
    return f"{name}/" if name.endswith(" content)") else name  # a submodule


_VERB = re.compile(
    r"\b(?:added|created|modified|updated|edited|changed|rewrote|rewritten|wrote|extended|inserted|implemented|fixed|refactored|new)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|no|never|without|unchanged|should|would|could|read|reviewed|expected)\b|n't\b", re.IGNORECASE
)
_NAMED = re.compile(r"`([\w@.+~/\\:-]{3,300})`")
_LONGEST_LINE = 600
_NEAR, _AFTER = 120, 30


def stated_changes(report: str) -> list[Touch]:
    """Return the files that the report of a subagent states as changed."""
    found: dict[str, None] = {}
    for line in report[:_MAX_CHARS].splitlines():
        if "`" in line and len(line) <= _LONGEST_LINE:
            found.update(dict.fromkeys(one[1] for one in _NAMED.finditer(line) if _is_stated(line, one)))
    return [("edited", path) for path in found]


def _is_stated(line: str, name: re.Match[str]) -> bool:
    """Whether a line says that a file was changed: with a verb before its name, or right after it."""
    path = name[1]
    if "/" not in path or not has_ending(path) or is_generated(path):
        return False
    before, after = line[max(0, name.start() - _NEAR) : name.start()], line[name.end() : name.end() + _AFTER]
    return (_VERB.search(before) or _VERB.match(after.lstrip(" *:—–-("))) is not None and not _DENIED.search(before)
