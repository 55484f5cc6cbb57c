"""What a copy of a session says that the agent did, each in a line of its own.

    *Viewed [a.py](file:///home/ann/a.py) *        asides, as Antigravity and Windsurf export them; an edit seldom names its file
    *User accepted the command `make test`*        a command may have several lines
    - Modified File: `a.py`                         items below a line that speaks of actions

They are calls that were made, without input and output. Nothing else in a text is one.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import unquote

from everturn.text.lazy_pattern import lazy_pattern

_ASIDE = lazy_pattern(
    r"\*(Viewed|Edited|Created|Deleted|Listed directory|Grep searched codebase|Searched (?:web|codebase|filesystem)|Read URL content from"
    r"|Checked command status|Updated todo list|Running MCP tool|(?:Ran|User (?:accepted|rejected)) the command)\b(?: {0,2}(\S.{0,20000}?))?[ \t]{0,4}\*"
)
_COMMAND = lazy_pattern(r"\*(?:Ran|User (?:accepted|rejected)) the command `")
_LINK = lazy_pattern(r"\[([^\[\]\n]{0,300})\]\((?:cci:\d{1,3}://)?(file://[^\n]{1,1000}?)(?::\d+:\d+-\d+:\d+)?\)")
_CODE = lazy_pattern(r"`([^`\n]{1,1000})`")
_LIST = lazy_pattern(r"(?:\*\*|#{1,6} )[^\n]{0,40}\b(?:Actions?|Tools?|Tool calls)\b[^\n]{0,60}", re.IGNORECASE)
_ITEM = lazy_pattern(
    r"[ \t]{0,4}[-*•] (?:\*\*)?([A-Z][a-z]{2,9}) (File|Tool|Command)(?:\*\*)?:(?:\*\*)? `([^`\n]{1,1000})`[ \t]{0,4}"
)
_TOOLS = {
    **dict.fromkeys(("viewed", "read", "opened"), "read_file"),
    **dict.fromkeys(("edited", "modified", "updated", "changed"), "edit_file"),
    **dict.fromkeys(("created", "wrote", "added"), "create_file"),
    **dict.fromkeys(("deleted", "removed"), "delete_file"),
    "listed directory": "list_dir",
    "grep searched codebase": "grep_search",
    "read url content from": "fetch",
    "updated todo list": "todo_write",
}
_MOST_LINES = 400  # of a command


class StatedAction(NamedTuple):
    """A call that a text says was made, and the line after it."""

    tool: str
    given: dict[str, Any]
    is_rejected: bool
    end: int


def is_action(line: str) -> bool:
    """Whether a line begins an aside about what the agent did."""
    return line[:1] == "*" and (_COMMAND.match(line) is not None or _ASIDE.fullmatch(line.rstrip()) is not None)


def begins_list(lines: list[str], at: int) -> bool:
    """Whether the items below a line say what the agent did."""
    line = lines[at].rstrip()
    if line[:1] not in ("*", "#") or _LIST.fullmatch(line) is None:
        return False
    first = next((one for one in lines[at + 1 : at + 3] if one.strip()), "")
    return _ITEM.fullmatch(first.rstrip()) is not None


def find_action(lines: list[str], at: int, is_listed: bool) -> StatedAction | None:
    """Return the action in a line; items count only in a list of actions."""
    line = lines[at].rstrip()
    if is_listed and (item := _ITEM.fullmatch(line)) is not None:
        return _find_item(item[1].lower(), item[2], item[3], at + 1)
    if not is_action(line):
        return None
    if _COMMAND.match(line):
        return _find_command(lines, at)
    aside = _ASIDE.fullmatch(line)
    verb, rest = (aside[1].lower(), aside[2] or "") if aside is not None else ("", "")
    path = read_link(rest)
    given = (
        {"path": path} if path else {"query": code[1]} if (code := _CODE.search(rest)) else {"input": line.strip("* ")}
    )
    return StatedAction(_TOOLS.get(verb, verb.replace(" ", "_")), given, False, at + 1)


def _find_item(verb: str, what: str, name: str, end: int) -> StatedAction | None:
    if what == "Tool":
        return StatedAction(name, {}, False, end)
    if what == "Command":
        return StatedAction("run_command", {"command": name}, False, end)
    return StatedAction(_TOOLS[verb], {"path": name}, False, end) if verb in _TOOLS else None


def _find_command(lines: list[str], at: int) -> StatedAction | None:
    """Return a command, which ends with the line that closes its aside."""
    end = next((n for n in range(at, min(at + _MOST_LINES, len(lines))) if lines[n].rstrip().endswith("`*")), -1)
    if end < 0:
        return None
    text = "\n".join([lines[at].partition("`")[2], *lines[at + 1 : end + 1]]).rstrip()
    return StatedAction("run_command", {"command": text.removesuffix("`*")}, "rejected the" in lines[at][:30], end + 1)


def read_link(text: str) -> str:
    """Return the path of the first link to a file in a text; "" without one."""
    if (link := _LINK.search(text)) is None:
        return ""
    path = unquote(link[2].removeprefix("file://").partition("#")[0])
    return path[1:] if path[2:3] == ":" else path
