"""Claude Code as a program: asked as a model, installed into, its retention and resume, and new sessions written for it.

- As a model, `claude -p` prints one JSON object with the answer and the usage. It runs without tools, MCP servers and
  skills, and keeps no session. The user's settings are read, because the login may be configured there; those of projects
  are not.
- Installing writes a plugin for all projects, or entries in the settings of one. The client loads a plugin folder in
  `skills` at its next start without an entry in a settings file, and `/plugin` turns it off. It does not load such a
  folder inside a project, so a project gets entries: in `settings.local.json`, since they hold paths of this machine, and
  in `.mcp.json`.
- A new session is a transcript in the project folder of the workspace, in the form that `--resume` reads.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from everturn.model.conversation import Block, Message, ProgramReply, prepared
from everturn.sources.contract import Edit, InstallPrograms, JsonSetting, NewSession, OwnFile, Retention, SearchPlaces
from everturn.sources.toolkit.agent_program import (
    DESCRIPTION,
    DRAIN,
    DRAIN_SOON,
    HINTS,
    HOOK_SECONDS,
    NAME,
    VERSION,
    WHERE,
    NativeTool,
    as_json,
    command_line,
    has_tool,
    hook_groups,
    line,
    list_command,
    markdown_commands,
    pictures,
    server,
    skill,  # fmt: skip
    tell_call,
    uuid_of,
)
from everturn.sources.toolkit.line_reader import mapping
from everturn.sources.toolkit.values import count, decode_value, word
from everturn.text.times import iso


def command(model: str) -> list[str]:
    words = ["claude", "-p", "--output-format", "json", "--no-session-persistence", "--tools", ""]
    words += ["--strict-mcp-config", "--disable-slash-commands", "--setting-sources", "user"]
    return [*words, "--model", model] if model else words


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    """See `AskProgram`. With the first two variables it takes itself for a session within another one."""
    return {"CLAUDECODE": None, "CLAUDE_CODE_ENTRYPOINT": None, "DISABLE_AUTOUPDATER": "1"}


def read(printed: bytes) -> ProgramReply:
    reply = decode_value(printed)
    if not isinstance(reply, dict):
        return ProgramReply()
    text = word(reply.get("result"))
    if reply.get("is_error") or reply.get("subtype") not in (None, "success"):
        return ProgramReply(failure=text or word(reply.get("subtype")) or "it failed")
    used = mapping(reply.get("usage"))
    return ProgramReply(
        text=text,
        model=next(iter(mapping(reply.get("modelUsage"))), ""),
        input=count(used.get("input_tokens")) or 0,
        output=count(used.get("output_tokens")) or 0,
        cache_read=count(used.get("cache_read_input_tokens")) or 0,
        cache_write=count(used.get("cache_creation_input_tokens")) or 0,
    )


EVENTS = {
    "SessionStart": (WHERE, DRAIN),
    "UserPromptSubmit": (HINTS,),
    "PreToolUse": (DRAIN_SOON,),  # a call is archived while its tool runs: nothing is lost if the client is killed
    "PostToolUse": (DRAIN_SOON,),
    "PostToolUseFailure": (DRAIN_SOON,),
    "PostToolBatch": (DRAIN_SOON,),
    "PreCompact": (DRAIN,),
    "PostCompact": (DRAIN,),
    "SubagentStop": (DRAIN,),
    "Stop": (DRAIN,),
    "SessionEnd": (DRAIN,),
}


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    """Return everything that an installation writes."""
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
    hooks = {event: [group] for event, group in hook_groups(programs, places, EVENTS, HOOK_SECONDS, takes_words=True)}
    yield OwnFile(folder / ".claude-plugin" / "plugin.json", as_json(about))
    yield OwnFile(folder / "hooks" / "hooks.json", as_json({"description": DESCRIPTION, "hooks": hooks}))
    yield OwnFile(folder / ".mcp.json", as_json({"mcpServers": {NAME: server(programs)}}))
    yield skill(folder / "skills")


def _entries(places: SearchPlaces, project: Path, programs: InstallPrograms) -> Iterator[Edit]:
    settings = project / ".claude" / "settings.local.json"
    for event, group in hook_groups(programs, places, EVENTS, HOOK_SECONDS, takes_words=True):
        yield JsonSetting(settings, ("hooks", event), group, item=True)
    yield JsonSetting(project / ".mcp.json", ("mcpServers", NAME), {"type": "stdio", **server(programs)})
    yield skill(project / ".claude" / "skills")


def _home(places: SearchPlaces) -> Path:
    named = places.env.get("CLAUDE_CONFIG_DIR", "").strip()
    return places.expand(named) if named else places.home / ".claude"


_DEFAULT_DAYS = 30
_KEY = "cleanupPeriodDays"
_FILES = ("settings.local.json", "settings.json")


class _Settings(Struct):
    cleanup_period_days: int | None = msgspec.field(default=None, name=_KEY)


def retention(root: Path) -> Retention:
    """Return after how many days the client deletes a transcript that nobody continued."""
    folder = root.parent if root.name == "projects" else root
    for name in _FILES:
        days = _days(folder / name)
        if days is not None and days >= 0:
            return Retention(days, f"{folder / name}: {_KEY}")
    return Retention(_DEFAULT_DAYS, "default")


def resume_command(native_id: str) -> list[str]:
    """Return the command that continues a session; for a subagent, that of the session it belongs to."""
    return ["claude", "--resume", native_id.partition("/")[0]]


def _days(path: Path) -> int | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=prepared(_Settings)).cleanup_period_days
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


TOOLS = {
    "shell": NativeTool("Bash", {"command": "command"}),
    "read": NativeTool("Read", {"path": "file_path"}),
    "edit": NativeTool("Edit", {"path": "file_path", "old": "old_string", "new": "new_string", "all": "replace_all"}),
    "create": NativeTool("Write", {"path": "file_path", "content": "content"}),
    "grep": NativeTool("Grep", {"pattern": "pattern", "folder": "path", "files": "glob"}),
    "list": NativeTool("Bash", {"command": "command"}, as_command=list_command),
    "glob": NativeTool("Glob", {"pattern": "pattern", "folder": "path"}),
}
#: The version of the client whose format is written.
_VERSION = "2.1.197"
_SLUG_CHARACTERS = frozenset(string.ascii_letters + string.digits)
_LONGEST_SLUG = 200
_NO_TOKENS = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def place(places: SearchPlaces, new: NewSession) -> Path:
    return _config(places) / "projects" / slug(new.workspace) / f"{new.id}.jsonl"


def slug(workspace: str) -> str:
    """Return the name of a workspace's folder as the client makes it: it counts in UTF-16."""
    name = unicodedata.normalize("NFC", workspace)
    found = "".join(one if one in _SLUG_CHARACTERS else "-" * (1 + (one > "\uffff")) for one in name)
    return found if len(found) <= _LONGEST_SLUG else f"{found[:_LONGEST_SLUG]}-{_short_hash(name)}"


