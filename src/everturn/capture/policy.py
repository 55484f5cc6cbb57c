"""The capture mode of each workspace: full, redacted, structure only, or off. Every writer asks here before it writes.

A rule names workspaces by a glob. It applies to a workspace, to everything below it, and to git worktrees of a repository
that it matches, wherever they are. A workspace behind a symbolic link is compared by both of its names.

A file whose workspace is unknown may belong to a workspace that the user excluded, so it is not captured while there is
such a rule (`capture.unknown` chooses another mode). Formats of conversations that take place in no folder, such as
exports of a website, have the default mode.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

#: Strictest first.
MODES = ("off", "structure", "redacted", "full")

UNKNOWN = "its workspace is unknown, and a rule keeps some workspaces out of the archive"

#: The name of a folder that an agent made from the path of a workspace: `-home-ann-shop`, `C--work-shop`.
_SLUG = re.compile(r"(?:-{1,2}|[A-Za-z]--)[A-Za-z0-9].*")
_GITDIR = re.compile(r"gitdir:\s*(.+?)[/\\]\.git[/\\]worktrees[/\\][^/\\]+\s*$", re.DOTALL)
_LONGEST_GITDIR = 4096


def redact_line(line: bytes) -> bytes:
    """Mask the secrets of one line."""
    from everturn.secrets.redaction import redact_bytes  # its rules take a while to compile

    return redact_bytes(line)


@dataclass(frozen=True)
class Decision:
    """The mode of one conversation, and whether it is off only because its workspace is unknown."""

    mode: str
    is_unknown: bool = False


@dataclass(frozen=True)
class Policy:
    """The user's rules. The last matching rule wins; `exclude` is the same as mode `off`."""

    mode: str = "full"
    rules: tuple[tuple[str, str], ...] = ()  # (glob of a workspace path, mode)
    exclude: tuple[str, ...] = ()
    redact: Callable[[bytes], bytes] = field(default=redact_line)  # of one line, for mode `redacted`
    unknown: str = ""  # mode for an unknown workspace; "": the strictest one that a rule may give it

    def decide(self, workspace: str, path: str = "", is_placeless: bool = False) -> Decision:
        """Decide the mode of a conversation. `path` is its file; `is_placeless`: its format has no workspaces."""
        is_known = bool(workspace) or is_placeless or any(map(_SLUG.fullmatch, re.split(r"[/\\]", path)))
        if is_known or self.is_simple:
            return Decision(self.mode_for(workspace, path))
        named = self.mode_for("", path)
        given = self.unknown or min((named, *self._rule_modes()), key=MODES.index)
        mode = min((given, named), key=MODES.index) if named == "off" else given
        return Decision(mode, is_unknown=mode == "off" != self.mode and named != "off")

    def mode_for(self, workspace: str, path: str) -> str:
        """Return the mode of a workspace; `path` is the source file, for sources without a workspace."""
        names = _names_of(workspace) if workspace and not self.is_simple else (workspace,)
        if any(_matches_glob(glob, name, path) for glob in self.exclude for name in names):
            return "off"
        return _last_matching(self.rules, names, path, self.mode)

    @property
    def is_simple(self) -> bool:
        """Whether one mode applies to everything, so that the workspace does not matter."""
        return not self.rules and not self.exclude

    @property
    def is_off(self) -> bool:
        """Whether nothing at all is captured."""
        return self.is_simple and self.mode == "off"

    def _rule_modes(self) -> tuple[str, ...]:
        return (*(mode for _, mode in self.rules), *("off" for _ in self.exclude))


def last_matching(rules: tuple[tuple[str, str], ...], workspace: str, path: str, otherwise: str) -> str:
    """Return the value of the last rule (glob, value) that matches a workspace, or its file without one."""
    names = _names_of(workspace) if workspace and rules else (workspace,)
    return _last_matching(rules, names, path, otherwise)


def _last_matching(rules: tuple[tuple[str, str], ...], names: tuple[str, ...], path: str, otherwise: str) -> str:
    for glob, value in reversed(rules):
        if any(_matches_glob(glob, name, path) for name in names):
            return value
    return otherwise


@lru_cache(4096)
def _names_of(workspace: str) -> tuple[str, ...]:
    """Return the names of a workspace: as recorded, without links, and the repository whose worktree it is in."""
    names = [workspace]
    if os.path.isabs(workspace):
        real = os.path.realpath(workspace)
        names += [real, *_repositories_of(Path(real))]
    return tuple(dict.fromkeys(names))


def _repositories_of(folder: Path) -> list[str]:
    """Return the repository that a folder is a worktree of, if it still exists."""
    for place in (folder, *folder.parents):
        mark = place / ".git"
        try:
            if mark.is_dir():
                return []
            with mark.open(encoding="utf-8", errors="surrogateescape") as file:
                found = _GITDIR.match(file.read(_LONGEST_GITDIR))
        except OSError:
            continue
        if not found:
            return []
        repository = os.path.normpath(os.path.join(place, found[1]))
        return [repository, os.path.realpath(repository)]
    return []


def _matches_glob(glob: str, workspace: str, path: str) -> bool:
    """Whether a glob matches the workspace, anything below it, or the source file.

    Agents name their folders after the workspace with every special character replaced by `-`; for a file without a
    workspace, that name is compared instead.
    """
    glob = glob.rstrip("/\\")
    if workspace and _is_at_or_below(glob, workspace):
        return True
    if _is_at_or_below(glob, path):
        return True
    slug = re.sub(r"[^A-Za-z0-9*?\[\]]", "-", glob)
    return not workspace and any(_is_slug_of(slug, part) for part in re.split(r"[/\\]", path))


def _is_slug_of(slug: str, part: str) -> bool:
    """Whether a folder's name stands for a workspace of that name or below it. Some agents add or omit a dash."""
    names = (part, f"-{part.strip('-')}")
    return any(fnmatchcase(name, pattern) for name in names for pattern in (slug, f"{slug}-*"))


def _is_at_or_below(glob: str, path: str) -> bool:
    return fnmatchcase(path, glob) or fnmatchcase(path, f"{glob}/*") or fnmatchcase(path, f"{glob}\\*")
