"""Tool calls as Codex draws them: a title after `•`, what came of it below.

    • Ran seq 1 60                 • Explored · 1 nonzero exit      • Edited notes.txt (+1 -1)
      └ 58                           └ Read a.txt, b.txt                2 -old
        + 57 lines (^t to expand)      List missing (exit 2)            2 +new

One item may stand for several calls: every file that was read and every file that was edited is one. With details shown,
a command is drawn in full, what it printed in the first column:

    $ seq 1 2
    1
    2
    ✓ • 12ms
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from everturn.sources.terminal.rows import TranscriptRow, colour_at, dedent_rows, is_red, trim_rows
from everturn.sources.terminal.tools import error_class
from everturn.sources.terminal.transcript import DrawnCall

_COMMAND = re.compile(r"(?P<verb>Ran|Running|Exited \(status (?P<status>-?\d{1,5})\)) (?P<command>\S.*)$")
_EXPLORED = re.compile(r"(?P<verb>Explored|Exploring)(?: · .{1,80})?$")
_STEP = re.compile(r"(?P<verb>Read|Search|List|Run) (?P<words>\S.*?)(?: \(exit (?P<status>\d{1,5})\))?$")
_CHANGED = re.compile(r"(?P<verb>Added|Edited|Deleted) (?P<path>\S.*?) \(\+\d{1,9} -\d{1,9}\)$")
_FILE = re.compile(r"(?P<path>\S.*?) \(\+\d{1,9} -\d{1,9}\)$")
_MANY = re.compile(r"\d{1,5} files$")
_PLAN = re.compile(r"Updated Plan$")
_OTHER = re.compile(
    r"(?P<verb>Called|Calling|Searched|Searching|Browsed|Browsing|Viewed|Viewing|Waited|Waiting|Interacted|Spawned|Resumed|"
    r"Closed|Generated|Finished waiting)\b"
)
_MORE = re.compile(r"\s*(?:… )?\+ ?(?:Show details|\d{1,9} lines? \(.*|\d{1,9} lines?)$")
_DONE = re.compile(r"(?P<mark>[✓✗]) (?:\(-?\d{1,5}\) )?• [\d.]{1,12}(?:ms|s|m|h)\b")
_BRANCH, _PIPE = "  └ ", "  │ "
_KINDS = {"Added": ("create", "created"), "Edited": ("edit", "edited"), "Deleted": ("delete", "deleted")}
_KINDS_OF_OTHERS = {"Searched": "search", "Searching": "search", "Spawned": "task", "Viewed": "read", "Viewing": "read"}


def read_calls(rows: Sequence[TranscriptRow]) -> tuple[DrawnCall, ...]:
    """Return the calls an item stands for; none when it is text."""
    title = rows[0].text[2:].strip()
    span = rows[0].index, rows[-1].index
    if _EXPLORED.match(title):
        found = _read_steps(rows, title)
    elif _COMMAND.match(title):
        found = _read_command(rows)
    elif _CHANGED.match(title):
        found = _read_changes(rows)
    elif _PLAN.match(title):
        found = (DrawnCall("update_plan", "plan", title, output="\n".join(read_output(rows[1:]))),)
    elif _OTHER.match(title) and _has_result(rows):
        found = _read_other(rows)
    else:
        return ()
    return tuple(replace(call, lines=span) for call in found)


def _has_result(rows: Sequence[TranscriptRow]) -> bool:
    """Whether something hangs below the title."""
    return any(row.text.startswith((_BRANCH, _PIPE)) for row in rows[1:])


# commands -------------------------------------------------------------------------------------------------------------
def _read_command(rows: Sequence[TranscriptRow]) -> tuple[DrawnCall, ...]:
    """Return a command. A sentence may begin with the same words; it has no coloured mark and no output."""
    coloured = colour_at(rows[0], 0) is not None or (len(rows) == 1 and _is_coloured_command(rows[0]))
    if not coloured and not _has_result(rows):
        return ()
    below = next((n for n, row in enumerate(rows) if row.text.startswith(_BRANCH)), len(rows))
    lines = [rows[0].text[2:].rstrip(), *(row.text.removeprefix(_PIPE).rstrip() for row in rows[1:below])]
    found = _COMMAND.match(lines[0])
    if found is None:
        return ()
    command = "\n".join([found["command"], *filter(None, lines[1:])])
    output = "\n".join(read_output(rows[below:]))
    call = DrawnCall("shell", "shell", lines[0], command=command, output="" if output == "(no output)" else output)
    if found["verb"] == "Running":
        return (replace(call, status="open"),)
    failed = is_red(colour_at(rows[0], 0)) or found["status"] not in (None, "0")
    return (replace(call, status="error", error_class="exit_status") if failed else call,)


def _is_coloured_command(row: TranscriptRow) -> bool:
    """Whether the first word after the verb has the colour of a command."""
    found = _COMMAND.match(row.text[2:])
    return found is not None and colour_at(row, 2 + found.start("command")) is not None


# commands in full -----------------------------------------------------------------------------------------------------
def find_printed_rows(rows: Sequence[TranscriptRow]) -> set[int]:
    """Return the numbers of the rows that commands in full printed, with the row that ends each."""
    found: set[int] = set()
    first: int | None = None  # the row with the command
    for number, row in enumerate(rows):
        if row.text.startswith("$ ") and (number == 0 or not rows[number - 1].text):
            first = number
        elif first is not None and _DONE.match(row.text):
            found.update(range(first + 1, number + 1))
            first = None
    return found


def read_full_command(rows: Sequence[TranscriptRow]) -> DrawnCall | None:
    """Return a command in full: its other lines are indented, a mark and the time it took end what it printed."""
    lines = [row.text for row in rows]
    done = _DONE.match(lines[-1])
    if done is None:
        return None
    body = lines[1:-1]
    below = next((n for n, line in enumerate(body) if not line.startswith("    ")), len(body))
    command = "\n".join([lines[0][2:], *(line[4:] for line in body[:below])])
    failed = done["mark"] != "✓"
    return DrawnCall(
        "shell", "shell", lines[0], command=command, output="\n".join(trim_rows(body[below:])),
        status="error" if failed else "ok", error_class="exit_status" if failed else "",
        lines=(rows[0].index, rows[-1].index),
    )  # fmt: skip


# files that were looked at --------------------------------------------------------------------------------------------
def _read_steps(rows: Sequence[TranscriptRow], title: str) -> tuple[DrawnCall, ...]:
    calls: list[DrawnCall] = []
    running = title.startswith("Exploring")
    for line in _join_deeper(read_output(rows[1:])):
        if found := _STEP.match(line):
            calls += _read_step(found, line, running)
        elif calls:
            calls[-1] = replace(calls[-1], output=f"{calls[-1].output}\n{line}".strip())
    if running and not calls:  # what it looks at is not drawn yet
        return (DrawnCall("explore", "other", title, status="open"),)
    return tuple(calls) or (DrawnCall("explore", "other", title, output="\n".join(read_output(rows[1:]))),)


def _read_step(found: re.Match[str], line: str, running: bool) -> list[DrawnCall]:
    verb, words, status = found["verb"], found["words"], found["status"]
    if verb == "Read":
        calls = [DrawnCall("read", "read", f"Read {path}", path=path, action="read") for path in words.split(", ")]
    elif verb == "Search":
        pattern, _, place = words.rpartition(" in ")
        calls = [DrawnCall("search", "search", line, path=place if pattern else "", pattern=pattern or words)]
    elif verb == "List":
        calls = [DrawnCall("list", "search", line, path=words)]
    else:
        calls = [DrawnCall("shell", "shell", line, command=words)]
    if running:
        return [replace(call, status="open", action="") for call in calls]
    if status not in (None, "0"):
        return [replace(call, status="error", error_class="exit_status", action="") for call in calls]
    return calls


def _join_deeper(lines: Sequence[str]) -> list[str]:
    """Return the lines with those that are indented further joined to the one above: they were wrapped."""
    joined: list[str] = []
    for line in lines:
        if joined and line.startswith(" "):
            joined[-1] += f" {line.strip()}"
        elif line:
            joined.append(line)
    return joined


# files that were changed ----------------------------------------------------------------------------------------------
def _read_changes(rows: Sequence[TranscriptRow]) -> tuple[DrawnCall, ...]:
    title = rows[0].text[2:].strip()
    found = _CHANGED.match(title)
    if found is None:
        return ()
    if not _MANY.match(found["path"]):
        return (_build_change(found["verb"], found["path"], title, rows[1:]),)
    calls: list[DrawnCall] = []
    heads = [n for n, row in enumerate(rows) if row.text.startswith(_BRANCH) and _FILE.match(row.text[4:].strip())]
    for start, end in pairwise([*heads, len(rows)]):
        name = _FILE.match(rows[start].text[4:].strip())
        if name is not None:
            calls.append(_build_change("Edited", name["path"], rows[start].text[4:].strip(), rows[start + 1 : end]))
    return tuple(calls) or (_build_change(found["verb"], "", title, rows[1:]),)


def _build_change(verb: str, path: str, title: str, rows: Sequence[TranscriptRow]) -> DrawnCall:
    kind, action = _KINDS[verb] if path else (_KINDS[verb][0], "")
    before, arrow, after = path.partition(" → ")
    arguments = {"from": before} if arrow else {}
    lines = "\n".join(read_output(rows))
    return DrawnCall(
        "apply_patch", kind, title, path=after or before, arguments=arguments, action=action, output=lines
    )  # fmt: skip


# others ---------------------------------------------------------------------------------------------------------------
def _read_other(rows: Sequence[TranscriptRow]) -> tuple[DrawnCall, ...]:
    title = rows[0].text[2:].strip()
    verb = title.split(" ", 1)[0]
    output = "\n".join(read_output(rows[1:]))
    failed = is_red(colour_at(rows[0], 0))
    call = DrawnCall(
        _name_of(title), _KINDS_OF_OTHERS.get(verb, "other"), title, output=output,
        status="error" if failed else "open" if verb.endswith("ing") else "ok",
        error_class=error_class(output) if failed else "",
    )  # fmt: skip
    return (call,)


def _name_of(title: str) -> str:
    """Return the name of the tool: `server.tool` of a call to one, else the verb."""
    verb, _, rest = title.partition(" ")
    return rest.split("(", 1)[0].strip() if verb in ("Called", "Calling") and rest else verb.lower()


def read_output(rows: Sequence[TranscriptRow]) -> list[str]:
    """Return what hangs below a title, without the branch and without the line that says how much is folded away."""
    lines = [row.text.removeprefix(_BRANCH) if row.text.startswith(_BRANCH) else row.text for row in rows]
    head = [lines[0]] if rows and rows[0].text.startswith(_BRANCH) else []
    rest = dedent_rows(lines[len(head) :], 4)
    return trim_rows([line for line in [*head, *rest] if not _MORE.match(line)])
