"""Puts everturn into Codex: `hooks.json`, a server in `config.toml`, and skills, which are its commands too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from everturn.sources import Edit, InstallPrograms, JsonSetting, OwnFile, SearchPlaces, TomlSection
from everturn.sources.installing import COMMANDS, DRAIN, HINTS, NAME, WHERE, as_json, hook_groups, server, skill

EVENTS = {
    "SessionStart": (WHERE, DRAIN),
    "UserPromptSubmit": (HINTS,),
    "PostToolUse": (),
    "PreCompact": (DRAIN,),
    "PostCompact": (DRAIN,),
    "SubagentStop": (DRAIN,),
    "Stop": (DRAIN,),
    "SessionEnd": (DRAIN,),
}
_SECONDS = 10


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    """Everything that is written."""
    folder = project / ".codex" if project else _home(places)
    hooks = hook_groups(programs, places, EVENTS, _SECONDS)
    return [
        *(JsonSetting(folder / "hooks.json", ("hooks", event), group, item=True) for event, group in hooks),
        TomlSection(folder / "config.toml", "\n".join(_server(programs))),
        *_skills(project / ".agents" / "skills" if project else folder / "skills"),
    ]


def _server(programs: InstallPrograms) -> Iterator[str]:
    """JSON strings and lists of them are TOML too."""
    entry = server(programs)
    yield f"[mcp_servers.{NAME}]"
    yield f"command = {as_json(entry['command']).strip()}"
    yield f"args = [{', '.join(as_json(word).strip() for word in entry['args'])}]"
    if programs.env:
        yield f"[mcp_servers.{NAME}.env]"
        yield from (f"{name} = {as_json(value).strip()}" for name, value in programs.env.items())


def _skills(folder: Path) -> Iterator[Edit]:
    """Its slash commands are its own alone; `$restore` and `$handoff` name a skill."""
    yield skill(folder)
    for one in COMMANDS:
        if one.name != "recall":
            text = one.text.replace("ARGUMENTS", "(what the user said)")
            head = (
                f"---\nname: {one.name}\ndescription: {one.description}. Use only when the user asks for it.\n---\n\n"
            )
            yield OwnFile(folder / one.name / "SKILL.md", head + text)


def _home(places: SearchPlaces) -> Path:
    named = places.env.get("CODEX_HOME", "").strip()
    if not named:
        return places.home / ".codex"
    return places.home / named[2:] if named.startswith(("~/", "~\\")) else Path(named)
