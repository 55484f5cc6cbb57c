"""What happened in a session, read from its raw records by other code than the project's: the yardstick for documents.

Three ways of writing a transcript are read here, each in a few lines, and only what is measured: calls with their arguments
and results, in the order of the file. `Truth` says what a stretch of calls amounts to. A command counts as the same when it
has the same program and words, options aside; one that only looks at something is none that can fail.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    """A tool call as the record says it."""

    at: int  # offset of its record
    name: str
    given: dict[str, Any]
    output: str = ""
    failed: bool | None = None  # None: no result
    ended: int = 0  # offset of the record with its result

    @property
    def command(self) -> str:
        """What a shell was given."""
        for key in ("command", "cmd"):
            value = self.given.get(key)
            if isinstance(value, list):
                return str(value[-1]) if value else ""
            if isinstance(value, str):
                return value
        return ""


_EDITS = {"edit", "write", "multiedit", "notebookedit", "write_to_file", "replace_in_file", "create", "str_replace"}
_READS = {"read", "read_file", "view", "notebookread"}
_SHELLS = {"bash", "shell", "exec_command", "container.exec", "execute_command", "local_shell"}
_PATHS = ("file_path", "path", "notebook_path")
_PATCH = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+?)\s*$", re.MULTILINE)
_MOVED = re.compile(r"^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_REDIRECT = re.compile(
    r"(?:cat|tee|printf|echo)\b[^\n;&|]*?>{1,2}\s*[\"']?([\w./~-]+\.\w+)|\btee\s+(?:-a\s+)?([\w./~-]+\.\w+)"
)
_ENDINGS = (
    "py|pyi|ts|tsx|js|jsx|mjs|cjs|go|rs|md|mdx|json|jsonl|toml|yaml|yml|sh|bash|zsh|ps1|bat|css|scss|html|txt|lock|c|h|cc|cpp|hpp|java|"
    "kt|rb|php|sql|cfg|ini|xml|svg|vue|svelte|swift|gradle|proto|ipynb|csv|env|lua|ex|exs|tf|docx|pdf|sum|mod|mdc|elfin"
)
_FILE = re.compile(rf"(?<![\w/.$*@])((?:[\w@.~+-]+/)*[\w.+-]+\.(?:{_ENDINGS}))(?![\w/*(@])")
_REPORT = re.compile(r"^\[[^\]\n]{1,100} ([0-9a-f]{6,12})\] (.+)$", re.MULTILINE)
_LOOKS = re.compile(
    r"(?:grep|rg|ls|cat|head|tail|find|sed -n|test|which|type|command|diff|git (?:diff|log|show|status|grep|rev|branch|ls)|wc|stat|"
    r"pgrep|ps|kill|pkill|jq|tree|du|file|echo|pwd|date|sleep|true|curl|lsof|gh \w+ (?:view|list|status|checks|diff)|gh api|awk|nl)\b|\["
)


@dataclass
class Truth:
    """What a stretch of calls amounts to."""

    edited: Counter[str] = field(default_factory=Counter)
    touched: Counter[str] = field(default_factory=Counter)
    writing: list[str] = field(default_factory=list)  # commands and outputs in which files are written in other ways
    failing: Counter[str] = field(default_factory=Counter)  # command as given last → how often it failed
    commits: dict[str, str] = field(default_factory=dict)
    open_items: list[str] = field(default_factory=list)


def truth_of(calls: list[Call], workspace: str) -> Truth:
    """Everything that is measured, of these calls."""
    truth = Truth()
    runs: list[Call] = []
    plan: dict[str, tuple[str, str]] = {}
    for call in calls:
        _files(call, workspace, truth)
        if call.name.lower() in _SHELLS and call.command:
            runs.append(call)
            if "git" in call.command:
                truth.commits.update({found[0]: found[1] for found in _REPORT.findall(call.output)})
        _plan(call, plan)
    truth.failing = _still_failing(runs)
    truth.open_items = [text for text, status in plan.values() if status in ("pending", "in_progress") and text]
    return truth


def _files(call: Call, workspace: str, truth: Truth) -> None:
    name = call.name.lower()
    path = next((call.given[key] for key in _PATHS if isinstance(call.given.get(key), str)), "")
    if call.failed is False and name in _EDITS and path:
        truth.edited[local(path, workspace)] += 1
    if name in _EDITS | _READS and path and call.failed is not True:
        truth.touched[local(path, workspace)] += 1
    text = call.command or (call.given.get("input") if isinstance(call.given.get("input"), str) else "")
    if not text:
        return
    for found in (
        (*(path for _, path in _PATCH.findall(text)), *_MOVED.findall(text)) if "*** Begin Patch" in text else ()
    ):
        if call.failed is False:
            truth.edited[local(found, workspace)] += 1
            truth.touched[local(found, workspace)] += 1
    if name in _SHELLS:
        truth.writing += [text, *(line for line in call.output.splitlines() if line.startswith(" create mode"))]
        if call.failed is False and "*** Begin Patch" not in text:
            _of_shell(text, workspace, truth)


def _of_shell(text: str, workspace: str, truth: Truth) -> None:
    for one, other in _REDIRECT.findall(
        text.split("<<", maxsplit=1)[0] + "\n" + "\n".join(re.findall(r"^.*<<.*$", text, re.M))
    ):
        truth.edited[local(one or other, workspace)] += 1
    for found in _FILE.findall(text.split("<<", maxsplit=1)[0]):
        if not found.startswith(("http", "www.")):
            truth.touched[local(found, workspace)] += 1


def local(path: str, workspace: str) -> str:
    """A path as seen from the workspace, with forward slashes."""
    path, home = path.replace("\\", "/").strip("\"'"), workspace.replace("\\", "/").rstrip("/")
    if home and path.lower().startswith(f"{home.lower()}/"):
        path = path[len(home) + 1 :]
    return path.removeprefix("./")


# commands -------------------------------------------------------------------------------------------------------------
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'", re.DOTALL)
_IDLE = re.compile(r"(?:cd|export|source|sleep|set|true|git add|mkdir -p|\.)\b")


def _parts(command: str) -> tuple[list[str], list[str]]:
    """The commands of a line that were tried, and those that its success proves, each by its program and first words."""
    if "<<" in command:
        return ([" ".join(command.split())[:200]],) * 2
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return f"\x00{len(held) - 1}\x00"

    text = _QUOTED.sub(hold, command)
    chains = [chain for chain in re.split(r"[;\n]", text) if chain.strip()]
    pieces = [(piece, "|" in piece) for piece in re.split(r"&&", chains[-1] if chains else "")]
    keys = [(_key(piece.split("|")[0], held), masked) for piece, masked in pieces]
    tried = [key for key, _ in keys if key]
    return tried, [] if any(masked for _, masked in keys) else tried


def _key(piece: str, held: list[str]) -> str:
    bare = re.sub(r"\d?>{1,2}&?\s*\S*|^\s*(?:\w+=\S*\s+|timeout \S+\s+|time\s+|sudo\s+)+", " ", piece)
    words = " ".join(bare.split())
    if not words or _IDLE.match(words) or _LOOKS.match(words):
        return ""
    if words.startswith("git commit"):
        return "git commit"
    if words.startswith("git rebase"):
        return "git rebase"
    shown = re.sub(r"\x00(\d+)\x00", lambda found: held[int(found[1])][:40], words)
    return " ".join(word for word in shown.split() if not word.startswith("-"))[:120]


def _still_failing(calls: list[Call]) -> Counter[str]:
    """Commands after which what they tried never went well again, by how often they failed."""
    open_keys: dict[str, tuple[set[str], int]] = {}
    for call in calls:
        tried, proven = _parts(call.command)
        if call.failed and tried and not _REFUSED.search(call.output[:400] + call.output[-100:]):
            times = open_keys.pop(call.command, (set(), 0))[1]
            open_keys[call.command] = (set(tried), times + 1)
        elif call.failed is False:
            left = {command: (keys - set(proven), times) for command, (keys, times) in open_keys.items()}
            open_keys = {command: one for command, one in left.items() if one[0]}
    return Counter({command: times for command, (_, times) in open_keys.items()})


_REFUSED = re.compile(
    r"doesn't want to|rejected|interrupted by user|was blocked|requires approval|aborted|tool call errored|Cancelled: parallel",
    re.I,
)


def _plan(call: Call, plan: dict[str, tuple[str, str]]) -> None:
    given, name = call.given, call.name.lower()
    listed = given.get("todos") if name == "todowrite" else given.get("plan") if name == "update_plan" else None
    if isinstance(listed, list):
        plan.clear()
        for number, item in enumerate(listed):
            if isinstance(item, dict):
                plan[f"#{number}"] = (str(item.get("content") or item.get("step") or ""), str(item.get("status")))
    elif name == "taskcreate" and (made := re.search(r"#(\d+)", call.output)):
        plan[made[1]] = (str(given.get("subject", "")), "pending")
    elif name == "taskupdate" and str(given.get("taskId")) in plan and given.get("status"):
        plan[str(given["taskId"])] = (plan[str(given["taskId"])][0], str(given["status"]))


# records --------------------------------------------------------------------------------------------------------------
def records(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file of lines, with their offsets."""
    at = 0
    for line in data.splitlines(keepends=True):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            yield at, record
        at += len(line)


