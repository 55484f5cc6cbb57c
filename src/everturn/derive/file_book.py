"""The changed files of a session by name, with what they are looked up by, so that a turn costs what happens in it.

`NamelessEdits` finds the files of calls that change one without naming it, in what is said around them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.artifacts import edited_file, listed_changes, stated_deletions, told_files
from everturn.derive.file_commands import staged_files
from everturn.derive.paths import has_ending, is_absolute, is_scratch, same_case
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern

SUBAGENT, REPORT = "subagent", "report"  # who says that a file was changed, if no call does
UNRECORDED = "unrecorded"  # a call says so whose result the transcript does not hold
_SAID = 300  # characters of a text before an edit that are kept beside a short one
CallPlace = tuple[int, int]  # the message of a call, and its number there
FOLDER = "folder"  # what gave the name of a folder that was made


class FileState(Struct, frozen=True):
    """A file and the last action on it. `count` counts changes, `reads` reads."""

    path: str
    action: str
    turn: int
    seq: int
    count: int = 0
    reads: int = 0
    first: int = 0  # turn in which it first appeared
    by: str = ""  # "subagent" if only subagents touched it, "report" if only an answer says so
    given: str = ""  # what named it best: "absolute" or "relative" (a call), "shell", "told" (an answer)
    made: bool = False  # it was not there before the session

    @property
    def effect(self) -> str:
        """What all changes come to: a file that was there before is edited, also by what writes it anew."""
        if self.action not in ("created", "edited"):
            return self.action
        return "created" if self.made else "edited"


class FileBook(dict[str, FileState]):
    """The files of a session by name, with what they are looked up by, so that a turn costs what happens in it."""

    def __init__(self, files: Mapping[str, FileState], workspace: str) -> None:
        super().__init__()
        self.workspace = workspace
        self.spelled: dict[str, str] = {}  # names by what their spellings share
        self.whole: dict[str, tuple[str, ...]] = {}  # names by themselves in small letters
        self.tails: dict[str, tuple[str, ...]] = {}  # longer names by their ends in small letters
        self.folders: dict[str, int] = {}  # how many files there are below each folder
        self.gone: dict[str, None] = {}
        self.outside = 0  # files outside the workspace that are not temporary
        self.has_workspace = False  # a name given as absolute lies in it
        for path, one in files.items():
            self.put(path, one)

    def copy(self) -> FileBook:
        other = FileBook({}, self.workspace)
        other.update(self)
        other.spelled, other.whole, other.tails = dict(self.spelled), dict(self.whole), dict(self.tails)
        other.folders, other.gone = dict(self.folders), dict(self.gone)
        other.outside, other.has_workspace = self.outside, self.has_workspace
        return other

    def put(self, path: str, one: FileState) -> None:
        """Note a file as the last one touched."""
        self.has_workspace |= one.given == "absolute" and not is_absolute(path)
        if path in self:
            del self[path]
        else:
            self._count(path, 1)
            if self.spelled.setdefault(same_case(path, self.workspace), path) == path:
                _add_name(self.whole, path.lower(), path)
                for tail in _tails(path.lower()):
                    _add_name(self.tails, tail, path)
        self[path] = one
        self.gone.pop(path, None)
        if one.action == "deleted":
            self.gone[path] = None

    def take(self, path: str) -> FileState:
        """Take a file out."""
        one = self.pop(path)
        self._count(path, -1)
        self.gone.pop(path, None)
        if self.spelled.get(same_case(path, self.workspace)) == path:
            del self.spelled[same_case(path, self.workspace)]
            _drop_name(self.whole, path.lower(), path)
            for tail in _tails(path.lower()):
                _drop_name(self.tails, tail, path)
        return one

    def _count(self, path: str, step: int) -> None:
        for folder in _folders(path):
            self.folders[folder] = self.folders.get(folder, 0) + step
        self.outside += step * (is_absolute(path) and not is_scratch(path))

    def enders(self, path: str) -> tuple[str, ...]:
        """Return the longer names that end with a name, upper and lower case aside."""
        return self.tails.get(path.lower(), ())

    def ends(self, path: str) -> list[str]:
        """Return the names that are the end of a name or the name itself, the longest first."""
        parts = (path.lower(), *_tails(path.lower()))
        return [one for part in parts for one in self.whole.get(part, ())]

    def is_root(self, folder: str) -> bool:
        """Whether most of the files outside the workspace are in a folder or below it, and not just one."""
        below = self.folders.get(folder, 0) if is_absolute(folder) and not is_scratch(f"{folder}/") else 0
        return below > 1 and 2 * below > self.outside

    def make_folder(self, path: str, turn: int, seq: int) -> None:
        """Note a folder that was made. Once a file is in it, only that is named."""
        if path not in self and not self.folders.get(path):
            self.put(path, FileState(path, "created", turn, seq, 1, first=turn, given=FOLDER, made=True))

    def drop_folder(self, path: str) -> bool:
        """Take out a folder that was made before and is removed now; whether it was."""
        return path in self and self[path].given == FOLDER and bool(self.take(path))

    def is_emptied(self, folder: str) -> bool:
        """Whether files are known in a folder and all of them are deleted. A folder in it that was removed says nothing of files."""
        if not self.folders.get(folder):
            return False
        below = [path for path, one in self.items() if path.startswith(f"{folder}/") and one.count]
        return all(path in self.gone for path in below) and any(map(has_ending, below))

    def drop_removed_folders(self, folder: str) -> None:
        """Drop the entries of removed folders in a folder that is removed as well."""
        for path in [path for path in self.gone if path.startswith(f"{folder}/") and not has_ending(path)]:
            if self[path].count == 1:
                self.take(path)

    def delete_inside(self, folder: str) -> None:
        """Note for the changed files of a folder that they are gone with it. Those that were only deleted, or temporary, are part of it."""
        for path in [path for path in self if path.startswith(f"{folder}/")] if self.folders.get(folder) else ():
            if (self[path].action == "deleted" and self[path].count == 1) or (self[path].made and is_scratch(path)):
                self.take(path)
            elif self[path].count:
                self[path] = replace(self[path], action="deleted")
                self.gone[path] = None

    def undo(self, turn: int, before: int) -> None:
        """Take back the last change of the files that were changed last in a turn before a message."""
        for path, one in list(self.items()):
            if one.turn == turn and one.seq < before and one.count:
                left = present_again(one)
                if left.count or left.reads:
                    self.put(path, left)
                else:
                    self.take(path)

    def restore_folders(self, path: str) -> None:
        """Drop the entries of the folders in which a file is written, also of those that were taken for an edited file."""
        for folder in _folders(path):
            known = self.get(folder)
            if folder in self.gone or (known and (known.given == FOLDER or known.action == "edited")):
                self.take(folder)

    def restore_shown(self, commands: Iterable[tuple[int, str]]) -> None:
        """Drop the deletion of files that a later command shows: something wrote them again."""
        for seq, command in commands if self.gone else ():
            for word in _WORD.finditer(command) if "||" not in command else ():
                for path in (word[0], *_tails(word[0])):
                    if path in self.gone and seq > self[path].seq and _SHOWS.search(command, 0, word.start()):
                        del self.gone[path]
                        self[path] = present_again(self[path])


def _tails(path: str) -> Iterator[str]:
    """Yield the ends of a path after each of its folders, the longest first."""
    at = path.find("/")
    while at >= 0:
        yield path[at + 1 :]
        at = path.find("/", at + 1)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the innermost first."""
    at = path.rfind("/")
    while at >= 0:
        yield path[:at]
        at = path.rfind("/", 0, at)


