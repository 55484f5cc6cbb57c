"""Find the files that a tool call touched, and the files that a text mentions.

`touched_files` returns (action, path) pairs of one successful call: only what is certain, from the call, its result, the
words of a shell command, the reports that version control and patch print, and lines such as `Wrote out.csv` of a command that
acts. Files that a pull, a merge or a build brings are not touched by the agent. Paths stay as they were given (see
`derive.paths` for one name per file); nothing is read from disk.

`find_mentions` recognises a file name by its ending, since many words contain a dot: versions, hosts, members of an object.
Addresses, mails and the folders of package managers do not count.

Both read a bounded part of long texts and never raise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from everturn.derive.file_commands import (
    ENDINGS,
    MAX_CHARS,
    Touch,
    command_touches,
    has_ending,
    is_generated,
    last_folder,
    reported_files,
    resolve_path,
)
from everturn.derive.tool_scripts import script_calls
from everturn.model.conversation import CallEnd, CallStart
from everturn.text.diffs import patched_files
from everturn.text.lazy_pattern import lazy_pattern

_ACTION = {"read": "read", "edit": "edited", "create": "created", "delete": "deleted"}


def touched_files(call: CallStart, end: CallEnd, output: str) -> list[Touch]:
    """Return the actions and paths of a successful call, in order and without repeats; empty for one that failed."""
    if end.is_error:
        return []
    action, path = end.action or _ACTION.get(call.kind, ""), end.path or call.path
    found: list[Touch] = [(action, path), *end.others] if action and path and "${" not in path else list(end.others)
    given = _given_text(call)
    found += _patch_touches(given, call.command)
    if call.kind == "shell" and not end.exit_status:
        output = _both_ends(output, MAX_CHARS)
        for command, folder in shell_commands(call):
            found += command_touches(command, output, folder)
            found += _patch_touches(command, command) if command != given else []
            found += reported_files(command[:MAX_CHARS], output)
            found += _told_by_output(command[:MAX_CHARS], output, folder)
    return list(dict.fromkeys(found))


def shell_commands(call: CallStart) -> list[tuple[str, str]]:
    """Return the commands of a call, each with its folder: one, or those in a script that calls tools."""
    if call.command:
        return [(call.command, "")]
    given = _given_text(call)
    if "tools" not in given:
        return [("", "")]
    return [(text, folder) for _, text, folder in script_calls(given)]


def _both_ends(text: str, chars: int) -> str:
    return text if len(text) <= 2 * chars else f"{text[:chars]}\n{text[-chars:]}"


def _given_text(call: CallStart) -> str:
    """Return the text that may be a patch or a script: a command, the whole input, or its one argument."""
    given = call.input.get("input", call.input.get("code")) if isinstance(call.input, dict) else call.input
    return call.command or (given if isinstance(given, str) else "")


_MOVES = lazy_pattern(
    r"^\*\*\* Update File: (.{1,4096}?)[ \t]*\r?\n\*\*\* Move to: (.{1,4096}?)[ \t]*\r?$", re.MULTILINE
)


def _patch_touches(text: str, command: str) -> list[Touch]:
    """Return the files of a patch; one that is moved is deleted in one place and created in another."""
    patched = patched_files(text)
    if not patched:
        return []
    moved = dict(_MOVES.findall(text)) if "*** Move to: " in text else {}
    folder = last_folder(command.partition("<<")[0] + "<<") if command.lstrip().startswith("cd ") else ""
    found: list[Touch] = []
    for kind, path in patched:
        found += [("deleted", path), ("created", moved[path])] if path in moved else [(_ACTION[kind], path)]
    return [(action, resolve_path(folder, path) or path) for action, path in found]


# --- what a program says it did ---
_DEEDS = {
    **dict.fromkeys(
        ("wrote", "writing", "created", "creating", "create", "generated", "generating", "saved", "saving", "exported"), "created"),
    **dict.fromkeys(("updated", "updating", "update", "reformatted", "fixing", "fixed", "patched", "rewrote", "modified"), "edited"),
    **dict.fromkeys(("read", "reading", "loaded", "loading"), "read"),
}  # fmt: skip
#: An output without any of these tells no deed.
_DEED_MARKS = (
    "rote ", "riting ", "reate", "CREATE ", "reating", "enerat", "aved ", "aving ", "xported ", "nflating", "xtracting", "pdat", "UPDATE ", "formatted ",
    "ixing ", "ixed ", "atched ", "odified ", "Read ", "read ", "eading ", "oaded ", "oading ",
)  # fmt: skip
_LONGEST_DEED = 600
_DEED = lazy_pattern(
    r"(?P<verb>[a-z]{4,12}):?\s{1,20}(?P<what>(?:(?:files?|the|new|output|reports?|results?|data|log|html|xml|json|csv|lines?|bytes|rows|"
    r"records|entries|items|to|in|into|from|as|config|configuration|template|\d[\d,.]{0,12})\s{1,4}){0,6})"
    r"(?P<quote>['\"`]?)(?P<path>[\w@+~./\\](?:[^'\"`*?$<>|(),;\s]|(?<=\w) (?=\w)){0,300}?)(?P=quote)"
    r"(?P<tail>\.{0,3}|\s{0,4}\.{3}\s{0,4}(?:done|ok)?|\s{1,4}[(\[][^\n]{0,200}[)\]]|\s{1,4}in [\d.]{1,8} ?m?s|\s{1,4}successfully)!?",
    re.IGNORECASE,
)
#: Commands that show texts of others, ask only, or run elsewhere.
_NOT_DOING = lazy_pattern(
    r"--(?:dry-run|check|summary)\b|\b(?:git|gh|ssh|docker|podman|kubectl|journalctl|curl|wget|jq|diff|bat|nl|tac|strings|ls|find|tree|"
    r"history|cat|less|more|grep|rg|sed|awk|head|tail|echo|printf)\b"
)


def _told_by_output(command: str, output: str, start: str) -> Iterator[Touch]:
    """Yield the files of lines such as `Wrote out/report.csv`, where the command did something."""
    if not output or _NOT_DOING.search(command) or not any(mark in output for mark in _DEED_MARKS):
        return
    told = [touch for line in output.splitlines() if (touch := _read_deed(line)) is not None]
    told = [(action, path) for action, path in told if action == "read" or not is_generated(path)]
    folder = last_folder(command, start) if told else ""
    yield from ((action, place) for action, path in told if (place := resolve_path(folder, path)))


def _read_deed(line: str) -> Touch | None:
    words = line.strip(" \t✓✔✅→")
    action = _DEEDS.get(words.split(None, 1)[0].rstrip(":").lower()) if words and len(words) <= _LONGEST_DEED else None
    found = _DEED.fullmatch(words) if action is not None else None
    if action is None or found is None:
        return None
    verb, path = found["verb"].lower(), found["path"]
    if verb in ("create", "update") and "bytes)" not in found["tail"] and "  " not in line.strip():
        return None  # a wish: `Update README.md`
    if (verb == "read" and not found["what"]) or (" " in path and not found["quote"]):
        return None
    if not has_ending(path) or "@" in path.partition("/")[0]:
        return None
    return action, path


# --- mentions ---
_MENTION_CHARS = 12_000
_MAX_MENTIONS = 120  # of one text: a longer listing says little about each

#: The end of a name. Its beginning is searched backwards, which is far cheaper than trying every word.
_END = lazy_pattern(
    rf"\.(?:{ENDINGS})(?![\w@/\\*-]|\.\w|\((?!\d))|\b(?:Dockerfile|Makefile|Gemfile|Procfile)\b(?![/.(])"
    r"|(?<![\w.])\.(?:gitignore|dockerignore)\b(?![/.(])"
)
_NAME_BEFORE = lazy_pattern(r"(?:[A-Za-z]:(?=[/\\]))?[\w@.+~/\\-]*$")
_LONGEST = 200
#: Endings that are as often members of an object: they count only after a folder.
_DOUBTFUL = frozenset((".c", ".h", ".sum", ".mod", ".ex", ".cs", ".conf", ".less", ".fish", ".nu", ".lock", ".tf"))
_SURE = frozenset(("go.mod", "go.sum", "uv.lock", "poetry.lock", "Cargo.lock", "yarn.lock"))
_FOREIGN = lazy_pattern(r"(?:^|[/\\])(?:node_modules|\.git|site-packages|__pycache__|\.venv|dist|vendor)[/\\]")


def find_mentions(text: str) -> Counter[str]:
    shown = _both_ends(text, _MENTION_CHARS)
    found: Counter[str] = Counter()
    for end in _END.finditer(shown):
        if name := _mentioned_name(shown, end):
            found[name] += 1
    return Counter(dict(found.most_common(_MAX_MENTIONS)))


def _mentioned_name(text: str, end: re.Match[str]) -> str:
    first = max(0, end.start() - _LONGEST)
    before = _NAME_BEFORE.search(text, first, end.start())
    start = before.start() if before is not None else end.start()
    name = text[start : end.end()]
    if (start and text[start - 1] in "@:$%") or "@" in name.partition("/")[0] or "//" in name:
        return ""  # a mail, an address, a variable
    if start == end.start() and name.startswith(".") and not name.endswith("ignore"):
        return ""  # an ending alone
    if end[0] in _DOUBTFUL and "/" not in name and "\\" not in name and name not in _SURE:
        return ""
    return "" if _FOREIGN.search(name) else name
