"""Puts everturn into Gemini CLI: an extension for all projects, or entries in the settings of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from everturn.sources import Edit, InstallPrograms, JsonSetting, OwnFile, SearchPlaces
from everturn.sources.installing import (
    COMMANDS,
    DESCRIPTION,
    DRAIN,
    HINTS,
    NAME,
    VERSION,
    WHERE,
    SlashCommand,
    as_json,
    hook_groups,
    server,
    skill,
)  # fmt: skip

EVENTS = {
    "SessionStart": (WHERE, DRAIN),
    "BeforeAgent": (HINTS,),
    "AfterTool": (),
    "PreCompress": (DRAIN,),
    "AfterAgent": (DRAIN,),
    "SessionEnd": (DRAIN,),
}
_MILLISECONDS = 10_000


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    """Everything that is written."""
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
