"""Files written and folders listed by a path that a model wrote, below the workspace only.

The way of `recall.workspace`, for writing: the workspace is opened once, every folder on the way below the one before and
without following links, so nobody can put a link between a check and its use. A file is written beside its place and then
renamed: it is there as a whole or not at all. What is wrong is a `FileRefused` that says it in words.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from everturn.recall.workspace import FileRefused, workspace_path

_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

#: Folders that hold nothing anybody wants to read here.
SKIPPED = frozenset((".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"))

#: More entries than this are not looked at in one walk.
MOST_ENTRIES = 20_000


def path_names(workspace: str, path: str) -> list[str]:
    """The names on the way to a path below the workspace, none of which leads upwards. Raises Refused."""
    inside = workspace_path(workspace, path.strip())
    if "\0" in inside or os.path.isabs(inside) or inside.startswith("~") or inside[1:2] == ":":
        raise FileRefused(f"{path[:200]!r}: only paths below the workspace are allowed")
    parts = [part for part in inside.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FileRefused(f"{path[:200]!r}: a path may not lead upwards with ..")
    return parts


def write_inside(workspace: str, path: str, text: str) -> bool:
    """Write a file, with the folders on the way to it; True when it is new. Raises Refused."""
    parts = path_names(workspace, path)
    if not parts:
        raise FileRefused("give the path of a file")
    with _refuse_os_errors(path), _open_folder(workspace, parts[:-1], create=True) as folder:
        there = _file_mode(folder, parts[-1])
        if there is not None and not stat.S_ISREG(there):
            raise FileRefused(f"{path[:200]}: not an ordinary file, or a symbolic link, which is not followed")
        _replace_file(
            folder, parts[-1], text.encode("utf-8", "replace"), stat.S_IMODE(there) if there is not None else 0o644
        )
        return there is None


def walk_inside(workspace: str, path: str = "") -> Iterator[tuple[str, bool]]:
    """Everything below a folder of the workspace, as (path from the workspace, is it a folder). Links are named, not followed."""
    parts = path_names(workspace, path)
    with _refuse_os_errors(path or "."), _open_folder(workspace, parts) as folder:
        top = f"{'/'.join(parts)}/" if parts else ""
        left = MOST_ENTRIES
        for where, folders, files, _ in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
            prefix = top + ("" if where == "." else f"{where[2:]}/")
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            for name in [*folders, *sorted(files)]:
                left -= 1
                if left < 0:
                    return
                yield f"{prefix}{name}", name in folders


@contextmanager
def _open_folder(workspace: str, parts: list[str], create: bool = False) -> Iterator[int]:
    """A descriptor of a folder below the workspace. The workspace itself was chosen by a person and may be a link."""
    if not workspace:
        raise FileRefused("there is no workspace")
    folder = os.open(workspace, _FOLDER_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
    try:
        for part in parts:
            if create:
                try:
                    os.mkdir(part, dir_fd=folder)
                except FileExistsError:
                    pass
            below = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _file_mode(folder: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _replace_file(folder: int, name: str, data: bytes, mode: int) -> None:
    beside = f".{name[:100]}.{os.getpid()}.new"
    try:
        with open(os.open(beside, _NEW_FILE_FLAGS, mode, dir_fd=folder), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        try:
            os.unlink(beside, dir_fd=folder)
        except OSError:
            pass
        raise


@contextmanager
def _refuse_os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reasons = {
            "FileNotFoundError": "there is no such folder in the workspace",
            "NotADirectoryError": "a part of it is not a folder, or is a symbolic link",
            "PermissionError": "is not allowed",
        }
        why = reasons.get(type(error).__name__, error.strerror or "cannot be opened")
        raise FileRefused(f"{path[:200]}: {why}") from None
