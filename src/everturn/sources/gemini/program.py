"""Gemini CLI as a program: asked as a model, installed into, and new sessions written for it.

- As a model, `gemini -o json` prints one JSON object with the answer and its statistics. It always keeps the session. With
  a key in the environment it gets a home of its own for the run, which is deleted afterwards, and no tools; with a login,
  which is in the real home, it runs there with read-only tools, in a folder whose name says that everturn asked.
- Installing writes an extension for all projects, or entries in the settings of one.
- A new session is a file of lines among the chats of the workspace, in the form that `--resume` reads. The client keeps
  these in a folder with a short name, given by its registry or by a mark in the folder. A new workspace gets a folder with
  a mark, which the client adopts: its registry is not touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from everturn.model.conversation import Block, Message, ProgramReply
from everturn.sources.contract import (
    Edit,
    InstallPrograms,
    JsonSetting,
    NewSession,
    OwnFile,
    SearchPlaces,
    read_beginning,
)
from everturn.sources.toolkit.agent_program import (
    COMMANDS,
    DESCRIPTION,
    DRAIN,
    DRAIN_SOON,
    HINTS,
    HOOK_SECONDS,
    NAME,
    VERSION,
    WHERE,
    NativeTool,
    SlashCommand,
    as_json,
    has_tool,
    hook_groups,
    line,
    pictures,
    server,
    skill,  # fmt: skip
    tell_call,
    uuid_of,
)
from everturn.sources.toolkit.json_document import read_object
from everturn.sources.toolkit.line_reader import Rec, mapping
from everturn.sources.toolkit.values import count, decode_value, word
from everturn.text.times import iso

_SETTINGS = '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "tools": {"core": []}}'


def command(model: str) -> list[str]:
    """See `AskProgram`. Without a terminal, its standard input is the prompt."""
    words = ["gemini", "--output-format", "json", "--skip-trust", "--approval-mode", "plan"]
    return [*words, "--model", model] if model else words


def around(folder: Path, env: Mapping[str, str]) -> dict[str, str | None]:
    if not env.get("GEMINI_API_KEY"):
        return {}
    home = folder / "home"
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(_SETTINGS, "utf-8")
    return {"GEMINI_CLI_HOME": str(home)}


def read(printed: bytes) -> ProgramReply:
    reply = decode_value(printed[max(0, printed.find(b"{")) :])  # warnings may come before it
    if not isinstance(reply, dict):
        return ProgramReply()
    if error := mapping(reply.get("error")):
        return ProgramReply(failure=word(error.get("message")) or "it failed")
    models = mapping(mapping(reply.get("stats")).get("models"))
    counts = [mapping(mapping(one).get("tokens")) for one in models.values()]
    cached = _sum_tokens(counts, "cached")
    return ProgramReply(
        text=word(reply.get("response")), model=next(iter(models), ""),
        input=max(0, _sum_tokens(counts, "prompt") - cached),
        output=_sum_tokens(counts, "candidates") + _sum_tokens(counts, "thoughts"), cache_read=cached,
    )  # fmt: skip


def _sum_tokens(counts: list[dict[str, Any]], name: str) -> int:
    return sum(count(one.get(name)) or 0 for one in counts)


EVENTS = {
    "SessionStart": (WHERE, DRAIN), "BeforeAgent": (HINTS,), "BeforeTool": (DRAIN_SOON,), "AfterTool": (DRAIN_SOON,),
    "PreCompress": (DRAIN,), "AfterAgent": (DRAIN,), "SessionEnd": (DRAIN,),
}  # fmt: skip
_MILLISECONDS = HOOK_SECONDS * 1000


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    if project is None:
        folder = _home(places) / "extensions" / NAME
        found = [*_extension(places, folder, programs)]
    else:
        folder = project / ".gemini"
        found = [*_entries(places, folder / "settings.json", programs)]
    commands = [OwnFile(folder / "commands" / f"{one.name}.toml", _toml(one)) for one in COMMANDS]
    return [*found, *commands, skill(folder / "skills")]


def _extension(places: SearchPlaces, folder: Path, programs: InstallPrograms) -> Iterator[Edit]:
    about = {"name": NAME, "version": VERSION, "description": DESCRIPTION, "mcpServers": {NAME: server(programs)}}
    hooks = {event: [group] for event, group in hook_groups(programs, places, EVENTS, _MILLISECONDS)}
    yield OwnFile(folder / "gemini-extension.json", as_json(about))
    yield OwnFile(folder / "hooks" / "hooks.json", as_json({"hooks": hooks}))


def _entries(places: SearchPlaces, settings: Path, programs: InstallPrograms) -> Iterator[Edit]:
    for event, group in hook_groups(programs, places, EVENTS, _MILLISECONDS):
        yield JsonSetting(settings, ("hooks", event), group, item=True)
    yield JsonSetting(settings, ("mcpServers", NAME), server(programs))


def _toml(one: SlashCommand) -> str:
    text = one.text.replace("ARGUMENTS", "{{args}}")
    return f"description = {as_json(one.description).strip()}\nprompt = '''\n{text}'''\n"


def _home(places: SearchPlaces) -> Path:
    moved = places.env.get("GEMINI_CLI_HOME", "").strip()
    return (Path(moved) if moved else places.home) / ".gemini"


TOOLS = {
    "shell": NativeTool("run_shell_command", {"command": "command"}),
    "read": NativeTool("read_file", {"path": "file_path"}),
    "edit": NativeTool(
        "replace", {"path": "file_path", "old": "old_string", "new": "new_string", "all": "allow_multiple"}
    ),
    "create": NativeTool("write_file", {"path": "file_path", "content": "content"}),
    "grep": NativeTool("grep_search", {"pattern": "pattern", "folder": "dir_path", "files": "include"}),
    "list": NativeTool("list_directory", {"folder": "dir_path"}),
    "glob": NativeTool("glob", {"pattern": "pattern", "folder": "dir_path"}),
}
_MARK = ".project_root"
_UNFIT = re.compile(r"[^a-z0-9]+")


def place(places: SearchPlaces, new: NewSession) -> Path:
    minute = datetime.fromtimestamp(new.at / 1000, UTC).strftime("%Y-%m-%dT%H-%M")
    return _project(places, new.workspace) / "chats" / f"session-{minute}-{new.id[:8]}.jsonl"


def marks(places: SearchPlaces, new: NewSession) -> Mapping[Path, bytes]:
    return {_project(places, new.workspace) / _MARK: new.workspace.encode("utf-8", "surrogateescape")}


def write(places: SearchPlaces, new: NewSession, messages: Sequence[Message]) -> bytes:
    header = {
        "sessionId": new.id, "projectHash": sha256(new.workspace.encode("utf-8", "surrogateescape")).hexdigest(),
        "startTime": iso(new.at), "lastUpdated": iso(new.at), "kind": "main",
        **({"summary": new.title} if new.title else {}),
    }  # fmt: skip
    return b"".join(map(line, [header, *_records(new, messages)]))


offers = partial(has_tool, TOOLS)


def begin(prompt: str) -> list[str]:
    return ["gemini", "--prompt-interactive", prompt]


def _project(places: SearchPlaces, workspace: str) -> Path:
    """Return the folder of a workspace: from the registry, by its mark, or a new one."""
    home = _home(places)
    names = mapping(read_object(home / "projects.json").get("projects"))
    name = names.get(workspace)
    if isinstance(name, str) and name and _owner(home / "tmp" / name) in ("", workspace):
        return home / "tmp" / name
    taken = {one for one in names.values() if isinstance(one, str)}
    return home / "tmp" / _find_free_name(home / "tmp", workspace, taken)


def _find_free_name(folder: Path, workspace: str, taken: set[str]) -> str:
    try:
        marked = [one.name for one in folder.iterdir() if _owner(one) == workspace]
    except OSError:
        marked = []
    if marked:
        return min(marked)
    short = _UNFIT.sub("-", os.path.basename(workspace).lower()).strip("-") or "project"
    name, number = short, 0
    while name in taken or (folder / name).exists():
        number += 1
        name = f"{short}-{number}"
    return name


def _owner(folder: Path) -> str:
    return read_beginning(folder / _MARK).decode("utf-8", "surrogateescape").strip()


def _records(new: NewSession, messages: Sequence[Message]) -> Iterator[Rec]:
    results = {one.result.call_id: one for message in messages for one in message.blocks if one.result is not None}
    for number, message in enumerate(messages):
        envelope = {"id": uuid_of(new.id, number), "timestamp": iso(message.at or new.at)}
        if message.role == "user":
            parts = [one for block in message.blocks for one in _content_parts(block)]
            yield {**envelope, "type": "user", "content": parts}
        elif message.role == "assistant":
            yield {**envelope, **_answer(new, message, results)}


def _answer(new: NewSession, message: Message, results: Mapping[str, Block]) -> Rec:
    words = [{"text": block.text} for block in message.blocks if block.kind == "text"]
    calls = [_call(block, results, message.at or new.at) for block in message.blocks if block.call is not None]
    answer: Rec = {"type": "gemini", "content": words or "", "thoughts": [], "model": message.model or new.model}
    return {**answer, "toolCalls": calls} if calls else answer


def _call(block: Block, results: Mapping[str, Block], at: int) -> Rec:
    assert block.call is not None
    name, given = tell_call(block.call, TOOLS)
    call_id, found = block.call.call_id, results.get(block.call.call_id)
    is_error = found is None or found.result is None or found.result.is_error
    output = found.text if found is not None else ""
    response = {"id": call_id, "name": name, "response": {"error" if is_error else "output": output}}
    shown = pictures(found) if found is not None else ()
    images = [_inline_data(one.media, one.data) for one in shown if one is not None]
    return {
        "id": call_id, "name": name, "args": given, "result": [{"functionResponse": response}, *images],
        "status": "error" if is_error else "success", "timestamp": iso(at), "resultDisplay": output,
        "displayName": name, "description": block.call.command or block.call.path, "renderOutputAsMarkdown": False,
    }  # fmt: skip


def _content_parts(block: Block) -> Iterator[Rec]:
    if block.kind != "image":
        yield {"text": block.text}
    yield from (_inline_data(one.media, one.data) for one in pictures(block) if one is not None)


def _inline_data(media: str, data: str) -> Rec:
    return {"inlineData": {"mimeType": media, "data": data}}
