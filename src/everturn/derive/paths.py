"""One name for each file of a session.

Clients and shells write the path of one file in many ways: with either separator, as `D:\\shop`, `/d/shop` or `/mnt/d/shop`,
as a `file://` address, absolute or relative to the workspace, inside a worktree of the same repository. `local_path` returns
the path relative to the workspace with forward slashes, or an absolute path for a file outside it. `known_path` returns the
file that a path from another folder means, and `matches_any` tells whether patterns of a shell cover a path. Nothing is read
from disk.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
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


_GENERATED = lazy_pattern(
    r"(?:^|[/\\])(?:node_modules|__pycache__|\.venv|venv|dist|\.next|\.nuxt|\.turbo|\.git|\.pytest_cache|\.mypy_cache|\.ruff_cache|site-packages"
    r"|\.cache|\.npm|\.gradle|\.terraform|\.svelte-kit|\.parcel-cache|\.tox|\.[\w-]{1,40}[/\\]cache|[\w.-]{1,80}\.egg-info)(?:[/\\]|$)"
)
#: What agents write about themselves into a repository: sessions, logs and caches in a hidden folder.
_OF_CLIENTS = lazy_pattern(
    r"(?:^|/)(?:\.[\w-]{1,40}/(?:tmp|sessions|logs?|history|metadata|statistics\.json|shell[_-]snapshots|models_cache|state_|auth|version|todos|projects"
    r"|file-history|statsig|ide|debug|plugins|\.credentials)|\.\w{1,40}\.(?:chat|input|tags|llm)\.(?:history|cache))"
)
_LOCKS = frozenset(
    ("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "uv.lock", "poetry.lock", "Pipfile.lock",
     "Cargo.lock", "Gemfile.lock", "composer.lock", "go.sum", "flake.lock")
)  # fmt: skip


def is_in_build(path: str) -> bool:
    """Whether a path is in a folder that builds, caches and package managers fill."""
    return _GENERATED.search(path) is not None


def is_generated(path: str) -> bool:
    """Whether a file is written by a build, a package manager or the client itself."""
    plain = path.replace("\\", "/")
    return is_in_build(path) or _OF_CLIENTS.search(plain) is not None or plain.rsplit("/", 1)[-1] in _LOCKS


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


def known_path(path: str, known: Collection[str], by_name: bool = False) -> str:
    """Return the one known file that a path from another folder means; else the path itself.

    It ends with the path, if that is relative and has at least two parts, or an absolute path ends with it. With `by_name`, a
    known name without a folder may be any file of that name.
    """
    if path in known or "/" not in path or path.startswith("~"):
        return path
    if _is_absolute(path):
        same = [one for one in known if "/" in one and path.endswith(f"/{one}")]
    else:
        same = [one for one in known if one.endswith(f"/{path}")]
    if not same and by_name and (name := path.rsplit("/", 1)[-1]) in known:
        same = [name]
    return same[0] if len(same) == 1 else path


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of some patterns of a shell covers a path; one without a folder covers its name in any folder."""
    name = path.rsplit("/", 1)[-1]
    return any(_glob(one).fullmatch(path if "/" in one else name) is not None for one in patterns)


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """Return a shell pattern as a regular expression: `*` within a folder, `**/` over any number of them."""
    parts = re.split(r"(\*\*/|\*+|\?)", pattern[:_LONGEST_GLOB])
    signs = {"**/": "(?:[^/]+/)*", "?": "[^/]"}
    rest = "".join(signs.get(one) or ("[^/]*" if one.startswith("*") else re.escape(one)) for one in parts)
    return re.compile(rest if pattern.startswith("/") else f"(?:.*/)?{rest}")


_LONGEST_GLOB = 300
