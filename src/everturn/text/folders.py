r"""Working folders as filters: compared as paths, never as parts of a text.

    /home/ann/shop, C:\shop     that folder and everything below it; the case counts
    ~/shop, ./shop, ..          the same, after `resolve_folder`
    shop, team/shop             every folder of that name, or of those names one below the other, and everything below
                                it; the case does not count

Both kinds of separators are equal, and so are `c:` and `C:`. A separator at the end does not matter. `store.sql` states the
same in SQL: `FolderFilter` holds what both compare.
"""

from __future__ import annotations

import os
import posixpath
import re

from msgspec import Struct

#: For the help of every option and parameter that takes a folder.
FOLDER_RULE = "Only in this folder or below: a path (/a/b, ~/b, .) or a folder's name (b, a/b)."

_DRIVE = re.compile(r"[A-Za-z]:(?=/|$)")
_RELATIVE = (".", "..")


class FolderFilter(Struct, frozen=True):
    """A folder to compare with: the beginnings of a path, or adjacent names in lower case. All end with `/`."""

    beginnings: tuple[str, ...] = ()
    names: str = ""  # begins with `/` too

    def matches(self, folder: str) -> bool:
        """Whether a folder of the archive is this one or below it."""
        if not folder:
            return False
        path = folder.replace("\\", "/").rstrip("/") + "/"
        return path.startswith(self.beginnings) if self.beginnings else self.names in f"/{path}".lower()


def resolve_folder(typed: str, base: str = "", home: str = "") -> str:
    """Return a typed folder with `~`, `.` and `..` replaced; relative to `base`, or else to the current folder.

    Without `home`, what follows `~/` is a name.
    """
    start = typed.replace("\\", "/").partition("/")[0]
    if start == "~":
        typed = home + typed[1:] if home else typed[2:]
    elif start in _RELATIVE:
        typed = os.path.join(base or os.getcwd(), typed.replace("\\", "/"))
    path = typed.replace("\\", "/")
    return posixpath.normpath(path) if _is_absolute(path) else typed


def folder_filter(folder: str) -> FolderFilter:
    """Return the filter of a resolved folder."""
    path = folder.replace("\\", "/").rstrip("/") + "/"
    if not _is_absolute(path):
        return FolderFilter(names=f"/{path}".lower())
    if _DRIVE.match(path):
        return FolderFilter((path[0].lower() + path[1:], path[0].upper() + path[1:]))
    return FolderFilter((path,))


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))
