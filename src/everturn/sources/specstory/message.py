"""One section → one message, without knowing the sections around it: used by the reader and by `view` alike.

Tool calls as SpecStory shows them: what was asked, in words and fences, and below it what came back.

There are no ids. A call is named after its own text, and its result stands in the same section.

Where a message begins in a saved session.

    _**User (2026-05-01 10:00:00Z)**_            what a human typed, or what was put in its place
    _**Agent (model 2026-05-01 10:00:05Z)**_     text, <think>…</think>, <tool-use …>…</tool-use>
    _**Agent - sidechain (…)**_                  of another thread of the same session
    _**User**_ … --- … _**Assistant**_           the older form: what the agent did are items between rules

What a tool printed may hold such marks too: inside <tool-use> nothing begins. Marks without a time stand after a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sources.toolkit.blocks import error_class, exit_status, tool_kind
from everturn.sources.toolkit.line_reader import text_of
from everturn.sources.toolkit.values import digest, milliseconds, word

#: Which agent, its session and when: `<!-- Claude Code Session 1111… (2026-05-01 10:00:00Z) -->`.
SESSION = re.compile(r"^<!-- ([^<>\n]{1,80}?) Session ([\w.:-]{1,120}) \(([^()\n]{0,40})\) -->\s*$", re.MULTILINE)
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


MARK = re.compile(r"_\*\*(User|Agent|Assistant)( - sidechain)?(?: \(([^()\n]*)\))?\*\*_\s*")
RULE = "---"

#: What the first character of a line that means something may be.
_TELLING = frozenset("_<- \t")

#: Lines of text one after the other, nearly all there are: the first of them says as much as all of them.
ALIKE = re.compile(rb"(?:[^_<\- \t\r\n][^\n]*+\n)++")

_TIME = re.compile(r"(?:^|\s)(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)$")


class SpecstoryMark(Struct, frozen=True):
    """What a section says about itself."""

    role: str = ""  # User Agent Assistant; "" when there is no mark
    sidechain: bool = False
    model: str = ""
    time: str = ""


class SpecstoryLineState(Struct):
    """What is known of the lines before."""

    begun: bool = False
    role: str = ""
    in_tool: bool = False
    last: str = ""  # what the line before was: blank, rule or text
    earlier: str = ""  # and what was before lines of that kind


def opens(known: SpecstoryLineState, line: str) -> bool:
    """Does a section begin with this line? (`Passages` asks for every line in order.)"""
    if line and line[0] not in _TELLING:  # nearly all of them
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
    found = MARK.fullmatch(line)
    if found is None or last not in ("", "blank"):
        return False
    if not found[3] and known.role and earlier != "rule":
        return False
    known.role = found[1]
    return True


def mark_of(line: str) -> SpecstoryMark:
    """What the first line of a section says."""
    found = MARK.fullmatch(line.rstrip("\r\n"))
    if found is None:
        return SpecstoryMark()
    about = (found[3] or "").strip()
    time = _TIME.search(about)
    return SpecstoryMark(
        found[1], bool(found[2]), about[: time.start()].strip() if time else about, time[1] if time else ""
    )


_TITLE = re.compile(r"^#{1,2} (.*?)(?: ?\((\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?Z?)\))?\s*$", re.MULTILINE)
_GENERATED = re.compile(r"<!-- Generated by SpecStory(?:, Markdown v([\w.-]{1,40}))? -->")
_PIECE = re.compile(r"^(?:<think>|<tool-use |Tool use: \*\*)", re.MULTILINE)
_CLOSED = {"<think>": re.compile(r"</think>"), "<tool-use ": re.compile(r"^(?:</details>)?</tool-use>", re.MULTILINE)}
_THINK = re.compile(r"</?(?:think|details)>|<summary>[^<]{0,200}</summary>")


class SpecstorySpeaker(NamedTuple):
    """What a section of a user really is."""

    origin: str
    kind: str
    starts_turn: bool
    field: str


PROMPT = SpecstorySpeaker("human", "text", True, "prompt")
CONTEXT = SpecstorySpeaker("injected", "context", False, "meta")
COMMAND = SpecstorySpeaker("human", "command", True, "prompt")
_BEGINNINGS = (
    ("<command-name>", COMMAND),
    ("<command-message>", COMMAND),
    ("<local-command-stdout>", SpecstorySpeaker("system", "output", False, "tool_output")),
    ("<local-command-stderr>", SpecstorySpeaker("system", "output", False, "tool_output")),
    ("<local-command-caveat>", CONTEXT),
    ("Caveat: The messages below were generated by the user", CONTEXT),
    ("<bash-input>", SpecstorySpeaker("human", "shell", True, "prompt")),
    ("<bash-stdout>", SpecstorySpeaker("tool", "output", False, "tool_output")),
    ("[Request interrupted by user", SpecstorySpeaker("system", "interrupt", False, "meta")),
    ("<task-notification>", SpecstorySpeaker("agent", "notification", False, "meta")),
    ("<system-reminder>", CONTEXT),
    ("<environment_context>", CONTEXT),
    ("# AGENTS.md instructions", CONTEXT),
    ("<user_instructions>", CONTEXT),
    ("This session is being continued from a previous", SpecstorySpeaker("injected", "summary", False, "summary")),
)


class SpecstoryHeader(NamedTuple):
    """What the beginning of a file says."""

    session: str = ""
    agent: str = ""
    client: str = ""
    title: str = ""
    time: str = ""


def view(record: bytes) -> Message | None:
    """The message of a section, judged by itself."""
    text, _ = text_of(record)
    return build(mark_of(text.partition("\n")[0]), text)


def build(mark: SpecstoryMark, text: str) -> Message:
    """The message of a section."""
    at, precision = milliseconds(mark.time)
    if mark.role == "User" or (mark.role and mark.sidechain and not mark.model):
        return _user_message(mark, _words(text, mark), at, precision)
    if not mark.role and not text.startswith(RULE) and is_header(text):
        at, precision = milliseconds(header(text).time)
        words = Block("text", text.strip(), "meta")
        return Message("system", "system", "notice", at, precision, blocks=(words,), fidelity="rendered")
    blocks = tuple(_answer(_words(text, mark), mark.role == "Assistant" or text.startswith(RULE)))
    return Message("assistant", "model", "text", at, precision, model=mark.model, blocks=blocks, fidelity="rendered")


def header(text: str) -> SpecstoryHeader:
    """The facts in the beginning of a file."""
    generated, session, title = _GENERATED.search(text), SESSION.search(text), _TITLE.search(text)
    named = title[1].strip() if title and not re.match(r"\d{4}-\d\d-\d\d", title[1]) else ""
    time = session[3].replace("_", " ") if session else title[2] or "" if title else ""
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d-\d\d-\d\dZ?", time):
        time = f"{time[:10]} {time[11:].replace('-', ':')}"
    return SpecstoryHeader(
        session[2] if session else "", session[1] if session else "", (generated[1] or "") if generated else "", named, time
    )  # fmt: skip


def is_header(text: str) -> bool:
    """Whether a text without a mark is the beginning of a file, and not the rest of a section."""
    return bool(_GENERATED.search(text[:500]) or SESSION.search(text[:500]))


def _user_message(mark: SpecstoryMark, text: str, at: int | None, precision: str) -> Message:
    found = next((speaker for begin, speaker in _BEGINNINGS if text.startswith(begin)), PROMPT)
    if mark.sidechain and found.origin == "human":
        found = found._replace(origin="agent")
    blocks = (Block("text", text, found.field),) if text else ()
    starts = found.starts_turn and bool(text)
    return Message(
        "user", found.origin, found.kind, at, precision, blocks=blocks, starts_turn=starts, fidelity="rendered"
    )


def _words(text: str, mark: SpecstoryMark) -> str:
    """The section without its mark and the rules around it."""
    if mark.role:
        text = text.partition("\n")[2]
    text = text.strip()
    if text.startswith(RULE):
        text = text[len(RULE) :].lstrip()
    lines = text.split("\n")
    while lines and lines[-1].strip() in ("", RULE):
        lines.pop()
    return "\n".join(lines).rstrip()


def _answer(text: str, is_older: bool) -> list[Block]:
    if is_older and "<tool-use " not in text:
        return item_blocks(text)
    found: list[Block] = []
    at = 0
    for start, end in _element_ranges(text):
        found += _text(text[at:start])
        piece, at = text[start:end], end
        if piece.startswith("<think>"):
            found.append(Block("thinking", _THINK.sub("", piece).strip(), "thinking"))
        else:
            found += tool_blocks(piece)
    return found + _text(text[at:])


def _element_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Where thoughts and tools begin and end. One that is never closed is text."""
    at, unclosed = 0, set[str]()
    while opening := _PIECE.search(text, at):
        at, closed = opening.end(), _CLOSED.get(opening[0])
        if closed is None:  # of the older form: up to the end
            yield opening.start(), len(text)
            return
        end = closed.search(text, at) if opening[0] not in unclosed else None
        if end is None:
            unclosed.add(opening[0])
        else:
            at = end.end()
            yield opening.start(), at


def _text(text: str) -> list[Block]:
    return [Block("text", text.strip(), "answer")] if text.strip() else []
