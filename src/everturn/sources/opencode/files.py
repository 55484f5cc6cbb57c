"""Finds sessions on disk, and recognizes them elsewhere by their first bytes, without decoding anything.

    <data>/opencode.db                                   a database of sessions
    <data>/storage/session/<project>/ses_*.json          a session, its messages and parts in folders beside `session`
    <data>/project/<slug>/storage/session/info/ses_*.json    the same, in the layout of early clients
    anything                                             exports, as JSON, lines of JSON, or Markdown

Folders behind symbolic links are not entered. A folder that cannot be listed does not stop the rest: `find` yields all it
can reach and raises that folder's `OSError` at the end.

`created_at` computes when a session began from its id and a date in the writer's language and zone, as a rendered
transcript has it: `5/9/2026, 9:08:30 AM`, `31/07/2026, 20:37:39`, `04.04.2026, 17:46:01`. The id holds the exact
millisecond, but modulo some 795 days; each supplies what the other lacks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from everturn.sources.contract import SearchPlaces, SourceCandidate, existing_folders

#: Beginnings of the lines that a container was written out as.
_LINE = re.compile(rb'\s*+\{"(?:session|message|session_message|error|file)":')
_OPENED = re.compile(rb'\s*+(\[?)\s*+\{\s*+"(info|parts|messages)"\s*+:')
_FIRST = re.compile(rb'\s*+\[?\s*+(?:\{\s*+(?:"[^"]{0,40}"?\s*+:?)?)?')
#: The id of a session or of a message, whichever comes first. Text inside strings has its quotes escaped.
_ID_FIELD = re.compile(rb'(?<!\\)"id"\s*+:\s*+"(ses|msg)_')
_SESSION_FIELD = re.compile(rb'(?<!\\)"(?:id|sessionID)"\s*+:\s*+"(ses_\w+)"')
_RENDERED = re.compile(rb"(?:\xef\xbb\xbf)?\s*+# [^\n]*\n\s*+\*\*Session ID:\*\* (ses_\w+)")
_FOLDER = re.compile(rb'(?<!\\)"(?:directory|cwd)"\s*+:\s*+("(?:[^"\\]|\\.){1,4096}")')
_MARK = b"\xef\xbb\xbf"


def shape_of(data: bytes) -> str:
    """Return `lines`, `document` or `text`; "" when more bytes are needed to tell."""
    if data == _MARK[: len(data)]:
        return ""
    data = data.removeprefix(_MARK)
    if not (first := data.lstrip()[:1]):
        return ""
    if first == b"#":
        return "text"
    if first not in b"[{" or _LINE.match(data):
        return "lines"
    opened = _OPENED.match(data)
    return _unopened_shape(data, first) if opened is None else _opened_shape(data, opened)


#: A line that describes a session, as written when a database or folder is taken apart.
_SESSION_LINE = re.compile(rb'\s*\{[^\n]*"session"\s*:\s*\{')


def session_in(head: bytes) -> str:
    """Return the first session that a file names; "" when it is not OpenCode's."""
    session = _RENDERED.match(head)
    body = head.removeprefix(_MARK)
    if session is None and (_OPENED.match(body) or _SESSION_LINE.match(body)):
        session = _SESSION_FIELD.search(body)
    return session[1].decode() if session else ""


def folder_in(head: bytes) -> str:
    """Return the first working folder that a file names; "" without one."""
    from everturn.sources.toolkit.values import decode_value, word

    return word(decode_value(found[1])) if (found := _FOLDER.search(head)) else ""


def _unopened_shape(data: bytes, first: bytes) -> str:
    if (cut := _FIRST.match(data)) is not None and cut.end() == len(data):
        return ""
    return "document" if first == b"[" else "lines"


def _opened_shape(data: bytes, opened: re.Match[bytes]) -> str:
    if opened[1] or opened[2] == b"messages":
        return "document"
    line, end, _ = data[opened.end() :].partition(b"\n")
    is_whole = bool(end) and line.rstrip().endswith(b"}")  # a record, or a document, on one line
    found = _ID_FIELD.search(line) if is_whole else _ID_FIELD.search(data, opened.end())
    if found is None:
        return "lines" if is_whole else ""
    return "document" if found[1] == b"ses" else "lines"


NAME = "opencode"

#: Beginnings of the client's placeholder titles.
UNTITLED = ("New session - ", "Child session - ")

_DATABASE = re.compile(r"opencode(?:-[\w.-]+)?\.db")
_FILE = re.compile(r"(ses_\w+)\.json")
_SESSION_FILE_ID = re.compile(rb'"id"\s*:\s*"(ses_\w+)"')
_SQLITE = b"SQLite format 3\0"

#: How many of the newest messages are checked for changes; older ones change only together with something else.
_NEWEST = 4


def roots(places: SearchPlaces) -> list[Path]:
    env, home = places.env, places.home
    folders = list(places.extra.get(NAME, ()))
    if database := env.get("OPENCODE_DB", ""):
        folders.append(Path(database))
    data = [env.get("XDG_DATA_HOME", ""), str(home / ".local" / "share")]
    data += [str(home / "Library" / "Application Support")] if places.platform == "darwin" else []
    data += [env.get("LOCALAPPDATA", ""), env.get("APPDATA", "")] if places.platform == "win32" else []
    folders += [Path(folder) / "opencode" for folder in data if folder]
    return existing_folders((folder for folder in folders if folder.is_absolute()), files=True)


