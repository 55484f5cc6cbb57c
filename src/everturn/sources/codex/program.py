"""Codex as a program: asked as a model, installed into, and new sessions written for it.

- As a model, `codex exec` prints one JSON object per line. It runs without a shell, web search and other agents, in a
  read-only sandbox, and keeps no session.
- Installing writes `hooks.json`, a server in `config.toml`, and skills, which serve as its commands too.
- A new session is a rollout in the folder of the day, in the form that `codex resume` reads. Of the client's two forms of
  history the one without pages is written: every version since 2025 opens it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from everturn.model.conversation import Block, Message, ProgramReply
from everturn.sources.codex.files import home_folder
from everturn.sources.contract import Edit, InstallPrograms, JsonSetting, NewSession, OwnFile, SearchPlaces, TomlSection
from everturn.sources.toolkit.agent_program import (
    COMMANDS,
    DRAIN,
    DRAIN_SOON,
    HINTS,
    HOOK_SECONDS,
    NAME,
    WHERE,
    NativeTool,
    as_json,
    has_tool,
    hook_groups,
    line,
    list_command,
    pictures,
    server,
    skill,
    tell_call,
    text,
    uuid_of,
)
from everturn.sources.toolkit.line_reader import Rec, mapping
from everturn.sources.toolkit.values import count, decode_value, word
from everturn.text.times import iso

_OFF = ("features.shell_tool=false", "features.unified_exec=false", "features.multi_agent=false", "web_search=disabled")


def command(model: str) -> list[str]:
    words = ["codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
    words += ["--color", "never", *(word for setting in _OFF for word in ("-c", setting))]
    return [*words, *(("--model", model) if model else ()), "-"]


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    return {}


def read(printed: bytes) -> ProgramReply:
    """See `AskProgram`. Items of type `error` are warnings: a failed turn says so itself."""
    texts: list[str] = []
    used: dict[str, Any] = {}
    failure = ""
    for printed_line in printed.splitlines():
        event = mapping(decode_value(printed_line))
        kind, item = event.get("type"), mapping(event.get("item"))
        if kind == "item.completed" and item.get("type") == "agent_message":
            texts.append(word(item.get("text")))
        elif kind == "turn.completed":
            used, failure = mapping(event.get("usage")), ""
        elif kind in ("turn.failed", "error"):
            failure = word(mapping(event.get("error")).get("message")) or word(event.get("message")) or "it failed"
    cached = count(used.get("cached_input_tokens")) or 0
    return ProgramReply(
        text="\n\n".join(texts), input=max(0, (count(used.get("input_tokens")) or 0) - cached),
        output=count(used.get("output_tokens")) or 0, cache_read=cached,
        cache_write=count(used.get("cache_write_input_tokens")) or 0, failure=failure,
    )  # fmt: skip


EVENTS = {
    "SessionStart": (WHERE, DRAIN), "UserPromptSubmit": (HINTS,), "PreToolUse": (DRAIN_SOON,), "PostToolUse": (DRAIN_SOON,),
    "PreCompact": (DRAIN,), "PostCompact": (DRAIN,), "SubagentStop": (DRAIN,), "Stop": (DRAIN,), "SessionEnd": (DRAIN,),
}  # fmt: skip


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    folder = project / ".codex" if project else home_folder(places)
    hooks = hook_groups(programs, places, EVENTS, HOOK_SECONDS)
    return [
        *(JsonSetting(folder / "hooks.json", ("hooks", event), group, item=True) for event, group in hooks),
        TomlSection(folder / "config.toml", "\n".join(_server(programs))),
        *_skills(project / ".agents" / "skills" if project else folder / "skills"),
    ]


def _server(programs: InstallPrograms) -> Iterator[str]:
    """Yield the lines of the server's section; JSON strings and lists of them are TOML too."""
    entry = server(programs)
    yield f"[mcp_servers.{NAME}]"
    yield f"command = {as_json(entry['command']).strip()}"
    yield f"args = [{', '.join(as_json(word).strip() for word in entry['args'])}]"
    if programs.env:
        yield f"[mcp_servers.{NAME}.env]"
        yield from (f"{name} = {as_json(value).strip()}" for name, value in programs.env.items())


