"""The capture mode of each workspace: full, redacted, structure only, or off."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


def _unchanged_line(line: bytes) -> bytes:
    return line


@dataclass(frozen=True)
class Policy:
    """The user's rules. The last matching rule wins; `exclude` is the same as mode `off`."""

    mode: str = "full"
    rules: tuple[tuple[str, str], ...] = ()  # (glob of a workspace path, mode)
    exclude: tuple[str, ...] = ()
    redact: Callable[[bytes], bytes] = field(default=_unchanged_line)  # of one line, for mode `redacted`

    def mode_for(self, workspace: str, path: str) -> str:
        """Return the mode of a workspace; `path` is the source file, for sources without a workspace."""
        if any(_matches_glob(glob, workspace, path) for glob in self.exclude):
            return "off"
        mode = self.mode
        for glob, rule_mode in self.rules:
            if _matches_glob(glob, workspace, path):
                mode = rule_mode
        return mode

    @property
    def is_simple(self) -> bool:
        """Whether one mode applies to everything, so that the workspace does not matter."""
        return not self.rules and not self.exclude


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
    return not workspace and any(_is_at_or_below(slug, part) for part in re.split(r"[/\\]", path))


def _is_at_or_below(glob: str, path: str) -> bool:
    return fnmatchcase(path, glob) or fnmatchcase(path, f"{glob}/*") or fnmatchcase(path, f"{glob}\\*")
