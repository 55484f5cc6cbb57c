"""Every error everturn raises on purpose.

    EverturnError               exit 1   something failed; the message says what to do next
    ├── Usage                   exit 2   the request itself is wrong
    │   ├── BadConfig                    a setting cannot be used
    │   ├── AmbiguousSession             a prefix that fits several sessions
    │   └── MissingPath                  a path that is not there
    ├── NothingFound            exit 3   the request is fine, there is no answer
    │   ├── UnknownSession               no session with that id
    │   └── NoArchive                    there is no archive at that place yet
    ├── PartlyFailed            exit 4   some of the work was done, the rest is reported
    ├── Unreadable              exit 1   a file that may not or cannot be read
    ├── NotAnArchive            exit 1   the database is something else, or damaged
    ├── NewerArchive            exit 1   written by a newer everturn
    ├── NoSpace                 exit 1   the disk is full
    ├── Conflict                exit 75  another process moved first; the caller starts that file again
    └── Busy                    exit 75  somebody else holds the archive

Each builds its own sentence from ids and ends with what to do next. They are printed in one place, `cli`, without a
traceback.
"""

from __future__ import annotations


class EverturnError(Exception):
    """The root: a sentence for people and an exit code for programs."""

    exit_code = 1


class Usage(EverturnError):
    """The request is wrong."""

    exit_code = 2


class BadConfig(Usage):
    """A setting that cannot be used."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"setting {key}: {why}; see `everturn config --help`")


class AmbiguousSession(Usage):
    """A prefix that fits several sessions."""

    def __init__(self, prefix: str, matches: list[str]) -> None:
        shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
        super().__init__(f"session id {prefix!r} fits {len(matches)} sessions ({shown}); give more characters")


class MissingPath(Usage):
    """A path that is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no file or folder {path}; check the path")


class NothingFound(EverturnError):
    """A fine request without an answer."""

    exit_code = 3


class UnknownSession(NothingFound):
    """No session with that id."""

    def __init__(self, wanted: str) -> None:
        super().__init__(
            f"no session {wanted!r} in the archive; `everturn sessions` lists them, `everturn sync` looks for new ones"
        )


class NoArchive(NothingFound):
    """No archive at that place yet."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"there is no archive at {url} yet; run `everturn sync` to make one, or name another with --db"
        )


class PartlyFailed(EverturnError):
    """Some of the work failed."""

    exit_code = 4


class Unreadable(EverturnError):
    """A file that cannot be read."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"cannot read {path}: {why}; check its permissions")


class NotAnArchive(EverturnError):
    """The database is not an archive of ours, or is damaged."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} cannot be used as an archive: {why}; restore a backup or name another with --db")


class NewerArchive(EverturnError):
    """The archive was written by a newer everturn."""

    def __init__(self, url: str, found: int, known: int) -> None:
        super().__init__(
            f"{url} was written by a newer everturn (schema {found}, this one knows {known}); upgrade everturn, nothing was changed"
        )


class NoSpace(EverturnError):
    """The disk is full."""

    def __init__(self, url: str, why: str = "the disk is full") -> None:
        super().__init__(f"{url}: {why}; nothing half-written was kept: free some space and run it again")


class Conflict(EverturnError):
    """Another process moved the same cursor first."""

    exit_code = 75

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was changed by another everturn meanwhile; run it again")


class Busy(EverturnError):
    """Somebody else holds the archive."""

    exit_code = 75

    def __init__(self, url: str) -> None:
        super().__init__(f"{url} is locked by another process; wait for it to finish and run this again")
