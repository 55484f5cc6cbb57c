"""One name for each file of a session.

Clients and shells write the path of one file in many ways: with either separator, as `D:\\shop`, `/d/shop` or `/mnt/d/shop`,
as a `file://` address, absolute or relative to the workspace, inside a worktree of the same repository. `local_path` returns
the path relative to the workspace with forward slashes, or an absolute path for a file outside it. Nothing is read from
disk.
"""

from __future__ import annotations

import re
from functools import lru_cache
from posixpath import normpath
from urllib.parse import unquote

from everturn.text.lazy_pattern import lazy_pattern

_DRIVE = lazy_pattern(r"([A-Za-z]):[\\/]")
_MOUNTED_DRIVE = lazy_pattern(r"/(?:mnt/|cygdrive/)?([A-Za-z])/")
_HOME = lazy_pattern(r"(?:[A-Za-z]:)?/(?:home|Users)/[^/]+(?=/)|/root(?=/)")
_INNER_WORKTREE = lazy_pattern(r"\.(?:[\w-]+/)?worktrees/[^/]+/(?=.)")
_SCRATCH = lazy_pattern(
    r"(?:/private)?(?:/tmp|/var/tmp|/var/folders)/|[A-Za-z]:/(?:Windows/)?Te?mp/|.{0,200}/AppData/Local/Temp/",
    re.IGNORECASE,
)


def local_path(path: str, workspace: str) -> str:
    """Return the one name of a file: relative to the workspace if it is inside, else absolute."""
    home = _root(workspace)
    on_windows = home[1:2] == ":"
    plain = plain_path(path, on_windows)
    if plain.startswith("~/") and (user := _HOME.match(f"{home}/")):
        plain = f"{user[0]}{plain[1:]}"
    inner = _inside(plain, home, on_windows)
    if inner is None:
        return plain if _is_absolute(plain) or plain.startswith("~") else _without_worktree(plain)
    return _without_worktree(inner)


def plain_path(path: str, on_windows: bool = False) -> str:
    """Return a path with forward slashes, one form of a drive, and without `.` and `..` where that is possible."""
    if path.startswith("file://"):
        path = unquote(path[7:].removeprefix("localhost"))
        path = path[1:] if _DRIVE.match(path, 1) else path
    if "\\" in path and (on_windows or _DRIVE.match(path) or "/" not in path):
        path = path.replace("\\", "/")
    if on_windows and (mounted := _MOUNTED_DRIVE.match(path)):
        path = f"{mounted[1]}:/{path[mounted.end() :]}"
    if _DRIVE.match(path):
        path = path[0].upper() + path[1:]
    if "//" in path or "./" in path or path.endswith("/."):
        path = normpath(path) + ("/" if path.endswith("/") else "")
    return path


def is_scratch(path: str) -> bool:
    """Whether a path is in a folder for temporary files."""
    return _SCRATCH.match(path.replace("\\", "/")) is not None


def same_case(path: str, workspace: str) -> str:
    """Return what two spellings of one file share: drives of Windows do not tell upper from lower case."""
    return path.lower() if _DRIVE.match(workspace) or _DRIVE.match(path) else path


@lru_cache(maxsize=64)
def _root(workspace: str) -> str:
    return plain_path(workspace, bool(_DRIVE.match(workspace))).rstrip("/")


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or path[1:2] == ":"


def _inside(path: str, home: str, on_windows: bool) -> str | None:
    """Return the rest of a path below the workspace, or below a worktree of it; None if it is elsewhere."""
    if not home or not _is_absolute(path):
        return None
    one, two = (path.lower(), home.lower()) if on_windows else (path, home)
    if one.startswith(f"{two}/"):
        return path[len(home) + 1 :]
    name = home.rsplit("/", 1)[-1]
    if "/worktrees/" in one and name:
        for pattern in (
            rf"/\.[\w-]+/worktrees/[^/]+/{re.escape(name)}/",
            rf"/\.[\w-]+/worktrees/{re.escape(name)}/[^/]+/",
        ):
            if found := re.search(pattern, path):
                return path[found.end() :]
    own = re.search(r"/\.(?:[\w-]+/)?worktrees/[^/]+$", home)  # the session itself works in a worktree
    return path[own.start() + 1 :] if own and path.startswith(f"{home[: own.start()]}/") else None


def _without_worktree(path: str) -> str:
    return path[found.end() :] if "worktrees/" in path and (found := _INNER_WORKTREE.match(path)) else path
