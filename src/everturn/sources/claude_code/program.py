"""Claude Code as a model: `claude -p` prints one JSON object with the answer and the usage.

Without tools, MCP servers and skills, and without a session in its history. The settings of the user are read, because the
way to log in may stand there; those of projects are not.

Puts everturn into Claude Code: a plugin for all projects, or entries in the settings of one.

A folder with a plugin in `skills` is loaded by the client at its next start, without any entry in a settings file, and can
be turned off there with `/plugin`. A folder of that kind inside a project is not loaded, so a project gets entries instead:
in `settings.local.json`, since they hold paths of this machine, and in `.mcp.json`.

What the client does with its own files: how long it keeps them, and how a session is taken up again.

A new session for Claude Code: a transcript in the project folder of the workspace, as its own resume reads it.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from everturn.model.conversation import Block, Message
from everturn.sources.contract import (
    Edit,
    InstallPrograms,
    JsonSetting,
    NewSession,
    OwnFile,
    ProgramReply,
    Retention,
    SearchPlaces,
)
from everturn.sources.toolkit.agent_program import (
    DESCRIPTION,
    DRAIN,
    HINTS,
    NAME,
    VERSION,
    WHERE,
    NativeTool,
    as_json,
    command_line,
    hook_groups,
    line,
    markdown_commands,
    pictures,
    server,
    skill,  # fmt: skip
    tell_call,
    uuid_of,
)
from everturn.sources.toolkit.values import count, decode_value, word
from everturn.text.times import iso


def command(model: str) -> list[str]:
    """See `Ask`."""
    words = ["claude", "-p", "--output-format", "json", "--no-session-persistence", "--tools", ""]
    words += ["--strict-mcp-config", "--disable-slash-commands", "--setting-sources", "user"]
    return [*words, "--model", model] if model else words


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    """See `Ask`. With the first two it takes itself for a session within another one."""
    return {"CLAUDECODE": None, "CLAUDE_CODE_ENTRYPOINT": None, "DISABLE_AUTOUPDATER": "1"}


def read(printed: bytes) -> ProgramReply:
    """See `Ask`."""
    said = decode_value(printed)
    if not isinstance(said, dict):
        return ProgramReply()
    text = word(said.get("result"))
    if said.get("is_error") or said.get("subtype") not in (None, "success"):
        return ProgramReply(failure=text or word(said.get("subtype")) or "it failed")
    used: dict[str, Any] = _object(said.get("usage"))
    return ProgramReply(
        text=text,
        model=next(iter(_object(said.get("modelUsage"))), ""),
        input=count(used.get("input_tokens")) or 0,
        output=count(used.get("output_tokens")) or 0,
        cache_read=count(used.get("cache_read_input_tokens")) or 0,
        cache_write=count(used.get("cache_creation_input_tokens")) or 0,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


EVENTS = {
    "SessionStart": (WHERE, DRAIN),
    "UserPromptSubmit": (HINTS,),
    "PostToolUse": (),
    "PostToolUseFailure": (),
    "PostToolBatch": (),
    "PreCompact": (DRAIN,),
    "PostCompact": (DRAIN,),
    "SubagentStop": (DRAIN,),
    "Stop": (DRAIN,),
    "SessionEnd": (DRAIN,),
}
_SECONDS = 10


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    """Everything that is written."""
    home = _home(places)
    found: list[Edit] = [*(_plugin(places, home, programs) if project is None else _entries(places, project, programs))]
    found += markdown_commands((project / ".claude" if project else home) / "commands")
    if programs.statusline:
        line = command_line(programs, places, "--statusline")
        settings = project / ".claude" / "settings.local.json" if project else home / "settings.json"
        found.append(JsonSetting(settings, ("statusLine",), {"type": "command", "command": line, "padding": 0}))
    return found


def _plugin(places: SearchPlaces, home: Path, programs: InstallPrograms) -> Iterator[Edit]:
    folder = home / "skills" / NAME
    about = {"name": NAME, "version": VERSION, "description": DESCRIPTION, "author": {"name": "everturn contributors"}}
    about |= {"license": "MIT", "keywords": ["memory", "archive", "recall"]}
    hooks = {event: [group] for event, group in hook_groups(programs, places, EVENTS, _SECONDS)}
    yield OwnFile(folder / ".claude-plugin" / "plugin.json", as_json(about))
    yield OwnFile(folder / "hooks" / "hooks.json", as_json({"description": DESCRIPTION, "hooks": hooks}))
    yield OwnFile(folder / ".mcp.json", as_json({"mcpServers": {NAME: server(programs)}}))
    yield skill(folder / "skills")


def _entries(places: SearchPlaces, project: Path, programs: InstallPrograms) -> Iterator[Edit]:
    settings = project / ".claude" / "settings.local.json"
    for event, group in hook_groups(programs, places, EVENTS, _SECONDS):
        yield JsonSetting(settings, ("hooks", event), group, item=True)
    yield JsonSetting(project / ".mcp.json", ("mcpServers", NAME), {"type": "stdio", **server(programs)})
    yield skill(project / ".claude" / "skills")


def _home(places: SearchPlaces) -> Path:
    named = places.env.get("CLAUDE_CONFIG_DIR", "").strip()
    if not named:
        return places.home / ".claude"
    return places.home / named[2:] if named.startswith(("~/", "~\\")) else Path(named)


_DEFAULT_DAYS = 30
_KEY = "cleanupPeriodDays"
_FILES = ("settings.local.json", "settings.json")


class _Settings(Struct):
    cleanup_period_days: int | None = msgspec.field(default=None, name=_KEY)


def retention(root: Path) -> Retention:
    """After how many days the client deletes a transcript that nobody went on with."""
    folder = root.parent if root.name == "projects" else root
    for name in _FILES:
        days = _days(folder / name)
        if days is not None and days >= 0:
            return Retention(days, f"{folder / name}: {_KEY}")
    return Retention(_DEFAULT_DAYS, "default")


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session. A subagent's cannot be; it leads to the session it hangs on."""
    return ["claude", "--resume", native_id.partition("/")[0]]


