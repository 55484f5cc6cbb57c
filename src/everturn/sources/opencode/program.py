"""OpenCode as a program: asked as a model, installed into, and new sessions written for it.

- As a model, `opencode run` prints one JSON object per line. It has no option to keep no session, so its database is in
  memory for the run. All tools are off, and every request for permission is denied.
- Installing writes a plugin that passes events to the hook, a server, commands and a skill.
- A new session is an export that `opencode import` reads; its database is not touched. Every message must name a model that
  the client has: the default of its configuration, the one last used, else the session's own with its usual provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from everturn.model.conversation import Block, Message, ProgramReply
from everturn.sources.contract import Edit, InstallPrograms, JsonSetting, NewSession, OwnFile, SearchPlaces
from everturn.sources.opencode.message import token_counts
from everturn.sources.toolkit.agent_program import (
    DRAIN,
    DRAIN_SOON,
    HINTS,
    HOOK_SECONDS,
    NAME,
    WHERE,
    NativeTool,
    has_tool,
    hook_words,
    line,
    markdown_commands,
    pictures,
    skill,
    tell_call,
)
from everturn.sources.toolkit.line_reader import Rec, mapping
from everturn.sources.toolkit.values import decode_value, word

_CONFIG = '{"tools": {"*": false}, "permission": {"*": "deny"}, "share": "disabled", "autoupdate": false}'


def command(model: str) -> list[str]:
    """See `AskProgram`. A model is named PROVIDER/MODEL."""
    words = ["opencode", "run", "--format", "json"]
    return [*words, "--model", model] if model else words


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    return {"OPENCODE_DB": ":memory:", "OPENCODE_CONFIG_CONTENT": _CONFIG}


def read(printed: bytes) -> ProgramReply:
    """See `AskProgram`. Each step counts its own tokens."""
    texts: list[str] = []
    spent = [0, 0, 0, 0]
    failure = ""
    for printed_line in printed.splitlines():
        event = mapping(decode_value(printed_line))
        part = mapping(event.get("part"))
        if event.get("type") == "text":
            texts.append(word(part.get("text")))
        elif event.get("type") == "step_finish":
            spent = [before + more for before, more in zip(spent, token_counts(part), strict=True)]
        elif event.get("type") == "error":
            error = mapping(event.get("error"))
            failure = word(mapping(error.get("data")).get("message")) or word(error.get("name")) or "it failed"
    given, output, cache_read, cache_write = spent
    return ProgramReply("\n\n".join(texts), "", given, output, cache_read, cache_write, failure)


_PLUGIN = Path(__file__).with_name("plugin.js")
#: The client adds this to settings that lack it; a file of ours would then look like the user's.
_SCHEMA = "https://opencode.ai/config.json"


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    folder = project / ".opencode" if project else _home(places)
    words = {
        "TOOL": hook_words(programs, DRAIN_SOON), "DRAIN": hook_words(programs, DRAIN), "START": hook_words(programs, DRAIN, WHERE),
        "PROMPT": hook_words(programs, HINTS),
    }  # fmt: skip
    lines = ",\n".join(f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in words.items())
    text = _PLUGIN.read_text("utf-8").replace("{/* words */}", f"{{\n{lines},\n}}")
    text = text.replace("{/* milliseconds */}", str(HOOK_SECONDS * 1000))
    command, settings = [*programs.everturn, "mcp"], _settings(project or folder)
    entry = {"type": "local", "command": command, "enabled": True}
    entry |= {"environment": dict(programs.env)} if programs.env else {}
    return [
        OwnFile(folder / "plugins" / f"{NAME}.js", text),
        JsonSetting(settings, ("$schema",), _SCHEMA, only_new=True),
        JsonSetting(settings, ("mcp", NAME), entry),
        *markdown_commands(folder / "commands"),
        skill(folder / "skills"),
    ]


def _settings(folder: Path) -> Path:
    """Return the settings file that exists: the client reads both."""
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


def _home(places: SearchPlaces) -> Path:
    if named := places.env.get("OPENCODE_CONFIG_DIR", "").strip():
        return Path(named)
    config = places.env.get("XDG_CONFIG_HOME", "").strip()
    return (Path(config) if config else places.home / ".config") / "opencode"


TOOLS = {
    "shell": NativeTool("bash", {"command": "command"}, {"description": ""}),
    "read": NativeTool("read", {"path": "filePath"}),
    "edit": NativeTool("edit", {"path": "filePath", "old": "oldString", "new": "newString", "all": "replaceAll"}),
    "create": NativeTool("write", {"path": "filePath", "content": "content"}),
    "grep": NativeTool("grep", {"pattern": "pattern", "folder": "path", "files": "include"}),
    "list": NativeTool("list", {"folder": "path"}),
    "glob": NativeTool("glob", {"pattern": "pattern", "folder": "path"}),
}
#: The version of the client whose format is written.
_VERSION = "1.18.33"
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PROVIDERS = (("claude", "anthropic"), ("gpt", "openai"), ("o3", "openai"), ("o4", "openai"), ("gemini", "google"))
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def name(random: str, at: int) -> str:
    """See `NativeWriter`. The client's session ids count down with the time."""
    return _make_id("ses", ((1 << 48) - 1) ^ (at * 0x1000 + 1), random)


