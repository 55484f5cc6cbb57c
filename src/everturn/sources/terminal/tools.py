"""Titles of tool calls as clients draw them → what was called, on what, and what became of it.

Three spellings: boxes (`Read src/cli.py (limit=20)`), panels (`→ Read src/cli.py [limit=20]`, `# Wrote x`) and prompts
(`Update(src/cli.py)`). `read_box_title`, `read_panel_title` and `read_prompt_title` give a `DrawnCall` without output, or None for what is no title.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from everturn.sources.terminal.transcript import DrawnCall

#: Words in the place of a title or an answer while there is none yet.
#: Those that announce a call have the title's first word.
_ANNOUNCED = {
    "Delegating...": "Task",
    "Writing command...": "Shell",
    "Preparing edit...": "Edit",
    "Fetching from the web...": "Fetch",
    "Finding files...": "Glob",
    "Searching content...": "Grep",
    "Listing directory...": "List",
    "Reading file...": "Read",
    "Preparing write...": "Write",
    "Preparing patch...": "Patch",
}
PENDING = frozenset(_ANNOUNCED) | frozenset(
    "Planning... Working... Thinking... Generating... Searching web... Searching code... Updating todos... "
    "Asking questions... Loading skill...".replace("... ", "...\n").splitlines()
)

_NAMES = {  # the title's first word → the tool's own name, its kind
    "Shell": ("bash", "shell"),
    "Bash": ("bash", "shell"),
    "Read": ("read", "read"),
    "Edit": ("edit", "edit"),
    "Multiedit": ("multiedit", "edit"),
    "Patch": ("patch", "edit"),
    "Patched": ("patch", "edit"),
    "Write": ("write", "create"),
    "Wrote": ("write", "create"),
    "Created": ("patch", "create"),
    "Deleted": ("patch", "delete"),
    "Grep": ("grep", "search"),
    "Glob": ("glob", "search"),
    "List": ("list", "search"),
    "Fetch": ("webfetch", "fetch"),
    "WebFetch": ("webfetch", "fetch"),
    "Webfetch": ("webfetch", "fetch"),
    "Websearch": ("websearch", "search"),
    "Codesearch": ("codesearch", "search"),
    "Task": ("task", "task"),
    "Skill": ("skill", "other"),
    "Question": ("question", "ask"),
    "Asked": ("question", "ask"),
}
_ACTIONS = {"read": "read", "edit": "edited", "create": "created", "delete": "deleted"}
_PLANS = frozenset(("Plan", "Creating plan", "Updating plan", "Completing plan", "Todos", "Update Todos"))
_ARGUMENTS = re.compile(r" ?[\[(](\w+=.*?)[\])]?$")
_NEXT_ARGUMENT = re.compile(r", (?=\w+=)")
_TASK = re.compile(r"Task(?:\[([^\]]*)\])? ?(.*)")
_CLASSES = (
    (
        "rejected",
        re.compile(r"(?i)rejected (?:permission|this|update|tool)|user (?:rejected|dismissed)|doesn't want to"),
    ),
    ("interrupted", re.compile(r"(?i)tool execution (?:was )?aborted|interrupted|operation was aborted")),
    ("timeout", re.compile(r"(?i)timed out|timeout")),
    ("stale", re.compile(r"(?i)modified since|must read (?:the )?file|not been read yet")),
    ("not_found", re.compile(r"(?i)not found|no such file|does not exist")),
    ("permission", re.compile(r"(?i)permission denied|specified a rule|not permitted")),
    ("exit_status", re.compile(r"(?i)exit code \d|exited with")),
)


# boxes ----------------------------------------------------------------------------------------------------------------
_BOXED_TITLE = re.compile(r"([A-Z][\w.:-]*)(?: (.*))?$")


def read_box_title(title: str) -> DrawnCall | None:
    """The call a box is titled with. Unknown tools are drawn with a capital letter too."""
    if title in _PLANS:
        return DrawnCall("todowrite", "plan", title)
    if title.startswith("Task"):
        return _task(title)
    found = _BOXED_TITLE.match(title)
    if found is None or title in PENDING:
        return None
    name, kind = _NAMES.get(found[1], (found[1].lower(), "other"))
    rest = found[2] or ""
    if kind == "shell":
        return DrawnCall(name, kind, title, arguments={"description": rest} if rest else {})
    head, arguments = _split(rest)
    return _build_call(name, kind, title, head, arguments)


def is_known(title: str) -> bool:
    """Whether a title names a tool that every release has; any other capitalised line may be prose."""
    return title in _PLANS or title.split(" ", 1)[0].split("[", 1)[0] in _NAMES


def read_announced(words: str) -> DrawnCall | None:
    """The call that words in the place of its title announce."""
    found = _NAMES.get(_ANNOUNCED.get(words, ""))
    return DrawnCall(*found, status="open") if found is not None else None


def is_titled(title: str) -> bool:
    """Whether a title names a tool that works on one thing and keeps its title; plans get another one with each step."""
    return title not in _PLANS and title.split(" ", 1)[0].split("[", 1)[0] in _NAMES


#: A call without a box around it: only a file tool with one path and nothing else, so that no prose is taken for one.
_BARE = re.compile(r"(?:Read|Edit|Write) (?=[^\s()]*[./])[^\s()]+(?: \(\w+=[^()]*\))?$")


def read_bare_title(line: str) -> DrawnCall | None:
    """The call in a line of text that holds nothing else."""
    return read_box_title(line) if _BARE.match(line) else None


def _task(title: str) -> DrawnCall | None:
    found = _TASK.match(title)
    return DrawnCall("task", "task", title, prompt=found[2], agent=found[1] or "") if found else None


def _split(rest: str) -> tuple[str, dict[str, str]]:
    """`src/cli.py (limit=20, offset=5)` → the first part and the named ones. A long title ends in dots, not brackets."""
    found = _ARGUMENTS.search(rest)
    if found is None:
        return rest.strip(), {}
    pairs = (part.partition("=") for part in _NEXT_ARGUMENT.split(found[1]))
    return rest[: found.start()].strip(), {key: value for key, _, value in pairs}


def _build_call(name: str, kind: str, title: str, head: str, arguments: dict[str, str]) -> DrawnCall:
    path = pattern = ""
    if kind == "search" and name in ("grep", "glob"):
        pattern = arguments.get("pattern", head)
        path = arguments.get("path", head if "pattern" in arguments and "path" not in arguments else "")
    elif kind in _ACTIONS or name == "list":
        path = head or arguments.get("filePath", "")
    elif kind == "search":
        pattern = head
    elif head:
        arguments = {"url" if kind == "fetch" else "about": head, **arguments}
    return DrawnCall(
        name,
        kind,
        title,
        path=path,
        pattern=pattern,
        arguments=arguments,
        action=_ACTIONS.get(kind, "") if path else "",
    )


# panels ---------------------------------------------------------------------------------------------------------------
_ICONS = "→←✱%◈◇⚙◆│◉✓├└"
_INLINE = re.compile(rf"([{_ICONS}]) (\S.*)$")
_QUOTED = re.compile(r'(\w[\w ]*?) "(.*)"(?: in (.+?))?(?: \((\d+ \w+)\))?$')
_SUBAGENT = re.compile(r'(\S.*?) (?:Task|Subagent) (?:— |")(.*?)"?$')
_MOVED = re.compile(r"Moved (.+) → (.+)$")


def read_panel_title(line: str) -> DrawnCall | None:
    """The call in a line with an icon in front, or in the title of a panel (`# Wrote x`, `# Todos`)."""
    if line.startswith("# "):
        return _heading_call(line)
    found = _INLINE.match(line)
    if found is None:
        return None
    icon, words = found[1], found[2].strip()
    return _icon_call(icon, words, line)


def _icon_call(icon: str, words: str, line: str) -> DrawnCall | None:
    if icon in "│◉✓":
        task = _SUBAGENT.match(words)
        return DrawnCall("task", "task", line, prompt=task[2], agent=task[1].lower()) if task else None
    if icon in "⚙◆":
        head, arguments = _split(words)
        return DrawnCall(head.split(" ", 1)[0], "other", line, arguments=arguments)
    if quoted := _QUOTED.match(words):
        return _search_call(quoted, line)
    if icon in "◈◇":
        return None
    verb, _, rest = words.partition(" ")
    if verb not in _NAMES:
        return None
    head, arguments = _split(rest)
    return _build_call(*_NAMES[verb], line, head, arguments)


def _search_call(quoted: re.Match[str], line: str) -> DrawnCall:
    verb, pattern, place, found = quoted.groups()
    name, kind = _NAMES.get(verb, (verb.lower().replace(" ", ""), "search"))
    if name == "skill":
        return DrawnCall(name, kind, line, arguments={"about": pattern})
    output = found if found else ""
    return DrawnCall(name, kind, line, path=place or "", pattern=pattern, output=output)


def _heading_call(line: str) -> DrawnCall | None:
    words = line[2:].strip()
    if words in _PLANS:
        return DrawnCall("todowrite", "plan", line)
    if words == "Questions":
        return DrawnCall("question", "ask", line)
    if moved := _MOVED.match(words):
        return DrawnCall("patch", "edit", line, path=moved[2], arguments={"from": moved[1]}, action="created")
    verb, _, rest = words.partition(" ")
    if verb in ("Wrote", "Created", "Deleted") and rest:
        return _build_call(*_NAMES[verb], line, rest.strip(), {})
    return None


def shell(command: str, title: str = "") -> DrawnCall:
    """A shell command drawn as `$ command`, below a title or alone."""
    words = title.removeprefix("# ").strip()
    return DrawnCall(
        "bash", "shell", title or f"$ {command}", command=command, arguments={"description": words} if words else {}
    )


# prompts --------------------------------------------------------------------------------------------------------------
_PROMPTED = {
    "Bash": "shell",
    "BashOutput": "shell",
    "PowerShell": "shell",
    "Read": "read",
    "Update": "edit",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Write": "create",
    "Create": "create",
    "Search": "search",
    "Grep": "search",
    "Glob": "search",
    "List": "search",
    "LS": "search",
    "Web Search": "search",
    "WebSearch": "search",
    "Fetch": "fetch",
    "WebFetch": "fetch",
    "Task": "task",
    "Agent": "task",
    "Explore": "task",
    "Plan": "task",
    "TodoWrite": "plan",
    "Update Todos": "plan",
    "ExitPlanMode": "plan",
    "AskUserQuestion": "ask",
    "Skill": "other",
}
_OWN_NAMES = {"Update": "Edit", "Create": "Write", "Search": "Grep", "Fetch": "WebFetch", "Web Search": "WebSearch"}
_CALL = re.compile(r"([A-Z][\w-]*(?: [A-Z]\w*)?|[\w.-]+ - [\w .-]+ \(MCP\))(?:\((.*)\)?)?$", re.DOTALL)
_NAMED = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|([^,]*))')


def read_prompt_title(text: str) -> DrawnCall | None:
    """The call in `Name(arguments)`. Names this version does not know are no calls."""
    found = _CALL.match(text)
    if found is None:
        return None
    name, inside = found[1], found[2]
    if name not in _PROMPTED and not name.endswith("(MCP)"):
        return None
    if inside is None and not name.startswith("Update Todos"):
        return None
    inside = (inside or "").removesuffix(")")
    return _named_call(_OWN_NAMES.get(name, name), _PROMPTED.get(name, "other"), text, inside)


def _named_call(name: str, kind: str, title: str, inside: str) -> DrawnCall:
    arguments = {key: quoted or plain.strip() for key, quoted, plain in _NAMED.findall(inside)}
    path = pattern = command = prompt = ""
    if kind in _ACTIONS:
        path, arguments = inside.split(" · ", 1)[0].strip(), {}
    elif kind == "shell":
        command, arguments = inside, {}
    elif kind == "search":
        pattern = arguments.get("pattern", "" if arguments else inside.strip('"'))
        path = arguments.get("path", "")
    elif kind == "task":
        prompt, arguments = inside, {}
    elif kind == "fetch":
        arguments = {"url": inside}
    return DrawnCall(
        name,
        kind,
        title,
        path,
        command,
        pattern,
        prompt,
        arguments=arguments,
        action=_ACTIONS.get(kind, "") if path else "",
    )


# what became of it ----------------------------------------------------------------------------------------------------
_DIAGNOSTIC = re.compile(r"Error \[\d+:\d+\] ")


def error_class(text: str) -> str:
    """Why a call failed, by the words drawn below it."""
    return next((name for name, words in _CLASSES if words.search(text[:2000])), "other")


def command_of(lines: Sequence[str]) -> tuple[str, list[str]]:
    """The command drawn as `$ …` in the first line and the lines it goes on in; and what it printed."""
    command = lines[0].removeprefix("$").strip()
    taken = 1
    while taken < min(len(lines), 60) and _goes_on(command):
        command += f"\n{lines[taken]}"
        taken += 1
    if _goes_on(command):  # it never came to an end, so it was whole in its first line
        command, taken = lines[0].removeprefix("$").strip(), 1
    return command, list(lines[taken:])


_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_QUOTES = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def _goes_on(command: str) -> bool:
    last = command.rsplit("\n", 1)[-1].rstrip()
    if document := _HEREDOC.search(command):
        return not re.search(rf"^\s*{document[2]}\s*$", command[document.end() :], re.MULTILINE)
    if last.endswith(("\\", "&&", "||", "|")):
        return True
    left = _QUOTES.sub("", command)
    return '"' in left or "'" in left


def diagnostics_of(lines: Sequence[str]) -> tuple[str, ...]:
    """Complaints of the language server below an edit, each in one line though it may have been wrapped."""
    found: list[str] = []
    open_one = False
    for line in lines:
        words = line.strip()
        if _DIAGNOSTIC.match(words):
            found.append(words)
            open_one = True
        elif open_one and words:
            found[-1] += f" {words}"
        else:
            open_one = False
    return tuple(found)