def blocks(data: bytes) -> list[Call]:
    """Calls and results as blocks of messages."""
    found: dict[str, Call] = {}
    for at, record in records(data):
        message = record.get("message")
        if record.get("isSidechain") or not isinstance(message, dict):
            continue
        content = message.get("content")
        if message.get("role") == "toolResult":
            _answer(found, message.get("toolCallId"), content, bool(message.get("isError")), at)
            continue
        for block in content if isinstance(content, list) else ():
            kind = block.get("type") if isinstance(block, dict) else ""
            if kind in ("tool_use", "toolCall"):
                given = block.get("input") or block.get("arguments")
                found[block["id"]] = Call(at, block.get("name", ""), given if isinstance(given, dict) else {})
            elif kind == "tool_result":
                _answer(found, block.get("tool_use_id"), block.get("content"), bool(block.get("is_error")), at)
    return sorted(found.values(), key=lambda call: call.at)


def items(data: bytes) -> list[Call]:
    """Calls and results as items of a response."""
    found: dict[str, Call] = {}
    for at, record in records(data):
        payload = record.get("payload")
        item = payload if isinstance(payload, dict) and record.get("type") == "response_item" else record
        kind = item.get("type")
        if kind in ("function_call", "custom_tool_call"):
            found[str(item.get("call_id"))] = Call(at, str(item.get("name")), _arguments(item))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            text, failed = _ended(item.get("output"))
            _answer(found, item.get("call_id"), text, failed, at)
    return sorted(found.values(), key=lambda call: call.at)