def _days(path: Path) -> int | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Settings).cleanup_period_days
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


TOOLS = {
    "shell": NativeTool("Bash", {"command": "command"}),
    "read": NativeTool("Read", {"path": "file_path"}),
    "edit": NativeTool("Edit", {"path": "file_path", "old": "old_string", "new": "new_string", "all": "replace_all"}),
    "create": NativeTool("Write", {"path": "file_path", "content": "content"}),
}
#: The version of the client whose form this is.
_VERSION = "2.1.197"
_KEPT = frozenset(string.ascii_letters + string.digits)
_LONGEST_SLUG = 200
_NO_TOKENS = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def place(places: SearchPlaces, new: NewSession) -> Path:
    """See `Native`."""
    return _config(places) / "projects" / slug(new.workspace) / f"{new.id}.jsonl"


def slug(workspace: str) -> str:
    """The name of a workspace's folder, made as the client makes it: it counts in UTF-16."""
    name = unicodedata.normalize("NFC", workspace)
    found = "".join(one if one in _KEPT else "-" * (1 + (one > "\uffff")) for one in name)
    return found if len(found) <= _LONGEST_SLUG else f"{found[:_LONGEST_SLUG]}-{_short_hash(name)}"


def write(places: SearchPlaces, new: NewSession, messages: Sequence[Message]) -> bytes:
    """See `Native`."""
    return b"".join(map(line, _records(new, messages)))


def begin(prompt: str) -> list[str]:
    """See `Native`."""
    return ["claude", prompt]