def place(places: SearchPlaces, new: NewSession) -> Path:
    """See `NativeWriter`. The file is only imported by the client; it stays in our folder."""
    return Path(f"{new.id}.json")


def take_in(path: Path) -> list[str]:
    return ["opencode", "import", str(path)]


offers = partial(has_tool, TOOLS)


def begin(prompt: str) -> list[str]:
    return ["opencode", "--prompt", prompt]


def write(places: SearchPlaces, new: NewSession, messages: Sequence[Message]) -> bytes:
    provider, model = _choose_model(places, new)
    info = {
        "id": new.id, "slug": "handed-over", "version": _VERSION, "projectID": "global", "directory": new.workspace,
        "title": new.title or "Handed over", "time": {"created": new.at, "updated": new.at},
    }  # fmt: skip
    writer = _MessageWriter(new, provider, model, messages)
    return line({"info": info, "messages": list(writer.messages(messages))})


class _MessageWriter:
    """Writes the messages of one session. The client sorts by ids, so these count up; the next prompt comes last."""

    def __init__(self, new: NewSession, provider: str, model: str, messages: Sequence[Message]) -> None:
        self._new, self._provider, self._model_id = new, provider, model
        self._results = {b.result.call_id: b for one in messages for b in one.blocks if b.result is not None}
        self._count = 0
        self._at = 0
        self._prompt = ""

    def messages(self, messages: Sequence[Message]) -> Iterator[Rec]:
        """Yield one message for each prompt and each answer."""
        for message in messages:
            if message.role == "user":
                yield self._user(message)
            elif message.role == "assistant":
                if not self._prompt:  # every answer needs a prompt
                    yield self._user(Message("user", "injected", at=message.at))
                yield self._assistant(message)

    def _user(self, message: Message) -> Rec:
        self._prompt = self._next_id("msg")
        info = {
            "id": self._prompt, "sessionID": self._new.id, "role": "user",
            "time": {"created": self._message_time(message)}, "agent": "build",
            "model": {"providerID": self._provider, "modelID": self._model_id},
        }  # fmt: skip
        parts = [one for block in message.blocks for one in self._prompt_parts(block)]
        return {"info": info, "parts": self._parts(self._prompt, parts)}

    def _assistant(self, message: Message) -> Rec:
        own, at = self._next_id("msg"), self._message_time(message)
        calls = any(block.call is not None for block in message.blocks)
        finish = "tool-calls" if calls else "stop"
        info = {
            "id": own, "sessionID": self._new.id, "role": "assistant", "parentID": self._prompt, "mode": "build",
            "agent": "build", "path": {"cwd": self._new.workspace, "root": self._new.workspace}, "cost": 0,
            "tokens": _NO_TOKENS, "modelID": self._model_id, "providerID": self._provider,
            "time": {"created": at, "completed": at}, "finish": finish,
        }  # fmt: skip
        done = {"type": "step-finish", "reason": finish, "cost": 0, "tokens": _NO_TOKENS}
        parts = [{"type": "step-start"}, *(self._block_part(block, at) for block in message.blocks), done]
        return {"info": info, "parts": self._parts(own, parts)}

    def _block_part(self, block: Block, at: int) -> Rec:
        if block.call is None:
            kind = "reasoning" if block.kind == "thinking" else "text"
            return {"type": kind, "text": block.text, "time": {"start": at, "end": at}}
        name_, given = tell_call(block.call, TOOLS)
        found = self._results.get(block.call.call_id)
        failed = found is None or found.result is None or found.result.is_error
        state: Rec = {"input": given, "time": {"start": at, "end": at}, "metadata": {}}
        output = found.text if found is not None else ""
        if failed:
            state |= {"status": "error", "error": output}
        else:
            state |= {"status": "completed", "output": output, "title": block.call.command or block.call.path}
            shown = [_file(one.media, one.address) for one in pictures(found) if one is not None] if found else []
            attached = [{**one, **self._envelope("")} for one in shown]
            state |= {"attachments": attached} if attached else {}
        return {"type": "tool", "tool": name_, "callID": block.call.call_id, "state": state}

    def _prompt_parts(self, block: Block) -> Iterator[Rec]:
        if block.kind != "image":
            yield {"type": "text", "text": block.text}
        yield from (_file(one.media, one.address) for one in pictures(block) if one is not None)

    def _parts(self, message: str, parts: Sequence[Rec]) -> list[Rec]:
        return [{**part, **self._envelope(message)} for part in parts]

    def _envelope(self, message: str) -> Rec:
        return {"id": self._next_id("prt"), "sessionID": self._new.id, "messageID": message}

    def _message_time(self, message: Message) -> int:
        """Return the time of a message, never before the previous one's: the client sorts by these, too."""
        self._at = max(self._at, min(message.at or self._new.at, self._new.at))
        return self._at

    def _next_id(self, kind: str) -> str:
        self._count += 1
        random = blake2b(f"{self._new.id} {self._count}".encode(), digest_size=16).hexdigest()
        return _make_id(kind, (self._new.at - (1 << 22)) * 0x1000 + self._count, random)


