"""Puts everturn into Claude Code: a plugin for all projects, or entries in the settings of one.

A folder with a plugin in `skills` is loaded by the client at its next start, without any entry in a settings file, and can
be turned off there with `/plugin`. A folder of that kind inside a project is not loaded, so a project gets entries instead:
in `settings.local.json`, since they hold paths of this machine, and in `.mcp.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from everturn.sources import Edit, InstallPrograms, JsonSetting, OwnFile, SearchPlaces
from everturn.sources.installing import (
    DESCRIPTION,
    DRAIN,
    HINTS,
    NAME,
    VERSION,
    WHERE,
    as_json,
    command_line,
    hook_groups,
    markdown_commands,
    server,
    skill,
)  # fmt: skip

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
