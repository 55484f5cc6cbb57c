"""Read, write and list files of a workspace by a path that a model wrote.

Nothing outside the folder is ever touched: no absolute path, no `..`, and no symbolic link on the way or at its end. The
folder is opened once and every part of the path is opened below the one before, without following links, so no link can be
inserted between a check and its use. Only regular files are read (opening a pipe or a device does not block), up to a
size. A file is written next to its target and then renamed: it is there as a whole or not at all. Every error is a
`FileRefused` with a sentence.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

#: Bytes read of a file.
MAX_FILE_BYTES = 8 * 1024 * 1024

_NAMED = 200  # characters of a path repeated in a sentence

_FILE = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)  # fmt: skip


class FileRefused(Exception):
    """A file that is not read or written, and why."""


class FileText(Struct, frozen=True):
    """The text of a file, the bytes read and the size of the file."""

    text: str
    read: int
    size: int


def read_inside(workspace: str, path: str) -> FileText:
    """Read the beginning of a file below the workspace. Raises FileRefused."""
    parts = _split_path(workspace, path)
    path = path if len(path) <= _NAMED else f"{path[:_NAMED]}…"
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        raise FileRefused("files of a workspace cannot be read safely on this system")
    try:
        with _open_folder(workspace, parts[:-1]) as folder:
            opened = os.open(parts[-1], _FILE, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise FileRefused(_refusal_reason(path, error)) from None
    try:
        found = os.fstat(opened)
        if stat.S_ISDIR(found.st_mode):
            raise FileRefused(f"{path}: that is a folder, not a file")
        if not stat.S_ISREG(found.st_mode):
            raise FileRefused(f"{path}: not a regular file")
        with os.fdopen(os.dup(opened), "rb") as file:
            data = file.read(MAX_FILE_BYTES)
        if b"\0" in data[:8192]:
            raise FileRefused(f"{path}: not a text file ({found.st_size:,} bytes)")
        return FileText(data.decode("utf-8", "replace"), len(data), max(found.st_size, len(data)))
    except OSError as error:
        raise FileRefused(_refusal_reason(path, error)) from None
    finally:
        os.close(opened)


def workspace_path(workspace: str, path: str) -> str:
    """Return a path below the workspace relative to it; any other as it is."""
    root = workspace.rstrip("/\\")
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("/", "\\"):
        return path[len(root) + 1 :]
    return path


def _split_path(workspace: str, path: str) -> list[str]:
    """Return the names on the way to the file; none of them may lead upwards."""
    if not workspace:
        raise FileRefused("there is no workspace to read files from")
    if not path.strip() or "\0" in path:
        raise FileRefused("give the path of a file")
    if os.path.isabs(path) or path.startswith(("/", "\\", "~")) or path[1:2] == ":":
        inside = workspace_path(workspace, path)
        hint = f", as in {inside}" if inside != path else ""
        raise FileRefused(f"{path}: only paths below the workspace can be read, written from there{hint}")
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FileRefused(f"{path}: a path may not lead upwards with ..")
    if not parts:
        raise FileRefused(f"{path}: that is a folder, not a file")
    return parts


def _refusal_reason(path: str, error: OSError | ValueError) -> str:
    """Return why it could not be opened; a link shows as ELOOP, or as ENOTDIR on the way."""
    number = getattr(error, "errno", 0)
    reasons = {
        "FileNotFoundError": "there is no such file in the workspace",
        "PermissionError": "may not be read",
        "NotADirectoryError": "a part of it is not a folder, or is a symbolic link",
    }
    if number in (errno.ELOOP, errno.EMLINK):
        return f"{path}: a symbolic link, which is not followed; give the path it stands for"
    return f"{path}: {reasons.get(type(error).__name__, 'cannot be opened')}"


_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

#: Folders that are not listed.
SKIPPED = frozenset((".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"))

#: Entries listed in one walk.
MOST_ENTRIES = 20_000


def path_names(workspace: str, path: str) -> list[str]:
    """Return the names on the way to a path below the workspace, none of which leads upwards. Raises FileRefused."""
    inside = workspace_path(workspace, path.strip())
    if "\0" in inside or os.path.isabs(inside) or inside.startswith("~") or inside[1:2] == ":":
        raise FileRefused(f"{path[:200]!r}: only paths below the workspace are allowed")
    parts = [part for part in inside.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FileRefused(f"{path[:200]!r}: a path may not lead upwards with ..")
    return parts


def write_inside(workspace: str, path: str, text: str) -> bool:
    """Write a file and the folders on the way to it; return whether it is new. Raises FileRefused."""
    parts = path_names(workspace, path)
    if not parts:
        raise FileRefused("give the path of a file")
    with _refuse_os_errors(path), _open_folder(workspace, parts[:-1], create=True) as folder:
        mode = _file_mode(folder, parts[-1])
        if mode is not None and not stat.S_ISREG(mode):
            raise FileRefused(f"{path[:200]}: not a regular file, or a symbolic link, which is not followed")
        permissions = stat.S_IMODE(mode) if mode is not None else 0o644
        _replace_file(folder, parts[-1], text.encode("utf-8", "replace"), permissions)
        return mode is None


def walk_inside(workspace: str, path: str = "") -> Iterator[tuple[str, bool]]:
    """Yield everything below a folder as (path from the workspace, is it a folder). Links are listed, not followed."""
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
    """Open a folder below the workspace. The workspace itself was chosen by a person and may be a link."""
    if not workspace:
        raise FileRefused("there is no workspace")
    folder = os.open(workspace, _FOLDER_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
    try:
        for part in parts:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
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
    temporary = f".{name[:100]}.{os.getpid()}.new"
    try:
        with open(os.open(temporary, _NEW_FILE_FLAGS, mode, dir_fd=folder), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
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