def _make_id(kind: str, number: int, random: str) -> str:
    tail = "".join(_LETTERS[byte % 62] for byte in bytes.fromhex(random)[:14])
    return f"{kind}_{number & (1 << 48) - 1:012x}{tail}"


def _file(media: str, address: str) -> Rec:
    return {"type": "file", "mime": media, "url": address}


def _choose_model(places: SearchPlaces, new: NewSession) -> tuple[str, str]:
    config = Path(places.env.get("XDG_CONFIG_HOME") or places.home / ".config") / "opencode"
    state = Path(places.env.get("XDG_STATE_HOME") or places.home / ".local" / "state") / "opencode"
    for path in (config / "opencode.jsonc", config / "opencode.json", config / "config.json"):
        provider, _, model = word(_read_json_file(path).get("model")).partition("/")
        if provider and model:
            return provider, model
    recent = _read_json_file(state / "model.json").get("recent")
    for used in recent if isinstance(recent, list) else ():
        if isinstance(used, dict) and word(used.get("providerID")) and word(used.get("modelID")):
            return word(used["providerID"]), word(used["modelID"])
    return next((one for start, one in _PROVIDERS if new.model.startswith(start)), "opencode"), new.model or "unknown"


def _read_json_file(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return {}
    for _ in range(2):  # a trailing comma may come before a comment
        text = _COMMENT.sub(lambda match: match[1] or "", text)
    return mapping(decode_value(text.encode("utf-8", "replace")))
