"""Puts everturn into OpenCode: a plugin that passes its events on to the hook, a server, commands and a skill."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from everturn.sources import Edit, InstallPrograms, JsonSetting, OwnFile, SearchPlaces
from everturn.sources.installing import DRAIN, HINTS, NAME, WHERE, hook_words, markdown_commands, skill

_PLUGIN = Path(__file__).with_name("plugin.js")
#: The client writes this into settings that lack it, and a file that we have made would look like its user's.
_SCHEMA = "https://opencode.ai/config.json"


def edits(places: SearchPlaces, project: Path | None, programs: InstallPrograms) -> Sequence[Edit]:
    """Everything that is written."""
    folder = project / ".opencode" if project else _home(places)
    words = {
        "NOTE": hook_words(programs),
        "DRAIN": hook_words(programs, DRAIN),
        "START": hook_words(programs, DRAIN, WHERE),
        "PROMPT": hook_words(programs, HINTS),
    }
    lines = ",\n".join(f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in words.items())
    text = _PLUGIN.read_text("utf-8").replace("{/* words */}", f"{{\n{lines},\n}}")
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
    """The one that is there: it reads both."""
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


def _home(places: SearchPlaces) -> Path:
    if named := places.env.get("OPENCODE_CONFIG_DIR", "").strip():
        return Path(named)
    config = places.env.get("XDG_CONFIG_HOME", "").strip()
    return (Path(config) if config else places.home / ".config") / "opencode"
