"""The real agent programs, each in a home of its own, talking to a scripted model on this machine."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from everturn.sources.contract import SearchPlaces
from tests.model_server import ModelServer

#: Where the programs are installed (`node_modules/.bin` below it); "1": they are on the PATH.
WHERE = "EVERTURN_TEST_AGENTS"
PROGRAMS = {"claude_code": "claude", "codex": "codex", "opencode": "opencode", "gemini": "gemini"}

_CODEX = ("--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"', "-c", 'approval_policy="never"')


@dataclass(frozen=True)
class Client:
    """One program: how it is set up, spoken to, and which of its tools runs a command."""

    name: str
    settle: Callable[[Path, ModelServer], None]  # write its settings
    env: Callable[[ModelServer], Mapping[str, str]]
    new: Callable[[str], list[str]]  # the command that begins a session with a prompt
    again: Callable[[list[str], str], list[str]]  # given everturn's command to resume: the same without a terminal
    shell: tuple[str, Callable[[str], dict[str, str]]]  # its tool that runs a command, and the arguments of it


@dataclass(frozen=True)
class Run:
    """A home with a working folder and one program in it."""

    client: Client
    home: Path
    server: ModelServer
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        """The working folder."""
        return self.home / "work"

    @property
    def env(self) -> dict[str, str]:
        """What the program finds in its environment: nothing of the machine but where programs are."""
        return {"PATH": search_path(), "HOME": str(self.home), "TERM": "xterm", **self.client.env(self.server)}

    def settle(self) -> Run:
        """Make the home ready."""
        self.work.mkdir(parents=True, exist_ok=True)
        self.client.settle(self.home, self.server)
        return self

    def places(self) -> SearchPlaces:
        """Where everturn looks for the sessions of this home."""
        return SearchPlaces(self.home, self.env, "linux")

    def begin(self, prompt: str) -> str:
        """A new session; what was printed."""
        return self.run(self.client.new(prompt))

    def again(self, command: list[str], prompt: str) -> str:
        """Go on with a session by everturn's own command for it."""
        return self.run(self.client.again(command, prompt))

    def run(self, command: list[str]) -> str:
        """Run the program to its end."""
        done = subprocess.run(
            command, cwd=self.work, env=self.env, capture_output=True, text=True, timeout=180, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout


def search_path() -> str:
    """The PATH with the programs of the test suite first."""
    named = os.environ.get(WHERE, "")
    own = [str(Path(named) / "node_modules" / ".bin")] if named not in ("", "0", "1") else []
    return os.pathsep.join([*own, os.environ["PATH"]])


# Settings say what a person would be asked about once: that the folder is trusted, the key known, the theme chosen.
# claude ---------------------------------------------------------------------------------------------------------------
def _claude_env(server: ModelServer) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": server.root,
        "ANTHROPIC_API_KEY": "sk-ant-local",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


def _claude_settings(home: Path, server: ModelServer) -> None:
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known = {"customApiKeyResponses": {"approved": ["sk-ant-local"]}, "projects": {str(home / "work"): project}}
    _put(home / ".claude.json", json.dumps({"hasCompletedOnboarding": True, "theme": "dark", **known}))


def _claude(prompt: str) -> list[str]:
    return [
        "claude",
        "-p",
        prompt,
        "--output-format",
        "json",
        "--dangerously-skip-permissions",
        "--model",
        "some-model",
    ]


# codex ----------------------------------------------------------------------------------------------------------------
def _codex_settings(home: Path, server: ModelServer) -> None:
    _put(
        home / ".codex" / "config.toml",
        # By default it waits a second for an MCP server, and a busy machine needs longer to start one.
        'model = "some-model"\nmodel_provider = "local"\nmcp_optional_startup_grace_ms = 0\n[model_providers.local]\nname = "local"\nwire_api = "responses"\n'
        f'env_key = "LOCAL_KEY"\nbase_url = "{server.base}"\n[features]\ndaemon_auto_start = false\n'
        f'[projects."{home / "work"}"]\ntrust_level = "trusted"\n',
    )


# opencode -------------------------------------------------------------------------------------------------------------
def _opencode_settings(home: Path, server: ModelServer) -> None:
    options = {"baseURL": server.base, "apiKey": "k"}
    local = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"some-model": {}}}
    model = "local/some-model"
    settings = {"provider": {"local": local}, "model": model, "small_model": model, "autoupdate": False}
    _put(home / ".config" / "opencode" / "opencode.json", json.dumps(settings))


# gemini ---------------------------------------------------------------------------------------------------------------
def _gemini_settings(home: Path, server: ModelServer) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True},
        "model": {"name": "gemini-2.5-flash"},  # else it asks a model first which one to ask
    }
    _put(home / ".gemini" / "settings.json", json.dumps(settings))
    _put(home / ".gemini" / "trustedFolders.json", json.dumps({str(home / "work"): "TRUST_FOLDER"}))


def _gemini_words(prompt: str) -> list[str]:
    return ["-m", "gemini-2.5-flash", "-p", prompt, "-o", "json", "--skip-trust", "--approval-mode", "yolo"]


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude_code",
            settle=_claude_settings,
            env=_claude_env,
            new=_claude,
            again=lambda command, prompt: [*_claude(prompt), *command[1:]],
            shell=("Bash", lambda command: {"command": command, "description": "look"}),
        ),
        Client(
            "codex",
            settle=_codex_settings,
            env=lambda server: {"LOCAL_KEY": "k"},
            new=lambda prompt: ["codex", "exec", "--json", *_CODEX, prompt],
            again=lambda command, prompt: ["codex", "exec", "resume", "--json", *_CODEX, *command[2:], prompt],
            shell=("exec_command", lambda command: {"cmd": command}),
        ),
        Client(
            "opencode",
            settle=_opencode_settings,
            env=lambda server: {},
            new=lambda prompt: ["opencode", "run", "--format", "json", prompt],
            again=lambda command, prompt: ["opencode", "run", "--format", "json", *command[1:], prompt],
            shell=("bash", lambda command: {"command": command, "description": "look"}),
        ),
        Client(
            "gemini",
            settle=_gemini_settings,
            env=lambda server: {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": server.root},
            new=lambda prompt: ["gemini", *_gemini_words(prompt)],
            again=lambda command, prompt: [*command, *_gemini_words(prompt)],
            shell=("run_shell_command", lambda command: {"command": command}),
        ),
    )
}