def _add_name(names: dict[str, tuple[str, ...]], key: str, path: str) -> None:
    names[key] = (*names.get(key, ()), path)


def _drop_name(names: dict[str, tuple[str, ...]], key: str, path: str) -> None:
    names[key] = tuple(one for one in names[key] if one != path)


_WORD = lazy_pattern(r"[^\s\"'`()<>|;&=]+")
#: Before the name of a file: a program that needs the file to be there.
_SHOWS = lazy_pattern(r"(?:\b(?:ls|cat|head|tail|wc|stat|du|jq)\s|\bopen\()[^;&|]{0,200}$")


def present_again(one: FileState) -> FileState:
    left = one.count - 1
    return replace(one, action="edited" if left else "read", count=left)


class NamelessEdits:
    """The calls of a turn that change or delete a file without naming it."""

    def __init__(self) -> None:
        self.near = self.said = ""  # the file that was read last, and what was said since
        self.calls: list[tuple[str, CallPlace]] = []  # the file that is likely meant by each
        self.deletes = 0
        self.has_fixed = False

    def begin(self, prompt: str) -> None:
        """Start again with a prompt."""
        self.near, self.said = "", prompt

    def hear(self, text: str) -> None:
        """Take an answer; a short one is kept with what was said before it."""
        self.said = text if len(text) > _SAID else f"{self.said[-_SAID:]}\n{text}"

    def note(self, start: CallStart, place: CallPlace, went_well: bool) -> None:
        """Take note of a call: an edit that names no file means the one announced, or the one read right before."""
        if start.path and start.kind in ("read", "edit", "create"):
            self.near, self.said = start.path if start.kind == "read" else "", ""
        elif went_well and start.kind in ("edit", "create"):
            self.near = edited_file(start, self.said, self.near)
            self.calls.append((self.near, place))
            self.said = ""
        elif start.kind == "delete" and went_well and not start.path:
            self.deletes += 1
        elif start.kind == "shell":
            self.near = ""

    def note_fixer(self, command: str, output: str) -> list[str]:
        """Return the files that are staged by name after a fixer said that it changed some."""
        if fixes_unnamed_files(command, output):
            self.has_fixed = True
        elif self.has_fixed and (staged := staged_files(command)):
            self.has_fixed = False
            return staged
        return []

    def told(
        self,
        answer: tuple[str, int],
        changed: Mapping[str, CallPlace],
        edits: Collection[CallPlace],
        named: Iterable[str],
        shows: bool,
    ) -> Iterator[tuple[str, str, int, str]]:
        """Yield the path, the action, the message and who says so, of the files that calls did not name.

        `changed` has the files that calls name, `edits` all edits; `shows` if a call showed changes of others.
        """
        text, seq = answer
        left = [(path, place[0]) for path, place in self.calls if place not in changed.values()]
        noted = not set(edits).isdisjoint(changed.values())
        found = told_files(left, answer, changed, noted, named) if left else {}
        yield from ((path, "edited", at, "") for path, at in found.items())
        yield from ((path, "deleted", seq, "") for path in stated_deletions(text, self.deletes))
        for action, path in listed_changes(text) if left or not shows else ():
            if path not in found and path not in changed:
                yield path, action, seq, "" if left else REPORT


_IGNORED = lazy_pattern(r"^Added \S{1,60}(?:, \S{1,60}){0,9} to (\.gitignore)\r?$", re.MULTILINE)


def noted_files(notice: str) -> list[str]:
    """Return the files that a client says it changed by itself."""
    return list(dict.fromkeys(_IGNORED.findall(notice))) if ".gitignore" in notice else []


_FIXES = lazy_pattern(
    r"\b(?:lint|format|fmt|prettier|biome|ruff|eslint)\S*[:\s](?:fix|write|format)\b|--(?:fix|write)\b|\b(?:run|make|yarn|pnpm|just) (?:format|fmt)\b"
)
_FIXED = lazy_pattern(
    r"\b(?:fixed|reformatted|formatted) [1-9]\d* files?\b|\b[1-9]\d* files? (?:were )?(?:reformatted|fixed|formatted)\b",
    re.IGNORECASE,
)


def fixes_unnamed_files(command: str, output: str) -> bool:
    """Whether a formatter or fixer that was given no files says that it changed some."""
    return bool(_FIXES.search(command) and _FIXED.search(output))
