"""Tool calls of any agent: the neutral kind, path and command of a call, and why a result says that it failed.

Shared by the formats that hold calls of many agents or of no agent in particular. Names of tools are free text; those
that are in wide use are known here, all others are `other`.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import CallStart
from everturn.sources.foreign import decode_value, strings, word

_KINDS = {
    "read": "read readfile readmanyfiles notebookread view viewfile viewimage ls listdir listdirectory listfiles open "
    "openfile getfile cat",
    "edit": "edit editfile multiedit notebookedit editnotebook strreplace searchreplace replace replaceinfile applypatch "
    "applydiff patch insert inserttofile canmoreupdatetextdoc updatefile",
    "create": "write writefile writetofile create createfile newfile canmorecreatetextdoc",
    "delete": "delete deletefile removefile",
    "shell": "bash bashtool shell shellcommand shelltool localshell powershell terminal runcommand runcommands runterminalcmd "
    "runterminalcommand runshellcommand runinterminal executecommand executebash execcommand containerexec bashoutput "
    "killshell killbash",
    "search": "grep grepsearch glob globfilesearch search searchdir searchfile searchfiles searchfilecontent findfile "
    "filesearch codebasesearch semanticsearch websearch searchweb toolsearch lsp listmcpresources listmcpresourcestool "
    "myfilesbrowser",
    "fetch": "webfetch fetch fetchurl openurl browser browse web webrun readmcpresourcetool",
    "task": "task agent newtask dispatchagent subagent spawnagent taskoutput taskstop agentoutputtool",
    "plan": "todowrite todoread updateplan taskcreate taskupdate tasklist taskget exitplanmode enterplanmode updatetodolist",
    "ask": "askuserquestion askuser askfollowupquestion",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}

#: Tools that do several things say in their arguments which.
_BY_COMMAND = {
    "view": "read", "create": "create", "str_replace": "edit", "insert": "edit", "undo_edit": "edit", "update": "edit",
    "rewrite": "edit",
}  # fmt: skip
_MANY = frozenset(("strreplaceeditor", "strreplacebasededittool", "strreplaceeditorbasededittool", "artifacts"))

_PATHS = (
    *(
        "file_path",
        "path",
        "notebook_path",
        "target_file",
        "filePath",
        "filename",
        "file_name",
        "file",
        "absolute_path",
    ),
    *("relative_workspace_path", "AbsolutePath", "TargetFile"),
)
_COMMANDS = ("command", "cmd", "script")
_JOINTS = re.compile(r"[_\-. ]+")

#: What is in the beginning of a result that failed; the first that fits decides.
_ERRORS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("rejected", r"The user doesn't want to (?:proceed|take this action)|(?i:user (?:rejected|denied|declined))"),
        ("interrupted", r"\[Request interrupted by user|(?i:\binterrupted by (?:the )?user)"),
        ("cancelled", r"Sibling tool call errored|Cancelled: parallel tool call"),
        ("timeout", r"(?i)\btimed out\b|\btimeout\b"),
        ("exit_status", r"(?i)exit(?:ed)?(?: with)?(?: code| status)?:? -?\d|returned non-zero exit status"),
        ("invalid_input", r"(?i)input ?validation|matches of the string|invalid (?:input|arguments?|parameters?)"),
        ("unknown_tool", r"(?i)no such tool|unknown (?:tool|function|skill)|tool \S{1,80} not found"),
        ("stale", r"File has not been read yet|(?i:modified since)"),
        ("too_large", r"(?i)exceeds (?:the )?maximum|too large|maximum allowed"),
        ("not_found", r"(?i)does not exist|not found|no such file|ENOENT|failed to (?:exactly )?match"),
        ("hook", r"(?i)hook (?:error|blocked|denied|feedback)|blocked by (?:a )?hook"),
        ("permission", r"(?i)permission|access denied|\bEACCES|\bEPERM"),
    )
)
_HEAD = 400
_EXIT = re.compile(
    r"(?im)^\W{0,3}(?:error: )?(?:(?:process|command) )?exit(?:ed)?(?: with)?(?: code| status)?:? (-?\d{1,9})\b"
)


def tool_kind(name: str, arguments: Any = None) -> str:
    """The neutral kind of a tool."""
    flat = _JOINTS.sub("", name.rpartition("__")[2]).lower()
    if flat in _MANY and isinstance(arguments, dict):
        return _BY_COMMAND.get(word(arguments.get("command")), "other")
    if "conversation_recall" in name:
        return "recall"
    return _KIND_OF.get(flat, "other")


def call_start(call_id: str, name: str, given: Any) -> CallStart:
    """A call as the model wrote it. `given` are its arguments: a value, or the JSON text of one."""
    arguments = given
    if isinstance(given, str):
        found = decode_value(given.encode("utf-8", "replace")) if given.lstrip()[:1] == "{" else None
        arguments = found if isinstance(found, dict) else {}
    arguments = arguments if isinstance(arguments, dict) else {}
    kind = tool_kind(name, arguments)
    return CallStart(
        call_id,
        name,
        kind,
        next((word(arguments[key]) for key in _PATHS if isinstance(arguments.get(key), str)), ""),
        _command(arguments) if kind == "shell" else "",
        arguments or given,
        word(arguments.get("prompt")) if kind == "task" else "",
    )


def call_text(start: CallStart) -> str:
    """What is indexed and shown of a call: its name and every string it was given."""
    return "\n".join([start.name, *strings(start.input)])


def error_class(text: str) -> str:
    """Why a call failed."""
    head = text[:_HEAD]
    return next((name for name, pattern in _ERRORS if pattern.search(head)), "other")


def exit_status(text: str) -> int | None:
    """The exit status that the beginning of an output states."""
    found = _EXIT.search(text[:_HEAD])
    return int(found[1]) if found else None


def _command(arguments: dict[str, Any]) -> str:
    for key in _COMMANDS:
        value = arguments.get(key)
        if isinstance(value, str):
            return word(value)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return word(value[-1] if len(value) > 2 and value[1] in ("-c", "-lc") else " ".join(value))
    return ""