def _arguments(item: dict[str, Any]) -> dict[str, Any]:
    if item.get("type") == "custom_tool_call":
        return {"input": str(item.get("input", ""))}
    try:
        given = json.loads(item.get("arguments") or "{}")
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _ended(output: Any) -> tuple[str, bool]:
    text = output if isinstance(output, str) else json.dumps(output)
    try:
        held = json.loads(text)
        text, code = str(held["output"]), int(held["metadata"]["exit_code"])
    except (ValueError, KeyError, TypeError):
        found = re.search(r"(?:Exit code|exit code|exited with code):? (-?\d+)", text[:2000])
        code = int(found[1]) if found else 0
    return text, code != 0


def _answer(found: dict[str, Call], number: Any, content: Any, failed: bool, at: int) -> None:
    call = found.get(str(number))
    if call is None:
        return
    texts = content if isinstance(content, list) else [content]
    call.output = "\n".join(str(one.get("text", "")) if isinstance(one, dict) else str(one or "") for one in texts)
    call.failed, call.ended = failed, at
    code = re.search(r"^(?:Command exited with code|Exit code) (\d+)", call.output[:200] + call.output[-200:], re.M)
    if code and call.name.lower() in _SHELLS:
        call.failed = code[1] != "0"


_TAGS = re.compile(r"<(read_file|write_to_file|replace_in_file|execute_command)>\s*(.*?)</\1>", re.DOTALL)
_FIELD = re.compile(r"<(path|command)>(.*?)</\1>", re.DOTALL)


def tags(data: bytes) -> list[Call]:
    """Calls as tags in the words of the model; the next message of the user says how one ended."""
    found: list[Call] = []
    for at, message in _elements(data):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        words = "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
        if message.get("role") == "assistant":
            for name, body in _TAGS.findall(words)[:1]:
                found.append(Call(at, name, {key: value.strip() for key, value in _FIELD.findall(body)}))
        elif found and found[-1].failed is None:
            found[-1].output, found[-1].ended = words, at
            found[-1].failed = "The tool execution failed" in words[:3000] or "user denied" in words[:3000]
    return found


def _elements(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON array, with the offsets at which they begin."""
    text, decoder = data.decode(), json.JSONDecoder()
    at, before, size = text.index("[") + 1, 0, 0
    while (start := re.compile(r"[\s,]*").match(text, at).end()) < len(text) and text[start] == "{":  # type: ignore[union-attr]
        value, at = decoder.raw_decode(text, start)
        size += len(text[before:start].encode())
        before = start
        yield size, value


#: By the folder of the corpus: how its transcripts are read.
READERS: dict[str, Callable[[bytes], list[Call]]] = {"claude-code": blocks, "pi": blocks, "codex": items, "cline": tags}