def _skills(folder: Path) -> Iterator[Edit]:
    """Yield the skills. The client has no slash commands of others; `$restore` and `$handoff` name a skill."""
    yield skill(folder)
    for one in COMMANDS:
        if one.name != "recall":
            text = one.text.replace("ARGUMENTS", "(what the user said)")
            head = (
                f"---\nname: {one.name}\ndescription: {one.description}. Use only when the user asks for it.\n---\n\n"
            )
            yield OwnFile(folder / one.name / "SKILL.md", head + text)


def _read_command(given: Mapping[str, Any]) -> str:
    path, first, most = shlex.quote(given["path"]), given.get("offset"), given.get("limit")
    if not isinstance(first, int) and not isinstance(most, int):
        return f"cat {path}"
    begin = first if isinstance(first, int) and first > 0 else 1
    return f"sed -n '{begin},{begin + most - 1 if isinstance(most, int) and most > 0 else '$'}p' {path}"


def _grep_command(given: Mapping[str, Any]) -> str:
    files, folder = given.get("files"), given.get("folder")
    words = ["rg", "-n", *(["-g", files] if isinstance(files, str) else []), "-e", given["pattern"]]
    return shlex.join([*words, *([folder] if isinstance(folder, str) else [])])


def _glob_command(given: Mapping[str, Any]) -> str:
    folder = given.get("folder")
    return shlex.join(["rg", "--files", "-g", given["pattern"], *([folder] if isinstance(folder, str) else [])])


def _edit_command(given: Mapping[str, Any]) -> str:
    changed = [*_patch_lines("-", given["old"]), *_patch_lines("+", given["new"])]
    return _patch_command(f"*** Update File: {given['path']}", "@@", *changed)


def _create_command(given: Mapping[str, Any]) -> str:
    return _patch_command(f"*** Add File: {given['path']}", *_patch_lines("+", given["content"]))


def _patch_lines(sign: str, text: str) -> list[str]:
    return [sign + one for one in text.splitlines()]


def _patch_command(*lines: str) -> str:
    return "\n".join(["apply_patch <<'PATCH'", "*** Begin Patch", *lines, "*** End Patch", "PATCH"])


_SHELL = NativeTool("exec_command", {"command": "cmd"})
#: The client does everything in a shell.
TOOLS = {
    "shell": _SHELL,
    "read": _SHELL._replace(as_command=_read_command),
    "grep": _SHELL._replace(as_command=_grep_command),
    "list": _SHELL._replace(as_command=list_command),
    "glob": _SHELL._replace(as_command=_glob_command),
    "edit": _SHELL._replace(as_command=_edit_command),
    "create": _SHELL._replace(as_command=_create_command),
}
#: The version of the client whose format is written.
_VERSION = "0.166.0"


def name(random: str, at: int) -> str:
    """See `NativeWriter`. The client's ids begin with the time."""
    return str(UUID(hex=f"{at:012x}7{random[:3]}{'89ab'[int(random[3], 16) % 4]}{random[4:19]}"))


def place(places: SearchPlaces, new: NewSession) -> Path:
    named = places.env.get("CODEX_HOME", "").strip()
    day = datetime.fromtimestamp(new.at / 1000, UTC)
    folder = (Path(named) if named else places.home / ".codex") / "sessions" / day.strftime("%Y/%m/%d")
    return folder / f"rollout-{day.strftime('%Y-%m-%dT%H-%M-%S')}-{new.id}.jsonl"


def write(places: SearchPlaces, new: NewSession, messages: Sequence[Message]) -> bytes:
    return b"".join(line({"timestamp": iso(at), **record}) for at, record in _records(new, messages))


