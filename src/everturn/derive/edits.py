"""The changes that a call made to files, as far as the call itself tells them.

`file_edits` returns one `FileEdit` for each file that a successful call changed: replaced texts, whole files, patches,
here-documents, literal `sed -i` substitutions, and scripts that write a file. Tools name their arguments in few ways, so
no tool is named here (see `text.diffs`). `added_lines` returns the lines of an edit that its old text does not have; they are
what the edit index of an archive holds, hashed. `shell_commands` returns the commands of a call.

Pure: nothing is read from disk, work is bounded, and nothing raises.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from everturn.derive.file_commands import enter_folder
from everturn.derive.paths import resolve_path
from everturn.derive.tool_scripts import script_calls, written_files
from everturn.model.conversation import CallEnd, CallStart
from everturn.text.diffs import EDIT_LISTS, NEW, OLD, PATCH, PATCH_BEGINNINGS, WHOLE, first_text
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.shell import FOLDER_CHANGES, ShellCommand, split_commands

#: Longest text of one edit that is read, and most lines of it.
_MOST_CHARS = 2 << 20
_MOST_LINES = 20_000
_MOST_EDITS = 200
_EVERY = ("replace_all", "replaceAll", "allow_multiple", "allowMultiple")
_PATCHES = (*PATCH, "edit")
_SKETCHES = ("code_edit",)  # with gaps such as `// … existing code …`


class Change(Struct, frozen=True):
    """One change: `new` took the place of `old`. Without `old`, the place is not known."""

    new: str
    old: str = ""
    every: bool = False  # all occurrences of `old`


class FileEdit(Struct, frozen=True):
    """The changes that a call made to one file, as given.

    `kind` is `write` (the whole file), `replace` (texts), `patch` (whole lines), `append` (at the end), or `text` (the lines
    are in it, but their place is not known).
    """

    path: str
    kind: str
    changes: tuple[Change, ...]


def file_edits(start: CallStart, end: CallEnd) -> list[FileEdit]:
    """Return the edits of a successful call in order; empty for one that failed or was rejected."""
    if end.is_error or end.exit_status:
        return []
    if start.kind in ("edit", "create"):
        found = list(_argument_edits(start, end.path or start.path))
    elif start.kind == "shell" or PATCH_BEGINNINGS[0] in start.command:
        found = [
            one for command, folder in shell_commands(start) for one in _command_edits(command[:_MOST_CHARS], folder)
        ]
    else:
        found = []
    return [one for one in found if one.path and one.changes][:_MOST_EDITS]


def shell_commands(call: CallStart) -> list[tuple[str, str]]:
    """Return the commands of a call, each with its folder: one, or those in a script that calls tools."""
    if call.command:
        return [(call.command, "")]
    given = given_text(call)
    if "tools" not in given:
        return [("", "")]
    return [(text, folder) for _, text, folder in script_calls(given)]


def given_text(call: CallStart) -> str:
    """Return the text that may be a patch or a script: a command, the whole input, or its one argument."""
    given = call.input.get("input", call.input.get("code")) if isinstance(call.input, dict) else call.input
    return call.command or (given if isinstance(given, str) else "")


def added_lines(edit: FileEdit) -> Iterator[list[str]]:
    """Yield, for each change of an edit, its lines that are not blank and not in its old text."""
    for change in edit.changes:
        new = change.new.splitlines()[:_MOST_LINES]
        if not change.old:
            lines = [line for line in new if line and not line.isspace()]
        else:
            left = dict(Counter(map(str.strip, change.old.splitlines())))
            lines = [line for line in new if (bare := line.strip()) and not _take(left, bare)]
        if lines:
            yield lines


def _take(left: dict[str, int], line: str) -> bool:
    """Whether a line is left; if so, there is one less."""
    count = left.get(line)
    if count:
        left[line] = count - 1
    return bool(count)


# --- arguments of editing tools ---
def _argument_edits(start: CallStart, path: str) -> Iterator[FileEdit]:
    given = start.input
    if isinstance(given, str):
        yield from patch_edits(given[:_MOST_CHARS])
        return
    if not isinstance(given, dict):
        return
    patch = (first_text(given, _PATCHES) or start.command)[:_MOST_CHARS]
    if patch.lstrip().startswith(PATCH_BEGINNINGS) or PATCH_BEGINNINGS[0] in patch:
        yield from patch_edits(patch, path)
    elif blocks := tuple(_search_blocks(patch)):
        yield FileEdit(path, "patch", blocks)
    elif path.endswith(".ipynb") and (source := first_text(given, ("new_source",))) is not None:
        yield FileEdit(path, "text", (Change(_notebook_lines(source)),))
    elif changes := tuple(_replacements(given)):
        yield FileEdit(path, "replace", changes)
    else:
        yield from _whole_file(start.kind, given, path)


def _whole_file(kind: str, given: dict[str, Any], path: str) -> Iterator[FileEdit]:
    whole, answer = first_text(given, WHOLE), given.get("edit")
    if whole is not None:
        is_sketch = any(name in given for name in _SKETCHES) or kind != "create"
        yield FileEdit(path, "text" if is_sketch else "write", (Change(whole[:_MOST_CHARS]),))
    elif isinstance(answer, str):  # a whole file in an answer
        yield FileEdit(path, "write", (Change(answer[:_MOST_CHARS]),))


def _replacements(given: dict[str, Any]) -> Iterator[Change]:
    old, new = first_text(given, OLD), first_text(given, NEW)
    if new is not None and not (old is None and first_text(given, WHOLE) is not None):
        yield Change(new[:_MOST_CHARS], (old or "")[:_MOST_CHARS], any(given.get(name) is True for name in _EVERY))
    elif old:
        yield Change("", old[:_MOST_CHARS])
    for name in EDIT_LISTS:
        listed = given.get(name)
        for one in listed[:_MOST_EDITS] if isinstance(listed, list) else ():
            if isinstance(one, dict):
                yield from _replacements(one)


def _notebook_lines(source: str) -> str:
    """Return the source of a cell as it is in the file: one JSON string for each line."""
    lines = source.splitlines(keepends=True)
    return "\n".join(json.dumps(line, ensure_ascii=False) + "," * (line.endswith("\n")) for line in lines)


_SEARCH = lazy_pattern(r"(?:<{5,9}|-{5,9}) ?(?:SEARCH|ORIGINAL)>?\s*")
_MIDDLE = lazy_pattern(r"={5,9}\s*")
_REPLACE = lazy_pattern(r"(?:>{5,9}|\+{5,9}) ?(?:REPLACE|UPDATED)>?\s*")


def _search_blocks(text: str) -> Iterator[Change]:
    """Yield the SEARCH/REPLACE blocks of a text."""
    part, old, new = "", list[str](), list[str]()
    for line in text.splitlines() if "REPLACE" in text or "UPDATED" in text else ():
        if _SEARCH.fullmatch(line):
            part, old, new = "old", [], []
        elif part == "old" and _MIDDLE.fullmatch(line):
            part = "new"
        elif part == "new" and _REPLACE.fullmatch(line):
            yield Change("\n".join(new), "\n".join(old))
            part = ""
        elif part:
            (old if part == "old" else new).append(line)


# --- patches ---
_SECTION = lazy_pattern(r"\*\*\* (Add|Update|Delete) File: (.{1,4096}?)\s*")
_MOVED = lazy_pattern(r"\*\*\* Move to: (.{1,4096}?)\s*")
_HEAD = lazy_pattern(r"\+\+\+ (?:b/)?([^\t\n]{1,4096}?)(?:\t.*)?\s*")


def patch_edits(text: str, path: str = "", folder: str | None = "") -> Iterator[FileEdit]:
    """Yield the edits of a patch in the `*** Begin Patch` envelope, or of a unified diff; `path` is for hunks alone."""
    reader = _PatchReader(path, folder)
    for line in text.splitlines():
        yield from reader.line(line)
    yield from reader.end_file()


class _PatchReader:
    def __init__(self, path: str, folder: str | None) -> None:
        self.folder, self.path, self.adds = folder, path, False
        self.changes: list[Change] = []
        self.old: list[str] = []
        self.new: list[str] = []

    def line(self, line: str) -> Iterator[FileEdit]:
        if section := _SECTION.fullmatch(line):
            yield from self.end_file()
            self.path, self.adds = section[2] if section[1] != "Delete" else "", section[1] == "Add"
        elif moved := _MOVED.fullmatch(line):
            self.path = moved[1]
        elif line.startswith(("diff --git ", "--- ", "*** ", "Index: ")) and not self._in_hunk(line):
            yield from self.end_file()
            self.adds = line.startswith("--- /dev/null")
            self.path = ""
        elif (head := _HEAD.fullmatch(line)) and not self.path:
            self.path = "" if head[1] == "/dev/null" else head[1]
        elif line.startswith("@@"):
            self._end_hunk()
        elif line[:1] in " +-" or not line:
            (self.old if line[:1] == "-" else self.new).append(line[1:]) if line[:1] in ("+", "-") else self._both(line)

    def _in_hunk(self, line: str) -> bool:
        return line.startswith("--- ") and bool(self.old or self.new) and not self.adds and line[4:5] not in ("a", "/")

    def _both(self, line: str) -> None:
        self.old.append(line[1:])
        self.new.append(line[1:])

    def _end_hunk(self) -> None:
        if self.old != self.new:
            self.changes.append(Change("\n".join(self.new), "\n".join(self.old)))
        self.old, self.new = [], []

    def end_file(self) -> Iterator[FileEdit]:
        self._end_hunk()
        place = resolve_path(self.folder, self.path) or self.path if self.path else ""
        if place and self.changes:
            yield FileEdit(place, "write" if self.adds else "patch", tuple(self.changes))
        self.changes, self.adds = [], False


# --- shell commands ---
_DOCUMENT = lazy_pattern(r"<<-?[ \t]*(['\"]?)(\w{1,60})\1")
#: A substitution in place, or printed text that goes into a file: only then a command is split into its parts.
_SIMPLE = lazy_pattern(
    r"\bsed\b[^\n]{0,200}? (?:-[nErsuz]{0,5}i|--in-place)|\b(?:echo|printf) [^\n]{0,4000}?(?<![0-9&])>{1,2} ?[\w./~\"']"
)


def _command_edits(command: str, folder: str) -> Iterator[FileEdit]:
    """Yield the edits of a shell command: here-documents, patches, literal substitutions, and scripts that write."""
    if PATCH_BEGINNINGS[0] in command:
        yield from patch_edits(command, "", _folder_at(command, command.index(PATCH_BEGINNINGS[0]), folder))
        return
    if "<<" in command:
        yield from _documents(command, folder)
    if not _may_write(command):
        return
    place: str | None = folder
    for one in split_commands(command):
        if one.name in FOLDER_CHANGES:
            place = enter_folder(place, one)
        elif one.name in ("sed", "gsed"):
            yield from _substitutions(one, place)
        elif one.name in ("echo", "printf") and all(word.sure for word in one.words):
            yield from _read_print(one, place)


def _may_write(command: str) -> bool:
    """Whether a command may substitute in place or print into a file; plain words first, they are quick to find."""
    is_likely = "sed" in command or (">" in command and ("echo" in command or "printf" in command))
    return is_likely and _SIMPLE.search(command) is not None


def _folder_at(command: str, end: int, folder: str) -> str | None:
    """Return the folder of a command at a position of it."""
    place: str | None = folder
    for one in split_commands(command[: command.rfind("<<", 0, end)] if "<<" in command[:end] else command[:end]):
        place = enter_folder(place, one) if one.name in FOLDER_CHANGES else place
    return place


def _documents(command: str, folder: str) -> Iterator[FileEdit]:
    """Yield what here-documents write: into a file, or by a script."""
    at = 0
    while (found := _DOCUMENT.search(command, at)) is not None:
        line_start = command.rfind("\n", at, found.start()) + 1
        line_end = command.find("\n", found.end())
        if line_end < 0:
            return
        closing = lazy_pattern(rf"^[ \t]*{re.escape(found[2])}[ \t]*$", re.MULTILINE).search(command, line_end)
        body_end = closing.start() if closing else len(command)
        body, at = command[line_end + 1 : body_end], closing.end() if closing else len(command)
        head = f"{command[max(line_start, 0) : line_end]}\n{found[2]}\n"
        may_write = ">" in head or "tee" in head
        targets = [target for one in split_commands(head) for target in _written_to(one)] if may_write else []
        script = "" if targets else command[max(line_start, 0) : at]
        paths = [] if targets else list(written_files(script))
        place = _folder_at(command, found.start(), folder) if targets or paths else folder
        for sign, path in targets:
            kind = "append" if sign == ">>" else "write"
            yield FileEdit(resolve_path(place, path), kind, (Change(body.removesuffix("\n")),))
        for path in paths:
            yield FileEdit(resolve_path(place, path), "text", (Change(body),))


def _written_to(one: ShellCommand) -> Iterator[tuple[str, str]]:
    if one.name not in ("cat", "tee"):
        return
    yield from ((sign.lstrip("1"), word.text) for sign, word in one.outputs if word.sure and sign[0] not in "2&")
    words = [word.text for word in one.words[1:] if word.sure]
    if one.name == "tee":
        sign = ">>" if "-a" in words or "--append" in words else ">"
        yield from ((sign, word) for word in words if not word.startswith("-"))


def _read_print(one: ShellCommand, folder: str | None) -> Iterator[FileEdit]:
    words = [word.text for word in one.words[1:]]
    while words and words[0] in ("-e", "-n", "-E", "--"):
        words.pop(0)
    text = " ".join(words).replace("\\n", "\n")
    for sign, word in one.outputs:
        if word.sure and sign[0] not in "2&" and text.strip():
            kind = "append" if sign.endswith(">>") else "write"
            yield FileEdit(resolve_path(folder, word.text), kind, (Change(text.removesuffix("\n")),))


_SPECIAL = lazy_pattern(r"(?<!\\)[.*\[\]^$&]|\\[(){}|+?1-9wWsSbBdD]")


def _substitutions(one: ShellCommand, folder: str | None) -> Iterator[FileEdit]:
    """Yield the substitutions of `sed -i` whose pattern is a plain text; others have no text to compare."""
    words = [word.text for word in one.words[1:]]
    if not any(re.fullmatch(r"-[nErsuz]*i\S*|--in-place(?:=\S*)?", word) for word in words):
        return
    scripts = [word for word in words if re.match(r"s([/|#,:@!])", word)]
    changes = tuple(change for script in scripts for change in _literal_change(script))
    files = [word for word in words if word and not word.startswith("-") and word not in scripts]
    for path in files if changes else ():
        yield FileEdit(resolve_path(folder, path), "replace", changes)


def _literal_change(script: str) -> Iterator[Change]:
    mark = re.escape(script[1])
    found = re.fullmatch(rf"s{mark}((?:\\.|[^\\])*?){mark}((?:\\.|[^\\])*?){mark}[gI]*;?", script, re.DOTALL)
    if found is None or _SPECIAL.search(found[1]) or re.search(r"(?<!\\)&|\\[1-9LUE]", found[2]):
        return
    old, new = (re.sub(r"\\(.)", r"\1", part.replace("\\n", "\n")) for part in found.groups())
    if old:
        yield Change(new, old, every=True)
