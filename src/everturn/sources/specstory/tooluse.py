"""Tool calls as SpecStory shows them: what was asked, in words and fences, and below it what came back.

There are no ids. A call is named after its own text, and its result stands in the same section.
"""

from __future__ import annotations

import re

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.foreign import digest, word
from everturn.sources.tools import error_class, exit_status, tool_kind

_TAG = re.compile(r'<tool-use data-tool-type="([^"\n]{0,80})" data-tool-name="([^"\n]{0,200})">')
_SUMMARY = re.compile(r"<summary>(?:Tool use: )?(.{0,4000}?)</summary>", re.DOTALL)
_NAMED = re.compile(r"Tool use: \*\*([^*\n]{1,200})\*\* ?(.*)")
_BOLD = re.compile(r"\A\*\*[^*\n]*\*\*")
_TAGS = re.compile(r"</?(?:details|tool-use)(?: [^>\n]*)?>")
_FENCE = re.compile(r"(`{3,})([\w+#.-]*)\s*")
_CODE = re.compile(r"`([^`\n]+)`")
_ARGUMENT = re.compile(r"^- (?:command|cmd): `(?:\[(?:bash|sh|zsh) -l?c (.*)\]|(.*))`\s*$", re.MULTILINE)
_PATH = re.compile(r"(?:\bpath |(?:Read|Edit|Write|Delete|Create) file: |^[ \t]*)`([^`\n]+)`", re.MULTILINE)
_BARE_PATH = re.compile(r"(?:Read|Edit|Write|Delete|Create) file: ([^`\s<]+)")
_LABELS = re.compile(r"^(?:\*\*(?:Input|Result|Output|Error):\*\*|Result:)\s*$", re.MULTILINE)
_TOUCHED = re.compile(r"The file (\S+) has been (?:updated|edited)|File (created) successfully at: (\S+)")
_REFUSED = ("<tool_use_error>", "The user doesn't want to proceed", "Error: ")

#: What the items of the older form are, by how their summary begins.
_ITEMS = (
    (re.compile(r'Searched codebase "'), "codebase_search"),
    (re.compile(r"Listed (?:directory|current directory)"), "list_dir"),
    (re.compile(r'Grep search for "'), "grep_search"),
    (re.compile(r'Searched web "'), "web_search"),
    (re.compile(r"Searched (?:files|for files)|Found files"), "file_search"),
)
_READ = re.compile(r"Read file: ([^\n`]{1,1000})")
_SHELL = re.compile(r"```(?:bash|sh|shell)\n(.*?)\n```\s*```[a-z]*\n(.*)\n?```", re.DOTALL)
_DETAILS = re.compile(r"<details>\s*<summary>(.*?)</summary>(.*)</details>", re.DOTALL)
_KINDS = {"shell": "shell", "read": "read", "write": "edit", "search": "search", "task": "plan"}


def tool_blocks(text: str) -> list[Block]:
    """The call and the result of one <tool-use> element, or of a `Tool use:` of older releases."""
    tag, summary = _TAG.match(text), _SUMMARY.search(text)
    if tag is not None:
        kind, name = tag[1], tag[2]
        head = summary[1] if summary else ""
        body = text[summary.end() if summary else tag.end() :]
    else:
        named = _NAMED.match(text)
        kind, name, head = "", named[1] if named else "", named[2] if named else ""
        body = text[named.end() if named else 0 :]
    asked, result = _split_result(_TAGS.sub("", body))
    neutral = tool_kind(name)
    neutral = _KINDS.get(kind, "other") if neutral == "other" else neutral
    head = _BOLD.sub("", head).strip().removeprefix("•").strip()
    return _blocks(name, neutral, f"{head}\n{asked}".strip(), result, text)


def item_blocks(item: str) -> list[Block]:
    """The blocks of an item of the older form: what the agent said or did between two rules."""
    item = item.strip()
    read = _READ.fullmatch(item)
    shell = _SHELL.fullmatch(item) if item.endswith("```") else None
    details = _DETAILS.fullmatch(item) if item.endswith("</details>") else None
    if read:
        return _blocks("read_file", "read", f"`{read[1].strip()}`", "", item)
    if shell:
        return _blocks("run_terminal_cmd", "shell", f"```bash\n{shell[1]}\n```", shell[2], item)
    if details:
        summary = details[1].strip()
        name = next((name for pattern, name in _ITEMS if pattern.match(summary)), "other")
        return _blocks(name, tool_kind(name), summary, details[2].strip(), item)
    if item.startswith("```diff\n") and item.endswith("```"):
        return _blocks("edit_file", "edit", item, "", item)
    return [Block("text", item, "answer")] if item else []


def _blocks(name: str, kind: str, asked: str, result: str, text: str) -> list[Block]:
    call = digest(text)
    path = _path(asked) if kind not in ("shell", "plan", "other") else ""
    command = _command(asked) if kind == "shell" else ""
    start = CallStart(call, word(name), kind, word(path), word(command), {"asked": asked})
    return [
        Block("call", f"{name}\n{asked}".strip(), "tool_input", call=start),
        Block("result", result, "tool_output", result=_end(call, kind, result)),
    ]


def _end(call: str, kind: str, result: str) -> CallEnd:
    status = exit_status(result) if kind == "shell" else None
    failed = result.lstrip().startswith(_REFUSED) or bool(status)
    touched = _TOUCHED.match(result) if kind in ("edit", "create") else None
    action = ("created" if touched[2] else "edited") if touched else ""
    path = word(touched[1] or touched[3]) if touched else ""
    return CallEnd(call, failed, error_class(result) if failed else "", status, action=action, path=path)


def _split_result(body: str) -> tuple[str, str]:
    """What was asked, and what came back: the last fence that is no code, which may hold fences itself."""
    lines, fence, start = body.split("\n"), "", -1
    for number, line in enumerate(lines):
        found = _FENCE.fullmatch(line)
        if found is None:
            continue
        if fence:
            fence = "" if found[1] == fence and not found[2] else fence
        elif found[2] in ("", "text"):
            start = number
            break
        else:
            fence = found[1]
    if start < 0:
        return _LABELS.sub("", body).strip(), ""
    end = next((number for number in range(len(lines) - 1, start, -1) if _FENCE.fullmatch(lines[number])), len(lines))
    asked = "\n".join(lines[:start])
    return _LABELS.sub("", asked).strip(), "\n".join(lines[start + 1 : end])


def _path(asked: str) -> str:
    found = _PATH.search(asked) or _BARE_PATH.search(asked)
    return found[1] if found else ""


def _command(asked: str) -> str:
    lines = asked.split("\n")
    for number, line in enumerate(lines):
        if _FENCE.fullmatch(line):
            end = next((n for n in range(number + 1, len(lines)) if _FENCE.fullmatch(lines[n])), len(lines))
            return "\n".join(lines[number + 1 : end])
    argument = _ARGUMENT.search(asked)
    if argument:
        return argument[1] or argument[2]
    codes = _CODE.findall(asked)
    return codes[-1] if codes else ""
