"""The home folder of each program: settings that answer what a person is asked once, and the scripted model's address.

Each function writes a home and returns the environment the program needs beside PATH, HOME and the terminal. Nothing of the
user's own home is read. The folder is trusted, updates are off, and tools run without a question unless the scenario `asks`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "some-model"
_KEY = "sk-ant-local-scripted-key"


@dataclass(frozen=True)
class Home:
    """A home with a working folder, and the model's address."""

    path: Path
    root: str  # http://127.0.0.1:PORT
    binary: Path
    asks: bool = False
    theme: str = ""  # of OpenCode; its default theme unless given

    @property
    def work(self) -> Path:
        """The working folder."""
        return self.path / "work"

    def put(self, name: str, content: str | dict[str, Any]) -> None:
        """Write a file of the home."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


# opencode -------------------------------------------------------------------------------------------------------------
def settle_opencode_1(home: Home) -> Mapping[str, str]:
    """OpenCode 1.x."""
    _put_opencode_settings(home)
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", **_npm_settings()}


def settle_opencode_0(home: Home) -> Mapping[str, str]:
    """OpenCode 0.x. It wants the newest provider package, which it cannot read; the one of its time is put in its cache."""
    _put_opencode_settings(home)
    provider = next(parent / "provider" for parent in home.binary.parents if (parent / "provider").is_dir())
    cache = home.path / ".cache" / "opencode"
    shutil.copytree(provider / "node_modules", cache / "node_modules", symlinks=True)
    home.put(".cache/opencode/package.json", {"dependencies": {"@ai-sdk/openai-compatible": "latest"}})
    home.put(".cache/opencode/version", "9")
    # The default plugins are no longer published.
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", **_npm_settings()}


def settle_opencode_0_1(home: Home) -> Mapping[str, str]:
    """OpenCode 0.1: other names for the settings, and fewer of them."""
    env = settle_opencode_0(home)
    known = json.loads((home.path / ".config/opencode/opencode.json").read_text("utf-8"))
    own = {name: known[name] for name in ("autoupdate", "model", "provider")}
    (home.path / ".config/opencode/opencode.json").unlink()
    # The providers that fetch something from the network when the program starts.
    home.put(".config/opencode/config.json", own | {"disabled_providers": ["github-copilot", "anthropic"]})
    home.put(".cache/opencode/models.json", "{}")
    return env


def _put_opencode_settings(home: Home) -> None:
    free = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
    model = {"name": MODEL, "cost": free, "limit": {"context": 128000, "output": 4096}, "tool_call": True}
    local = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Local",
        "options": {"baseURL": f"{home.root}/v1", "apiKey": "k"},
        "models": {MODEL: model},
    }
    permission = "ask" if home.asks else "allow"
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": f"local/{MODEL}",
        "small_model": f"local/{MODEL}",
        "permission": {"bash": permission, "edit": permission},
        "provider": {"local": local},
    } | ({"theme": home.theme} if home.theme else {})
    home.put(".config/opencode/opencode.json", settings)


def _npm_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.lower().startswith("npm_config_")}


# claude ---------------------------------------------------------------------------------------------------------------
def settle_claude(home: Home) -> Mapping[str, str]:
    """Claude Code."""
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    home.put(
        ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
            "projects": {str(home.work): project},
        },
    )
    allowed = [] if home.asks else ["Bash", "Edit", "Write", "Read", "TodoWrite"]
    home.put(".claude/settings.json", {"permissions": {"allow": allowed}})
    return {
        "ANTHROPIC_BASE_URL": home.root,
        "ANTHROPIC_API_KEY": _KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_ENABLE_TASKS": "false",  # one todo list, as in older versions and the other programs
    }


# codex ----------------------------------------------------------------------------------------------------------------
def settle_codex(home: Home) -> Mapping[str, str]:
    """Codex."""
    approval, sandbox = ("on-request", "read-only") if home.asks else ("never", "danger-full-access")
    home.put(
        ".codex/config.toml",
        f'model = "{MODEL}"\nmodel_provider = "local"\napproval_policy = "{approval}"\nsandbox_mode = "{sandbox}"\n'
        "check_for_update_on_startup = false\n"
        f'[model_providers.local]\nname = "local"\nwire_api = "responses"\nenv_key = "LOCAL_KEY"\n'
        f'base_url = "{home.root}/v1"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        "[features]\ndaemon_auto_start = false\n"
        f'[projects."{home.work}"]\ntrust_level = "trusted"\n',
    )
    return {"LOCAL_KEY": "k"}


# gemini ---------------------------------------------------------------------------------------------------------------
def settle_gemini(home: Home) -> Mapping[str, str]:
    """Gemini CLI."""
    home.put(
        ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
            "privacy": {"usageStatisticsEnabled": False},
            "model": {"name": "gemini-2.5-flash"},  # else it asks a model first which one to ask
        },
    )
    home.put(".gemini/trustedFolders.json", {str(home.work): "TRUST_FOLDER"})
    return {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": home.root}