def copy(new: NewSession, lines: Iterable[tuple[bytes, bool]]) -> bytes:
    """See `NativeWriter`. Only the first record changes: the client takes turns back itself, by the records that say so."""
    kept: list[bytes] = []
    for raw, _ in lines:
        record = decode_value(raw)
        if not isinstance(record, dict):
            continue
        if kept:
            kept.append(raw if raw.endswith(b"\n") else raw + b"\n")
            continue
        meta = record.get("payload")
        if (
            record.get("type") != "session_meta"
            or not isinstance(meta, dict)
            or meta.get("history_mode") == "paginated"
        ):
            return b""
        meta = {
            **meta,
            **{key: new.id for key in ("id", "session_id") if key in meta},
            "forked_from_id": new.forked_from,
        }
        kept.append(line({**record, "payload": {**meta, **({"cwd": new.workspace} if new.moved_from else {})}}))
    return b"".join(kept)


offers = partial(has_tool, TOOLS)


def begin(prompt: str) -> list[str]:
    return ["codex", prompt]


def _records(new: NewSession, messages: Sequence[Message]) -> Iterator[tuple[int, Rec]]:
    yield new.at, {"type": "session_meta", "payload": _meta(new)}
    turn, at = "", new.at
    for number, message in enumerate(messages):
        if message.role == "user" or not turn:
            if turn:
                yield at, _event("task_complete", turn_id=turn, completed_at=at // 1000)
            at, turn = message.at or new.at, uuid_of(new.id, "turn", number)
            yield at, _event("task_started", turn_id=turn, started_at=at // 1000, collaboration_mode_kind="default")
        at = message.at or new.at
        for record in _message_records(message):
            yield at, record
    if turn:
        yield at, _event("task_complete", turn_id=turn, completed_at=at // 1000)


def _meta(new: NewSession) -> Rec:
    meta: Rec = {
        "session_id": new.id, "id": new.id, "timestamp": iso(new.at), "cwd": new.workspace,
        "originator": "codex_cli_rs", "cli_version": _VERSION, "source": "cli", "thread_source": "user",
    }  # fmt: skip
    return {**meta, "forked_from_id": new.forked_from} if new.forked_from else meta


def _message_records(message: Message) -> Iterator[Rec]:
    """Yield the items of a message, which the model sees, and the events, which the client's screen shows."""
    if message.role == "user":
        content = [one for block in message.blocks for one in _input_parts(block)]
        yield _item({"type": "message", "role": "user", "content": content})
        joined = "".join(block.text for block in message.blocks)  # as the client itself joins them
        yield _event("user_message", message=joined, images=[], local_images=[], text_elements=[])
        return
    for block in message.blocks:
        if block.kind == "text":
            yield _event("agent_message", message=block.text)
            content = [{"type": "output_text", "text": block.text}]
            yield _item({"type": "message", "role": "assistant", "content": content})
        else:
            yield _item(_block_item(block))


def _block_item(block: Block) -> Rec:
    if block.call is not None:
        return _call(block)
    if block.result is None:
        return dict(block.data)  # its own reasoning
    own = block.data if isinstance(block.data, dict) else {}
    kind = "custom_tool_call_output" if own.get("type") == "custom_tool_call_output" else "function_call_output"
    images = [{"type": "input_image", "image_url": one.address} for one in pictures(block) if one is not None]
    texts = [{"type": "input_text", "text": block.text}] if block.text else []
    output: Any = [*texts, *images] if images else block.text
    return {"type": kind, "call_id": block.result.call_id, "output": output}


def _call(block: Block) -> Rec:
    assert block.call is not None
    own = block.data if isinstance(block.data, dict) else {}
    if own.get("type") == "custom_tool_call":
        return {**own, "call_id": block.call.call_id}
    name_, given = tell_call(block.call, TOOLS)
    return {"type": "function_call", "name": name_, "arguments": text(given), "call_id": block.call.call_id}


def _input_parts(block: Block) -> Iterator[Rec]:
    if block.kind != "image":
        yield {"type": "input_text", "text": block.text}
    for shown in pictures(block):
        if shown is not None:
            yield {"type": "input_image", "image_url": shown.address}


def _item(payload: Rec) -> Rec:
    return {"type": "response_item", "payload": payload}


def _event(kind: str, **more: Any) -> Rec:
    return {"type": "event_msg", "payload": {"type": kind, **more}}
