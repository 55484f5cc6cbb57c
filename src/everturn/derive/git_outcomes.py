"""The files that git and patch report as changed.

`reported_files` returns the files of new commits, of `git rm` and of patch. A pull, merge, rebase or checkout prints the same
lines about the work of others, so those never count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from everturn.text.lazy_pattern import lazy_pattern

Touch = tuple[str, str]

_FILE_REPORT = lazy_pattern(
    r"^ ?(?:(create|delete) mode \d{6} (.{1,4096})|rename (.{1,4096}) \(\d{1,3}%\)|patching file (.{1,4096}?)(?: \([^()\n]{0,200}\))?|rm '(.{1,4096})')\r?$",
    re.MULTILINE,
)
_GIT = r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--?\S+)*\s+"
_BRINGS = lazy_pattern(
    rf"{_GIT}(?:merge|pull|am|cherry-pick|revert|rebase|checkout|switch|stash|clone|reset|restore|worktree)\b"
)
_COMMIT = lazy_pattern(rf"{_GIT}commit\b(?!-)")
_BULK = 40
#: Where the report of a new commit begins, and where that of something else does.
_SECTION = lazy_pattern(
    r"^(?:(\[[^\]\n]{1,200} [0-9a-f]{6,40}\] )|(?:Updating [0-9a-f]{6,40}\.\.|Fast-forward|Merge made by |Squash commit))",
    re.MULTILINE,
)
_OCTAL = lazy_pattern(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def reported_files(command: str, output: str) -> Iterator[Touch]:
    """Yield the files reported by new commits, `git rm` and patch. A log looks the same, so the command must be one that acts."""
    if not any(mark in output for mark in (" mode ", "rename ", "patching file", "rm '")):
        return
    commits = bool(_COMMIT.search(command)) and "--summary" not in command
    brings = bool(_BRINGS.search(command)) if commits else True
    sections = [(one.start(), bool(one[1])) for one in _SECTION.finditer(output)] if commits else []
    reports = list(_FILE_REPORT.finditer(output))
    if len(reports) > _BULK and commits:  # an import, a scaffold or a build: not written file by file
        return
    for report in reports:
        verb, path, renamed, patched, removed = report.groups()
        if path or renamed:
            is_new = next((new for at, new in reversed(sections) if at < report.start()), not brings)
            if not commits or not is_new:
                continue
            yield from [(f"{verb}d", _unquote_path(path))] if path else _rename_touches(renamed)
        elif patched and re.search(r"\bpatch\b", command):
            yield "edited", _unquote_path(patched.strip("'"))
        elif removed and "git" in command:
            yield "deleted", removed


def _rename_touches(text: str) -> Iterator[Touch]:
    """Yield both files of `a => b`, or of `x/{a => b}/y` where only a part differs."""
    head, _, behind = text.partition("{")
    inner, _, rest = behind.partition("}")
    if " => " in inner:
        old, new = inner.split(" => ", 1)
        yield "deleted", f"{head}{old}{rest}".replace("//", "/")
        yield "created", f"{head}{new}{rest}".replace("//", "/")
    elif text.count(" => ") == 1:
        old, new = text.split(" => ")
        yield "deleted", _unquote_path(old)
        yield "created", _unquote_path(new)


def _unquote_path(path: str) -> str:
    """Return a path without the quotes and octal bytes that git uses for unusual names."""
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path
    raw = _OCTAL.sub(
        lambda found: chr(int(found[1], 8)) if len(found[1]) == 3 else _ESCAPES.get(found[1], found[1]), path[1:-1]
    )
    return raw.encode("latin-1", "ignore").decode("utf-8", "replace")