def finds(path: Path, workspace: str) -> bool:
    """The client looks in the folder of its workspace alone. Case is ignored: drives of Windows come in both."""
    return path.parent.name.casefold() == slug(workspace).casefold()


def write(places: SearchPlaces, new: NewSession, messages: Sequence[Message]) -> bytes:
    return b"".join(map(line, _records(new, messages)))


def copy(new: NewSession, lines: Iterable[tuple[bytes, bool]]) -> bytes:
    """See `NativeWriter`. The name of the session is changed, and where the client finds the end of the conversation."""
    kept: list[bytes] = []
    leaf, prompt = None, ""
    for raw, is_taken_back in lines:
        record = decode_value(raw)
        if is_taken_back or not isinstance(record, dict) or record.get("type") == "last-prompt":
            continue
        kept.append(_with_values(raw, record, new))
        if word(record.get("uuid")) and not record.get("isSidechain"):
            leaf = word(record.get("uuid"))
            asked = mapping(record.get("message")).get("content")
            prompt = asked if record.get("type") == "user" and isinstance(asked, str) else prompt
    return b"".join([*kept, *map(line, _ending(new, leaf, prompt))]) if leaf else b""


def _with_values(raw: bytes, record: dict[str, Any], new: NewSession) -> bytes:
    """Return a line with the name and workspace of the new session, every other byte as it was."""
    wanted = {"sessionId": new.id, "cwd": new.workspace if record.get("cwd") == new.moved_from else None}
    for key, value in wanted.items():
        if value is None or not isinstance(record.get(key), str):
            continue
        pattern = re.compile(rb'("%b"\s*:\s*)%b' % (key.encode(), re.escape(msgspec.json.encode(record[key]))))
        changed = record | {key: value}
        for found in pattern.finditer(raw):  # the same words may be inside a message
            tried = raw[: found.start()] + found[1] + msgspec.json.encode(value) + raw[found.end() :]
            if decode_value(tried) == changed:
                raw, record = tried, changed
                break
        else:
            raw, record = line(changed), changed
    return raw if raw.endswith(b"\n") else raw + b"\n"


offers = partial(has_tool, TOOLS)


def begin(prompt: str) -> list[str]:
    return ["claude", prompt]


def _records(new: NewSession, messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    parent: str | None = None
    for number, message in enumerate(messages):
        for part, body in enumerate(_bodies(new, message, number)):
            record = _record(new, message, body, parent, uuid_of(new.id, number, part))
            parent = record["uuid"]
            yield record
    yield from _ending(new, parent, next((_message_text(one) for one in reversed(messages) if one.role == "user"), ""))


def _ending(new: NewSession, leaf: str | None, prompt: str) -> Iterator[dict[str, Any]]:
    """Yield the records after the conversation: its title, and where it ends."""
    if new.title:
        yield {"type": "custom-title", "customTitle": new.title, "sessionId": new.id}
    if leaf is not None:
        yield {"type": "last-prompt", "lastPrompt": prompt[:200], "leafUuid": leaf, "sessionId": new.id}


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
    """Yield one body per block of an answer and per result, as the client does; a prompt is one body."""
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
    texts = [{"type": "text", "text": block.text}] if block.text else []  # providers refuse empty text
    content: Any = [*texts, *images] if images else block.text
    end = block.result
    return {"tool_use_id": end.call_id, "type": "tool_result", "content": content, "is_error": end.is_error}


def _images(block: Block) -> Iterator[dict[str, Any]]:
    for shown in pictures(block):
        if shown is not None:
            source = {"type": "base64", "media_type": shown.media, "data": shown.data}
            yield {"type": "image", "source": source}


def _message_text(message: Message) -> str:
    return " ".join(block.text for block in message.blocks if block.kind == "text")


def _config(places: SearchPlaces) -> Path:
    """Return the folder that the client itself uses: it takes the variable as one folder, without expanding it."""
    named = places.env.get("CLAUDE_CONFIG_DIR", "").strip()
    return Path(named) if named else places.home / ".claude"


def _short_hash(text: str) -> str:
    """Return the client's suffix for a name that is too long: a signed 32-bit hash in base 36."""
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (low | high << 8)) & 0xFFFFFFFF
    number, found = min(value, (1 << 32) - value), ""
    while number:
        number, digit = divmod(number, 36)
        found = (string.digits + string.ascii_lowercase)[digit] + found
    return found or "0"
