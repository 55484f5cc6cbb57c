"""The layout of a saved session, and the conversion of one section into a message, independently of the others.

    _**User (2026-05-01 10:00:00Z)**_            a prompt, or context in its place
    _**Agent (model 2026-05-01 10:00:05Z)**_     text, <think>…</think>, <tool-use …>…</tool-use>
    _**Agent - sidechain (…)**_                  a side thread of the same session
    _**User**_ … --- … _**Assistant**_           the older form: the agent's actions are items between rules

The output of a tool may contain such marks too: no section begins inside <tool-use>. A mark without a time counts only after
a rule.

A tool call is rendered as its arguments, in prose and fences, followed by its result in the same section. There are no call
ids, so a call is named after its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sources.toolkit.line_reader import text_of
from everturn.sources.toolkit.values import (
    MessageSpeaker,
    digest,
    error_class,
    exit_status,
    milliseconds,
    text_blocks,
    tool_kind,
    word,
)
from everturn.text.lazy_pattern import lazy_pattern

#: The agent, its session and the time: `<!-- Claude Code Session 1111… (2026-05-01 10:00:00Z) -->`.
SESSION = lazy_pattern(r"^<!-- ([^<>\n]{1,80}?) Session ([\w.:-]{1,120}) \(([^()\n]{0,40})\) -->\s*$", re.MULTILINE)
_TAG = lazy_pattern(r'<tool-use data-tool-type="([^"\n]{0,80})" data-tool-name="([^"\n]{0,200})">')
_SUMMARY = lazy_pattern(r"<summary>(?:Tool use: )?(.{0,4000}?)</summary>", re.DOTALL)
_NAMED = lazy_pattern(r"Tool use: \*\*([^*\n]{1,200})\*\* ?(.*)")
_BOLD = lazy_pattern(r"\A\*\*[^*\n]*\*\*")
_TAGS = lazy_pattern(r"</?(?:details|tool-use)(?: [^>\n]*)?>")
_FENCE = lazy_pattern(r"(`{3,})([\w+#.-]*)\s*")
_CODE = lazy_pattern(r"`([^`\n]+)`")
_ARGUMENT = lazy_pattern(r"^- (?:command|cmd): `(?:\[(?:bash|sh|zsh) -l?c (.*)\]|(.*))`\s*$", re.MULTILINE)
_PATH = lazy_pattern(r"(?:\bpath |(?:Read|Edit|Write|Delete|Create) file: |^[ \t]*)`([^`\n]+)`", re.MULTILINE)
#: An address without words: `Reading [](file:///c%3A/shop/lamp.py#1-1), lines 1 to 20`.
_LINKED = lazy_pattern(r"\[\]\((file://[^()\s]{1,1000}(?:\([^()\s]{1,200}\)[^()\s]{0,1000}){0,4})\)")
_LISTED_PATH = lazy_pattern(r"^(?:- )?(?:file_?)?path: `([^`\n]+)`", re.MULTILINE | re.IGNORECASE)
_BARE_PATH = lazy_pattern(r"(?:Read|Edit|Write|Delete|Create) file: ([^`\n<]*[^`\s<])")
#: A path among arguments that are kept as JSON, and those of several edits in one call.
_KEYED_PATH = lazy_pattern(
    r"^[ \t]*\"(?:relativeWorkspacePath|target_?file|file_?path|path)\": \"((?:[^\"\\\n]|\\.){1,1000})\"",
    re.MULTILINE | re.IGNORECASE,
)
_MAPPED_PATH = lazy_pattern(r"\bfilePath:([^\n]{1,1000}?) (?:newString|oldString|explanation):")
#: The files of a patch, each before its lines: `**Update: `lamp.py`**`, or as they were given.
_PATCHED = lazy_pattern(
    r"^\*\*(?:\* )?(Update|Add|Delete)(?: File)?: `?([^`\n]{1,1000}?)(?:`\*\*)?[ \t]*$", re.MULTILINE
)
_PATCHES = {"Update": "edited", "Add": "created", "Delete": "deleted"}
#: The same after the work, below `Success. Updated the following files:`.
_UPDATED_PATH = lazy_pattern(r"^([AMD]) ([^\n]{1,1000}?)[ \t\r]*$", re.MULTILINE)
_LISTED = {"M": "edited", "A": "created", "D": "deleted"}
_LABELS = lazy_pattern(r"^(?:\*\*(?:Input|Result|Output|Error):\*\*|Result:|Error:)\s*$", re.MULTILINE)
_FAILED = lazy_pattern(r"^(?:\*\*Error:\*\*|Error:)\s*$\s*```", re.MULTILINE)
_TOUCHED = lazy_pattern(
    r"The file ([^\n]{1,1000}?) has been (?:updated|edited)|File (created) successfully at: ([^\n]{1,1000}?)(?: \(file state[^\n]*)?$",
    re.MULTILINE,
)
_REFUSED = (
    "<tool_use_error>",
    "The user doesn't want to proceed",
    "Error: ",
    "The string to replace was not found in the file",
    "Incorrect tool arguments",
    "Invalid arguments:",
    "Model supplied an ambiguous edit",
    "The model provided an ambiguous search string",
    "Status: **loading**",
)

#: The tools of items of the older form, by the beginning of their summary.
_ITEMS = (
    (lazy_pattern(r'Searched codebase "'), "codebase_search"),
    (lazy_pattern(r"Listed (?:directory|current directory)"), "list_dir"),
    (lazy_pattern(r'Grep search for "'), "grep_search"),
    (lazy_pattern(r'Searched web "'), "web_search"),
    (lazy_pattern(r"Searched (?:files|for files)|Found files"), "file_search"),
    (lazy_pattern(r"Edit file: "), "edit_file"),
)
_UNKNOWN = "undefined"  # in place of a path that the client did not have
_READ = lazy_pattern(r"Read file: ([^\n`]{1,1000})")
_SHELL = lazy_pattern(r"```(?:bash|sh|shell)\n(.*?)\n```\s*```[a-z]*\n(.*)\n?```", re.DOTALL)
_DETAILS = lazy_pattern(r"<details>\s*<summary>(.*?)</summary>(.*)</details>", re.DOTALL)
_KINDS = {"shell": "shell", "read": "read", "write": "edit", "search": "search", "task": "plan"}
#: Copilot's own names, without `copilot_`, of tools that have other names elsewhere.
_COPILOT = {
    "replaceString": "edit", "multiReplaceString": "edit", "insertEdit": "edit", "editFiles": "edit",
    "createFile": "create", "findFiles": "search", "findTextInFiles": "search", "searchCodebase": "search",
    "listDirectory": "read",
}  # fmt: skip
_VERSION = lazy_pattern(r"_v\d$")
#: All that older releases keep of an edit by Copilot.
_EMPTY_FENCE = lazy_pattern(r"^```[ \t\r]*\n\s{0,20}```[ \t\r]*$", re.MULTILINE)


def tool_blocks(text: str) -> list[Block]:
    """Return the call and the result of one <tool-use> element, or of a `Tool use:` of older releases."""
    tag, summary = _TAG.match(text), _SUMMARY.search(text)
    if tag is not None:
        kind, name = tag[1], tag[2]
        head = summary[1] if summary else ""
        body = text[summary.end() if summary else tag.end() :]
    else:
        named = _NAMED.match(text)
        kind, name, head = "", named[1] if named else "", named[2] if named else ""
        body = text[named.end() if named else 0 :]
    body = _TAGS.sub("", body)
    is_only_asked = "**Input:**" in body and "**Result:**" not in body
    arguments, result = (_LABELS.sub("", body).strip(), "") if is_only_asked else _split_result(body)
    if arguments.startswith(_REFUSED):
        arguments, result = "", arguments
    neutral = tool_kind(bare := _VERSION.sub("", name.removeprefix("copilot_")))
    neutral = _COPILOT.get(bare) or _KINDS.get(kind, "other") if neutral == "other" else neutral
    head = _BOLD.sub("", head).strip().removeprefix("•").strip()
    return _call_blocks(name, neutral, f"{head}\n{arguments}".strip(), result, text, bool(_FAILED.search(body)))


def item_blocks(item: str) -> list[Block]:
    """Return the blocks of an item of the older form: text or one call between two rules."""
    item = item.strip()
    read = _READ.fullmatch(item)
    shell = _SHELL.fullmatch(item.replace("\r\n", "\n")) if item.endswith("```") else None
    details = _DETAILS.fullmatch(item) if item.endswith("</details>") else None
    if read:
        return _call_blocks("read_file", "read", f"`{read[1].strip()}`", "", item)
    if shell:
        return _call_blocks("run_terminal_cmd", "shell", f"```bash\n{shell[1]}\n```", shell[2], item)
    if details:
        summary = details[1].strip()
        name = next((name for pattern, name in _ITEMS if pattern.match(summary)), "other")
        body = details[2].strip()
        if name == "edit_file":
            return _call_blocks(name, "edit", f"{summary}\n{body}", "", item)
        return _call_blocks(name, tool_kind(name), summary, body, item)
    if item.startswith("```diff\n") and item.endswith("```"):
        return _call_blocks("edit_file", "edit", item, "", item)
    return _said_blocks(item)


def _said_blocks(text: str) -> list[Block]:
    """Return an answer, with a call without a name in place of each empty fence."""
    blocks: list[Block] = []
    at = 0
    for gap in _EMPTY_FENCE.finditer(text) if "```" in text else ():
        blocks += text_blocks(text[at : gap.start()].strip(), "answer")
        blocks += _call_blocks("edit_file", "edit", "", "", text[: gap.end()])
        at = gap.end()
    return [*blocks, *text_blocks(text[at:].strip(), "answer")]


def _call_blocks(name: str, kind: str, arguments: str, result: str, text: str, failed: bool = False) -> list[Block]:
    call = digest(text)
    patched = [(_PATCHES[action], word(path)) for action, path in _PATCHED.findall(arguments) if kind == "edit"]
    patched += [(_LISTED[sign], word(path)) for sign, path in _updated(result) if kind == "edit" and not patched]
    if kind == "edit" and "map[" in (given := f"{arguments}\n{result}"):
        patched += dict.fromkeys(("edited", word(path)) for path in _MAPPED_PATH.findall(given))
    end = _call_end(call, kind, result, patched, failed)
    path = _find_path(arguments) if kind not in ("shell", "plan", "other") and not patched else ""
    path = path or end.path
    command = _find_command(arguments) if kind == "shell" else ""
    start = CallStart(call, word(name), kind, word(path), word(command), {"asked": arguments})
    return [
        Block("call", f"{name}\n{arguments}".strip(), "tool_input", call=start),
        Block("result", result, "tool_output", result=end),
    ]


def _call_end(call: str, kind: str, result: str, patched: list[tuple[str, str]], failed: bool) -> CallEnd:
    status = exit_status(result) if kind == "shell" else None
    failed = failed or result.lstrip().startswith(_REFUSED) or bool(status)
    touched = _TOUCHED.match(result) if kind in ("edit", "create") else None
    action = ("created" if touched[2] else "edited") if touched else ""
    path = word(touched[1] or touched[3]) if touched else ""
    action, path = patched[0] if patched else (action, path)
    why = error_class(result) if failed else ""
    return CallEnd(call, failed, why, status, action=action, path=path, others=tuple(patched[1:]))


def _updated(result: str) -> list[tuple[str, str]]:
    return _UPDATED_PATH.findall(result) if result.startswith("Success. Updated the following files:") else []


def _split_result(body: str) -> tuple[str, str]:
    """Split a call into arguments and result: the last fence that is no code, which may contain fences itself."""
    lines, fence, start = body.split("\n"), "", -1
    for number, line in enumerate(lines):
        if (match := _FENCE.fullmatch(line)) is None:
            continue
        if fence:
            fence = "" if match[1] == fence and not match[2] else fence
        elif match[2] in ("", "text"):
            start = number
            break
        else:
            fence = match[1]
    if start < 0:
        return _LABELS.sub("", body).strip(), ""
    end = next((number for number in range(len(lines) - 1, start, -1) if _FENCE.fullmatch(lines[number])), len(lines))
    return _LABELS.sub("", "\n".join(lines[:start])).strip(), "\n".join(lines[start + 1 : end])


def _find_path(arguments: str) -> str:
    if listed := _LISTED_PATH.findall(arguments):  # beside the text of a file, which may hold such a line too
        return str(listed[0 if arguments.startswith("- file") else -1])
    if (keyed := _KEYED_PATH.search(arguments)) is not None:
        return re.sub(r"\\(.)", r"\1", keyed[1])
    head = arguments.partition("\n")[0]
    path = (
        _BARE_PATH.search(head) or _LINKED.search(arguments) or _PATH.search(arguments) or _BARE_PATH.search(arguments)
    )
    if path is None or path[1] == _UNKNOWN:
        return ""
    return unquote(path[1].partition("#")[0]) if path[1].startswith("file://") else path[1]


def _find_command(arguments: str) -> str:
    arguments = arguments.replace("\r\n", "\n")
    lines = arguments.split("\n")
    for number, line in enumerate(lines):
        if _FENCE.fullmatch(line):
            end = next((n for n in range(number + 1, len(lines)) if _FENCE.fullmatch(lines[n])), len(lines))
            return "\n".join(lines[number + 1 : end])
    if argument := _ARGUMENT.search(arguments):
        return argument[1] or argument[2]
    return codes[-1] if (codes := _CODE.findall(arguments)) else ""


# --- sections ---
MARK = lazy_pattern(r"_\*\*(User|Agent|Assistant)( - sidechain)?(?: \(([^()\n]*)\))?\*\*_\s*")
RULE = "---"

#: The first characters of lines that may be part of the layout.
_LAYOUT_CHARACTERS = frozenset("_<- \t")

#: A run of lines of plain text, as nearly all are: `opens` needs to see only the first.
ALIKE = lazy_pattern(rb"(?:[^_<\- \t\r\n][^\n]*+\n)++")

_TIME = lazy_pattern(r"(?:^|\s)(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)$")


class SpecstoryMark(Struct, frozen=True):
    """The facts in the first line of a section."""

    role: str = ""  # User Agent Assistant; "" when there is no mark
    sidechain: bool = False
    model: str = ""
    time: str = ""


class SpecstoryLineState(Struct):
    """The state that `opens` carries from line to line."""

    begun: bool = False
    role: str = ""
    in_tool: bool = False
    last: str = ""  # the kind of the previous line: blank, rule or text
    earlier: str = ""  # the kind of the line before the run of that kind


def opens(known: SpecstoryLineState, line: str) -> bool:
    """Return whether a section begins with this line. `Passages` calls it for every line in order."""
    if line and line[0] not in _LAYOUT_CHARACTERS:  # nearly all of them
        if known.last != "text":
            known.last, known.earlier = "text", known.last
        return False
    last, earlier = known.last, known.earlier
    kind = "rule" if line.rstrip() == RULE else "text" if line.strip() else "blank"
    if kind != last:
        known.last, known.earlier = kind, last
    if known.in_tool:
        known.in_tool = not line.startswith(("</details></tool-use>", "</tool-use>"))
        return False
    if line.startswith("<tool-use ") and "</tool-use>" not in line:
        known.in_tool = True
        return False
    if kind == "rule":
        return known.role == "Assistant"
    return line[:3] == "_**" and _begins_section(known, line, last, earlier)


def _begins_section(known: SpecstoryLineState, line: str, last: str, earlier: str) -> bool:
    if (mark := MARK.fullmatch(line)) is None or last not in ("", "blank"):
        return False
    if not mark[3] and known.role and earlier != "rule":
        return False
    known.role = mark[1]
    return True


def parse_mark(line: str) -> SpecstoryMark:
    """Return the facts in the first line of a section."""
    if (mark := MARK.fullmatch(line.rstrip("\r\n"))) is None:
        return SpecstoryMark()
    about = (mark[3] or "").strip()
    time = _TIME.search(about)
    model = about[: time.start()].strip() if time else about
    return SpecstoryMark(mark[1], bool(mark[2]), model, time[1] if time else "")


_TITLE = lazy_pattern(
    r"^#{1,2} (?!SpecStory\s*$)(.*?)(?: ?\((\d{4}[-/]\d\d?[-/]\d\d? \d\d?:\d\d(?::\d\d)?Z?)\))?\s*$", re.MULTILINE
)
_OLDEST = lazy_pattern(r"\s*#{1,2} SpecStory\s+#{1,2} ")  # the beginning of a file before its marks had comments
_GENERATED = lazy_pattern(r"<!-- Generated by SpecStory(?:, Markdown v([\w.-]{1,40}))? -->")
_ELEMENT = lazy_pattern(r"^(?:<think>|<tool-use |Tool use: \*\*)", re.MULTILINE)
_CLOSED = {"<think>": lazy_pattern(r"</think>"), "<tool-use ": re.compile(r"^(?:</details>)?</tool-use>", re.MULTILINE)}
_THINK = lazy_pattern(r"</?(?:think|details)>|<summary>[^<]{0,200}</summary>")


PROMPT = MessageSpeaker("human", "text", True, "prompt")
CONTEXT = MessageSpeaker("injected", "context", False, "meta")
COMMAND = MessageSpeaker("human", "command", True, "prompt")
_BEGINNINGS = (
    ("<command-name>", COMMAND),
    ("<command-message>", COMMAND),
    ("<local-command-stdout>", MessageSpeaker("system", "output", False, "tool_output")),
    ("<local-command-stderr>", MessageSpeaker("system", "output", False, "tool_output")),
    ("<local-command-caveat>", CONTEXT),
    ("Caveat: The messages below were generated by the user", CONTEXT),
    ("<bash-input>", MessageSpeaker("human", "shell", True, "prompt")),
    ("<bash-stdout>", MessageSpeaker("tool", "output", False, "tool_output")),
    ("[Request interrupted by user", MessageSpeaker("system", "interrupt", False, "meta")),
    ("<task-notification>", MessageSpeaker("agent", "notification", False, "meta")),
    ("<system-reminder>", CONTEXT),
    ("<environment_context>", CONTEXT),
    ("# AGENTS.md instructions", CONTEXT),
    ("<user_instructions>", CONTEXT),
    ("This session is being continued from a previous", MessageSpeaker("injected", "summary", False, "summary")),
)


class SpecstoryHeader(NamedTuple):
    """The facts at the beginning of a file."""

    session: str = ""
    agent: str = ""
    client: str = ""
    title: str = ""
    time: str = ""


def view(record: bytes) -> Message | None:
    text, _ = text_of(record)
    return build(parse_mark(text.partition("\n")[0]), text)


def build(mark: SpecstoryMark, text: str) -> Message:
    at, precision = milliseconds(mark.time)
    if mark.role == "User" or (mark.role and mark.sidechain and not mark.model):
        return _user_message(mark, _strip_mark(text, mark), at, precision)
    if not mark.role and not text.startswith(RULE) and _is_header(text):
        at, precision = milliseconds(parse_header(text).time)
        block = Block("text", text.strip(), "meta")
        return Message("system", "system", "notice", at, precision, blocks=(block,), fidelity="rendered")
    is_older = mark.role == "Assistant" or text.startswith(RULE)
    blocks = tuple(_answer_blocks(_strip_mark(text, mark), is_older))
    return Message("assistant", "model", "text", at, precision, model=mark.model, blocks=blocks, fidelity="rendered")


def parse_header(text: str) -> SpecstoryHeader:
    """Return the facts at the beginning of a file."""
    generated, session, title = _GENERATED.search(text), SESSION.search(text), _TITLE.search(text)
    named = title[1].strip() if title and not re.match(r"\d{4}-\d\d-\d\d", title[1]) else ""
    time = session[3].replace("_", " ") if session else title[2] or "" if title else ""
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d-\d\d-\d\dZ?", time):
        time = f"{time[:10]} {time[11:].replace('-', ':')}"
    if "/" in time:
        day, _, clock = time.partition(" ")
        time = f"{'-'.join(part.zfill(2) for part in day.split('/'))} {clock.zfill(8)}"
    return SpecstoryHeader(
        session[2] if session else "", session[1] if session else "", (generated[1] or "") if generated else "", named, time
    )  # fmt: skip


def _is_header(text: str) -> bool:
    """Return whether a text without a mark is the beginning of a file, and not the rest of a section."""
    return bool(_GENERATED.search(text[:500]) or SESSION.search(text[:500]) or _OLDEST.match(text[:500]))


def _user_message(mark: SpecstoryMark, text: str, at: int | None, precision: str) -> Message:
    speaker = next((speaker for begin, speaker in _BEGINNINGS if text.startswith(begin)), PROMPT)
    if mark.sidechain and speaker.origin == "human":
        speaker = speaker._replace(origin="agent")
    return Message(
        "user", speaker.origin, speaker.kind, at, precision, blocks=text_blocks(text, speaker.field),
        starts_turn=speaker.starts_turn and bool(text), fidelity="rendered",
    )  # fmt: skip


def _strip_mark(text: str, mark: SpecstoryMark) -> str:
    """Return a section without its mark and the rules around it."""
    if mark.role:
        text = text.partition("\n")[2]
    text = text.strip()
    if text.startswith(RULE):
        text = text[len(RULE) :].lstrip()
    lines = text.split("\n")
    while lines and lines[-1].strip() in ("", RULE):
        lines.pop()
    return "\n".join(lines).rstrip()


def _answer_blocks(text: str, is_older: bool) -> list[Block]:
    if is_older and "<tool-use " not in text and not text.startswith(("<think>", "Tool use: **")):
        return item_blocks(text)
    blocks: list[Block] = []
    at, tool = 0, ""
    for start, end in _element_ranges(text):
        blocks += _said_blocks(text[at:start].strip())
        element, at = text[start:end], end
        if element.startswith("<think>"):
            blocks.append(Block("thinking", _THINK.sub("", element).strip(), "thinking"))
            continue
        made = tool_blocks(element)
        name, arguments = made[0].text.partition("\n")[::2]
        if arguments or made[1].text or name != tool:  # else the bare name of the call before it, once more
            blocks += made
        tool = name
    rest = text[at:].strip()
    return [*blocks, *(item_blocks(rest) if is_older and rest else _said_blocks(rest))]


def _element_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of thoughts and tools. An element that is never closed is text."""
    at, unclosed = 0, set[str]()
    while opening := _ELEMENT.search(text, at):
        at, closed = opening.end(), _CLOSED.get(opening[0])
        if closed is None:  # the older form extends to the end
            yield opening.start(), len(text)
            return
        end = closed.search(text, at) if opening[0] not in unclosed else None
        if end is None:
            unclosed.add(opening[0])
        else:
            at = end.end()
            yield opening.start(), at
