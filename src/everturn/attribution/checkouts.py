"""Which edits are edits of a file of this repository, and in which working tree they were made.

An edit names its file as the agent did: absolute or relative to the session's folder, on this machine or another one, in
a working tree that may be gone. A path inside one of the repository's working trees is certain. Elsewhere its end must be
the path in the repository, and what is before must look like a clone: the name of the repository, or edits of several other
files that the repository has. A folder that exists here as another repository is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath

from everturn.attribution.repository import Repository
from everturn.derive.paths import plain_path, same_case
from everturn.errors import EverturnError
from everturn.store.contract import FoundEdit, Store

_INNER = re.compile(r"(.*/\.(?:[\w-]+/)?worktrees/[^/]+)/(.+)")
_LEAST_FILES = 3
_LEAST_SHARE = 0.5


class Checkouts:
    """The working trees of one repository, here and elsewhere."""

    def __init__(self, repository: Repository, store: Store) -> None:
        self._repository, self._store = repository, store
        self._roots = sorted((plain_path(root) for root in repository.worktrees), key=len, reverse=True)
        self._workspaces: dict[int, str] = {}
        self._clones: dict[str, bool] = {}

    def place(self, edit: FoundEdit, wanted: frozenset[str]) -> tuple[str, str] | None:
        """Return the working tree and the path of an edit if it is of one of these paths of the repository."""
        path = self._absolute(edit)
        if not path:
            return None
        root, inner = self._own(path)
        if root:
            return (root, inner) if inner in wanted else None
        folded = same_case(path, path)
        for one in wanted:
            if folded.endswith("/" + same_case(one, path)):
                clone = path[: -len(one) - 1]
                return (clone, one) if self._is_clone(clone, edit) else None
        return None

    def _absolute(self, edit: FoundEdit) -> str:
        session = edit.row.session
        if session not in self._workspaces:
            self._workspaces[session] = self._store.session(session)[1].workspace
        workspace = plain_path(self._workspaces[session])
        path = plain_path(edit.row.path, workspace[1:2] == ":")
        if path.startswith("/") or path[1:2] == ":":
            return path
        return normpath(f"{workspace}/{path}") if workspace and not path.startswith("~") else ""

    def _own(self, path: str) -> tuple[str, str]:
        for root in self._roots:
            if path.startswith(f"{root}/"):
                inner = _INNER.fullmatch(path)  # a working tree inside of this one that is gone
                if inner and inner[1].startswith(f"{root}/"):
                    return inner[1], inner[2]
                return root, path[len(root) + 1 :]
        return "", ""

    def _is_clone(self, folder: str, edit: FoundEdit) -> bool:
        if folder not in self._clones:
            here = self._clone_here(folder)
            self._clones[folder] = self._looks_alike(folder, edit) if here is None else here
        return self._clones[folder]

    def _clone_here(self, folder: str) -> bool | None:
        """Whether a folder of this machine is a clone of the repository; None if it is no repository at all."""
        try:
            if not Path(folder, ".git").exists():
                return None
            one, other = self._repository, Repository(Path(folder))
            # The first commits of a shallow clone are not the first for others, but others have them.
            return bool(one.roots & other.roots) or other.has_any(one.roots) or one.has_any(other.roots)
        except (EverturnError, OSError, ValueError):
            return None

    def _looks_alike(self, folder: str, edit: FoundEdit) -> bool:
        """Whether a folder that is not here has the name of the repository, or the files."""
        name = folder.rstrip("/").rpartition("/")[2].lower()
        if name in self._repository.names:
            return True
        near = map(self._absolute, self._store.edits_of_session(edit.row.session))
        paths = {*self._store.edited_paths(f"{folder}/"), *near}
        inner = {path[len(folder) + 1 :] for path in paths if path.startswith(f"{folder}/")}
        known = inner & self._repository.tracked_paths
        is_named_after = any(
            re.match(re.escape(one) + r"[-_.@+]", name) for one in self._repository.names
        )  # `shop-feature`, a usual name for a worktree
        least = 1 if is_named_after else _LEAST_FILES
        return sum("/" in path for path in known) >= least and len(known) >= _LEAST_SHARE * len(inner)