def resume_command(native_id: str) -> list[str]:
    return ["opencode", "--session", native_id]


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield all files below a root: a data folder, its `storage`, or a database."""
    if root.is_file():
        yield database(root)
        return
    failures: list[OSError] = []
    for entry in _list_folder(root, failures):
        if _DATABASE.fullmatch(entry.name) and entry.is_file():
            yield database(Path(entry.path))
    for storage in _storages(root, failures):
        yield from _sessions(storage, failures)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if head.startswith(_SQLITE):
        return database(path) if _DATABASE.fullmatch(path.name) or _has_our_tables(path) else None
    named = _FILE.fullmatch(path.name)
    if named is not None and path.parent.parent.name == "session" and path.parent.parent.parent.name == "storage":
        found = _SESSION_FILE_ID.search(head)
        return bundle(path, named[1]) if found is not None and found[1].decode() == named[1] else None
    return SourceCandidate(path, "main", session) if (session := session_in(head)) else None


def database(path: Path) -> SourceCandidate:
    """Return the candidate for a database; its log may hold newer content than the file."""
    return SourceCandidate(path, "container", stamp=max(_modified_at(path), _modified_at(Path(f"{path}-wal"))))


def bundle(path: Path, session: str) -> SourceCandidate:
    """Return the candidate for a session in many files, represented by the file that describes it."""
    return SourceCandidate(path, "bundle", session, stamp=_stamp(path, session))


def is_early(path: Path) -> bool:
    """Return whether a session's file is in the layout of early clients."""
    return path.parent.name == "info"


def _has_our_tables(path: Path) -> bool:
    from everturn.sources.toolkit.sqlite_file import open_snapshot

    try:
        with open_snapshot(path) as found:
            return {"session", "message", "part"} <= found.tables() and "message_id" in found.columns("part")
    except OSError:
        return False


def _storages(root: Path, failures: list[OSError]) -> Iterator[Path]:
    """Yield the folders named `storage`: the root itself, one in it, and those of early clients."""
    for storage in (root, root / "storage"):
        if storage.name == "storage" and (storage / "session").is_dir() and not storage.is_symlink():
            yield storage
    for project in _list_folder(root / "project", failures):
        storage = Path(project.path) / "storage"
        if project.is_dir(follow_symlinks=False) and storage.is_dir() and not storage.is_symlink():
            yield storage


def _sessions(storage: Path, failures: list[OSError]) -> Iterator[SourceCandidate]:
    for project in _list_folder(storage / "session", failures):
        if not project.is_dir(follow_symlinks=False) or project.name in ("message", "part"):
            continue
        for entry in _list_folder(Path(project.path), failures):
            if (named := _FILE.fullmatch(entry.name)) is not None and entry.is_file():
                yield bundle(Path(entry.path), named[1])


def _stamp(path: Path, session: str) -> int:
    """Return the time of the newest change of a session's files."""
    top = path.parent.parent if is_early(path) else path.parent.parent.parent
    messages = top / "message" / session
    newest = [path, top / "session_diff" / path.name, top / "todo" / path.name, messages]
    for name in sorted((entry.name for entry in _list_folder(messages, [])), reverse=True)[:_NEWEST]:
        parts = top / "part" / session / name[:-5] if is_early(path) else top / "part" / name[:-5]
        newest += [messages / name, parts, *(Path(entry.path) for entry in _list_folder(parts, []))]
    return max(map(_modified_at, newest))


def _modified_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _list_folder(folder: Path, failures: list[OSError]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as failure:
        failures.append(failure)
        return []


_HOUR, _DAY = 3_600_000, 86_400_000
_SPAN = 1 << 36
_BITS = (1 << 48) - 1
_SESSION_ID = re.compile(r"ses_([0-9a-f]{12})")
_DIGITS = re.compile(r"\d{1,4}", re.ASCII)


def created_at(session: str, written: str) -> tuple[int | None, str]:
    """Return milliseconds UTC and the precision: exact if id and date agree, else the day; (None, "") if no date."""
    days = _possible_days(written)
    if (found := _SESSION_ID.match(session)) is not None:
        rest = (~int(found[1], 16) & _BITS) >> 12  # session ids count down, so that the newest sorts first
        for day in days:
            exact = rest + round((day - rest) / _SPAN) * _SPAN
            if -15 * _HOUR <= exact - day <= _DAY + 15 * _HOUR:
                return exact, "ms"
    return (days[0], "day") if days else (None, "")


def _possible_days(written: str) -> list[int]:
    """Return the days a date may mean, the likeliest first, as milliseconds at their start."""
    numbers = [int(digits) for digits in _DIGITS.findall(written)[:3]]
    if len(numbers) < 3:
        return []
    if numbers[0] > 31:
        orders = [tuple(numbers)]
    else:
        first, second, year = numbers
        orders = [(year, second, first), (year, first, second)]
        if "AM" in written or "PM" in written:  # the American order
            orders.reverse()
    return [moment for order in orders if (moment := _day_start(*order)) is not None]


def _day_start(year: int, month: int, day: int) -> int | None:
    try:
        date(year, month, day)
        return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000) if year > 1970 else None
    except ValueError:
        return None