def _records(new: NewSession, messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    parent: str | None = None
    for number, message in enumerate(messages):
        for part, body in enumerate(_bodies(new, message, number)):
            record = _record(new, message, body, parent, uuid_of(new.id, number, part))
            parent = record["uuid"]
            yield record
    if new.title:
        yield {"type": "custom-title", "customTitle": new.title, "sessionId": new.id}
    if parent is not None:
        prompt = next((_words(one) for one in reversed(messages) if one.role == "user"), "")
        yield {"type": "last-prompt", "lastPrompt": prompt[:200], "leafUuid": parent, "sessionId": new.id}


def _record(new: NewSession, message: Message, body: dict[str, Any], parent: str | None, name: str) -> dict[str, Any]:
    record: dict[str, Any] = {
        "parentUuid": parent,
        "isSidechain": False,
        "type": body["role"],
        "message": body,
        "uuid": name,
        "timestamp": iso(message.at or new.at),
        "userType": "external",
        "entrypoint": "cli",
        "cwd": new.workspace,
        "sessionId": new.id,
        "version": _VERSION,
    }
    if new.forked_from and message.native_id:
        record["forkedFrom"] = {"sessionId": new.forked_from, "messageUuid": message.native_id}
    return record


def _bodies(new: NewSession, message: Message, number: int) -> Iterator[dict[str, Any]]:
    """One record for each block of an answer and for each result, as the client has it; a prompt is one."""
    if message.role == "tool":
        for block in message.blocks:
            yield {"role": "user", "content": [_result(block)]}
    elif message.role == "assistant":
        calls = any(block.kind == "call" for block in message.blocks)
        for block in message.blocks:
            yield {
                "id": f"msg_{uuid_of(new.id, number).replace('-', '')[:24]}",
                "type": "message",
                "role": "assistant",
                "model": message.model or new.model or "unknown",
                "content": [_block(block)],
                "stop_reason": "tool_use" if calls else "end_turn",
                "stop_sequence": None,
                "usage": _NO_TOKENS,
            }
    else:
        yield {"role": "user", "content": _prompt(message)}


def _prompt(message: Message) -> str | list[dict[str, Any]]:
    if len(message.blocks) == 1 and message.blocks[0].kind == "text":
        return message.blocks[0].text
    return [one for block in message.blocks for one in _content_parts(block)]


def _content_parts(block: Block) -> Iterator[dict[str, Any]]:
    if block.kind != "image":
        yield {"type": "text", "text": block.text}
    yield from _images(block)


def _block(block: Block) -> dict[str, Any]:
    if block.call is not None:
        name, given = tell_call(block.call, TOOLS)
        return {"type": "tool_use", "id": block.call.call_id, "name": name, "input": given}
    if block.kind == "thinking":
        return dict(block.data)
    return {"type": "text", "text": block.text}


def _result(block: Block) -> dict[str, Any]:
    assert block.result is not None
    images = list(_images(block))
    words = [{"type": "text", "text": block.text}] if block.text else []  # a provider takes no empty text
    content: Any = [*words, *images] if images else block.text
    end = block.result
    return {"tool_use_id": end.call_id, "type": "tool_result", "content": content, "is_error": end.is_error}


def _images(block: Block) -> Iterator[dict[str, Any]]:
    for shown in pictures(block):
        if shown is not None:
            source = {"type": "base64", "media_type": shown.media, "data": shown.data}
            yield {"type": "image", "source": source}


def _words(message: Message) -> str:
    return " ".join(block.text for block in message.blocks if block.kind == "text")


def _config(places: SearchPlaces) -> Path:
    """The folder that the client itself uses: it takes the variable as one folder."""
    named = places.env.get("CLAUDE_CONFIG_DIR", "").strip()
    return Path(named) if named else places.home / ".claude"


def _short_hash(text: str) -> str:
    """What the client puts behind a name that is too long: a hash of 32 bits with a sign, in base 36."""
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (low | high << 8)) & 0xFFFFFFFF
    number, found = min(value, (1 << 32) - value), ""
    while number:
        number, digit = divmod(number, 36)
        found = (string.digits + string.ascii_lowercase)[digit] + found
    return found or "0"
